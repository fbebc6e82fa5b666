// Matrix registers and the products of them (AMX), and the same sums without the instructions.
#pragma once

#include "tile/arch/cpu/dot_bfloats.h"
#include "tile/arch/cpu/dot_bytes.h"
#include "tile/arch/cpu/memory.h"

#if TILE_AVX512 && defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
#define TILE_AMX 1
#else
#define TILE_AMX 0
#endif

namespace heddle::tile {

// A register has at most 16 rows of 16 words of 32 bits.
inline constexpr int kMatrixRows = 16, kMatrixWords = 16;

// The sizes of the registers, in the layout in which the instruction that sets them reads them.
struct alignas(64) MatrixSizes {
  uint8_t palette = 1, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void set(int index, int height, int words) {
    rows[index] = uint8_t(height);
    row_bytes[index] = uint16_t(4 * words);
  }
};
static_assert(sizeof(MatrixSizes) == 64);

// The eight matrix registers of a thread, while this object exists. Memory of rows is addressed by the bytes between
// two rows.
template <typename Sum>
class MatrixRegisters {
 public:
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;

#if TILE_AMX
  TILE_INLINE explicit MatrixRegisters(const MatrixSizes& sizes) {
    asm volatile("ldtilecfg %0" ::"m"(sizes));
  }
  TILE_INLINE ~MatrixRegisters() {
    asm volatile("tilerelease" ::: "memory");
  }
  template <int R>
  TILE_INLINE void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(R));
  }
  template <int R>
  TILE_INLINE void load(const void* from, int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(R) : "memory");
  }
  template <int R>
  TILE_INLINE void store(void* to, int64_t row_bytes) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(R) : "memory");
  }
  // C += A B for words of two bf16 numbers.
  template <int C, int A, int B>
  TILE_INLINE void multiply_bfloats() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
  // C += A B for words of four bytes, unsigned in A and signed in B.
  template <int C, int A, int B>
  TILE_INLINE void multiply_bytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
#else
  explicit MatrixRegisters(const MatrixSizes& sizes) : sizes_(sizes) {}
  template <int R>
  void clear() {
    for (Sum& x : words_[R]) x = Sum(0);
  }
  template <int R>
  void load(const void* from, int64_t row_bytes) {
    clear<R>();
    for (int i = 0; i < sizes_.rows[R]; ++i)
      __builtin_memcpy(row<R>(i), static_cast<const char*>(from) + i * row_bytes, sizes_.row_bytes[R]);
  }
  template <int R>
  void store(void* to, int64_t row_bytes) {
    for (int i = 0; i < sizes_.rows[R]; ++i)
      __builtin_memcpy(static_cast<char*>(to) + i * row_bytes, row<R>(i), sizes_.row_bytes[R]);
  }
  template <int C, int A, int B>
  void multiply_bfloats() {
    multiply<C, A, B>([](auto a, auto b, auto sum) { return add_bfloat_products(a, b, sum); });
  }
  template <int C, int A, int B>
  void multiply_bytes() {
    multiply<C, A, B>([](auto a, auto b, auto sum) { return add_byte_products(a, b, sum); });
  }

 private:
  template <int R>
  Sum* row(int i) {
    return words_[R] + i * kMatrixWords;
  }
  template <int C, int A, int B, typename F>
  void multiply(const F& add) {
    constexpr int W = kMatrixWords;
    for (int i = 0; i < sizes_.rows[C]; ++i) {
      for (int k = 0; k < sizes_.row_bytes[A] / 4; ++k)
        tile::store(row<C>(i), add(splat<W>(row<A>(i)[k]), tile::load<W>(row<B>(k)), tile::load<W>(row<C>(i))));
    }
  }

  const MatrixSizes sizes_;
  Sum words_[8][kMatrixRows * kMatrixWords];
#endif
};

}  // namespace heddle::tile
