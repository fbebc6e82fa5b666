// C = epilogue(A B), for one product or a batch of them. The epilogue is a functor
//   template <int W, typename N> void operator()(vec<T, W> acc, int64_t batch, int64_t row, int64_t col, N n) const
// that is called once for each vector of finished accumulators: columns col .. col + n - 1 of that row, n <= W. The
// epilogue reads its own operands and stores its own results. For full vectors n is an index_constant<W>, which is a
// compile-time constant.
// Optionally the epilogue has
//   template <typename Visit> void lines(int64_t batch, int64_t row, int64_t col, const Visit& visit) const
// that calls visit(pointer) for the elements at (row, col) of those operands and results whose columns are contiguous
// in memory. These elements are prefetched while the products are summed. (Rows of results are far apart in memory, so
// hardware prefetchers do not find them. Fetching each row when it is needed costs 3 to 6% of the time of a product
// with K = 768.)
#pragma once

#include "tile/core/shape.h"
#include "tile/kernel/cpu/micro.h"
#include "tile/kernel/cpu/transpose.h"

namespace heddle::tile {

// An unpacked operand in memory: A[row][k] or B[k][column]. Strides are in elements and may be negative.
template <typename T>
struct Strided {
  const T* data;
  int64_t batch[kBatchDims];
  int64_t row, col;
};

// The steps of k that are prepared together: [first, first + count).
struct Steps {
  int64_t first, count;
};

// ---- Forms of A. prepare() makes a block of rows available once; the micro-kernels then read these rows in place.

// The left operand read in place. It has the compute type and unit stride along k.
template <typename T>
struct DirectA {
  Strided<T> at;

  static constexpr bool kCopies = false;
  const T* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t, Steps k, T*, int64_t& stride) const {
    stride = at.row;
    return at.data + s.offset(batch, at.batch) + row * at.row + k.first;
  }
};

// The left operand, computed row by row into scratch by a functor (the prologue). The functor's operator returns the n
// elements A[row][k .. k + n - 1], where n is at most W:
//   template <int W, typename N> vec<T, W> operator()(int64_t batch, int64_t row, int64_t k, N n) const
template <typename T, typename F>
struct ComputedA {
  F element;

  static constexpr bool kCopies = true;
  const T* prepare(const GemmShape&, int64_t batch, int64_t row, int64_t rows, Steps steps, T* scratch,
                   int64_t& stride) const {
    constexpr int W = kVectorBytes / int(sizeof(T));
    stride = copied_stride(steps.count, sizeof(T));
    for (int64_t i = 0; i < rows; ++i) {
      T* out = scratch + i * stride;
      int64_t k = 0;
      for (; k + W <= steps.count; k += W)
        store(out + k, element.template operator()<W>(batch, row + i, steps.first + k, index_constant<W>{}));
      const int64_t left = steps.count - k;
      if (left > 0) store_n(out + k, element.template operator()<W>(batch, row + i, steps.first + k, left), left);
    }
    return scratch;
  }
};

// The left operand copied to scratch from memory with any strides and storage type.
template <typename T, typename TA>
struct CopiedA {
  Strided<TA> at;

  static constexpr bool kCopies = true;
  const T* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t rows, Steps k, T* scratch,
                   int64_t& stride) const {
    stride = copied_stride(k.count, sizeof(T));
    const TA* from = at.data + s.offset(batch, at.batch) + row * at.row + k.first * at.col;
    copy_matrix(scratch, stride, from, at.row, at.col, rows, k.count);
    return scratch;
  }
};

// The left operand as words, copied from memory with any strides. TA is the words' element type, or an integer type
// that it can represent. The row has `elements` elements; the last word is filled with zeros.
template <typename Word, typename TA>
struct WordsA {
  Strided<TA> at;
  int64_t elements;

  static constexpr bool kCopies = true;
  const typename Word::sum* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t rows, Steps k,
                                    typename Word::sum* scratch, int64_t& stride) const {
    using Element = typename Word::a_element;
    constexpr int64_t E = Word::kElements;
    stride = copied_stride(k.count, sizeof(Word));
    const TA* from = at.data + s.offset(batch, at.batch) + row * at.row + k.first * E * at.col;
    const int64_t all = k.count * E, left = elements - k.first * E, some = left < all ? left : all;
    Element* const to = reinterpret_cast<Element*>(scratch);
    copy_matrix(to, stride * E, from, at.row, at.col, rows, some);
    for (int64_t i = 0; some < all && i < rows; ++i) store_zero(to + i * stride * E + some, all - some);
    return scratch;
  }
};

// The left operand as words, computed by a functor like that of ComputedA, which returns the elements of words.
template <typename Word, typename F>
struct ComputedWordsA {
  F element;
  int64_t elements;

  static constexpr bool kCopies = true;
  const typename Word::sum* prepare(const GemmShape&, int64_t batch, int64_t row, int64_t rows, Steps steps,
                                    typename Word::sum* scratch, int64_t& stride) const {
    using Element = typename Word::a_element;
    constexpr int64_t W = kLanes, E = Word::kElements;
    stride = copied_stride(steps.count, sizeof(Word));
    const int64_t all = steps.count * E, left = elements - steps.first * E, some = left < all ? left : all;
    for (int64_t i = 0; i < rows; ++i) {
      Element* const out = reinterpret_cast<Element*>(scratch + i * stride);
      for (int64_t k = 0; k < some; k += W) {
        const int64_t n = some - k < W ? some - k : W;
        store_n(out + k, element.template operator()<W>(batch, row + i, steps.first * E + k, n), n);
      }
      store_zero(out + some, all - some);
    }
    return scratch;
  }
};

// ---- Forms of B. panel() returns panel number `panel` of a batch: its `nr` columns for the given steps of k.

// B, packed in advance as [batch][panel][k][NR]. Batch strides are in elements of the packed form, and 0 in dimensions
// that the operand does not have.
template <typename T, typename TB>
struct PackedB {
  const TB* data;
  int64_t batch[kBatchDims];

  using element = TB;
  static constexpr bool kCopies = false;
  const TB* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, Steps k, T*, int64_t& stride) const {
    stride = nr;
    return data + s.offset(index, batch) + (panel * s.k + k.first) * nr;
  }
};

// B in memory with any strides and storage type. The task that needs a panel packs this panel.
template <typename T, typename TB>
struct StridedB {
  Strided<TB> at;

  using element = T;
  static constexpr bool kCopies = true;
  const T* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, Steps steps, T* scratch,
                 int64_t& stride) const {
    const int64_t first = panel * nr;
    const int64_t columns = s.n - first < nr ? s.n - first : nr;
    const TB* from = at.data + s.offset(index, at.batch) + first * at.col + steps.first * at.row;
    stride = nr;
    if constexpr (is_same<T, TB>) {
      // If the panel has fewer columns than nr, the vectors also read elements of the next row, if there is one. The
      // sums of these columns are not stored.
      const bool fits = columns == nr || (s.k - steps.first - steps.count) * at.row + columns >= nr;
      if (at.col == 1 && fits && at.row < kDirectStride) {
        stride = at.row;
        return from;
      }
    }
    copy_padded(scratch, nr, from, at.row, at.col, steps.count, columns);
    return scratch;
  }

 private:
  // If rows are at least this many elements apart, reading in place would miss the TLB, since each row is on a separate
  // page.
  static constexpr int64_t kDirectStride = 2048 / int64_t(sizeof(T));
};

// B as words, packed by the task that needs a panel. `value` is a functor like that of ComputedB, which returns
// elements of words; StridedElements is one that reads their bits in memory. There are `elements` elements along k.
template <typename Word, typename F>
struct WordsB {
  F value;
  int64_t elements;

  using element = Word;
  static constexpr bool kCopies = true;
  const Word* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, Steps steps,
                    typename Word::sum* scratch, int64_t& stride) const {
    constexpr int W = kLanes, E = Word::kElements;
    stride = nr;
    for (int64_t k = 0; k < steps.count; ++k) {
      for (int64_t j = 0; j < nr; j += W) {
        const int64_t col = panel * nr + j, n = s.n - col < W ? s.n - col : W;
        vec<int32_t, W> words = zero<int32_t, W>();
        for (int e = 0; e < E && n > 0; ++e) {
          const int64_t at = (steps.first + k) * E + e;
          if (at >= elements) break;
          const auto some = value.template operator()<W>(index, at, col, n);
          words = words | (word_bits<Word>(some) << (32 / E * e));
        }
        store(scratch + k * nr + j, bit_cast<typename Word::sum>(words));
      }
    }
    return reinterpret_cast<const Word*>(scratch);
  }
};

template <typename Word, typename TB>
struct StridedElements {
  Strided<TB> at;
  const GemmShape& shape;

  template <int W, typename N>
  TILE_INLINE auto operator()(int64_t batch, int64_t k, int64_t col, N n) const {
    using Bits = detail::bits_t<typename Word::b_element>;
    const auto* from = reinterpret_cast<const detail::bits_t<TB>*>(at.data) + shape.offset(batch, at.batch) +
                       k * at.row + col * at.col;
    if (at.col == 1) return convert<Bits>(load_n<W>(from, n));
    Bits lanes[W] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = static_cast<Bits>(from[i * at.col]);
    return load<W>(lanes);
  }
};

// B, computed by a functor (prologue)
//   template <int W, typename N> vec<T, W> operator()(int64_t batch, int64_t k, int64_t col, N n) const
// that returns B[k][col .. col + n - 1].
template <typename T, typename F>
struct ComputedB {
  F value;

  using element = T;
  static constexpr bool kCopies = true;
  const T* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, Steps steps, T* scratch,
                 int64_t& stride) const {
    constexpr int W = kVectorBytes / int(sizeof(T));
    stride = nr;
    for (int64_t k = 0; k < steps.count; ++k) {
      for (int64_t j = 0; j < nr; j += W) {
        const int64_t col = panel * nr + j, n = s.n - col < W ? s.n - col : W;
        store(scratch + k * nr + j,
              n > 0 ? value.template operator()<W>(index, steps.first + k, col, n) : zero<T, W>());
      }
    }
    return scratch;
  }
};

namespace detail {

// Passes the finished tile c[rows][NR] to the epilogue. Uses a local copy of the epilogue, so that its members stay in
// registers while results are stored.
template <typename T, int NV, typename Epilogue>
TILE_INLINE void finish_tile(const T* c, int64_t rows, int64_t row, int64_t batch, int64_t col, int64_t columns,
                             const Epilogue& from) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  // Integers usually become narrower, which takes fewer instructions for two vectors together.
  constexpr int Together = !is_float<T> && NV == 2 ? 2 : 1;
  const Epilogue epilogue = from;
  const int64_t full = columns / W < NV ? columns / W : NV;
  for (int64_t i = 0; i < rows; ++i) {
    const T* line = c + i * NV * W;
    if (Together > 1 && full == NV) {
      epilogue.template operator()<Together * W>(load<Together * W>(line), batch, row + i, col,
                                                 index_constant<Together * W>{});
      continue;
    }
    for (int64_t j = 0; j < full; ++j)
      epilogue.template operator()<W>(load<W>(line + j * W), batch, row + i, col + j * W, index_constant<W>{});
    if (full < NV && columns > full * W)
      epilogue.template operator()<W>(load<W>(line + full * W), batch, row + i, col + full * W, columns - full * W);
  }
}

// True if the epilogue has a member kAlongRows. The lanes of a vector are then different rows of one column:
// operator()(acc, batch, row, col, n) receives rows row .. row + n - 1 of column col. Use this if neighbouring rows of
// the results are contiguous in memory.
template <typename Epilogue>
inline constexpr bool kAlongRows = requires {
  Epilogue::kAlongRows;
};

// Does the same as finish_tile() for an epilogue with kAlongRows. Supports any number of rows. Each row has NV vectors.
template <typename T, int NV, typename Epilogue>
TILE_INLINE void finish_along_rows(const T* c, int64_t rows, int64_t row, int64_t batch, int64_t col, int64_t columns,
                                   const Epilogue& from) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  const Epilogue epilogue = from;
  for (int64_t j = 0; j < NV * W && j < columns; j += W) {
    const int64_t some = columns - j < W ? columns - j : W;
    const auto square = [&](int64_t i, auto n) __attribute__((always_inline)) {
      vec<T, W> r[W];
      static_for<W>([&](auto l) __attribute__((always_inline)) {
        r[l] = l < n ? load<W>(c + (i + l) * NV * W + j) : zero<T, W>();
      });
      transpose_rows(r);
      static_for<W>([&](auto l) __attribute__((always_inline)) {
        if (l < some) epilogue.template operator()<W>(r[l], batch, row + i, col + j + l, n);
      });
    };
    int64_t i = 0;
    for (; i + W <= rows; i += W) square(i, index_constant<W>{});
    if (i < rows) square(i, rows - i);
  }
}

// The number of neighbouring columns that an epilogue with kAlongRows receives as neighbouring results of one row. It
// is the epilogue's kInterleaved, a power of two, or 1 if there is no such member. The columns are the phases of a
// transposed convolution, or the pixels to which a convolution expands one pixel.
template <typename Epilogue>
inline constexpr int kInterleaved = 1;
template <typename Epilogue>
requires requires {
  Epilogue::kInterleaved;
}
inline constexpr int kInterleaved<Epilogue> = Epilogue::kInterleaved;

// True if each of the kInterleaved columns of a channel is in a separate panel. The panels with columns of the same
// channels are then consecutive.
template <typename Epilogue>
inline constexpr bool kPanelPhases = requires {
  Epilogue::kPanelPhases;
};

// A row of results. Only results [first, end) exist; the results before and after them are cropped.
struct ResultRow {
  int64_t row, first, end;
};

// Passes vectors of neighbouring results of a row to the epilogue. Vector r[l] has the results of channel `channel` + l
// from position `x` on. Only the first `channels` of the N vectors are passed. Results from `end` on do not exist.
template <int N, typename T, int W, typename Epilogue>
TILE_INLINE void store_results(const vec<T, W> (&r)[N], const ResultRow& at, int64_t x, int64_t end, int64_t channel,
                               int64_t channels, const Epilogue& epilogue) {
  if (x >= at.first && x + W <= end && channels >= N) {
    static_for<N>([&](auto l) __attribute__((always_inline)) {
      epilogue.template operator()<W>(r[l], at.row, x, channel + l, index_constant<W>{});
    });
    return;
  }
  // Partial vectors may begin at any lane.
  T part[2 * W];
  const int64_t skipped = x < at.first ? at.first - x : 0, left = end - x - skipped;
  store(part + W, zero<T, W>());
  static_for<N>([&](auto l) __attribute__((always_inline)) {
    if (l >= channels || left <= 0 || skipped >= W) return;
    store(part, r[l]);
    epilogue.template operator()<W>(load<W>(part + skipped), at.row, x + skipped, channel + l,
                                    left < W - skipped ? left : W - skipped);
  });
}

// Does the same as finish_along_rows() for an epilogue with kInterleaved > 1. Processes `pixels` pixels of a row, from
// `pixel` on. The epilogue's `batch` is at.row. Its `row` is the index of the result in the row of results, and its
// `col` is the index of a group of kInterleaved columns.
template <typename T, int NV, typename Epilogue>
TILE_INLINE void finish_interleaved(const T* c, int64_t pixels, int64_t pixel, const ResultRow& at, int64_t col,
                                    int64_t columns, const Epilogue& from) {
  constexpr int W = kVectorBytes / int(sizeof(T)), S = kInterleaved<Epilogue>, Run = S < W ? S : W, N = W / Run;
  const Epilogue epilogue = from;
  const int64_t end = at.end < (pixel + pixels) * S ? at.end : (pixel + pixels) * S;
  for (int64_t j = 0; j < NV * W && j < columns; j += W) {
    for (int64_t i = 0; i < pixels; i += N) {
      vec<T, W> r[N];
      static_for<N>([&](auto l) __attribute__((always_inline)) {
        r[l] = i + l < pixels ? load<W>(c + (i + l) * NV * W + j) : zero<T, W>();
      });
      transpose_rows<Run>(r);
      const int64_t x = (pixel + i) * S + (S > W ? j % S : 0);
      store_results(r, at, x, end, (col + j) / S, (columns - j + Run - 1) / Run, epilogue);
    }
  }
}

// Does the same as finish_interleaved() if kPanelPhases is set. The accumulators of the panels are `phase` elements
// apart. `columns` is the number of columns of one panel.
template <typename T, int NV, typename Epilogue>
TILE_INLINE void finish_phases(const T* c, int64_t phase, int64_t pixels, int64_t pixel, const ResultRow& at,
                               int64_t channel, int64_t columns, const Epilogue& from) {
  constexpr int W = kVectorBytes / int(sizeof(T)), S = kInterleaved<Epilogue>, N = W / S;
  static_assert(W % S == 0);
  const Epilogue epilogue = from;
  const int64_t end = at.end < (pixel + pixels) * S ? at.end : (pixel + pixels) * S;
  for (int64_t j = 0; j < NV * W && j < columns; j += W) {
    for (int64_t i = 0; i < pixels; i += N) {
      vec<T, W> r[W];
      static_for<W>([&](auto l) __attribute__((always_inline)) {
        r[l] = i + l / S < pixels ? load<W>(c + l % S * phase + (i + l / S) * NV * W + j) : zero<T, W>();
      });
      transpose_rows(r);
      store_results(r, at, (pixel + i) * S, end, channel + j, columns - j, epilogue);
    }
  }
}

// Only micro tiles with at least this many rows and steps of k prefetch cache lines. Tiles of fewer rows are limited by
// reading B, and those of fewer steps end before the lines arrive.
inline constexpr int64_t kAskingRows = 4, kAskingSteps = kAheadSteps + 1;

// The cache lines that the epilogue of one micro tile will access.
template <typename T, int NV>
class TileLines {
 public:
  // Collects the cache lines of a tile with `steps` steps of k. Returns the lines, and how many of them to prefetch at
  // a time.
  template <typename Epilogue>
  TILE_INLINE Ahead find(const Epilogue& from, int64_t rows, int64_t row, int64_t batch, int64_t col, int64_t steps) {
    int64_t count = 0;
    const Epilogue epilogue = from;
    if constexpr (requires { epilogue.lines(batch, row, col, [](const auto*) {}); }) {
      constexpr int64_t kLine = 64;
      for (int64_t i = 0; i < rows; ++i) {
        epilogue.lines(batch, row + i, col, [&](const auto* p) {
          constexpr int64_t bytes = kPanel<T, NV> * int64_t(sizeof(*p));
          for (int64_t at = 0; at < bytes && count < kMost; at += kLine)
            lines_[count++] = reinterpret_cast<const char*>(p) + at;
        });
      }
    }
    const int64_t times = (steps + kAheadSteps - 1) / kAheadSteps;
    return {lines_, count, times > 0 ? (count + times - 1) / times : 0};
  }

 private:
  static constexpr int64_t kMost = 4 * kMicroRows * NV;
  const void* lines_[kMost];
};

}  // namespace detail

namespace detail {

// A block of neighbouring rows of C, with the prepared rows of A. The block is split into `tiles` micro tiles: first
// `tall` tiles of micro.rows rows, then tiles with one row fewer.
template <typename T>
struct GemmRows {
  int64_t batch, row, tiles, tall;
  const T* a;
  int64_t a_stride;
};

// Multiplies the rows of `block` by panels [panel0, panel1). Scratch: the accumulators `c`, and `b_scratch` for a panel
// of B if panels are copied.
template <int NV, bool NarrowTail, typename T, typename TB, typename B, typename Epilogue>
TILE_INLINE void gemm_block(const MicroKernels<T, TB>& micro, const GemmShape& s, const GemmRows<T>& block, const B& b,
                            const Epilogue& epilogue, int64_t panel0, int64_t panel1, T* c, T* b_scratch) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t one_segment = 0;
  TileLines<T, NV> lines;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    int64_t b_stride = nr;
    const TB* bp = b.panel(s, block.batch, panel, nr, {0, s.k}, b_scratch, b_stride);
    const int64_t col = panel * nr;
    const bool narrow = NarrowTail && s.n - col <= nr / NV;
    const T* a = block.a;
    int64_t row = block.row;
    if constexpr (kAlongRows<Epilogue>) {
      int64_t made = 0;  // rows whose epilogue is still to be applied
      for (int64_t tile = 0; tile < block.tiles; ++tile) {
        const bool tall = tile < block.tall;
        const int64_t rows = micro.rows - (tall ? 0 : 1);
        const MicroA<T> op{a, block.a_stride, &one_segment, 1, s.k};
        if (narrow) {
          micro.template run<NarrowTail>(tall, op, bp, b_stride, c + made * (nr / NV));
        } else {
          micro.template run<false>(tall, op, bp, b_stride, c + made * nr);
        }
        made += rows;
        a += rows * block.a_stride;
        if ((tile + 1) % kTilesTogether != 0 && tile + 1 < block.tiles) continue;
        if (narrow) {
          finish_along_rows<T, NarrowTail ? 1 : NV>(c, made, row, block.batch, col, s.n - col, epilogue);
        } else {
          finish_along_rows<T, NV>(c, made, row, block.batch, col, s.n - col, epilogue);
        }
        row += made;
        made = 0;
      }
      continue;
    }
    for (int64_t tile = 0; tile < block.tiles; ++tile) {
      const bool tall = tile < block.tall;
      const int64_t rows = micro.rows - (tall ? 0 : 1);
      const MicroA<T> op{a, block.a_stride, &one_segment, 1, s.k};
      const bool asks = micro.rows >= kAskingRows && s.k >= kAskingSteps;
      const Ahead ahead = asks ? lines.find(epilogue, rows, row, block.batch, col, s.k) : Ahead{};
      if (narrow) {
        micro.template run<NarrowTail>(tall, op, bp, b_stride, c, ahead);
        finish_tile<T, NarrowTail ? 1 : NV>(c, rows, row, block.batch, col, s.n - col, epilogue);
      } else {
        micro.template run<false>(tall, op, bp, b_stride, c, ahead);
        finish_tile<T, NV>(c, rows, row, block.batch, col, s.n - col, epilogue);
      }
      row += rows;
      a += rows * block.a_stride;
    }
  }
}

}  // namespace detail

// Runs tasks [begin, end) of s.tasks(kPanel<T, NV>) with micro-kernels of NV vectors and at most kMicroRows rows.
// Scratch: s.scratch_bytes(micro.rows, kPanel<T, NV>, sizeof(T), A::kCopies, B::kCopies, kAlongRows<Epilogue>) bytes.
// NarrowTail: if the last panel has at most one vector of columns, it is computed with one vector.
template <int NV, bool NarrowTail = false, typename T, typename TB, typename A, typename B, typename Epilogue>
void gemm(const MicroKernels<T, TB>& micro, const GemmShape& s, const A& a, const B& b, const Epilogue& epilogue,
          void* scratch, int64_t begin, int64_t end) {
  constexpr int64_t nr = kPanel<T, NV>;
  static_assert(is_same<TB, typename B::element>);
  const int64_t m_blocks = s.m_blocks(), n_blocks = s.n_blocks(nr), panels = panel_count(s.n, nr);
  constexpr int64_t together = detail::kAlongRows<Epilogue> ? kTilesTogether : 1;
  T* const c = static_cast<T*>(scratch);
  T* const b_scratch = c + together * s.accumulator_elements(micro.rows, nr);
  T* const a_scratch = b_scratch + (B::kCopies ? s.panel_elements(nr) : 0);
  detail::GemmRows<T> rows{};
  int64_t ready = -1;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks;
    if (ready != block) {  // tasks of one block are consecutive, so its rows of A are prepared once
      const int64_t tile0 = block % m_blocks * s.block_tiles;
      const int64_t tile1 = tile0 + s.block_tiles < s.tiles ? tile0 + s.block_tiles : s.tiles;
      rows.batch = block / m_blocks, rows.row = s.tile_row(tile0, micro.rows);
      rows.tiles = tile1 - tile0, rows.tall = s.tall - tile0;
      const int64_t count = s.tile_row(tile1, micro.rows) - rows.row;
      rows.a = a.prepare(s, rows.batch, rows.row, count, {0, s.k}, a_scratch, rows.a_stride);
      ready = block;
    }
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    detail::gemm_block<NV, NarrowTail>(micro, s, rows, b, epilogue, panel0, panel1, c, b_scratch);
  }
}

// Computes all columns of `count` rows of a batch. The rows are split into micro tiles of micro.rows rows and tiles
// with one row fewer. Scratch: as for gemm() with a block of `count` rows.
template <int NV, bool NarrowTail = false, typename T, typename TB, typename A, typename B, typename Epilogue>
void gemm_rows(const MicroKernels<T, TB>& micro, const GemmShape& s, const A& a, const B& b, const Epilogue& epilogue,
               void* scratch, int64_t batch, int64_t row, int64_t count) {
  constexpr int64_t nr = kPanel<T, NV>;
  T* const c = static_cast<T*>(scratch);
  T* const b_scratch = c + s.accumulator_elements(micro.rows, nr);
  T* const a_scratch = b_scratch + (B::kCopies ? s.panel_elements(nr) : 0);
  const int64_t tiles = (count + micro.rows - 1) / micro.rows;
  detail::GemmRows<T> rows{batch, row, tiles, count - tiles * (micro.rows - 1), nullptr, 0};
  rows.a = a.prepare(s, batch, row, count, {0, s.k}, a_scratch, rows.a_stride);
  detail::gemm_block<NV, NarrowTail>(micro, s, rows, b, epilogue, 0, panel_count(s.n, nr), c, b_scratch);
}

}  // namespace heddle::tile
