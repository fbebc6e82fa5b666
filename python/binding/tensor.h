#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <vector>

#include "array.h"
#include "heddle/tensor.h"
#include "runtime/cuda/device.h"

namespace heddle::python {

// Memory of one GPU that Python objects share. What is given up is used again by work on the same stream, without
// waiting. Thread-safe.
class DevicePool {
 public:
  static DevicePool& of(int device);

  // At least so many bytes for work on `stream`. Throws kOutOfMemory, kDevice.
  std::shared_ptr<void> take(size_t bytes, void* stream);
  const runtime::CudaContext& context() const { return *context_; }

 private:
  struct Block {
    std::unique_ptr<runtime::CudaBuffer> buffer;
    void* stream;
  };
  explicit DevicePool(int device) : context_(runtime::CudaContext::of_device(device)) {}
  void give_back(std::unique_ptr<Block> block);

  std::shared_ptr<const runtime::CudaContext> context_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> free_;
  size_t free_bytes_ = 0;
};

// heddle.Tensor: dense memory of the host or of a GPU.
class PyTensor {
 public:
  explicit PyTensor(Tensor host) : dtype_(host.dtype()), shape_(host.shape()), host_(std::move(host)) {}
  // With any content, for work on `stream`.
  PyTensor(DType dtype, Shape shape, int device, void* stream);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int device() const { return device_; }
  size_t bytes() const { return static_cast<size_t>(element_count(shape_)) * size_of(dtype_); }
  Array array() const;
  const void* data() const { return device_ == kHost ? host_.data() : memory_.get(); }

  // What the host has, or a copy of what the GPU has when the stream has passed it.
  Tensor to_host() const;
  // A copy on a GPU, put onto `stream`; returns when the source may change.
  PyTensor to_device(int device, void* stream) const;
  // A copy on the same device; on a GPU it is enqueued on the producer's stream.
  PyTensor copy() const;
  // For a consumer that works on another stream than this tensor's producer.
  void wait_on(void* consumer) const;
  // `is_copied`: the memory is the consumer's alone.
  nanobind::capsule to_dlpack(bool versioned, bool is_copied) const;

 private:
  DType dtype_;
  Shape shape_;
  Tensor host_;
  std::shared_ptr<void> memory_;  // on a GPU
  int device_ = kHost;
  void* stream_ = nullptr;
};

void register_tensor(nanobind::module_& module);

}  // namespace heddle::python
