// Weights of few bits as the A of tensor-core instructions: integers become f16 or bf16 numbers in registers.
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/arch/sm80/integer.h"
#include "tile/arch/sm80/pairs.h"
#include "tile/arch/sm80/stream.h"
#include "tile/core/cuda_operand.h"
#include "tile/core/pack.h"

namespace heddle::tile::cuda {

// The number that a packed integer q stands for, before the scale of its block is applied.
enum class PackedForm : int32_t {
  kZero,   // q - zero
  kZeros,  // q - the block's zero point
  kTable,  // table[q]
};

// A matrix of integers of `Bits` bits, packed for gemm_packed(). `Block` neighbours along k share a scale: a multiple
// of 16, or 0 for all of k.
template <int Bits, int Block, PackedForm Form, int Zero>
struct PackedMatrix {
  static constexpr int kBits = Bits, kBlock = Block, kZero = Zero;
  static constexpr PackedForm kForm = Form;
  GemmPackedArgs args;
};

// The same for gemm_skinny(), stored by rows. A block is any number of whole words (0: all of k). ZeroType is the type
// of zero points.
template <int Bits, int Block, PackedForm Form, int Zero, typename ZeroType>
struct PackedRowsMatrix {
  static constexpr int kBits = Bits, kBlock = Block, kZero = Zero;
  static constexpr PackedForm kForm = Form;
  using Zeros = ZeroType;
  GemmPackedRowsArgs args;
};

template <typename Operand>
concept IsPackedRows = requires {
  typename Operand::Zeros;
};

template <int N>
struct alignas(4 * N) FragmentWords {
  uint32_t x[N];
};

// Returns a pair of equal numbers of type In that are `n`. Bits that do not fit the significand are dropped.
template <typename In>
__device__ constexpr uint32_t pair_of_integer(int n) {
  constexpr int kDigits = is_same<In, half> ? 10 : 7, kBias = is_same<In, half> ? 15 : 127;
  const uint32_t sign = n < 0 ? 0x8000u : 0;
  const auto magnitude = static_cast<uint32_t>(n < 0 ? -n : n);
  if (magnitude == 0) return 0;
  int log = 0;
  while (magnitude >> (log + 1) != 0) ++log;
  const uint32_t digits = (log <= kDigits ? magnitude << (kDigits - log) : magnitude >> (log - kDigits));
  const uint32_t bits = sign | static_cast<uint32_t>(log + kBias) << kDigits | (digits & ((1u << kDigits) - 1));
  return bits | bits << 16;
}
template <typename In>
__device__ inline uint32_t fma_of_pairs(uint32_t x, uint32_t y, uint32_t z) {
  if constexpr (is_same<In, half>) {
    return pair_fma(x, y, z);
  } else {
    return bfloat_pair_fma(x, y, z);
  }
}
template <typename In>
__device__ inline uint32_t mul_of_pairs(uint32_t x, uint32_t y) {
  if constexpr (is_same<In, half>) {
    return pair_mul(x, y);
  } else {
    return bfloat_pair_fma(x, y, 0x80008000u);
  }
}

// A lane's part of 16 rows and 64 columns along k (tile/core/pack.h): the words, and the scales and zero points of rows
// g and g + 8.
template <typename Matrix>
struct PackedFragment {
  static constexpr int kWords = fragment_words(Matrix::kBits), kLoad = fragment_load(Matrix::kBits);
  uint32_t words[kWords] = {};
  uint32_t scales = 0, zeros = 0;

  // The position of a lane in the fragments of a group. If each fragment has whole blocks, the pointers to scales
  // advance with it. Otherwise the block is computed from k.
  struct Place {
    static constexpr bool kInStep =
        Matrix::kBlock != 0 && kFragmentDepth % (Matrix::kBlock != 0 ? Matrix::kBlock : 1) == 0;
    const FragmentWords<kLoad>* words;
    const uint32_t *scales, *zeros;  // of the lane's rows
    int k;

    __device__ void move(int depths) {
      words += depths * kWordsOfAll;
      k += depths * kFragmentDepth;
      if constexpr (kInStep) scales += depths * kScalesOfAll, zeros += depths * kScalesOfAll;
    }
    // The offset of the scales of the fragment `depths` further on.
    __device__ int64_t block(int depths) const {
      if constexpr (kInStep) return depths * kScalesOfAll;
      if constexpr (Matrix::kBlock == 0) return 0;
      return (k + depths * kFragmentDepth) / (Matrix::kBlock == 0 ? 1 : Matrix::kBlock) * kScalesOfBlock;
    }
  };

  __device__ static Place first(const GemmPackedArgs& m, int64_t group, int depth) {
    const int lane = static_cast<int>(threadIdx.x) % 32, k = depth * kFragmentDepth + lane % 4 * (kFragmentDepth / 4);
    Place at{static_cast<const FragmentWords<kLoad>*>(m.words) + (group * m.depths + depth) * kWordsOfAll + lane,
             nullptr, nullptr, k};
    int64_t scales = group * m.blocks * kScalesOfBlock + lane / 4;
    if constexpr (Place::kInStep) scales += k / Matrix::kBlock * kScalesOfBlock;
    at.scales = static_cast<const uint32_t*>(m.scales) + scales;
    at.zeros = static_cast<const uint32_t*>(m.third) + scales;
    return at;
  }

  // Loads the fragment `depths` further on, if `wanted`. `Once`: the words are read once and should not stay in the
  // caches.
  template <bool Once>
  __device__ void load(const Place& at, int depths, bool wanted) {
#pragma unroll
    for (int i = 0; i < kWords / kLoad; ++i) {
      FragmentWords<kLoad> piece;
#pragma unroll
      for (int w = 0; w < kLoad; ++w) piece.x[w] = words[i * kLoad + w];
      sm80::load_weights_if<Once>(piece, at.words + depths * kWordsOfAll + 32 * i, wanted);
#pragma unroll
      for (int w = 0; w < kLoad; ++w) words[i * kLoad + w] = piece.x[w];
    }
    const int64_t block = at.block(depths);
    FragmentWords<1> pair{{scales}}, zero{{zeros}};
    sm80::load_weights_if<Once>(pair, reinterpret_cast<const FragmentWords<1>*>(at.scales + block), wanted);
    if constexpr (Matrix::kForm == PackedForm::kZeros) {
      sm80::load_weights_if<Once>(zero, reinterpret_cast<const FragmentWords<1>*>(at.zeros + block), wanted);
    }
    scales = pair.x[0], zeros = zero.x[0];
  }

 private:
  static constexpr int kWordsOfAll = 32 * kWords / kLoad, kScalesOfBlock = kFragmentRows / 2;
  static constexpr int kScalesOfAll =
      kFragmentDepth / (Matrix::kBlock == 0 ? kFragmentDepth : Matrix::kBlock) * kScalesOfBlock;
};

// Widens the fragments of a matrix to type In. Integers take the low bits of the significand of a power of two; the
// power is then subtracted together with the zero point, which is exact.
template <typename In, typename Matrix>
class FragmentWidener {
  static constexpr int kBits = Matrix::kBits, kPairs = fragment_pairs(kBits);
  static constexpr bool kHalf = is_same<In, half>, kTable = Matrix::kForm == PackedForm::kTable;
  static constexpr bool kZeros = Matrix::kForm == PackedForm::kZeros;
  static constexpr bool kThroughFloats = !kHalf && kBits == 8 && !kTable;  // bf16 has no room for bytes
  static constexpr uint32_t kMask = ((1u << kBits) - 1) * 0x00010001u;

 public:
  __device__ explicit FragmentWidener(const GemmPackedArgs& m) {
    if constexpr (kTable) {
      static_assert(kBits <= 4);
      // The low and the high bytes of the numbers.
#pragma unroll
      for (int i = 0; i < (1 << kBits) / 4; ++i) {
        FragmentWords<2> words{};
        sm80::load_weights_if<false>(words, static_cast<const FragmentWords<2>*>(m.third) + i, true);
        low_[i] = __byte_perm(words.x[0], words.x[1], 0x6420);
        high_[i] = __byte_perm(words.x[0], words.x[1], 0x7531);
      }
    }
  }

  // The A of one of 4 steps. The caller unrolls the loop over steps.
  __device__ void widen(uint32_t (&a)[4], const PackedFragment<Matrix>& f, int step) const {
    const uint32_t scales[2] = {__byte_perm(f.scales, 0, 0x1010), __byte_perm(f.scales, 0, 0x3232)};
    const uint32_t zeros[2] = {__byte_perm(f.zeros, 0, 0x1010), __byte_perm(f.zeros, 0, 0x3232)};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int pair = step * 4 + r, bit = pair % kPairs * kBits;
      const uint32_t word = f.words[pair / kPairs];
      if constexpr (kThroughFloats) {
        a[r] = through_floats(word >> bit, scales[r % 2], zeros[r % 2]);
      } else if constexpr (kTable) {
        a[r] = mul_of_pairs<In>(entries(word >> bit), scales[r % 2]);
      } else {
        a[r] = mul_of_pairs<In>(integers(word, bit, zeros[r % 2]), scales[r % 2]);
      }
    }
  }

 private:
  // A pair of integers, each minus its zero point. The significand of f16 has room for integers that begin at bits 0 to
  // 6.
  __device__ static uint32_t integers(uint32_t word, int bit, uint32_t zero) {
    const int rest = kHalf ? bit % 8 : 0, shift = bit - rest;
    const uint32_t power = kHalf ? 0x64006400u : 0x43004300u;
    const int base = (kHalf ? 1024 : 128) >> rest;
    const uint32_t x = mask_or(word >> shift, kMask << rest, power);
    uint32_t minus = pair_of_integer<In>(-(base + Matrix::kZero));
    if constexpr (kZeros) minus = fma_of_pairs<In>(zero, pair_of_integer<In>(-1), pair_of_integer<In>(-base));
    const uint32_t unit = kHalf ? (15u - static_cast<uint32_t>(rest)) << 10 : 127u << 7;
    return fma_of_pairs<In>(x, unit | unit << 16, minus);
  }

  __device__ static uint32_t through_floats(uint32_t word, uint32_t scales, uint32_t zeros) {
    constexpr float kPower = 8388608.0f;  // 2^23
    const float scale = __uint_as_float(scales << 16);
    const float minus = kPower + (kZeros ? __uint_as_float(zeros << 16) : static_cast<float>(Matrix::kZero));
    const auto number = [&](uint32_t q) { return (__uint_as_float(q | 0x4b000000u) - minus) * scale; };
    return floats_to_bfloats(number(word & 0xff), number(word >> 16 & 0xff));
  }

  // table[q] for the integers in the low bits of both halves.
  __device__ uint32_t entries(uint32_t word) const {
    const uint32_t q = (word & kMask & 0xf) | (word & kMask) >> 12;  // as nibbles 0 and 1
    if constexpr (kBits == 2) {
      const uint32_t low = __byte_perm(low_[0], 0, q), high = __byte_perm(high_[0], 0, q);
      return __byte_perm(low, high, 0x5140);
    } else {
      // The lower three bits select an entry of each half of the table, the upper bit selects the half.
      const uint32_t inside = q & 0x77, upper = (q >> 1 & 0x44) | 0x10;
      const auto choose = [&](const uint32_t* of) {
        return __byte_perm(__byte_perm(of[0], of[1], inside), __byte_perm(of[2], of[3], inside), upper);
      };
      return __byte_perm(choose(low_), choose(high_), 0x5140);
    }
  }

  uint32_t low_[kTable ? (1 << kBits) / 4 : 1], high_[kTable ? (1 << kBits) / 4 : 1];
};

// Reads words of a PackedRowsMatrix and widens them to f32. All lanes of a warp read together.
template <typename Matrix>
class PackedRowsReader {
  static constexpr int kBits = Matrix::kBits;
  static constexpr uint32_t kMask = (1u << kBits) - 1;

 public:
  static constexpr int kWidth = packed_per_word(kBits);  // integers of a word

  __device__ explicit PackedRowsReader(const GemmPackedRowsArgs& args) : args_(args) {
    if constexpr (Matrix::kForm == PackedForm::kTable) {
      entry_ = static_cast<const float*>(args.third)[threadIdx.x & kMask];
    }
  }

  // The numbers (row, k) to (row, k + kWidth - 1); k is a multiple of kWidth. Numbers outside the matrix are 0.
  __device__ void read(float (&v)[kWidth], int row, int k) const {
    const bool valid = row < args_.rows && k < args_.depth;
    const int64_t inside = valid ? row : 0;
    const int at = valid ? k : 0, block = Matrix::kBlock == 0 ? 0 : at / (Matrix::kBlock == 0 ? 1 : Matrix::kBlock);
    const uint32_t word = static_cast<const uint32_t*>(args_.words)[inside * args_.words_of_row + at / kWidth];
    const int64_t place = inside * args_.blocks + block;
    const float scale = valid ? static_cast<const float*>(args_.scales)[place] : 0.0f;
    float zero = static_cast<float>(Matrix::kZero);
    if constexpr (Matrix::kForm == PackedForm::kZeros) {
      zero = static_cast<float>(static_cast<const typename Matrix::Zeros*>(args_.third)[place]);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const uint32_t q = word >> packed_shift(i, kBits) & kMask;
      if constexpr (Matrix::kForm == PackedForm::kTable) {
        v[i] = __shfl_sync(0xffffffffu, entry_, static_cast<int>(q)) * scale;
      } else {
        // The integer is put into the low bits of the significand of 2^23.
        v[i] = (__uint_as_float(q | 0x4b000000u) - 8388608.0f - zero) * scale;
      }
      if (k + i >= args_.depth) v[i] = 0;
    }
  }

 private:
  const GemmPackedRowsArgs& args_;
  float entry_ = 0;
};

}  // namespace heddle::tile::cuda
