// gemm() for long k. Sums s.block_k steps of k at a time in registers, and then adds these partial sums to compensated
// sums in scratch: the rounding error of a plain sum grows with the square root of its number of terms. Meanwhile, a
// block of A and a block of B stay in the caches.
#pragma once

#include "tile/kernel/cpu/gemm.h"
#include "tile/kernel/cpu/long_sums.h"

namespace heddle::tile {

namespace detail {

// Multiplies the steps `steps` of a block of rows of A by panels [panel0, panel1) of B. Adds the products to the sums,
// one micro tile after another.
template <int NV, bool NarrowTail, typename T, typename TB, typename B>
TILE_INLINE void gemm_steps(const MicroKernels<T, TB>& micro, const GemmShape& s, const GemmRows<T>& block, const B& b,
                            Steps steps, int64_t panel0, int64_t panel1, T* c, T* b_scratch, const LongSums<T>& sums) {
  constexpr int64_t nr = kPanel<T, NV>;
  const int64_t one_segment = 0;
  int64_t index = 0;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    int64_t b_stride = nr;
    const TB* bp = b.panel(s, block.batch, panel, nr, steps, b_scratch, b_stride);
    const bool narrow = NarrowTail && s.n - panel * nr <= nr / NV;
    const T* a = block.a;
    for (int64_t tile = 0; tile < block.tiles; ++tile, ++index) {
      const bool tall = tile < block.tall;
      const int64_t rows = micro.rows - (tall ? 0 : 1);
      const MicroA<T> op{a, block.a_stride, &one_segment, 1, steps.count};
      if (narrow) {
        micro.template run<NarrowTail>(tall, op, bp, b_stride, c);
      } else {
        micro.template run<false>(tall, op, bp, b_stride, c);
      }
      sums.add(index, c, rows * (narrow ? nr / NV : nr), steps.first == 0);
      a += rows * block.a_stride;
    }
  }
}

// Passes the sums of a block to the epilogue.
template <int NV, bool NarrowTail, typename T, typename Epilogue>
void finish_sums(const GemmShape& s, int64_t most_rows, const GemmRows<T>& block, const Epilogue& epilogue,
                 int64_t panel0, int64_t panel1, const LongSums<T>& sums) {
  constexpr int64_t nr = kPanel<T, NV>;
  int64_t index = 0;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    const int64_t col = panel * nr;
    int64_t row = block.row;
    for (int64_t tile = 0; tile < block.tiles; ++tile, ++index) {
      const int64_t rows = most_rows - (tile < block.tall ? 0 : 1);
      if (NarrowTail && s.n - col <= nr / NV) {
        finish_tile<T, NarrowTail ? 1 : NV>(sums.tile(index), rows, row, block.batch, col, s.n - col, epilogue);
      } else {
        finish_tile<T, NV>(sums.tile(index), rows, row, block.batch, col, s.n - col, epilogue);
      }
      row += rows;
    }
  }
}

}  // namespace detail

// Like gemm(), with the same arguments.
template <int NV, bool NarrowTail = false, typename T, typename TB, typename A, typename B, typename Epilogue>
void gemm_long(const MicroKernels<T, TB>& micro, const GemmShape& s, const A& a, const B& b, const Epilogue& epilogue,
               void* scratch, int64_t begin, int64_t end) {
  constexpr int64_t nr = kPanel<T, NV>;
  static_assert(is_same<TB, typename B::element>);
  const int64_t m_blocks = s.m_blocks(), n_blocks = s.n_blocks(nr), panels = panel_count(s.n, nr);
  T* const c = static_cast<T*>(scratch);
  const int64_t tile_elements = s.accumulator_elements(micro.rows, nr), all = s.sum_elements(micro.rows, nr);
  const detail::LongSums<T> sums{c + tile_elements, c + tile_elements + all / 2, tile_elements};
  T* const b_scratch = c + tile_elements + all;
  T* const a_scratch = b_scratch + (B::kCopies ? s.panel_elements(nr) : 0);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t block = task / n_blocks, tile0 = block % m_blocks * s.block_tiles;
    const int64_t tile1 = tile0 + s.block_tiles < s.tiles ? tile0 + s.block_tiles : s.tiles;
    detail::GemmRows<T> rows{
        block / m_blocks, s.tile_row(tile0, micro.rows), tile1 - tile0, s.tall - tile0, nullptr, 0};
    const int64_t count = s.tile_row(tile1, micro.rows) - rows.row;
    const int64_t panel0 = task % n_blocks * s.block_panels;
    const int64_t panel1 = panel0 + s.block_panels < panels ? panel0 + s.block_panels : panels;
    for (int64_t k = 0; k < s.k; k += s.block_k) {
      const Steps steps{k, s.k - k < s.block_k ? s.k - k : s.block_k};
      rows.a = a.prepare(s, rows.batch, rows.row, count, steps, a_scratch, rows.a_stride);
      detail::gemm_steps<NV, NarrowTail>(micro, s, rows, b, steps, panel0, panel1, c, b_scratch, sums);
    }
    detail::finish_sums<NV, NarrowTail>(s, micro.rows, rows, epilogue, panel0, panel1, sums);
  }
}

}  // namespace heddle::tile
