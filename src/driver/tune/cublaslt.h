#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "runtime/cuda/device.h"

namespace heddle::driver {

// NVIDIA's cuBLASLt, for comparison in benchmarks. It is loaded if it is installed and never required.
class CublasLt {
 public:
  // Returns null, with the reason in `why`, if the library cannot be loaded.
  static std::unique_ptr<CublasLt> load(const runtime::CudaContext& context, std::string& why);
  ~CublasLt();

  // Prepares the algorithms that cuBLASLt's heuristics return for an unbatched problem, at most 32, with 64 MiB of
  // workspace. The problem must be resolved (ops::resolve()). `operands` begin with A, B, D. There are no algorithms if
  // cuBLASLt does not support the problem.
  struct Problem;
  std::shared_ptr<Problem> prepare(const ops::GemmProblem& problem, const std::vector<uint64_t>& operands);
  static int algorithms(const Problem& problem);
  // Enqueues on the context's stream. Returns false if the algorithm failed.
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
