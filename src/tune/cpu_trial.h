#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/thread/thread_pool.h"
#include "jit/library.h"
#include "schedule/kernel_desc.h"
#include "tune/tuner.h"

namespace heddle::tune {

// Facts from the graph about values that kernels read or write.
struct GraphValues {
  std::function<const Tensor*(uint32_t value)> constant_of;  // null if it is no constant
  std::function<DType(uint32_t value)> dtype_of;             // kernels that only copy take bits of any type as integers
};

// Candidates on the CPU, each with the kernels of one whole group. They are compiled together and run over a thread
// pool on random data (constants are real). Before each run, as much memory is swept as the rest of the model would
// touch, then the group's inputs are read once: weights come from memory, activations from where their producer left
// them.
//
// Times are CPU time if the plan has one thread, since other programs do not disturb it; otherwise wall time.
class CpuTrial : public GroupTrial {
 public:
  // `groups` are schedules of one group that differ in their configurations. `flush_bytes` is the memory that a run of
  // the model touches. Throws what the compiler throws, and kOutOfMemory.
  CpuTrial(std::vector<schedule::ScheduledGroup> groups, const Target& target, const GraphValues& graph,
           int64_t flush_bytes);
  ~CpuTrial() override;

  size_t size() const override { return programs_.size(); }
  double run(size_t candidate) override;
  std::string check(size_t candidate) override;
  std::vector<double> values(uint32_t value) const override;

 private:
  struct Buffer {
    std::shared_ptr<std::byte> memory;
    DType dtype = DType::kF32;
    int64_t elements = 0, bytes = 0;
    bool is_activation = false, is_result = false;
  };
  struct Step {
    jit::Kernel kernel = nullptr;
    std::vector<void*> operands;
    int64_t tasks = 1;
  };
  using Program = std::vector<Step>;

  void load(const std::vector<schedule::ScheduledGroup>& groups, const Target& target);
  void place(const schedule::ScheduledGroup& group, const GraphValues& graph, Program& program);
  void* buffer_of(const schedule::Operand& operand, const schedule::Binding& binding, const GraphValues& graph);
  void* packed_of(const schedule::Operand& operand, uint32_t value, const Tensor& constant);
  void make_cold();
  void execute(const Program& program);

  std::shared_ptr<const jit::Library> library_;
  std::vector<Program> programs_;
  std::map<uint32_t, Buffer> buffers_;                                                // by value
  std::map<std::tuple<uint32_t, std::string, std::vector<int64_t>>, Tensor> packed_;  // by value and packing
  std::vector<std::shared_ptr<std::byte>> workspaces_;
  std::shared_ptr<std::byte> scratch_, flush_;
  int64_t scratch_stride_ = 0, flush_bytes_;
  ThreadPool pool_;
  std::map<uint32_t, std::vector<double>> expected_;  // results of the first candidate that was checked
};

}  // namespace heddle::tune
