// Keys and values in pages of a pool: a table says which page has the next so many keys of a sequence (sm80.h, sm90.h).
// Only loads know of pages; rows, keys, masks and parts are counted as if keys lay side by side.
//
// A tile of keys lies in one page or has several whole ones. A configuration of such a kernel has one field more,
//
//     static constexpr int kPage = 64;             // keys of a page: tiles are multiples of it, or it is one of theirs
//
// and the kernel takes a PageTable.
#pragma once

#include "tile/core/cuda_attention.h"

namespace heddle::tile::cuda {

// Keys of a page; 0: keys lie side by side.
template <typename Config>
inline constexpr int page_keys = 0;
template <typename Config>
requires requires {
  Config::kPage;
}
inline constexpr int page_keys<Config> = Config::kPage;

// Pages of a tile of keys; of a tile without pages, too, one.
template <typename Config>
inline constexpr int kPagesOfTile =
    page_keys<Config> != 0 && page_keys<Config> < Config::kTileN ? Config::kTileN / page_keys<Config> : 1;

// For kernels whose keys lie side by side.
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

  // The pages of a tile of keys, kNone where an entry names none or there is no entry: such keys are zeros.
  __device__ void read(int32_t (&pages)[kCount], int32_t tile) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pages[i] = page(tile * Config::kTileN / kPage + i);
  }
  // Where in its page a tile begins.
  __device__ static int32_t first_key(int32_t tile) {
    return kCount > 1 ? 0 : tile * Config::kTileN % kPage;
  }
  // Which batch of an operand whose batches are (page, head) a page is.
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

// The pages of tiles that are loaded one after the other, every `Step`th from the last one on. The entries of the next
// tile are read before they are needed.
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

  // To `tile`, which was asked for, and on to `next`.
  __device__ void move(int32_t next) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) now_[i] = next_[i];
    ask(next);
  }
  // The i-th page of the tile at hand.
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
