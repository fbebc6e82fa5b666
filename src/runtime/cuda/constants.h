#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "runtime/cuda/device.h"

namespace heddle::runtime {

// Constants on a device. Plans for several shapes of a model share the tensors of the model's weights. Each tensor has
// one copy on the device, which exists as long as any of these plans. Thread-safe.
class CudaConstants {
 public:
  // Returns the object that all plans on the context's device share.
  static std::shared_ptr<CudaConstants> of(const std::shared_ptr<const CudaContext>& context);
  explicit CudaConstants(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}

  // Device memory that several constants share. A chunk keeps the host tensors of its constants alive, so that no other
  // tensor reuses a host address that identifies a constant.
  struct Chunk {
    Chunk(std::shared_ptr<const CudaContext> owner, size_t bytes)
        : context(std::move(owner)), memory(*context, bytes, "the weights") {}
    std::shared_ptr<const CudaContext> context;
    CudaBuffer memory;
    size_t used = 0;
    std::vector<Tensor> tensors;
  };
  struct Place {
    std::shared_ptr<const Chunk> chunk;  // keep this while the address is used
    uint64_t address = 0;
  };
  // Returns the device address of the tensor's content. Copies the content to the device if it is not there yet. Throws
  // kOutOfMemory, kDevice.
  Place place(const Tensor& tensor);

 private:
  using Key = std::pair<const void*, size_t>;  // host address, bytes
  struct Known {
    std::weak_ptr<const Chunk> chunk;
    uint64_t address = 0;
  };
  std::shared_ptr<Chunk> chunk_for(size_t bytes);

  const std::shared_ptr<const CudaContext> context_;
  std::mutex mutex_;
  std::map<Key, Known> known_;
  std::weak_ptr<Chunk> last_;
};

}  // namespace heddle::runtime
