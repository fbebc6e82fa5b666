#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/arguments.h"
#include "driver/tune/group_bench.h"

namespace heddle::cli {

// What came of compiling one unit.
struct CompiledUnit {
  std::string what;
  bool failed = false;
};
// Each distinct unit once, on all cores.
std::map<std::string, CompiledUnit> compile_units(const std::set<std::string>& distinct, const CudaTarget& target,
                                                  bool use_cache);
// The chip of --chip, else the one of --sm, for which kernels are made where there is no GPU.
CudaTarget chip_target(const KernelArguments& arguments);

// What kernels are made for: the CPU, a chip that need not be here, or the GPU of --device. Throws kDevice without it.
Target group_target(const Arguments& arguments);

// Candidates of one operator as the options of `heddle kernel` say: listed and compiled without a device, or timed, the
// fastest compared with float64. `description`: of the problem, at the head of what --json prints. The exit status.
int run_group(const driver::GroupProblem& problem, const Target& target, const nlohmann::json& description,
              const Arguments& arguments);

}  // namespace heddle::cli
