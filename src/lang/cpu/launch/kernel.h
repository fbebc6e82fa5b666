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

// A kernel of the tile language, compiled for this machine's CPU. Several threads may launch it at once.
class CpuKernel {
 public:
  // Throws kNoCompiler, kCompilerFailed, and kUnsupportedOperator for ops that only a GPU runs.
  static std::shared_ptr<const CpuKernel> compile(Kernel kernel, const Target& target, bool use_cache = true);
  // Several kernels in one library, compiled together.
  static std::vector<std::shared_ptr<const CpuKernel>> compile_all(std::vector<Kernel> kernels, const Target& target,
                                                                   bool use_cache = true);

  const Kernel& kernel() const { return kernel_; }
  const std::string& text() const { return program_.text; }

  // Runs all programs of the grid and waits for them. If an assertion fails, throws kValueOutOfRange after all have
  // run.
  using Print = std::function<void(const std::string&)>;
  void launch(std::array<int64_t, 3> grid, std::span<const Argument> arguments, ThreadPool& pool,
              const Print& print = {}) const;
  // The same with the words that argument_words() makes of the arguments.
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
