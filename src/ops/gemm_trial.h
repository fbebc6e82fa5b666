#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/gemm_workload.h"
#include "ops/prepared_kernel.h"
#include "tune/tuner.h"

namespace heddle::ops {

// Runs and checks candidate kernels for a product on a GPU. The candidates are compiled in parallel. Each candidate
// runs as a separate CUDA graph, with a cold L2.
class GemmTrial : public tune::Trial {
 public:
  struct Options {
    bool reference = false;  // check against sums that are computed in double
    bool use_cache = true;
    uint64_t seed = 1;
  };
  struct Candidate {
    schedule::CudaCandidate candidate;
    double compile_seconds = 0;
    bool from_cache = false;
    double error = -1;    // GemmWorkload::check(); -1: not checked
    std::string failure;  // why it did not compile
  };

  // Throws kNoCompiler, kDevice, kOutOfMemory.
  GemmTrial(const runtime::CudaContext& context, const ResolvedGemm& gemm,
            std::vector<schedule::CudaCandidate> candidates, const Options& options);
  ~GemmTrial() override;

  size_t size() const override { return candidates_.size(); }
  double run(size_t candidate) override;
  std::string check(size_t candidate) override;
  void repeat(size_t candidate, int64_t runs) override;

  const std::vector<Candidate>& candidates() const { return candidates_; }
  const GemmWorkload& workload() const { return workload_; }
  const runtime::CudaGraph& graph(size_t candidate);  // the candidate must have compiled
  runtime::CudaTimer& timer() { return timer_; }

 private:
  struct Instance;
  void compile(const Options& options);

  const runtime::CudaContext& context_;
  const ResolvedGemm& gemm_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<Instance>> instances_;
  GemmWorkload workload_;
  runtime::CudaTimer timer_;
};

}  // namespace heddle::ops
