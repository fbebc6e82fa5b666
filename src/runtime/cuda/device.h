#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "target/cuda_driver.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// The primary context of one GPU, current on the thread that made it. Throws kDevice.
class CudaContext {
 public:
  explicit CudaContext(int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  const CudaDevice& device() const { return device_; }
  CudaDriver::Handle stream() const { return stream_; }
  void synchronize() const;

 private:
  const CudaDriver& driver_;
  CudaDevice device_;
  CudaDriver::Device handle_ = 0;
  CudaDriver::Handle stream_ = nullptr;
};

// Memory on the device. Throws kOutOfMemory with what is free.
class CudaBuffer {
 public:
  CudaBuffer(const CudaContext& context, size_t bytes);
  ~CudaBuffer();
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  uint64_t address() const { return address_; }
  size_t size() const { return bytes_; }
  void write(const void* from, size_t bytes, size_t offset = 0);
  void read(void* to, size_t bytes, size_t offset = 0) const;

 private:
  const CudaContext& context_;
  uint64_t address_ = 0;
  size_t bytes_;
};

// Loaded machine code.
class CudaModule {
 public:
  CudaModule(const CudaContext& context, std::string_view cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  // Allows `shared_bytes` of dynamic shared memory.
  CudaDriver::Handle function(const std::string& symbol, uint32_t shared_bytes) const;

 private:
  const CudaContext& context_;
  CudaDriver::Handle handle_ = nullptr;
};

// Launches with addresses filled in, ready to be enqueued many times. `operands` are device addresses, counted as in
// the launches. Throws kInvalidArgument on an operand of a tensor map that is not aligned to 16 bytes.
class CudaSequence {
 public:
  CudaSequence(const CudaContext& context, const CudaModule& module, const std::vector<CudaLaunch>& launches,
               const std::vector<uint64_t>& operands);
  void enqueue() const;  // on the context's stream

 private:
  struct alignas(64) Map {
    uint64_t words[16];
  };
  struct Bound {
    CudaDriver::Handle function;
    CudaLaunch launch;
    std::vector<Map> maps;
    std::vector<std::vector<uint8_t>> arguments;
  };
  const CudaContext& context_;
  std::vector<Bound> bound_;
};

// What `enqueue` puts on the context's stream, as one CUDA graph.
class CudaGraph {
 public:
  CudaGraph(const CudaContext& context, const std::function<void()>& enqueue);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch() const;

 private:
  const CudaContext& context_;
  CudaDriver::Handle executable_ = nullptr;
};

// Device time of a graph's launches: `flush` is overwritten before each, so that the L2 holds nothing of its operands.
class CudaTimer {
 public:
  CudaTimer(const CudaContext& context, CudaBuffer& flush);
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;
  double time_us(const CudaGraph& graph);

 private:
  const CudaContext& context_;
  CudaBuffer& flush_;
  unsigned turn_ = 0;
  CudaDriver::Handle start_ = nullptr, end_ = nullptr;
};

}  // namespace heddle::runtime
