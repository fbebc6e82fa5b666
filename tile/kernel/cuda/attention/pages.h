// Keys and values in pages of a pool (paged attention). A page table gives, for each run of consecutive keys of a
// sequence, the page that holds these keys. Used by sm80.h and sm90.h. Only loads depend on pages: rows, keys, masks
// and parts are numbered as if the keys were contiguous.
//
// A tile of keys is inside one page or consists of several whole pages. The configuration has one more field,
//
//     static constexpr int kPage = 64;             // keys per page: a multiple of the keys per tile, or a divisor
//
// and the kernel takes a PageTable.
#pragma once

#include "tile/core/cuda_attention.h"

namespace heddle::tile::cuda {

// The number of keys per page; 0 if keys are contiguous.
template <typename Config>
inline constexpr int page_keys = 0;
template <typename Config>
requires requires {
  Config::kPage;
}
inline constexpr int page_keys<Config> = Config::kPage;

// The number of pages per tile of keys; 1 if keys are contiguous.
template <typename Config>
inline constexpr int kPagesOfTile =
    page_keys<Config> != 0 && page_keys<Config> < Config::kTileN ? Config::kTileN / page_keys<Config> : 1;

// The page table of kernels with contiguous keys: empty.
struct NoPages {};

// A page table. T is the type of its entries: int32_t or int64_t.
template <typename T>
struct PageTable {
  using Entry = T;
  AttentionPages args;
};

// Looks up the pages of one batch.
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

  // Reads the pages of a tile of keys. A page is kNone if the table has no entry for it or the entry is not a valid
  // page. The keys of such a page are zeros.
  __device__ void read(int32_t (&pages)[kCount], int32_t tile) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pages[i] = page(tile * Config::kTileN / kPage + i);
  }
  // The index, within its page, of the first key of a tile.
  __device__ static int32_t first_key(int32_t tile) {
    return kCount > 1 ? 0 : tile * Config::kTileN % kPage;
  }
  // The batch index of a page in an operand whose batches are numbered by (page, head).
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

// Iterates over the pages of the tiles that a block loads, one tile after another. Reads the table entries of the next
// tile before they are needed.
template <typename Config, typename Table>
class PageWalk {
  using Pages = PagesOfBatch<Config, Table>;
  static constexpr int kCount = kPagesOfTile<Config>;

 public:
  // `tile`: the first tile to load. `first`: the lowest tile whose table entries may be read.
  __device__ PageWalk(const Table& table, int32_t batch, int32_t tile, int32_t first)
      : pages_(table, batch), first_(first) {
    ask(tile);
  }

  // Makes the previously requested tile current and requests the table entries of tile `next`.
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
