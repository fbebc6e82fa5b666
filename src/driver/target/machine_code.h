#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "driver/model/kernel_set.h"
#include "runtime/plan.h"
#include "target/target.h"

namespace heddle::driver {

// Kernels compiled to machine code: the contents of Plan::library (CPU) or Plan::cubins (GPU).
struct MachineCode {
  std::string library;
  std::vector<runtime::Cubin> cubins;
  bool from_cache = false;
};

// Progress callback, called by one thread at a time while kernels are compiled: `done` of `count` kernels are finished,
// and `share` is their share of the total work.
using KernelProgress = std::function<void(size_t done, size_t count, double share)>;

// Does what compile_kernels() (driver/target/backend.h) does, for a CPU target. `kernels` must not be empty.
MachineCode compile_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache,
                            const KernelProgress& progress);
// The library of compile_library() with line tables, and the source texts of its units. The line tables refer to each
// unit as the file jit::unit_file(unit). The cache stores this library together with the library without line tables.
struct LinedLibrary {
  std::string bytes;
  std::vector<std::string> units;
};
LinedLibrary compile_lined_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache = true);
// The kernels to which launches refer by any of `symbols`, compiled again with line tables and without the other
// kernels of their unit. The line tables refer to `text` as the file kernel.cu. `relaxed`: kernels that spill registers
// may use more registers; pass the choice that compile_cubins() made.
struct LinedCubin {
  std::string bytes;
  std::string text;
};
LinedCubin compile_lined_cubin(const KernelSet& kernels, const std::set<std::string>& symbols, const CudaTarget& target,
                               bool relaxed, bool use_cache = true);
MachineCode compile_cubins(const KernelSet& kernels, const GpuTarget& target, int jobs, bool use_cache,
                           const KernelProgress& progress);

}  // namespace heddle::driver
