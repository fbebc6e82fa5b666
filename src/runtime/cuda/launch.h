#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/tensor_map.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// Writes the attributes of a launch (at most three) and returns their number. `may_overlap`: the launch may begin
// before the previous one ends if it is marked early.
unsigned launch_attributes(const CudaLaunch& launch, CudaLaunchAttribute* attributes, bool may_overlap = false);

// Launches a kernel on the stream of `config`. All launches go through here. If this thread has no current context,
// `context` becomes current. Throws kDevice; `symbol` names the kernel in the message.
void launch_kernel(const CudaContext& context, const CudaLaunchConfig& config, CudaDriver::Handle function,
                   void** arguments, const char* symbol);

// True if kernels may begin before earlier ones have ended (CudaLaunch::early). False with old drivers, and if
// HEDDLE_CUDA_OVERLAP is 0, which helps to find bugs that depend on the overlap.
bool may_overlap(const CudaContext& context);

// A launch with addresses filled in, ready to be enqueued many times. `operands` are device addresses, numbered as in
// the launch. Throws kInvalidArgument if the address of a tensor map is not aligned to 16 bytes.
class CudaBoundLaunch {
 public:
  CudaBoundLaunch(const CudaContext& context, CudaDriver::Handle function, const CudaLaunch& launch,
                  std::span<const uint64_t> operands);
  // `behind_kernel`: the previous operation on the stream is also a kernel launch, so that this one may begin early.
  void enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel = false) const;

 private:
  CudaDriver::Handle function_;
  CudaLaunch launch_;  // its arguments hold the addresses
  std::vector<TensorMap> maps_;
};

// Launches of kernels of one module.
class CudaSequence {
 public:
  CudaSequence(const CudaContext& context, const CudaModule& module, const std::vector<CudaLaunch>& launches,
               const std::vector<uint64_t>& operands);
  void enqueue() const;  // on the context's stream

 private:
  const CudaContext& context_;
  std::vector<CudaBoundLaunch> bound_;
};

// The operations that `enqueue` puts on a stream (default: the context's), captured as one CUDA graph.
class CudaGraph {
 public:
  CudaGraph(const CudaContext& context, const std::function<void()>& enqueue, CudaDriver::Handle stream = nullptr);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(CudaDriver::Handle stream = nullptr) const;
  // For launching on streams of the caller, where null is a valid stream.
  CudaDriver::Handle executable() const { return executable_; }

 private:
  const CudaContext& context_;
  CudaDriver::Handle executable_ = nullptr;
};

// Two points in a stream and the device time between them.
class CudaStopwatch {
 public:
  explicit CudaStopwatch(const CudaContext& context);
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;
  void start(CudaDriver::Handle stream);
  void stop(CudaDriver::Handle stream);
  double seconds() const;  // waits for stop()

 private:
  const CudaContext& context_;
  CudaDriver::Handle start_ = nullptr, end_ = nullptr;
};

// Events recorded in a capturing stream. Each launch of the graph measures the times between them anew.
class CudaMarks {
 public:
  explicit CudaMarks(const CudaContext& context) : context_(context) {}
  ~CudaMarks();
  CudaMarks(const CudaMarks&) = delete;
  CudaMarks& operator=(const CudaMarks&) = delete;
  void mark(CudaDriver::Handle stream);
  size_t size() const { return events_.size(); }
  double seconds(size_t from, size_t to) const;  // of the last launch, which must have ended

 private:
  const CudaContext& context_;
  std::vector<CudaDriver::Handle> events_;
};

// Makes the L2 cold by overwriting a buffer of its own until nothing of the earlier contents is left.
class CudaFlush {
 public:
  explicit CudaFlush(const CudaContext& context);
  // Enqueues the flush. Lines that loads asked the L2 to keep (evict_last) would survive it; they become ordinary lines
  // immediately, not in stream order.
  void enqueue(CudaDriver::Handle stream);
  uint64_t address() const { return memory_.address(); }
  size_t size() const { return memory_.size(); }

 private:
  const CudaContext& context_;
  CudaBuffer memory_;
  unsigned turn_ = 0;
};

// Device time of a graph's launches with a cold L2.
class CudaTimer {
 public:
  explicit CudaTimer(const CudaContext& context) : context_(context), flush_(context), watch_(context) {}
  double time_us(const CudaGraph& graph);
  CudaFlush& flush() { return flush_; }

 private:
  const CudaContext& context_;
  CudaFlush flush_;
  CudaStopwatch watch_;
};

}  // namespace heddle::runtime
