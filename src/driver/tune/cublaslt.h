#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/ops.h"
#include "runtime/cuda/device.h"

namespace heddle::driver {

// NVIDIA's cuBLASLt, for comparison in benchmarks. It is optional: it is loaded if it is installed.
class CublasLt {
 public:
  // Returns null, with the reason in `why`, if the library cannot be loaded.
  static std::unique_ptr<CublasLt> load(const runtime::CudaContext& context, std::string& why);
  ~CublasLt();

  // Prepares the algorithms that cuBLASLt's heuristics return for an unbatched problem: at most 32, with a workspace of
  // 64 MiB. The problem must be resolved (ops::resolve()). `operands` begins with A, B and D. If cuBLASLt does not
  // support the problem, the result has no algorithms.
  struct Problem;
  std::shared_ptr<Problem> prepare(const ops::GemmProblem& problem, const std::vector<uint64_t>& operands);
  static int algorithms(const Problem& problem);
  // Enqueues the problem on the context's stream. Returns false if the algorithm failed.
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
