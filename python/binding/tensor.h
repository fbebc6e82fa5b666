#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <vector>

#include "array.h"
#include "heddle/tensor.h"
#include "runtime/cuda/device.h"

namespace heddle::python {

// A pool of memory of one GPU, for Python objects. Freed memory is reused by later work on the same stream, without
// waiting. Thread-safe.
class DevicePool {
 public:
  static DevicePool& of(int device);

  // Allocates at least `bytes` bytes for work on `stream`. Throws kOutOfMemory, kDevice.
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
  // Allocates GPU memory with arbitrary content, for work on `stream`.
  PyTensor(DType dtype, Shape shape, int device, void* stream);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int device() const { return device_; }
  size_t bytes() const { return static_cast<size_t>(element_count(shape_)) * size_of(dtype_); }
  Array array() const;
  const void* data() const { return device_ == kHost ? host_.data() : memory_.get(); }

  // The tensor in host memory. If the tensor is on a GPU, copies it after all earlier work on its stream and waits for
  // the copy.
  Tensor to_host() const;
  // Copies the tensor to a GPU, on `stream`. Returns when the copy is complete, so the source may change afterwards.
  PyTensor to_device(int device, void* stream) const;
  // Copies the tensor within its device. On a GPU, the copy is enqueued on this tensor's stream.
  PyTensor copy() const;
  // Makes the stream `consumer` wait for the work on this tensor's stream.
  void wait_on(void* consumer) const;
  // Exports the tensor as a DLPack capsule. `is_copied`: the capsule says that only its consumer uses the memory.
  nanobind::capsule to_dlpack(bool versioned, bool is_copied) const;

 private:
  DType dtype_;
  Shape shape_;
  Tensor host_;
  std::shared_ptr<void> memory_;  // null on the host
  int device_ = kHost;
  void* stream_ = nullptr;
};

void register_tensor(nanobind::module_& module);

}  // namespace heddle::python
