#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "runtime/cuda/device.h"

namespace heddle::driver {

// NVIDIA's library as a yardstick: loaded where it is installed, never needed.
class CublasLt {
 public:
  // Null where the library cannot be loaded, with the reason in `why`.
  static std::unique_ptr<CublasLt> load(const runtime::CudaContext& context, std::string& why);
  ~CublasLt();

  // The algorithms that its heuristics return for an unbatched problem, at most 32, with 64 MiB of workspace;
  // `operands` begin with A, B, D; the problem is resolved (ops::resolve()) Empty where it supports the problem not at
  // all.
  struct Problem;
  std::shared_ptr<Problem> prepare(const ops::GemmProblem& problem, const std::vector<uint64_t>& operands);
  static int algorithms(const Problem& problem);
  // Enqueues on the context's stream; false: the algorithm failed.
  bool enqueue(const Problem& problem, int algorithm) const;

 private:
  struct Api;
  CublasLt(const runtime::CudaContext& context, std::unique_ptr<Api> api);
  const runtime::CudaContext& context_;
  std::unique_ptr<Api> api_;
  void* handle_ = nullptr;
  runtime::CudaBuffer workspace_;
};

}  // namespace heddle::driver
