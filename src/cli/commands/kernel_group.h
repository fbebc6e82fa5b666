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
// Compiles each distinct unit once, on all cores. Returns the results by unit.
std::map<std::string, CompiledUnit> compile_units(const std::set<std::string>& distinct, const CudaTarget& target,
                                                  bool use_cache);
// Returns the GPU target to use if there is no GPU: the chip that --chip names, or else the chip that --sm selects.
CudaTarget chip_target(const KernelArguments& arguments);

// Returns the target of kernels: the CPU, a chip that need not be present, or the GPU that --device selects. Throws
// kDevice if the selected GPU is missing.
Target group_target(const Arguments& arguments);

// Runs the command `heddle kernel` for one operator. Depending on the options, it lists and compiles the candidate
// kernels without a device, or it times them and compares the result of the fastest kernel with a float64 reference.
// `description` describes the problem at the start of the --json output. Returns the exit status.
int run_group(const driver::GroupProblem& problem, const Target& target, const nlohmann::json& description,
              const Arguments& arguments);

}  // namespace heddle::cli
