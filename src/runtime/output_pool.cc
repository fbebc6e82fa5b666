#include "runtime/output_pool.h"

#include "base/memory.h"

namespace heddle::runtime {

Tensor OutputPool::take(size_t index, DType dtype, const Shape& shape) {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    block = std::move(free_[index]);
  }
  if (!block) block = allocate(static_cast<size_t>(element_count(shape)) * size_of(dtype), "output tensor");
  const void* data = block.get();
  std::shared_ptr<const void> lease(data, [pool = weak_from_this(), index, block](const void*) mutable {
    if (const auto alive = pool.lock()) alive->give_back(index, std::move(block));
  });
  return Tensor::borrow(dtype, shape, data, std::move(lease));
}

void OutputPool::give_back(size_t index, Block block) {
  const std::lock_guard lock(mutex_);
  if (!free_[index]) free_[index] = std::move(block);
}

}  // namespace heddle::runtime
