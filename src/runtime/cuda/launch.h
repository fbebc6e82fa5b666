#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/tensor_map.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// Writes the attributes of a launch (at most three) to `attributes` and returns their number. If both `may_overlap` and
// `launch.early` are set, the launch may begin before the previous launch ends.
unsigned launch_attributes(const CudaLaunch& launch, CudaLaunchAttribute* attributes, bool may_overlap = false);

// Launches a kernel on the stream of `config`. Every launch uses this function. If this thread has no current CUDA
// context, `context` becomes current. Throws kDevice; the message contains `symbol` as the name of the kernel.
void launch_kernel(const CudaContext& context, const CudaLaunchConfig& config, CudaDriver::Handle function,
                   void** arguments, const char* symbol);

// True if kernels may begin before earlier kernels have ended (CudaLaunch::early). False with old drivers, and if the
// environment variable HEDDLE_CUDA_OVERLAP is 0, which helps to find bugs that depend on the overlap.
bool may_overlap(const CudaContext& context);

// A launch whose arguments contain the operands' addresses, ready to be enqueued many times. `operands` are device
// addresses, in the launch's order of operands. Throws kInvalidArgument if the address of a tensor map is not aligned
// to 16 bytes.
class CudaBoundLaunch {
 public:
  CudaBoundLaunch(const CudaContext& context, CudaDriver::Handle function, const CudaLaunch& launch,
                  std::span<const uint64_t> operands);
  // `behind_kernel`: the previous operation on the stream is also a kernel launch, so this launch may begin early.
  void enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel = false) const;

 private:
  CudaDriver::Handle function_;
  CudaLaunch launch_;  // its arguments contain the operands' addresses
  std::vector<TensorMap> maps_;
};

// Launches of the kernels of one module, bound to operands.
class CudaSequence {
 public:
  CudaSequence(const CudaContext& context, const CudaModule& module, const std::vector<CudaLaunch>& launches,
               const std::vector<uint64_t>& operands);
  void enqueue() const;  // on the context's stream

 private:
  const CudaContext& context_;
  std::vector<CudaBoundLaunch> bound_;
};

// Keeps `data` alive until the graph that `stream` captures, and each executable made of it, is destroyed. Does nothing
// if the stream does not capture. Throws kDevice.
void keep_for_captured_graph(const CudaContext& context, CudaDriver::Handle stream, std::shared_ptr<const void> data);
// Destroys the data of graphs that have been destroyed since the last call.
void destroy_data_of_graphs();

// A CUDA graph of the operations that `enqueue` puts on a stream. Without a stream, captures the context's stream.
class CudaGraph {
 public:
  CudaGraph(const CudaContext& context, const std::function<void()>& enqueue, CudaDriver::Handle stream = nullptr);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(CudaDriver::Handle stream = nullptr) const;
  // The executable graph, for launching it on the caller's streams, where null is a valid stream.
  CudaDriver::Handle executable() const { return executable_; }

 private:
  const CudaContext& context_;
  CudaDriver::Handle executable_ = nullptr;
};

// Measures the device time between two points in a stream.
class CudaStopwatch {
 public:
  explicit CudaStopwatch(const CudaContext& context);
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;
  void start(CudaDriver::Handle stream);
  void stop(CudaDriver::Handle stream);
  double seconds() const;                                  // waits until the device reaches stop()
  double seconds_after(const CudaStopwatch& other) const;  // between the starts; both have to be over

 private:
  const CudaContext& context_;
  CudaDriver::Handle start_ = nullptr, end_ = nullptr;
};

// Events recorded in a stream during capture. Each launch of the graph records them again, so that the times between
// them are those of the last launch.
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

// Flushes the L2 cache: overwrites a dedicated buffer until the L2 holds no earlier data.
class CudaFlush {
 public:
  explicit CudaFlush(const CudaContext& context);
  // Enqueues the flush. Cache lines that loads asked the L2 to keep (evict_last) would survive the flush. So
  // enqueue() also makes them ordinary lines; this happens immediately, not in stream order.
  void enqueue(CudaDriver::Handle stream);
  uint64_t address() const { return memory_.address(); }
  size_t size() const { return memory_.size(); }

 private:
  const CudaContext& context_;
  CudaBuffer memory_;
  unsigned turn_ = 0;
};

// Measures the device time of a graph's launches with a cold L2.
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
