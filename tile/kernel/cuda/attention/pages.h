// Keys and values in pages of a pool. A table maps each run of consecutive keys of a sequence to a page (sm80.h,
// sm90.h). Only loads use pages; rows, keys, masks and parts are counted as if keys were contiguous.
//
// A tile of keys lies in one page or consists of several whole pages. The configuration has one more field,
//
//     static constexpr int kPage = 64;             // keys of a page: a multiple of a tile's, or the reverse
//
// and the kernel takes a PageTable.
#pragma once

#include "tile/core/cuda_attention.h"

namespace heddle::tile::cuda {

// Keys of a page; 0: keys are contiguous.
template <typename Config>
inline constexpr int page_keys = 0;
template <typename Config>
requires requires {
  Config::kPage;
}
inline constexpr int page_keys<Config> = Config::kPage;

// Pages of a tile of keys; 1 for a tile without pages.
template <typename Config>
inline constexpr int kPagesOfTile =
    page_keys<Config> != 0 && page_keys<Config> < Config::kTileN ? Config::kTileN / page_keys<Config> : 1;

// For kernels with contiguous keys.
struct NoPages {};

// Entries are i32 or i64.
template <typename T>
struct PageTable {
  using Entry = T;
  AttentionPages args;
};

// The pages of one batch.
template <typename Config, typename Table>
class PagesOfBatch {
  static constexpr int kPage = page_keys<Config>, kCount = kPagesOfTile<Config>;
  static_assert(kPage % 16 == 0 && (kCount * kPage == Config::kTileN || kPage % Config::kTileN == 0));

 public:
  static constexpr int kNone = -1;

  __device__ PagesOfBatch(const Table& table, int32_t batch) : args_(table.args) {
    const int32_t sequence = args_.by_heads.divide(batch);
    head_ = batch - sequence * args_.heads;
    entries_ = static_cast<const typename Table::Entry*>(args_.table) + args_.offset + sequence * args_.sequence;
  }

  // The pages of a tile of keys. kNone if there is no entry or it names no page; such keys are zeros.
  __device__ void read(int32_t (&pages)[kCount], int32_t tile) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pages[i] = page(tile * Config::kTileN / kPage + i);
  }
  // The first key of a tile, within its page.
  __device__ static int32_t first_key(int32_t tile) {
    return kCount > 1 ? 0 : tile * Config::kTileN % kPage;
  }
  // The batch index of a page, in an operand whose batches are (page, head).
  __device__ int32_t operand_batch(int32_t page) const {
    return page * args_.heads + head_;
  }

 private:
  __device__ int32_t page(int32_t index) const {
    if (index >= args_.entries) return kNone;
    auto entry = entries_[index * args_.entry];
    if (args_.clamps != 0) {
      if (entry < 0) entry += args_.pool;
      entry = entry < 0 ? 0 : entry < args_.pool ? entry : args_.pool - 1;
    }
    return entry >= 0 && entry < args_.pool ? static_cast<int32_t>(entry) : kNone;
  }

  const AttentionPages& args_;
  int32_t head_;
  const typename Table::Entry* entries_;
};

// The pages of tiles that are loaded one after another, every `Step`th tile from the last one on. The table entries of
// the next tile are read ahead of use.
template <typename Config, typename Table>
class PageWalk {
  using Pages = PagesOfBatch<Config, Table>;
  static constexpr int kCount = kPagesOfTile<Config>;

 public:
  // `first`: the first tile that may be read.
  __device__ PageWalk(const Table& table, int32_t batch, int32_t tile, int32_t first)
      : pages_(table, batch), first_(first) {
    ask(tile);
  }

  // Makes the requested tile current and requests `next`.
  __device__ void move(int32_t next) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) now_[i] = next_[i];
    ask(next);
  }
  // The i-th page of the current tile.
  __device__ int32_t page(int i) const {
    return now_[i];
  }
  __device__ int32_t operand_batch(int32_t page) const {
    return pages_.operand_batch(page);
  }
  __device__ static int32_t first_key(int32_t tile) {
    return Pages::first_key(tile);
  }

 private:
  __device__ void ask(int32_t tile) {
    if (tile >= first_) pages_.read(next_, tile);
  }

  const Pages pages_;
  const int32_t first_;
  int32_t now_[kCount], next_[kCount];
};
template <typename Config>
class PageWalk<Config, NoPages> {
 public:
  __device__ PageWalk(const NoPages&, int32_t, int32_t, int32_t) {}
  __device__ void move(int32_t) {}
};

}  // namespace heddle::tile::cuda
