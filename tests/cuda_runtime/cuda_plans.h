#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "jit/cuda/nvrtc.h"
#include "target/cuda_driver.h"
#include "tests/runtime/plans.h"

namespace heddle::runtime {

// A variable of the environment, as it was before when the test ends.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

inline bool has_gpu() {
  return !cuda_devices().empty();
}
inline bool is_emulated() {
  return has_gpu() && cuda_devices()[0].target.emulated;
}

// The kernels of kernel_library() for a GPU.
inline const Cubin& cuda_kernels() {
  static const Cubin cubin = [] {
    const std::string text = R"(
      #include <stdint.h>
      extern "C" __global__ void __launch_bounds__(32) axpy(const float* a, const float* b, float* y) { y[threadIdx.x] = a[threadIdx.x] + 2 * b[threadIdx.x]; }
      extern "C" __global__ void __launch_bounds__(32) increment(const float* a, float* y) { y[threadIdx.x] = a[threadIdx.x] + 1; }
      extern "C" __global__ void __launch_bounds__(32) below_five(const float* a, uint8_t* y) { *y = *a < 5; }
      extern "C" __global__ void __launch_bounds__(32) add_index(const float* a, const int64_t* i, float* y) { *y = *a + (float)*i; }
      extern "C" __global__ void __launch_bounds__(32) count(float* y, int* counter) {
        y[threadIdx.x] = (float)*counter;
        __syncthreads();
        if (threadIdx.x == 0) *counter = 0;
      }
      extern "C" __global__ void __launch_bounds__(32) take(int* counter) { atomicAdd(counter, 1); }
      extern "C" __global__ void __launch_bounds__(32) fill(float* y, int n) { for (int i = threadIdx.x; i < n; i += 32) y[i] = 1; }
      extern "C" __global__ void __launch_bounds__(32) crash(float* y) { y[int64_t{1} << 44] = 1; }
    )";
    const std::string architecture = cuda_devices().at(0).target.architecture();
    return Cubin{jit::compile_cubin(text, architecture, true).bytes,
                 {"axpy", "increment", "below_five", "add_index", "count", "take", "fill", "crash"}};
  }();
  return cubin;
}

// A launch of one block whose arguments are pointers to the operands.
inline CudaLaunch launch_of(const std::string& symbol, int operands, uint32_t threads) {
  CudaLaunch launch;
  launch.symbol = symbol;
  launch.block = threads;
  for (int i = 0; i < operands; ++i) {
    launch.arguments.emplace_back(8);
    launch.pointers.push_back({i, 0, i});
  }
  return launch;
}

// The same plan for a GPU.
inline std::shared_ptr<const Plan> on_gpu(const Plan& cpu, bool outermost = true) {
  auto plan = std::make_shared<Plan>(cpu);
  plan->library.clear();
  for (Step& step : plan->steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step.action)) {
      CudaStep launches;
      launches.operands = kernel->operands;
      if (kernel->tasks > 0) {
        launches.launches = {
            launch_of(kernel->symbol, static_cast<int>(kernel->operands.size()), static_cast<uint32_t>(kernel->tasks))};
      }
      step.action = launches;
    } else if (auto* loop = std::get_if<LoopStep>(&step.action)) {
      loop->body = on_gpu(*loop->body, false);
    } else if (auto* branch = std::get_if<BranchStep>(&step.action)) {
      branch->then_body = on_gpu(*branch->then_body, false);
      branch->else_body = on_gpu(*branch->else_body, false);
    }
  }
  if (outermost) {
    plan->cubins = {cuda_kernels()};
    plan->target = "cuda-test";
    validate(*plan);
  }
  return plan;
}

}  // namespace heddle::runtime
