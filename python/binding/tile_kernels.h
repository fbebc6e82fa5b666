#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/thread/thread_pool.h"
#include "lang/cuda/kernel.h"
#include "lang/ir/kernel.h"

namespace heddle::python {

using Grid = std::array<int64_t, 3>;

// The C++ side of heddle._core.tile.DeviceKernel: a kernel compiled for a GPU, with the types of its parameters.
struct DeviceKernel {
  lang::Kernel kernel;
  std::shared_ptr<const lang::cuda::CudaKernel> compiled;
};

// Returns the thread pool that all kernels on the CPU share. The first launch creates it.
ThreadPool& tile_threads();

}  // namespace heddle::python
