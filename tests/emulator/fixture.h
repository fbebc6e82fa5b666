#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/device.h"

namespace heddle::emulator {

// A variable of the environment, as it was before when the test ends.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = std::make_unique<std::string>(old);
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_ == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, old_->c_str(), 1);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::unique_ptr<std::string> old_;
};

// Compiles units for the emulator and launches their kernels.
class EmulatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0); }
  void SetUp() override { context = std::make_unique<runtime::CudaContext>(0); }

  void load(const std::string& unit) {
    module = std::make_unique<runtime::CudaModule>(
        *context, jit::compile_cubin(unit, context->device().target.architecture(), false).bytes);
  }
  template <typename... Args>
  void launch(const char* symbol, unsigned grid, unsigned block, unsigned shared_bytes, Args... args) {
    void* pointers[] = {&args..., nullptr};
    const CudaDriver& driver = context->driver();
    CudaLaunchConfig config;
    config.grid[0] = grid;
    config.block[0] = block;
    config.shared_bytes = shared_bytes;
    config.stream = context->stream();
    driver.check(driver.launch(&config, module->function(symbol, shared_bytes), pointers, nullptr), symbol);
    driver.check(driver.stream_synchronize(context->stream()), symbol);
  }
  // What the error says; "" where there is none.
  template <typename... Args>
  std::string failure(const char* symbol, unsigned grid, unsigned block, unsigned shared_bytes, Args... args) {
    try {
      launch(symbol, grid, block, shared_bytes, args...);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  template <typename T>
  std::vector<T> read(const runtime::CudaBuffer& buffer) {
    std::vector<T> values(buffer.size() / sizeof(T));
    buffer.read(values.data(), values.size() * sizeof(T));
    return values;
  }
  runtime::CudaBuffer buffer(size_t bytes) { return runtime::CudaBuffer(*context, bytes); }

  std::unique_ptr<runtime::CudaContext> context;
  std::unique_ptr<runtime::CudaModule> module;
};

}  // namespace heddle::emulator
