// Scatters with many updates whose results are the same in every run. The updates are sorted by row, stably, and each
// row's updates are combined in order. Runs of a fixed number of sorted updates are divided among threads, so a row
// that has all updates keeps the whole GPU busy. Four launches:
//
// 1. Some blocks sort chunks of the list in shared memory. The other blocks copy or fill y.
// 2. Every entry finds its place among all chunks by binary searches. Not needed for one chunk.
// 3. Every thread combines a run of the list, with V columns. Rows inside a run go to y. The parts of rows that reach
//    beyond the run go to the partial results.
// 4. A block combines the partial results of one row. Not needed for one run.
#pragma once

#include "tile/kernel/cuda/standalone/scatter_rows.h"
#include "tile/kernel/cuda/standalone/select.h"

namespace heddle::tile::cuda {

// An entry of the list: the row as the key, and the number of the update. The row kNoRow stands for dropped updates.
using ScatterEntry = Ranked<uint32_t>;
static_assert(sizeof(ScatterEntry) == kScatterEntryBytes);
inline constexpr uint32_t kNoRow = ~0u;
__device__ inline uint32_t row_of(const ScatterEntry& entry) {
  return static_cast<uint32_t>(entry.both >> 32);
}

template <ScatterFrom kFrom, typename Rows>
__device__ inline void scatter_sort(const ScatterUpdatesArgs& args) {
  extern __shared__ __align__(16) uint8_t raw_shared[];
  auto* chunk = reinterpret_cast<ScatterEntry*>(raw_shared);
  const int64_t chunks = (args.common.count + kScatterSortChunk - 1) / kScatterSortChunk, other = blockIdx.x - chunks;
  if (other >= 0) {
    if constexpr (kFrom != ScatterFrom::kPlace) {
      scatter_begin<kFrom>(args, other * blockDim.x + threadIdx.x, (gridDim.x - chunks) * blockDim.x);
    }
    return;
  }
  const int64_t first = blockIdx.x * int64_t{kScatterSortChunk}, left = args.common.count - first;
  const int count = static_cast<int>(left < kScatterSortChunk ? left : kScatterSortChunk);
  const Rows find_row{args};
  for (int i = threadIdx.x; i < count; i += kScatterSortThreads) {
    chunk[i] = ScatterEntry::of(static_cast<uint32_t>(find_row(first + i)), first + i);
  }
  __syncthreads();
  BlockSort<kScatterSortThreads, ScatterEntry>::sort_tile(chunk, count);
  auto* list = static_cast<ScatterEntry*>(args.list) + first;
  for (int i = threadIdx.x; i < count; i += kScatterSortThreads) list[i] = chunk[i];
}

// The number of entries of a sorted list that are lower than `entry`.
__device__ inline int64_t count_lower(const ScatterEntry* list, int64_t count, const ScatterEntry& entry) {
  int64_t low = 0;
  while (low < count) {
    const int64_t middle = (low + count) / 2;
    if (list[middle] < entry) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

// A block has 32 entries. Each of its warps searches some of the chunks.
__device__ inline void scatter_merge(const ScatterUpdatesArgs& args) {
  extern __shared__ __align__(16) uint8_t raw_shared[];
  auto* lower = reinterpret_cast<int64_t*>(raw_shared);  // [warp][lane]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t number = blockIdx.x * int64_t{32} + lane, count = args.common.count;
  const auto* list = static_cast<const ScatterEntry*>(args.list);
  const bool has = number < count;
  const ScatterEntry entry = list[has ? number : count - 1];
  int64_t sum = 0;
  for (int64_t first = warp * int64_t{kScatterSortChunk}; first < count;
       first += kScatterMergeWarps * int64_t{kScatterSortChunk}) {
    const int64_t left = count - first;
    const bool own = number >= first && number < first + kScatterSortChunk;
    sum += own ? number - first : count_lower(list + first, left < kScatterSortChunk ? left : kScatterSortChunk, entry);
  }
  lower[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || !has) return;
  for (int w = 1; w < kScatterMergeWarps; ++w) sum += lower[w * 32 + lane];
  static_cast<ScatterEntry*>(args.merged)[sum] = entry;
}

template <typename Combine, typename T, int V, int Run>
__device__ inline void scatter_combine_runs(const ScatterUpdatesArgs& args) {
  using Value = Combined<Combine, T, V>;
  constexpr int kAhead = 8;  // updates loaded together
  static_assert(Run % kAhead == 0);
  const int64_t number = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x, inner = args.common.inner;
  const int64_t vectors = inner / V, run = quotient(number, vectors), column = (number - run * vectors) * V;
  const int64_t first = run * Run, count = args.common.count, end = first + Run < count ? first + Run : count;
  if (first >= count) return;
  const auto* list = static_cast<const ScatterEntry*>(args.merged);
  const T* updates = static_cast<const T*>(args.common.updates) + column;
  const uint32_t before = first > 0 ? row_of(list[first - 1]) : kNoRow;
  const uint32_t after = end < count ? row_of(list[end]) : kNoRow;
  auto* partial = static_cast<typename Value::Element*>(args.partials) + 2 * run * inner + column;
  Value sum;
  uint32_t last = kNoRow;
  bool is_first = true;  // the row at hand is the run's first
  const auto flush = [&](bool is_last) {
    if (last == kNoRow) return;
    if (is_first && last == before) {
      sum.write(partial);
    } else if (is_last && last == after) {
      sum.write(partial + inner);
    } else {
      sum.apply_to(static_cast<T*>(args.common.y) + last * inner + column);
    }
    is_first = false;
  };
  for (int64_t e = first; e < end; e += kAhead) {
    uint32_t row[kAhead];
    Value update[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const ScatterEntry entry = list[e + k < end ? e + k : end - 1];
      row[k] = e + k < end ? row_of(entry) : kNoRow;
      if (row[k] != kNoRow) update[k] = Value::load_from(updates + entry.at() * inner);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (row[k] == kNoRow) continue;
      if (row[k] == last) {
        sum.add(update[k]);
        continue;
      }
      flush(false);
      sum = update[k], last = row[k];
    }
  }
  flush(true);
}

// Block `number` has kScatterStripColumns * V columns of the row that begins in one run and reaches into the next.
// Warps take equal strips of the row's runs.
template <typename Combine, typename T, int V, int Run>
__device__ inline void scatter_combine_rows(const ScatterUpdatesArgs& args) {
  using Value = Combined<Combine, T, V>;
  extern __shared__ __align__(16) uint8_t raw_shared[];
  const int64_t inner = args.common.inner, count = args.common.count;
  constexpr int kColumns = kScatterStripColumns * V, kAhead = 4;
  const int64_t blocks = (inner + kColumns - 1) / kColumns, run = quotient(blockIdx.x, blocks);
  const auto* list = static_cast<const ScatterEntry*>(args.merged);
  const int64_t first = run * Run, next = first + Run;
  if (next >= count) return;
  const uint32_t row = row_of(list[next]);
  if (row == kNoRow || row_of(list[next - 1]) != row) return;
  if (first > 0 && row_of(list[first]) == row && row_of(list[first - 1]) == row) return;  // it begins further ahead
  const int64_t end = next + count_lower(list + next, count - next, ScatterEntry::of(row + 1, 0));
  const int64_t runs = (end - 1) / Run - run;  // after this one
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t column = (blockIdx.x - run * blocks) * kColumns + lane * V;
  const int64_t begin = runs * warp / kScatterStrips, stop = runs * (warp + 1) / kScatterStrips;
  const bool has = column < inner;
  const auto* partial = static_cast<const typename Value::Element*>(args.partials) + column;
  auto* sums = reinterpret_cast<Value*>(raw_shared);
  if (has && begin < stop) {
    Value sum = Value::read(partial + 2 * (run + 1 + begin) * inner);
    for (int64_t i = begin + 1; i < stop; i += kAhead) {
      Value other[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        other[k] = Value::read(partial + 2 * (run + 1 + (i + k < stop ? i + k : stop - 1)) * inner);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (i + k < stop) sum.add(other[k]);
      }
    }
    sums[threadIdx.x] = sum;
  }
  __syncthreads();
  if (warp > 0 || !has) return;
  Value sum = Value::read(partial + (2 * run + 1) * inner);
  for (int w = 0; w < kScatterStrips; ++w) {
    if (runs * w / kScatterStrips < runs * (w + 1) / kScatterStrips) sum.add(sums[w * 32 + lane]);
  }
  sum.apply_to(static_cast<T*>(args.common.y) + row * inner + column);
}

}  // namespace heddle::tile::cuda
