// The inner kernel of GEMM and convolution by matrix registers.
#pragma once

#include "tile/arch/cpu/matrix_registers.h"
#include "tile/kernel/cpu/micro.h"

namespace heddle::tile {

// The most rows of a micro tile: two registers of sums above each other.
inline constexpr int kMatrixMicroRows = 2 * kMatrixRows;

namespace detail {

// Registers 0 to 3 have the sums of two times two blocks, 4 and 5 the rows of A, 6 and 7 the columns of B.
template <int MR, int NV>
constexpr MatrixSizes matrix_sizes() {
  MatrixSizes sizes;
  for (int i = 0; i < 2 && i * kMatrixRows < MR; ++i) {
    const int rows = MR - i * kMatrixRows < kMatrixRows ? MR - i * kMatrixRows : kMatrixRows;
    for (int j = 0; j < NV; ++j) sizes.set(2 * i + j, rows, kLanes);
    sizes.set(4 + i, rows, kMatrixWords);
  }
  for (int j = 0; j < NV; ++j) sizes.set(6 + j, kMatrixWords, kLanes);
  return sizes;
}

// Adds kMatrixWords steps of k to the sums. Rows of A and B are `a_stride` and `b_stride` words apart.
template <typename Word, int MR, int NV, typename Registers>
TILE_INLINE void matrix_steps(Registers& registers, const typename Word::sum* a, int64_t a_stride,
                              const typename Word::sum* b, int64_t b_stride) {
  constexpr int Blocks = MR > kMatrixRows ? 2 : 1;
  static_for<NV>([&](auto j) { registers.template load<6 + int(j)>(b + j * kLanes, 4 * b_stride); });
  static_for<Blocks>([&](auto i) {
    registers.template load<4 + int(i)>(a + i * kMatrixRows * a_stride, 4 * a_stride);
    static_for<NV>([&](auto j) {
      if constexpr (is_same<Word, bfloat_pair>) {
        registers.template multiply_bfloats<2 * int(i) + int(j), 4 + int(i), 6 + int(j)>();
      } else {
        registers.template multiply_bytes<2 * int(i) + int(j), 4 + int(i), 6 + int(j)>();
      }
    });
  });
}

}  // namespace detail

// Like micro(), for words of bytes or bf16 numbers and at most kMatrixMicroRows rows. Steps of k that do not fill a
// register are copied, so that nothing beyond the operands is read.
template <typename Word, int MR, int NV>
__attribute__((noinline)) void micro_matrix(const MicroA<typename Word::sum>& op, const Word* TILE_RESTRICT b,
                                            int64_t b_stride, typename Word::sum* TILE_RESTRICT c, const Ahead& ahead) {
  using Sum = typename Word::sum;
  static_assert(MR <= kMatrixMicroRows && NV <= 2 && kLanes <= kMatrixWords);
  static constexpr MatrixSizes kSizes = detail::matrix_sizes<MR, NV>();
  constexpr int Blocks = MR > kMatrixRows ? 2 : 1;
  MatrixRegisters<Sum> registers(kSizes);
  static_for<Blocks>([&](auto i) { static_for<NV>([&](auto j) { registers.template clear<2 * int(i) + int(j)>(); }); });
  const void* const* lines = ahead.lines;
  int64_t lines_left = ahead.count;
  for (int64_t s = 0; s < op.segments; ++s) {
    if (op.skips != nullptr) b += op.skips[s] * b_stride;
    const Sum* a = op.a + op.offsets[s];
    int64_t k = 0;
    for (; k + kMatrixWords <= op.length; k += kMatrixWords) {
      for (int64_t i = 0; i < ahead.each && lines_left > 0; ++i, --lines_left) __builtin_prefetch(*lines++);
      detail::matrix_steps<Word, MR, NV>(registers, a + k, op.row_stride, &b->bits, b_stride);
      b += kMatrixWords * b_stride;
    }
    if (const int64_t left = op.length - k; left > 0) {
      alignas(64) Sum some_a[MR * kMatrixWords] = {}, some_b[kMatrixWords * NV * kLanes] = {};
      for (int64_t i = 0; i < MR; ++i)
        __builtin_memcpy(some_a + i * kMatrixWords, a + i * op.row_stride + k, size_t(left) * sizeof(Sum));
      for (int64_t i = 0; i < left; ++i)
        __builtin_memcpy(some_b + i * NV * kLanes, &b[i * b_stride].bits, NV * kLanes * sizeof(Sum));
      detail::matrix_steps<Word, MR, NV>(registers, some_a, kMatrixWords, some_b, NV * kLanes);
      b += left * b_stride;
    }
  }
  static_for<Blocks>([&](auto i) {
    static_for<NV>([&](auto j) {
      registers.template store<2 * int(i) + int(j)>(c + (i * kMatrixRows * NV + j) * kLanes, 4 * NV * kLanes);
    });
  });
}

template <typename Word, int MR, int NV>
constexpr MicroKernels<typename Word::sum, Word> matrix_kernels() {
  MicroKernels<typename Word::sum, Word> kernels{MR, micro_matrix<Word, MR, NV>, nullptr, nullptr, nullptr};
  if constexpr (MR > 1) kernels.low = micro_matrix<Word, MR - 1, NV>;
  return kernels;
}

}  // namespace heddle::tile
