#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/cuda/launch.h"
#include "schedule/kernel_desc.h"
#include "tune/cpu_trial.h"
#include "tune/tuner.h"

namespace heddle::driver {

// Times the candidates for a group on a GPU. Each candidate consists of the kernels of the whole group, captured as a
// separate CUDA graph. Candidates run with a cold L2 on random data; constants have their real values. CudaTrial is
// the GPU counterpart of tune::CpuTrial. It is in this folder because it needs the runtime.
class CudaTrial : public tune::GroupTrial {
 public:
  // `groups` are schedules of one group with different configurations. A candidate that does not compile is marked as
  // failed; the others still run. Throws kNoCompiler, kDevice, kOutOfMemory.
  CudaTrial(std::vector<schedule::ScheduledGroup> groups, const Target& target, const tune::GraphValues& graph,
            std::shared_ptr<const runtime::CudaContext> context);
  ~CudaTrial() override;

  size_t size() const override { return candidates_.size(); }
  double run(size_t candidate) override;
  std::string check(size_t candidate) override;
  void repeat(size_t candidate, int64_t runs) override;
  std::vector<double> values(uint32_t value) const override;

 private:
  struct Buffer {
    std::unique_ptr<runtime::CudaBuffer> memory;
    DType dtype = DType::kF32;
    int64_t elements = 0;
    bool is_result = false, is_input = false;
  };
  struct Candidate;

  void place(const schedule::ScheduledGroup& group, const tune::GraphValues& graph, Candidate& candidate);
  uint64_t address_of(const schedule::Operand& operand, uint32_t value, const tune::GraphValues& graph);
  uint64_t upload(const Tensor& constant, const schedule::Packing& packing, uint32_t value);
  uint64_t scratch(int64_t bytes);

  std::shared_ptr<const runtime::CudaContext> context_;
  std::map<uint32_t, Buffer> buffers_;  // by value
  // By value and packing.
  std::map<std::tuple<uint32_t, std::string, std::vector<int64_t>>, std::unique_ptr<runtime::CudaBuffer>> constants_;
  std::vector<std::unique_ptr<runtime::CudaBuffer>> scratch_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::map<uint32_t, std::vector<double>> expected_;  // results of the first candidate that was checked
  runtime::CudaTimer timer_;
};

}  // namespace heddle::driver
