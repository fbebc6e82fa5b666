#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/arguments.h"
#include "driver/tune/group_bench.h"

namespace heddle::cli {

// The result of compiling one unit.
struct CompiledUnit {
  std::string what;
  bool failed = false;
};
// Compiles each distinct unit once, on all cores.
std::map<std::string, CompiledUnit> compile_units(const std::set<std::string>& distinct, const CudaTarget& target,
                                                  bool use_cache);
// The chip of --chip, else the one of --sm: the target of kernels if there is no GPU.
CudaTarget chip_target(const KernelArguments& arguments);

// The target of kernels: the CPU, a chip that need not be present, or the GPU of --device. Throws kDevice if that GPU
// is missing.
Target group_target(const Arguments& arguments);

// Lists and compiles the candidates of one operator without a device, or times them and compares the fastest with
// float64, as the options of `heddle kernel` say. `description` describes the problem at the head of the --json output.
// Returns the exit status.
int run_group(const driver::GroupProblem& problem, const Target& target, const nlohmann::json& description,
              const Arguments& arguments);

}  // namespace heddle::cli
