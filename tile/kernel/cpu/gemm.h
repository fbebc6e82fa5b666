// C = epilogue(A B), plain and batched. The epilogue is a functor
//   template <int W, typename N> void operator()(vec<T, W> acc, int64_t batch, int64_t row, int64_t col, N n) const
// called once for each vector of finished accumulators: columns col .. col + n - 1 of that row, n <= W. It reads its
// own operands and stores its own results. Full vectors come with n an index_constant<W>, so that `n` folds.
#pragma once

#include "tile/core/pack.h"
#include "tile/kernel/cpu/micro.h"
#include "tile/kernel/cpu/transpose.h"

namespace heddle::tile {

inline constexpr int kBatchDims = 4;

// Rows cut into micro tiles of two heights only, MR and MR - 1, so that few micro-kernels are compiled.
struct RowSplit {
  int64_t mr, tiles, tall;  // tall tiles of mr rows, then tiles - tall of mr - 1
};
constexpr RowSplit split_rows(int64_t rows, int64_t max_rows) {
  if (rows <= 0) return {1, 0, 0};
  const int64_t tiles = (rows + max_rows - 1) / max_rows, mr = (rows + tiles - 1) / tiles;
  return {mr, tiles, rows - tiles * (mr - 1)};
}

// Problem and blocking. Output rows are cut into micro tiles by split_rows().
struct GemmShape {
  int64_t batch[kBatchDims] = {1, 1, 1, 1};  // extents, outermost first
  int64_t m = 0, n = 0, k = 0;
  int64_t tiles = 0, tall = 0;
  int64_t block_tiles = 1;   // micro tiles of one task
  int64_t block_panels = 1;  // panels of B of one task

  constexpr int64_t batches() const { return batch[0] * batch[1] * batch[2] * batch[3]; }
  constexpr int64_t m_blocks() const { return (tiles + block_tiles - 1) / block_tiles; }
  constexpr int64_t n_blocks(int64_t width) const {
    const int64_t panels = panel_count(n, width);
    return (panels + block_panels - 1) / block_panels;
  }
  constexpr int64_t tasks(int64_t width) const { return batches() * m_blocks() * n_blocks(width); }
  constexpr int64_t tile_row(int64_t tile, int64_t mr) const { return tile * mr - (tile > tall ? tile - tall : 0); }

  // Where batch `index` of an operand with these batch strides begins.
  constexpr int64_t offset(int64_t index, const int64_t (&stride)[kBatchDims]) const {
    int64_t at = 0;
    for (int d = kBatchDims - 1; d >= 0; --d) {
      at += index % batch[d] * stride[d];
      index /= batch[d];
    }
    return at;
  }
};

// Where an unpacked operand lies: A[row][k], B[k][column]; strides in elements, any sign.
template <typename T>
struct Strided {
  const T* data;
  int64_t batch[kBatchDims];
  int64_t row, col;
};

// ---- Forms of A. A block of rows is made ready once, then read in place.

// A read where it lies: compute type, unit stride along k.
template <typename T>
struct DirectA {
  Strided<T> at;

  static constexpr int64_t scratch_elements(int64_t, int64_t) { return 0; }
  const T* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t, T*, int64_t& stride) const {
    stride = at.row;
    return at.data + s.offset(batch, at.batch) + row * at.row;
  }
};

// Row stride of a copied block: an odd number of cache lines, since rows a multiple of 4 KiB apart share one cache set.
template <typename T>
constexpr int64_t copied_stride(int64_t k) {
  constexpr int64_t line = 64 / int64_t(sizeof(T));
  return ((k + line - 1) / line | 1) * line;
}

// A copied row by row through a functor (prologue)
//   template <int W, typename N> vec<T, W> operator()(int64_t batch, int64_t row, int64_t k, N n) const
// that gives A[row][k .. k + n - 1].
template <typename T, typename F>
struct ComputedA {
  F element;

  static constexpr int64_t scratch_elements(int64_t rows, int64_t k) { return rows * copied_stride<T>(k); }
  const T* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t rows, T* scratch, int64_t& stride) const {
    constexpr int W = kVectorBytes / int(sizeof(T));
    stride = copied_stride<T>(s.k);
    for (int64_t i = 0; i < rows; ++i) {
      T* out = scratch + i * stride;
      int64_t k = 0;
      for (; k + W <= s.k; k += W)
        store(out + k, element.template operator()<W>(batch, row + i, k, index_constant<W>{}));
      if (k < s.k) store_n(out + k, element.template operator()<W>(batch, row + i, k, s.k - k), s.k - k);
    }
    return scratch;
  }
};

// A copied from any strides and storage type.
template <typename T, typename TA>
struct CopiedA {
  Strided<TA> at;

  static constexpr int64_t scratch_elements(int64_t rows, int64_t k) { return rows * copied_stride<T>(k); }
  const T* prepare(const GemmShape& s, int64_t batch, int64_t row, int64_t rows, T* scratch, int64_t& stride) const {
    stride = copied_stride<T>(s.k);
    copy_matrix(scratch, stride, at.data + s.offset(batch, at.batch) + row * at.row, at.row, at.col, rows, s.k);
    return scratch;
  }
};

// ---- Forms of B. Each gives the panel of W columns of a batch.

// Packed ahead: [batch][panel][k][NR], batch strides in elements of the packed form (0 where the operand has no batch).
template <typename T, typename TB>
struct PackedB {
  const TB* data;
  int64_t batch[kBatchDims];

  using element = TB;
  static constexpr int64_t scratch_elements(int64_t, int64_t) { return 0; }
  const TB* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, T*, int64_t& stride) const {
    stride = nr;
    return data + s.offset(index, batch) + panel * s.k * nr;
  }
};

// Packed by the task that needs it, from any strides and storage type.
template <typename T, typename TB>
struct StridedB {
  Strided<TB> at;

  using element = T;
  static constexpr int64_t scratch_elements(int64_t k, int64_t nr) { return k * nr; }
  const T* panel(const GemmShape& s, int64_t index, int64_t panel, int64_t nr, T* scratch, int64_t& stride) const {
    const int64_t first = panel * nr;
    const int64_t columns = s.n - first < nr ? s.n - first : nr;
    const TB* from = at.data + s.offset(index, at.batch) + first * at.col;
    stride = nr;
    if constexpr (is_same<T, TB>) {
      if (at.col == 1 && columns == nr && at.row < kDirectStride) {
        stride = at.row;
        return from;
      }
    }
    if (columns < nr) {
      for (int64_t k = 0; k < s.k; ++k) store_zero(scratch + k * nr + columns, nr - columns);
    }
    copy_matrix(scratch, nr, from, at.row, at.col, s.k, columns);
    return scratch;
  }

 private:
  // Rows this far apart (in elements) lie on pages of their own; reading them in place would miss the TLB.
  static constexpr int64_t kDirectStride = 2048 / int64_t(sizeof(T));
};

// Bytes of scratch that gemm() needs per thread.
template <typename T, int MR, int NV, typename A, typename B>
constexpr int64_t gemm_scratch(const GemmShape& s) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t rows = s.block_tiles * MR < s.m ? s.block_tiles * MR : s.m;
  return int64_t(sizeof(T)) * (MR * nr + B::scratch_elements(s.k, nr) + 64 + A::scratch_elements(rows, s.k));
}

namespace detail {

// Hands the finished tile c[rows][NR] to the epilogue.
template <typename T, int NV, typename Epilogue>
TILE_INLINE void finish_tile(const T* c, int64_t rows, int64_t row, int64_t batch, int64_t col, int64_t columns,
                             const Epilogue& epilogue) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  const int64_t full = columns / W < NV ? columns / W : NV;
  for (int64_t i = 0; i < rows; ++i) {
    const T* line = c + i * NV * W;
    for (int64_t j = 0; j < full; ++j)
      epilogue.template operator()<W>(load<W>(line + j * W), batch, row + i, col + j * W, index_constant<W>{});
    if (full < NV && columns > full * W)
      epilogue.template operator()<W>(load<W>(line + full * W), batch, row + i, col + full * W, columns - full * W);
  }
}

}  // namespace detail

// Runs tasks [begin, end) of s.tasks(kPanel<T, NV>). MR: rows of the tall micro tiles, at most kMicroRows.
template <typename T, int MR, int NV, typename A, typename B, typename Epilogue>
void gemm(const GemmShape& s, const A& a, const B& b, const Epilogue& epilogue, void* scratch, int64_t begin,
          int64_t end) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t m_blocks = s.m_blocks(), n_blocks = s.n_blocks(nr), panels = panel_count(s.n, nr);
  T* const c = static_cast<T*>(scratch);
  T* const b_scratch = c + MR * nr;
  T* const a_scratch = b_scratch + B::scratch_elements(s.k, nr);
  const int64_t one_segment = 0;
  const T* a_block = nullptr;
  int64_t a_stride = 0, ready = -1;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks, batch = block / m_blocks;
    const int64_t tile0 = block % m_blocks * s.block_tiles;
    const int64_t tile1 = tile0 + s.block_tiles < s.tiles ? tile0 + s.block_tiles : s.tiles;
    const int64_t row0 = s.tile_row(tile0, MR);
    if (ready != block) {  // tasks of one block follow each other: its rows of A stay ready
      a_block = a.prepare(s, batch, row0, s.tile_row(tile1, MR) - row0, a_scratch, a_stride);
      ready = block;
    }
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      int64_t b_stride = nr;
      const auto* bp = b.panel(s, batch, panel, nr, b_scratch, b_stride);
      for (int64_t tile = tile0; tile < tile1; ++tile) {
        const int64_t row = s.tile_row(tile, MR);
        const MicroA<T> op{a_block + (row - row0) * a_stride, a_stride, &one_segment, 1, s.k};
        if (tile < s.tall) {
          micro<T, typename B::element, MR, NV>(op, bp, b_stride, c, false);
        } else if constexpr (MR > 1) {
          micro<T, typename B::element, MR - 1, NV>(op, bp, b_stride, c, false);
        }
        detail::finish_tile<T, NV>(c, tile < s.tall ? MR : MR - 1, row, batch, panel * nr, s.n - panel * nr, epilogue);
      }
    }
  }
}

}  // namespace heddle::tile
