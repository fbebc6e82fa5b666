#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "driver/model/kernel_set.h"
#include "runtime/plan.h"
#include "target/target.h"

namespace heddle::driver {

// Kernels as machine code of the target, for Plan::library and Plan::cubins.
struct MachineCode {
  std::string library;
  std::vector<runtime::Cubin> cubins;
  bool from_cache = false;
};

// Called, by one thread at a time, as kernels are compiled: `done` of `count` kernels, and their share of the work.
using KernelProgress = std::function<void(size_t done, size_t count, double share)>;

// compile_kernels() (driver/target/backend.h) for one kind of target, if there are kernels.
MachineCode compile_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache,
                            const KernelProgress& progress);
// The library of compile_library() with line tables, which is cached with it, and the texts of its units. In the tables
// each unit is the file jit::unit_file(unit).
struct LinedLibrary {
  std::string bytes;
  std::vector<std::string> units;
};
LinedLibrary compile_lined_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache = true);
// Compiles the kernels that launch any of `symbols` again, without other kernels of their unit and with line tables, in
// which `text` is the file kernel.cu. `relaxed`: with more registers if they spill, as compile_cubins() may have
// decided.
struct LinedCubin {
  std::string bytes;
  std::string text;
};
LinedCubin compile_lined_cubin(const KernelSet& kernels, const std::set<std::string>& symbols, const CudaTarget& target,
                               bool relaxed, bool use_cache = true);
MachineCode compile_cubins(const KernelSet& kernels, const CudaTarget& target, int jobs, bool use_cache,
                           const KernelProgress& progress);

}  // namespace heddle::driver
