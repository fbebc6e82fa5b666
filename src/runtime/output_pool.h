#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::runtime {

// Keeps the memory of output tensors that callers have released, for reuse by the next run. This pays because the first
// access to a page of fresh memory takes longer than a memory-bound kernel needs to write the page. Keeps at most one
// block per output, enough for one run.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  explicit OutputPool(size_t outputs) : free_(outputs) {}

  // Returns a tensor for output `index`. Its storage is not cleared. The tensor may outlive the pool. Throws
  // kOutOfMemory.
  Tensor take(size_t index, DType dtype, const Shape& shape);

 private:
  using Block = std::shared_ptr<std::byte>;

  void give_back(size_t index, Block block);

  std::mutex mutex_;
  std::vector<Block> free_;
};

}  // namespace heddle::runtime
