#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/executor.h"

namespace heddle::runtime {

struct Program;
struct Context;

// Runs a plan for a CPU on a thread pool.
class CpuExecutor : public Executor {
 public:
  CpuExecutor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
              std::shared_ptr<const Interpreter> interpreter, const Libraries& libraries = {});
  ~CpuExecutor() override;

  std::vector<Tensor> run(std::span<const Tensor> inputs, const Observer& observe = {},
                          std::span<const Tensor> into = {}) const override;
  void run_at(std::span<void* const> addresses) const override;
  int64_t bytes_per_run() const override;

 private:
  std::unique_ptr<Context> take_context() const;
  void run_at(std::span<void* const> addresses, const Observer& observe) const;
  void run_in(Context& context, std::span<void* const> addresses, const Observer& observe) const;

  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<const Interpreter> interpreter_;
  std::unique_ptr<const Program> program_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> free_;
};

}  // namespace heddle::runtime
