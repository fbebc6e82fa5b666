#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "driver/model/kernel_set.h"
#include "runtime/plan.h"
#include "target/target.h"

namespace heddle::driver {

// Kernels as the target runs them: what goes into Plan::library and Plan::cubins.
struct MachineCode {
  std::string library;
  std::vector<runtime::Cubin> cubins;
  bool from_cache = false;
};

// Told, by one thread at a time, of kernels that are compiled: how many of how many, and their share of the work.
using KernelProgress = std::function<void(size_t done, size_t count, double share)>;

// compile_kernels() (driver/target/backend.h) for one kind of target, where there are kernels.
MachineCode compile_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache,
                            const KernelProgress& progress);
// The library of compile_library() with tables of lines, which is in the cache with it, and the texts of its units,
// which are files of the names jit::unit_file() there.
struct LinedLibrary {
  std::string bytes;
  std::vector<std::string> units;
};
LinedLibrary compile_lined_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache = true);
// The kernels that launch any of these, once more and without their neighbours, with tables of lines in which `text` is
// the file kernel.cu. `relaxed`: with more registers where they spill, as compile_cubins() may have decided.
struct LinedCubin {
  std::string bytes;
  std::string text;
};
LinedCubin compile_lined_cubin(const KernelSet& kernels, const std::set<std::string>& symbols, const CudaTarget& target,
                               bool relaxed, bool use_cache = true);
MachineCode compile_cubins(const KernelSet& kernels, const CudaTarget& target, int jobs, bool use_cache,
                           const KernelProgress& progress);

}  // namespace heddle::driver
