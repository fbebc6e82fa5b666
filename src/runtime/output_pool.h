#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::runtime {

// Memory of output tensors that callers have released, for the next run: touching a page of fresh memory costs more
// than a memory-bound kernel needs to write it. Keeps at most one block per output, enough for one run.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  explicit OutputPool(size_t outputs) : free_(outputs) {}

  // A tensor for output `index` whose storage is not cleared. It may outlive the pool. Throws kOutOfMemory.
  Tensor take(size_t index, DType dtype, const Shape& shape);

 private:
  using Block = std::shared_ptr<std::byte>;

  void give_back(size_t index, Block block);

  std::mutex mutex_;
  std::vector<Block> free_;
};

}  // namespace heddle::runtime
