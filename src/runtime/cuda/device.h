#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "target/cuda_driver.h"

namespace heddle::runtime {

// The primary context of one GPU, and a stream. Thread-safe, but a thread must call make_current() before it calls the
// driver itself. The classes below do so.
class CudaContext {
 public:
  // Makes the context current on the calling thread. Throws kDevice.
  explicit CudaContext(int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // The context that all models on this GPU share. It lives as long as one of them.
  static std::shared_ptr<const CudaContext> of_device(int ordinal);

  const CudaDriver& driver() const { return driver_; }
  const CudaDevice& device() const { return device_; }
  CudaDriver::Handle stream() const { return stream_; }
  CudaDriver::Handle handle() const { return context_; }
  void make_current() const;
  void enter() const noexcept { driver_.context_set(context_); }  // for destructors
  void synchronize() const;

  // As CudaDriver::check(). After an error that destroys the context (an illegal address, a GPU that fell off the bus),
  // every later call reports that error. The process cannot recover: neither a new nor a reset context works.
  void check(CudaDriver::Result result, const char* what) const;

 private:
  const CudaDriver& driver_;
  CudaDevice device_;
  CudaDriver::Device handle_ = 0;
  CudaDriver::Handle context_ = nullptr, stream_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::string lost_;  // the error that destroyed the context
};

// A separate stream that does not wait for any other.
class CudaStream {
 public:
  explicit CudaStream(const CudaContext& context);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  CudaDriver::Handle handle() const { return handle_; }
  void synchronize() const;

 private:
  const CudaContext& context_;
  CudaDriver::Handle handle_ = nullptr;
};

// Device memory, aligned to 256 bytes. Throws kOutOfMemory with the size needed for `what` and the size free.
class CudaBuffer {
 public:
  CudaBuffer(const CudaContext& context, size_t bytes, const char* what = "a buffer");
  ~CudaBuffer();
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  uint64_t address() const { return address_; }
  size_t size() const { return bytes_; }
  void write(const void* from, size_t bytes, size_t offset = 0);
  void read(void* to, size_t bytes, size_t offset = 0) const;  // after all work on the context's stream

 private:
  const CudaContext& context_;
  uint64_t address_ = 0;
  size_t bytes_;
};

// Page-locked host memory: the device copies from and to it directly.
class CudaHostBuffer {
 public:
  CudaHostBuffer(const CudaContext& context, size_t bytes);
  ~CudaHostBuffer();
  CudaHostBuffer(const CudaHostBuffer&) = delete;
  CudaHostBuffer& operator=(const CudaHostBuffer&) = delete;
  std::byte* data() const { return data_; }

 private:
  const CudaContext& context_;
  std::byte* data_ = nullptr;
};

// Loaded machine code.
class CudaModule {
 public:
  CudaModule(const CudaContext& context, std::string_view cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  // Allows `shared_bytes` of dynamic shared memory and clusters of `cluster` blocks. Pass the maximum over all
  // launches: the last call decides.
  CudaDriver::Handle function(const std::string& symbol, uint32_t shared_bytes, uint32_t cluster = 1) const;

 private:
  const CudaContext& context_;
  CudaDriver::Handle handle_ = nullptr;
};

}  // namespace heddle::runtime
