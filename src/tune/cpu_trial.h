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

// Properties of the values that kernels read or write, from the graph. (A kernel that only copies treats elements of
// any type as integers, so its operand types differ from the values' types.)
struct GraphValues {
  std::function<const Tensor*(uint32_t value)> constant_of;  // null if the value is not a constant
  std::function<DType(uint32_t value)> dtype_of;             // the value's type in the graph
};

// Times the candidates of a group on the CPU. Each candidate consists of the kernels of the whole group. All
// candidates are compiled together and run on a thread pool, on random data (constants have their real values). Before
// each run, the trial writes as much memory as a run of the model would touch, then reads the group's activations once.
// So weights are loaded from memory, and activations from the caches where their producer would leave them.
//
// A plan with one thread is timed by CPU time, which other programs do not disturb. A plan with several threads is
// timed by wall time.
class CpuTrial : public GroupTrial {
 public:
  // `groups` are schedules of one group with different configurations. `flush_bytes` is the amount of memory that a
  // run of the model touches. Throws what the compiler throws, and kOutOfMemory.
  CpuTrial(std::vector<schedule::ScheduledGroup> groups, const Target& target, const GraphValues& graph,
           int64_t flush_bytes);
  ~CpuTrial() override;

  size_t size() const override { return programs_.size(); }
  double run(size_t candidate) override;
  std::string check(size_t candidate) override;
  void repeat(size_t candidate, int64_t runs) override;
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
