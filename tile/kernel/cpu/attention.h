// Computes O = softmax(scores(Q K^T)) V for one block of rows and one block of keys at a time. The scores of a micro
// tile of rows stay in the L1 cache. If a key increases the greatest score of a row, the results of the earlier keys
// are rescaled (online softmax).
//
// `Scores` computes a score from an element of Q K^T. It is used for scores that are not plain; a plain score is the
// element times kScale:
//   template <int W, typename N>
//   vec<float, W> operator()(vec<float, W> acc, int64_t batch, int64_t row, int64_t col, N n) const
// `col` is the key. Each row may have one additional key without a value; `Sink` returns the score of this key:
//   vec<float, 1> operator()(int64_t batch, int64_t row) const
// The epilogue is that of gemm() (tile/kernel/cpu/gemm.h).
#pragma once

#include "tile/core/cpu_attention.h"
#include "tile/kernel/cpu/micro.h"
#include "tile/kernel/cpu/transpose.h"
#include "tile/op/math.h"

namespace heddle::tile {

// Q, K or V in memory. `extent` and `batch` are the extents and strides of the batch dimensions, outermost first.
// `line` is the stride between rows or keys.
template <typename T>
struct AttentionOperand {
  const T* data;
  int64_t extent[kBatchDims], batch[kBatchDims], line, element;

  const T* at(int64_t index) const {
    const T* p = data;
    for (int d = kBatchDims - 1; d >= 0; --d) {
      p += index % extent[d] * batch[d];
      index /= extent[d];
    }
    return p;
  }
};

// The `Scores` type if all scores are plain (elements of Q K^T times kScale), so that no functor is called.
struct PlainScores {};
// The `Sink` type if rows have no additional score.
struct NoSink {};

namespace detail {

template <typename Config, typename Q, typename K, typename V, typename Scores, typename Sink, typename Epilogue>
class Attention {
 public:
  Attention(const MicroKernels<float, float>& micro, const AttentionShape& shape, const AttentionKeys* ranges,
            const AttentionOperand<Q>& q, const AttentionOperand<K>& k, const AttentionOperand<V>& v,
            const Scores& scores, const Sink& sink, const Epilogue& epilogue, void* scratch)
      : micro_(micro),
        s_(shape),
        ranges_(ranges),
        q_(q),
        k_(k),
        v_(v),
        score_(scores),
        sink_(sink),
        epilogue_(epilogue),
        at_(shape, micro.rows, kColumns),
        scratch_(static_cast<float*>(scratch)) {}

  void run(int64_t task) {
    batch_ = task / s_.m_blocks();
    const int64_t tile0 = task % s_.m_blocks() * s_.block_tiles;
    const int64_t tile1 = tile0 + s_.block_tiles < s_.tiles ? tile0 + s_.block_tiles : s_.tiles;
    row0_ = s_.tile_row(tile0, micro_.rows);
    const int64_t rows = s_.tile_row(tile1, micro_.rows) - row0_;
    copy_matrix(scratch_ + at_.q, q_stride(), q_.at(batch_) + row0_ * q_.line, q_.line, q_.element, rows, s_.depth);
    const AttentionKeys all = range(row0_, rows);
    for (int64_t key = all.first / kColumns * kColumns; key < all.last; key += s_.block_keys) {
      keys_ = all.last - key < s_.block_keys ? all.last - key : s_.block_keys;
      key0_ = key;
      pack();
      for (int64_t tile = tile0; tile < tile1; ++tile) {
        const int64_t row = s_.tile_row(tile, micro_.rows);
        const bool tall = tile < s_.tall;
        run_tile(tall, row, micro_.rows - (tall ? 0 : 1));
      }
    }
  }

 private:
  static constexpr int W = kLanes, kColumns = kPanel<float, kAttentionVectors>;
  using Vector = vec<float, W>;

  // A range of keys.
  struct Part {
    int64_t first, last;
  };

  int64_t q_stride() const { return copied_stride(s_.depth, sizeof(float)); }
  int64_t exponentials_stride() const { return copied_stride(s_.block_keys, sizeof(float)); }

  // Returns the keys that rows [row, row + rows) need together. A key is plain only if it is plain for all these
  // rows.
  AttentionKeys range(int64_t row, int64_t rows) const {
    if constexpr (!Config::kRanges) {
      return {0, 0, Config::kScaled ? s_.n : 0, s_.n};
    } else {
      AttentionKeys all = ranges_[row / kAttentionRows];
      for (int64_t i = row / kAttentionRows + 1; i <= (row + rows - 1) / kAttentionRows; ++i) {
        const AttentionKeys& r = ranges_[i];
        all.first = r.first < all.first ? r.first : all.first;
        all.last = r.last > all.last ? r.last : all.last;
        all.plain_first = r.plain_first > all.plain_first ? r.plain_first : all.plain_first;
        all.plain_last = r.plain_last < all.plain_last ? r.plain_last : all.plain_last;
      }
      return all;
    }
  }

  // Packs K^T and V of the current block of keys into panels. Missing columns are zero.
  void pack() {
    const K* k = k_.at(batch_) + key0_ * k_.line;
    for (int64_t first = 0; first < keys_; first += kColumns) {
      pack_panel(scratch_ + at_.k + first * s_.depth, k + first * k_.line, k_.element, k_.line, s_.depth,
                 keys_ - first);
    }
    const V* v = v_.at(batch_) + key0_ * v_.line;
    for (int64_t first = 0; first < s_.width; first += kColumns) {
      pack_panel(scratch_ + at_.v + first * keys_, v + first * v_.element, v_.line, v_.element, keys_,
                 s_.width - first);
    }
  }
  template <typename T>
  static void pack_panel(float* to, const T* from, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    if (columns < kColumns) {
      for (int64_t i = 0; i < rows; ++i) store_zero(to + i * kColumns + columns, kColumns - columns);
    }
    copy_matrix(to, kColumns, from, row, column, rows, columns < kColumns ? columns : int64_t(kColumns));
  }

  void run_tile(bool tall, int64_t row, int64_t rows) {
    const AttentionKeys r = range(row, rows);
    const int64_t end = key0_ + keys_ < r.last ? key0_ + keys_ : r.last;
    const int64_t begin = r.first > key0_ ? r.first / kColumns * kColumns : key0_;
    if (begin >= end) return;
    const bool first = begin <= r.first, last = end == r.last;
    multiply_keys(tall, row, rows, begin - key0_, end - key0_);
    float* const tops = scratch_ + at_.tops + (row - row0_);
    float* const sums = scratch_ + at_.sums + (row - row0_);
    float factors[kMicroRows + W], bases[kMicroRows + W];
    const bool plain = Config::kScaled || (Config::kRanges && begin >= r.plain_first && end <= r.plain_last);
    for (int64_t i = 0; i < rows; ++i) {
      const float top = greatest(plain, i, rows, row + i, {begin, end});
      const float before = first ? -__builtin_inff() : tops[i];
      tops[i] = before > top ? before : top;
      // If all scores of a row are minus infinity so far, the base is 0, so that the row's exponentials are zero.
      bases[i] = tops[i] == -__builtin_inff() ? 0.f : tops[i];
      factors[i] = before - bases[i];
    }
    for (int64_t i = 0; i < rows; i += W) store(factors + i, exp_nonpositive(load<W>(factors + i)));
    for (int64_t i = 0; i < rows; ++i) {
      const float sum = plain ? exponentials<true>(i, rows, end - begin, bases[i])
                              : exponentials<false>(i, rows, end - begin, bases[i]);
      sums[i] = first ? sum : sums[i] * factors[i] + sum;
    }
    multiply_values(tall, row, rows, {begin - key0_, end - key0_}, first, factors);
    if (last) finish(row, rows, bases, sums);
  }

  // True if a panel with this number of columns is computed at the width of one vector.
  static bool is_narrow(int64_t columns) { return columns <= W; }

  void multiply_keys(bool tall, int64_t row, int64_t rows, int64_t begin, int64_t end) {
    const int64_t one_segment = 0;
    const MicroA<float> q{scratch_ + at_.q + (row - row0_) * q_stride(), q_stride(), &one_segment, 1, s_.depth};
    float* to = scratch_ + at_.scores;
    for (int64_t key = begin; key < end; key += kColumns, to += rows * kColumns) {
      const float* k = scratch_ + at_.k + key * s_.depth;
      if (is_narrow(end - key)) {
        micro_.template run<true>(tall, q, k, kColumns, to);
      } else {
        micro_.template run<false>(tall, q, k, kColumns, to);
      }
    }
  }

  // Calls visit(scores, key, n) for each vector of the `keys` scores of row i. `n` is the number of valid lanes.
  template <typename Visit>
  TILE_INLINE void for_scores(int64_t i, int64_t rows, int64_t keys, const Visit& visit) {
    float* panel = scratch_ + at_.scores;
    int64_t key = 0;
    for (; key + kColumns <= keys; key += kColumns, panel += rows * kColumns) {
      static_for<kAttentionVectors>([&](auto j) __attribute__((always_inline)) {
        visit(panel + i * kColumns + j * W, key + j * W, index_constant<W>{});
      });
    }
    float* line = panel + i * (is_narrow(keys - key) ? W : kColumns);
    for (; key + W <= keys; key += W, line += W) visit(line, key, index_constant<W>{});
    if (key < keys) visit(line, key, keys - key);
  }
  // Sets the lanes after the last key to minus infinity.
  template <typename N>
  TILE_INLINE static Vector hidden_behind(Vector scores, N n) {
    if constexpr (is_same<N, int64_t>) {
      return select(first_lanes<sizeof(float), W>(n), scores, splat<W>(-__builtin_inff()));
    } else {
      return scores;
    }
  }

  // Returns the greatest score of a row. First computes the scores that are not plain.
  TILE_INLINE float greatest(bool plain, int64_t i, int64_t rows, int64_t row, Part keys) {
    if constexpr (!Config::kScaled) {
      if (!plain) return make_scores(i, rows, row, keys);
    }
    return greatest_plain(i, rows, keys.last - keys.first);
  }
  // Returns the greatest plain score. NaN may be ignored here, since the exponential of the NaN score is NaN.
  TILE_INLINE float greatest_plain(int64_t i, int64_t rows, int64_t keys) {
    Vector top = splat<W>(-__builtin_inff());
    for_scores(
        i, rows, keys, [&](const float* at, int64_t, auto n) __attribute__((always_inline)) {
          top = detail::greater_or_second(hidden_behind(load<W>(at), n), top);
        });
    return reduce_max(top) * Config::kScale;
  }
  TILE_INLINE float make_scores(int64_t i, int64_t rows, int64_t row, Part keys) {
    Vector top = splat<W>(-__builtin_inff());
    for_scores(
        i, rows, keys.last - keys.first, [&](float* at, int64_t key, auto n) __attribute__((always_inline)) {
          const Vector score =
              hidden_behind(score_.template operator()<W>(load<W>(at), batch_, row, keys.first + key, n), n);
          store(at, score);
          top = detail::greater_or_second(score, top);
        });
    return reduce_max(top);
  }
  // Writes the exponentials of a row's scores and returns their sum.
  template <bool Plain>
  TILE_INLINE float exponentials(int64_t i, int64_t rows, int64_t keys, float base) {
    float* const to = scratch_ + at_.exponentials + i * exponentials_stride();
    Vector sum = zero<float, W>();
    for_scores(
        i, rows, keys, [&](const float* at, int64_t key, auto n) __attribute__((always_inline)) {
          const Vector score = hidden_behind(load<W>(at), n);
          const Vector below = Plain ? fma(score, splat<W>(Config::kScale), splat<W>(-base)) : score - base;
          const Vector e = exp_nonpositive(below);
          sum += e;
          store(to + key, e);
        });
    return reduce_add(sum);
  }

  // Multiplies the results by the factors of their rows and adds the product of the exponentials and V.
  void multiply_values(bool tall, int64_t row, int64_t rows, Part keys, bool first, const float* factors) {
    const int64_t one_segment = 0;
    const MicroA<float> e{scratch_ + at_.exponentials, exponentials_stride(), &one_segment, 1, keys.last - keys.first};
    for (int64_t column = 0; column < s_.width; column += kColumns) {
      const float* v = scratch_ + at_.v + column * keys_ + keys.first * kColumns;
      float* const results = results_of(row, rows, column);
      float* const to = first ? results : scratch_ + at_.products;
      int64_t length = kColumns;
      if (is_narrow(s_.width - column)) {
        micro_.template run<true>(tall, e, v, kColumns, to);
        length = W;
      } else {
        micro_.template run<false>(tall, e, v, kColumns, to);
      }
      if (first) continue;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = i * length; j < (i + 1) * length; j += W) {
          store(results + j, fma(load<W>(results + j), splat<W>(factors[i]), load<W>(to + j)));
        }
      }
    }
  }
  // The results of a micro tile, stored as consecutive panels.
  float* results_of(int64_t row, int64_t rows, int64_t column) const {
    const int64_t widths = panel_count(s_.width, kColumns) * kColumns;
    return scratch_ + at_.results + (row - row0_) * widths + rows * column;
  }

  void finish(int64_t row, int64_t rows, const float* bases, const float* sums) {
    const Epilogue epilogue = epilogue_;
    for (int64_t i = 0; i < rows; ++i) {
      float sum = sums[i];
      if constexpr (!is_same<Sink, NoSink>) sum += exp(sink_(batch_, row + i) - bases[i]).v;
      const bool empty = Config::kZeroIfEmpty && sum == 0.f;
      const Vector share = splat<W>(empty ? 0.f : 1.f / sum);
      for (int64_t column = 0; column < s_.width; column += kColumns) {
        const bool narrow = is_narrow(s_.width - column);
        const float* line = results_of(row, rows, column) + i * (narrow ? W : kColumns);
        const int64_t columns = s_.width - column < kColumns ? s_.width - column : kColumns;
        int64_t j = 0;
        for (; j + W <= columns; j += W)
          epilogue.template operator()<W>(load<W>(line + j) * share, batch_, row + i, column + j, index_constant<W>{});
        if (j < columns)
          epilogue.template operator()<W>(load<W>(line + j) * share, batch_, row + i, column + j, columns - j);
      }
    }
  }

  const MicroKernels<float, float>& micro_;
  const AttentionShape& s_;
  const AttentionKeys* const ranges_;
  const AttentionOperand<Q>& q_;
  const AttentionOperand<K>& k_;
  const AttentionOperand<V>& v_;
  const Scores score_;
  const Sink sink_;
  const Epilogue epilogue_;
  const AttentionScratch at_;
  float* const scratch_;
  int64_t batch_ = 0, row0_ = 0, key0_ = 0, keys_ = 0;  // position of the task; the current block of keys
};

}  // namespace detail

// Runs tasks [begin, end) of shape.tasks(). `micro` must contain the micro-kernels for kAttentionVectors vectors and
// for one vector. `scratch` has AttentionScratch(shape, micro.rows, panel).bytes() bytes.
//
// Config:
//   kScaled: all scores are plain. A plain score is the product times kScale, which is positive.
//   kRanges: `ranges` gives, for every kAttentionRows rows, their keys and which of these keys have plain scores.
//     Otherwise `ranges` is null.
//   kZeroIfEmpty: if true, the result of a row whose scores are all minus infinity is 0; if false, it is NaN.
template <typename Config, typename Q, typename K, typename V, typename Scores, typename Sink, typename Epilogue>
void attention(const MicroKernels<float, float>& micro, const AttentionShape& shape, const AttentionKeys* ranges,
               const AttentionOperand<Q>& q, const AttentionOperand<K>& k, const AttentionOperand<V>& v,
               const Scores& scores, const Sink& sink, const Epilogue& epilogue, void* scratch, int64_t begin,
               int64_t end) {
  detail::Attention<Config, Q, K, V, Scores, Sink, Epilogue> attention(micro, shape, ranges, q, k, v, scores, sink,
                                                                       epilogue, scratch);
  for (int64_t task = begin; task < end; ++task) attention.run(task);
}

}  // namespace heddle::tile
