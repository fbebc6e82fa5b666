#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/tensor_map.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// The attributes of a launch; at most three. Returns their number. `may_overlap`: it may begin early where it can.
unsigned launch_attributes(const CudaLaunch& launch, CudaLaunchAttribute* attributes, bool may_overlap = false);

// Puts a kernel on the stream of `config`, the one place that does. Where no context is current on this thread, that of
// `context` becomes it. Throws kDevice; `symbol` names the kernel.
void launch_kernel(const CudaContext& context, const CudaLaunchConfig& config, CudaDriver::Handle function,
                   void** arguments, const char* symbol);

// Whether kernels may begin before those in front of them have ended (CudaLaunch::early): not with old drivers, nor
// where HEDDLE_CUDA_OVERLAP is 0, which shows whether something depends on it.
bool may_overlap(const CudaContext& context);

// A launch with addresses filled in, ready to be enqueued many times. `operands` are device addresses, counted as in
// the launch. Throws kInvalidArgument on an operand of a tensor map that is not aligned to 16 bytes.
class CudaBoundLaunch {
 public:
  CudaBoundLaunch(const CudaContext& context, CudaDriver::Handle function, const CudaLaunch& launch,
                  std::span<const uint64_t> operands);
  // `behind_kernel`: what is enqueued just before is a kernel's launch, too, so that this one may begin early.
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

// What `enqueue` puts on a stream (the context's unless one is given), as one CUDA graph.
class CudaGraph {
 public:
  CudaGraph(const CudaContext& context, const std::function<void()>& enqueue, CudaDriver::Handle stream = nullptr);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(CudaDriver::Handle stream = nullptr) const;
  // For streams of others, where null is one, too.
  CudaDriver::Handle executable() const { return executable_; }

 private:
  const CudaContext& context_;
  CudaDriver::Handle executable_ = nullptr;
};

// Two points of a stream and the device time between them.
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

// Points of a stream that captures: with each launch of the graph the times between them are measured anew.
class CudaMarks {
 public:
  explicit CudaMarks(const CudaContext& context) : context_(context) {}
  ~CudaMarks();
  CudaMarks(const CudaMarks&) = delete;
  CudaMarks& operator=(const CudaMarks&) = delete;
  void mark(CudaDriver::Handle stream);
  size_t size() const { return events_.size(); }
  double seconds(size_t from, size_t to) const;  // of the last launch, which has ended

 private:
  const CudaContext& context_;
  std::vector<CudaDriver::Handle> events_;
};

// Makes the L2 cold: memory of its own is overwritten until nothing is left of what was there.
class CudaFlush {
 public:
  explicit CudaFlush(const CudaContext& context);
  // Behind what is on the stream. Lines that loads asked the L2 to keep (evict_last), which otherwise outlast what is
  // overwritten, become ordinary ones at once.
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
