#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/thread/thread_pool.h"
#include "jit/library.h"
#include "lang/cpu/lower.h"
#include "lang/interpret/interpret.h"
#include "target/target.h"

namespace heddle::lang::cpu {

// A tile-language kernel compiled for this machine's CPU. Several threads may launch the same kernel at once.
class CpuKernel {
 public:
  // Throws kNoCompiler, kCompilerFailed, or (for ops that only a GPU supports) kUnsupportedOperator.
  static std::shared_ptr<const CpuKernel> compile(Kernel kernel, const Target& target, bool use_cache = true);
  // Compiles several kernels into one library.
  static std::vector<std::shared_ptr<const CpuKernel>> compile_all(std::vector<Kernel> kernels, const Target& target,
                                                                   bool use_cache = true);

  const Kernel& kernel() const { return kernel_; }
  const std::string& text() const { return program_.text; }

  // Runs all programs of the grid and waits for them. If an assertion fails, throws kValueOutOfRange after all programs
  // have run.
  using Print = std::function<void(const std::string&)>;
  void launch(std::array<int64_t, 3> grid, std::span<const Argument> arguments, ThreadPool& pool,
              const Print& print = {}) const;
  // Like the overload above, but takes the words that argument_words() returns for the arguments.
  void launch(std::array<int64_t, 3> grid, std::span<const uint64_t> words, ThreadPool& pool,
              const Print& print = {}) const;

 private:
  class Launch;
  CpuKernel(Kernel kernel, ProgramText program);

  const Kernel kernel_;
  const ProgramText program_;
  std::vector<std::pair<int64_t, const Op*>> reports_;  // ops that print or assert, by Uses::order()
  std::shared_ptr<const jit::Library> library_;
  jit::Kernel function_ = nullptr;
};

}  // namespace heddle::lang::cpu
