// Selects the first k elements, in ascending or descending order, of each column, together with their positions. A
// block processes one column. Equal elements are ordered by position.
//
// A column that fits in shared memory is sorted there. For a longer column, the kernel first finds the k-th key digit
// by digit (radix selection), by counting the elements that share all higher digits. It then collects, in order of
// position, all elements before the k-th key, and as many of the elements equal to the k-th key as are needed. Finally,
// a bitonic network sorts the collected elements. Exchanges over distances that fit in shared memory are done there.
#pragma once

#include "tile/core/cuda_standalone.h"
#include "tile/op/cuda/stitch.h"
#include "tile/op/order.h"

namespace heddle::tile::cuda {

// A key and a position, ordered by key, then by position.
template <typename U>
struct Ranked {
  uint64_t both;
  __device__ static Ranked of(U key, int64_t at) { return {uint64_t{key} << 32 | static_cast<uint32_t>(at)}; }
  __device__ int64_t at() const { return static_cast<uint32_t>(both); }
  __device__ bool operator<(const Ranked& other) const { return both < other.both; }
};
template <>
struct alignas(16) Ranked<uint64_t> {
  uint64_t key, position;
  __device__ static Ranked of(uint64_t key, int64_t at) { return {key, static_cast<uint64_t>(at)}; }
  __device__ int64_t at() const { return static_cast<int64_t>(position); }
  __device__ bool operator<(const Ranked& other) const {
    return key != other.key ? key < other.key : position < other.position;
  }
};

// Sorts a list with all threads of a block. Every exchange moves the smaller element to the lower index. Elements after
// the end of the list would count as highest and never move, so any length is allowed.
template <int Threads, typename K>
class BlockSort {
 public:
  static constexpr int kTile = kSelectTile;

  // Sorts a list of n <= kTile elements in shared memory.
  static __device__ void sort_tile(K* tile, int n) {
    for (int size = 2; size / 2 < n; size *= 2) merge<int>(tile, n, size, 1);
  }
  // Sorts a list in global memory. `tile` is shared memory for kTile elements.
  static __device__ void sort(K* list, int64_t n, K* tile) {
    in_tiles(list, n, tile, [](K* part, int count) { sort_tile(part, count); });
    for (int64_t size = 2 * kTile; size / 2 < n; size *= 2) {
      merge<int64_t>(list, n, size, kTile);
      in_tiles(list, n, tile, [](K* part, int count) {
        for (int distance = kTile / 2; distance > 0; distance /= 2) exchange<int>(part, count, distance);
      });
    }
  }

 private:
  static __device__ void order(K& low, K& high) {
    const K a = low, b = high;
    if (b < a) low = b, high = a;
  }
  // Merges pairs of sorted halves to sorted runs of `size` elements. Stops after the exchanges over distance `last`.
  template <typename Int>
  static __device__ void merge(K* list, Int n, Int size, Int last) {
    const Int half = size / 2;
    for (Int i = threadIdx.x;; i += Threads) {
      const Int inside = i & (half - 1), begin = 2 * (i - inside);
      if (begin + half >= n) break;
      const Int high = begin + size - 1 - inside;
      if (high < n) order(list[begin + inside], list[high]);
    }
    __syncthreads();
    for (Int distance = size / 4; distance >= last; distance /= 2) exchange<Int>(list, n, distance);
  }
  template <typename Int>
  static __device__ void exchange(K* list, Int n, Int distance) {
    for (Int i = threadIdx.x;; i += Threads) {
      const Int low = 2 * i - (i & (distance - 1));
      if (low >= n) break;
      if (low + distance < n) order(list[low], list[low + distance]);
    }
    __syncthreads();
  }
  template <typename F>
  static __device__ void in_tiles(K* list, int64_t n, K* tile, F&& f) {
    for (int64_t first = 0; first < n; first += kTile) {
      const int count = static_cast<int>(n - first < kTile ? n - first : kTile);
      for (int i = threadIdx.x; i < count; i += Threads) tile[i] = list[first + i];
      __syncthreads();
      f(tile, count);
      for (int i = threadIdx.x; i < count; i += Threads) list[first + i] = tile[i];
      __syncthreads();
    }
  }
};

// The sort keys of a column.
template <bool Largest, typename T>
struct KeyColumn {
  using U = decltype(order_key(static_cast<const T*>(nullptr)));
  using K = Ranked<U>;
  const T* x;
  int64_t n, stride;

  __device__ U operator[](int64_t i) const {
    const U key = order_key(x + i * stride);
    return Largest ? static_cast<U>(~key) : key;
  }
  __device__ K ranked(int64_t i) const { return K::of((*this)[i], i); }
};

// Finds the first k elements of a column, for k < n.
template <int Threads, typename Column>
class BlockSelect {
  using U = typename Column::U;
  static constexpr int kBits = 8, kDigits = 1 << kBits, kWarps = Threads / 32;

 public:
  __device__ BlockSelect(const Column& column, int64_t k, uint32_t* counts)
      : column_(column), k_(k), digits_(counts), warps_(counts + kDigits), found_(counts + kDigits + 32) {
    find();
  }

  // Calls take(place, position) for each of the k elements; any thread may make the call. Elements with a prefix below
  // prefix_ get the first places, and elements whose prefix equals prefix_ get the places after these. Within each of
  // the two groups, elements are in order of position.
  template <typename F>
  __device__ void collect(F&& take) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t before = (1u << lane) - 1;
    int64_t lower = 0, equal = k_ - left_;  // the next places of the two groups
    for (int64_t first = 0; first < column_.n && (lower < k_ - left_ || equal < k_); first += Threads) {
      const int64_t i = first + threadIdx.x;
      const U digits = i < column_.n ? column_[i] >> shift_ : U(~U(0));
      const bool is_lower = i < column_.n && digits < prefix_, is_equal = i < column_.n && digits == prefix_;
      if (!__syncthreads_or(is_lower || is_equal)) continue;
      const uint32_t lowers = __ballot_sync(~0u, is_lower), equals = __ballot_sync(~0u, is_equal);
      if (lane == 0) warps_[warp] = __popc(lowers) | __popc(equals) << 16;
      __syncthreads();
      uint32_t mine = 0, all = 0;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) mine = all;
        all += warps_[w];
      }
      if (is_lower) take(lower + (mine & 0xffff) + __popc(lowers & before), i);
      const int64_t place = equal + (mine >> 16) + __popc(equals & before);
      if (is_equal && place < k_) take(place, i);
      lower += all & 0xffff, equal += all >> 16;
    }
    __syncthreads();
  }

 private:
  // Finds the k-th key digit by digit. Stops when all keys with the prefix found so far are selected.
  __device__ void find() {
    shift_ = 8 * sizeof(U);
    prefix_ = 0, left_ = k_;
    for (bool first = true; shift_ > 0; first = false) {
      shift_ -= kBits;
      count(first);
      choose();
      const int64_t within = found_[2];
      prefix_ = static_cast<U>(prefix_ << kBits | found_[0]);
      left_ -= found_[1];
      if (within == left_) break;
    }
  }
  __device__ void count(bool first) {
    for (int d = threadIdx.x; d < kDigits; d += Threads) digits_[d] = 0;
    __syncthreads();
    for (int64_t begin = 0; begin < column_.n; begin += Threads) {
      const int64_t i = begin + threadIdx.x;
      const U key = i < column_.n ? column_[i] : U(0);
      const U above = first ? U(0) : static_cast<U>(key >> (shift_ + kBits) % (8 * static_cast<int>(sizeof(U))));
      const uint32_t digit =
          i < column_.n && above == prefix_ ? static_cast<uint32_t>(key >> shift_) & (kDigits - 1) : kDigits;
      // Similar keys share their first digits, so a warp combines the additions of equal digits into one.
      const uint32_t same = __match_any_sync(~0u, digit);
      if (digit < kDigits && static_cast<int>(threadIdx.x % 32) == __ffs(same) - 1) {
        atomicAdd(&digits_[digit], static_cast<unsigned>(__popc(same)));
      }
    }
    __syncthreads();
  }
  // Finds the digit of the k-th key, the number of keys with smaller digits, and the number of keys with this digit.
  __device__ void choose() {
    constexpr int kEach = kDigits / 32;
    if (threadIdx.x < 32) {
      const uint32_t* mine = digits_ + threadIdx.x * kEach;
      int64_t sum = 0;
      for (int d = 0; d < kEach; ++d) sum += mine[d];
      int64_t end = sum;
      for (int by = 1; by < 32; by *= 2) {
        const int64_t other = __shfl_up_sync(~0u, end, by);
        if (static_cast<int>(threadIdx.x) >= by) end += other;
      }
      int64_t before = end - sum;
      if (before < left_ && left_ <= end) {
        int d = 0;
        while (before + mine[d] < left_) before += mine[d++];
        found_[0] = threadIdx.x * kEach + d, found_[1] = static_cast<uint32_t>(before), found_[2] = mine[d];
      }
    }
    __syncthreads();
  }

  const Column& column_;
  const int64_t k_;
  uint32_t *digits_, *warps_, *found_;
  U prefix_;      // the digits found so far: every selected key has a prefix <= prefix_
  int shift_;     // number of bits after the prefix
  int64_t left_;  // how many keys whose prefix equals prefix_ are selected
};

// The kernel. Needs dynamic shared memory for a tile and kSelectCountBytes.
template <int Threads, bool Largest, typename T>
__device__ inline void select(const SelectArgs& args) {
  using Column = KeyColumn<Largest, T>;
  using K = typename Column::K;
  using Sort = BlockSort<Threads, K>;
  static_assert(sizeof(K) == select_item_bytes(sizeof(T)));
  extern __shared__ __align__(16) uint8_t raw_shared[];
  K* tile = reinterpret_cast<K*>(raw_shared);
  auto* counts = reinterpret_cast<uint32_t*>(tile + kSelectTile);
  const int64_t number = blockIdx.x, outer = number / args.inner, inner = number % args.inner;
  const Column column{static_cast<const T*>(args.x) + outer * args.n * args.inner + inner, args.n, args.inner};
  K* list = args.k > kSelectTile ? static_cast<K*>(args.list) + number * args.k : tile;
  int64_t count = args.k;
  if (args.n <= kSelectTile || args.k == args.n) {
    count = args.n;
    for (int64_t i = threadIdx.x; i < count; i += Threads) list[i] = column.ranked(i);
    __syncthreads();
  } else {
    const BlockSelect<Threads, Column> best(column, args.k, counts);
    best.collect([&](int64_t place, int64_t i) { list[place] = column.ranked(i); });
  }
  if (count > kSelectTile) {
    Sort::sort(list, count, tile);
  } else {
    Sort::sort_tile(tile, static_cast<int>(count));
  }
  const int64_t to = outer * args.k * args.inner + inner;
  for (int64_t i = threadIdx.x; i < args.k; i += Threads) {
    const int64_t at = list[i].at();
    static_cast<T*>(args.values)[to + i * args.inner] = column.x[at * args.inner];
    args.positions[to + i * args.inner] = at;
  }
}

}  // namespace heddle::tile::cuda
