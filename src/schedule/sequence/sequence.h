#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/kernel_plan.h"

namespace heddle::schedule {

inline constexpr uint32_t kQueueSharedBytes = 16;
inline constexpr int kSequenceRegisters = 128;  // of a thread, at most, where the number of blocks of an SM is chosen

// Consecutive kernels of a plan in one launch (tile/op/cuda/sequence.h). Each kernel is a phase. The blocks of all
// phases are tasks, which the blocks of the launch take in the order of the phases.
struct SequenceDesc {
  // When the L2 is asked for the data of a task. Requests never return old data, so only what decides which data these
  // are must be known.
  enum class Ahead : uint8_t {
    kNone,
    kWithTask,  // when a block has taken the task, before it waits for other phases
    kAtStart,   // when the launch begins, before the previous launch has ended
  };
  struct Phase {
    KernelDesc desc;  // a stitch kernel, an attention of few rows or a product by `skinny`
    Config config;
    std::string label;
    size_t first = 0;                 // its operands are [first, first + desc.operands.size()) of the sequence's
    std::optional<size_t> workspace;  // the operand that is its workspace
    int64_t counters = 0;             // the byte offset of its counters in those of the sequence
    std::vector<size_t> after;        // the phases for which its tasks wait, without those that these wait for
    Ahead ahead = Ahead::kNone;       // when its tasks request data that comes from memory
  };
  std::vector<Phase> phases;
  int threads = 0;            // of a block
  int resident = 1;           // blocks of an SM, for which registers are limited
  uint32_t shared_bytes = 0;  // of a block; the last kQueueSharedBytes are those of the queue

  // The bytes of the counters ahead of those of the phases.
  int64_t queue_bytes() const;
};

// Plans the launch of a sequence without the arguments of its phases. The counters are operand `operands` + 1.
KernelLaunches plan_launches(const SequenceDesc& sequence, const GpuTarget& target, size_t operands);

// A kernel of a plan. `memory` identifies the memory of each operand and, if the kernel has one, of its workspace after
// them. Operands may overlap if and only if their numbers are equal. kConstantMemory is never written.
inline constexpr int64_t kConstantMemory = -1;
struct PlannedKernel {
  const ScheduledKernel* kernel = nullptr;
  std::vector<int64_t> memory;
  bool has_workspace = false;
};

// The decision about consecutive kernels of a plan.
struct SequencePlan {
  struct Joined {
    size_t first = 0, count = 0;  // the kernels
    ScheduledKernel kernel;       // bindings of workspaces are those of kWorkspace 0
  };
  std::vector<Joined> joined;
  // For each kernel: why it does not follow the kernel before it in a sequence. "" if it does, and if the kernel before
  // it can be in no sequence.
  std::vector<std::string> notes;
};

// Joins those runs of consecutive kernels for which the model predicts less time.
SequencePlan plan_sequences(const std::vector<PlannedKernel>& kernels, const GpuTarget& target);

}  // namespace heddle::schedule
