#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>

#include "target/cuda_driver.h"
#include "target/hip_driver.h"

namespace heddle::runtime {

// The interface through which a GPU is driven: NVIDIA's driver, or HIP's runtime behind the same table of functions.
enum class GpuApi : uint8_t { kCuda, kHip };

// The primary context of one GPU, and a stream. Thread-safe. A thread that calls the driver directly must call
// make_current() first; the classes below do so themselves.
class CudaContext {
 public:
  // Makes the context current on the calling thread. Throws kDevice.
  explicit CudaContext(int ordinal, GpuApi api = GpuApi::kCuda);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Returns the context that all models on this GPU share. It is destroyed with the last of these models.
  static std::shared_ptr<const CudaContext> of_device(int ordinal, GpuApi api = GpuApi::kCuda);

  const CudaDriver& driver() const { return driver_; }
  const GpuTarget& target() const;
  const std::string& name() const;
  // For NVIDIA GPUs only.
  const CudaDevice& device() const { return std::get<CudaDevice>(device_); }
  CudaDriver::Handle stream() const { return stream_; }
  CudaDriver::Handle handle() const { return context_; }
  void make_current() const;
  void enter() const noexcept { driver_.context_set(context_); }  // for destructors
  void synchronize() const;

  // Like CudaDriver::check(), but remembers an error that destroys the context (an illegal address, a GPU that fell off
  // the bus): every later call reports that error again. The process cannot recover from such an error: even a new or a
  // reset context does not work.
  void check(CudaDriver::Result result, const char* what) const;

 private:
  const CudaDriver& driver_;
  std::variant<CudaDevice, HipDevice> device_;
  CudaDriver::Device handle_ = 0;
  CudaDriver::Handle context_ = nullptr, stream_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::string lost_;  // the error that destroyed the context
};

// An additional stream that does not synchronise with any other stream.
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

// Device memory, aligned to 256 bytes. The constructor throws kOutOfMemory; the message gives the size needed for
// `what` and the free size.
class CudaBuffer {
 public:
  CudaBuffer(const CudaContext& context, size_t bytes, const char* what = "a buffer");
  ~CudaBuffer();
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  uint64_t address() const { return address_; }
  size_t size() const { return bytes_; }
  void write(const void* from, size_t bytes, size_t offset = 0);
  void read(void* to, size_t bytes, size_t offset = 0) const;  // call it after all work on the context's stream

 private:
  const CudaContext& context_;
  uint64_t address_ = 0;
  size_t bytes_;
};

// Page-locked host memory, which the device can copy from and to directly.
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

// A loaded module of device code.
class CudaModule {
 public:
  CudaModule(const CudaContext& context, std::string_view cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  // Returns a kernel. Allows launches of the kernel with up to `shared_bytes` of dynamic shared memory and clusters of
  // up to `cluster` blocks. Pass the maximum over all launches, since each call replaces the limits of the previous
  // call.
  CudaDriver::Handle function(const std::string& symbol, uint32_t shared_bytes, uint32_t cluster = 1) const;

 private:
  const CudaContext& context_;
  CudaDriver::Handle handle_ = nullptr;
};

}  // namespace heddle::runtime
