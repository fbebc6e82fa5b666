#include "runtime/cuda/constants.h"

#include <algorithm>

#include "base/file/file.h"

namespace heddle::runtime {
namespace {

constexpr size_t kAlign = 256;
// The driver's own granularity.
constexpr size_t kChunk = size_t{2} << 20;

}  // namespace

std::shared_ptr<CudaConstants> CudaConstants::of(const std::shared_ptr<const CudaContext>& context) {
  static std::mutex mutex;
  static std::map<const CudaContext*, std::weak_ptr<CudaConstants>> all;
  const std::lock_guard lock(mutex);
  std::weak_ptr<CudaConstants>& known = all[context.get()];
  std::shared_ptr<CudaConstants> shared = known.lock();
  if (shared == nullptr) known = shared = std::make_shared<CudaConstants>(context);
  return shared;
}

// The last chunk where it has room, else a new one.
std::shared_ptr<CudaConstants::Chunk> CudaConstants::chunk_for(size_t bytes) {
  if (auto last = last_.lock(); last != nullptr && last->memory.size() - last->used >= bytes) return last;
  std::erase_if(known_, [](const auto& entry) { return entry.second.chunk.expired(); });
  auto chunk = std::make_shared<Chunk>(context_, std::max(bytes, kChunk));
  last_ = chunk;
  return chunk;
}

CudaConstants::Place CudaConstants::place(const Tensor& tensor) {
  if (tensor.bytes() == 0) return {};
  const std::lock_guard lock(mutex_);
  const Key key(tensor.data(), tensor.bytes());
  if (const auto known = known_.find(key); known != known_.end()) {
    if (auto chunk = known->second.chunk.lock()) return {std::move(chunk), known->second.address};
  }
  const size_t bytes = (tensor.bytes() + kAlign - 1) / kAlign * kAlign;
  const std::shared_ptr<Chunk> chunk = chunk_for(bytes);
  chunk->memory.write(tensor.data(), tensor.bytes(), chunk->used);
  const uint64_t address = chunk->memory.address() + chunk->used;
  chunk->used += bytes;
  chunk->tensors.push_back(tensor);
  known_[key] = {chunk, address};
  release_pages(tensor.data(), tensor.bytes());
  return {chunk, address};
}

}  // namespace heddle::runtime
