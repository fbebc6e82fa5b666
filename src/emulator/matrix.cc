#include "emulator/matrix.h"

#include <array>
#include <cmath>
#include <cstring>

#include "emulator/collectives.h"
#include "tile/arch/emulated/tile/arch/sm80/cvt.h"

namespace heddle::emulator {
namespace {

using emulated::Element;

// Numbers of 8 bits with `exponent` bits of exponent. e4m3 has no infinities and NaN only where all bits are set.
float decode_fp8(uint8_t bits, int exponent, bool infinities) {
  const int mantissa = 7 - exponent, bias = (1 << (exponent - 1)) - 1;
  const int e = bits >> mantissa & ((1 << exponent) - 1), m = bits & ((1 << mantissa) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.f : 1.f;
  if (infinities && e == (1 << exponent) - 1) return m == 0 ? sign * INFINITY : NAN;
  if (!infinities && (bits & 0x7f) == 0x7f) return NAN;
  const auto fraction = static_cast<float>(m);
  if (e == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + static_cast<float>(1 << mantissa), e - bias - mantissa);
}

std::array<float, 256> table_of(int exponent, bool infinities) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i)
    table[static_cast<size_t>(i)] = decode_fp8(static_cast<uint8_t>(i), exponent, infinities);
  return table;
}

std::array<float, 65536> table_of_halves() {
  std::array<float, 65536> table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = tile::cuda::half_to_float(static_cast<uint16_t>(i));
  return table;
}

template <typename T>
T word_at(const uint8_t* from) {
  T word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// D += A B for 16 x 8; word w of row r of A: a[r][w], of column c of B: b[c][w].
template <typename T>
void multiply(const emulated::MmaCall* const (&lanes)[32]) {
  const Element a_type = lanes[0]->a_type, b_type = lanes[0]->b_type;
  uint32_t a_words[16][8], b_words[8][8];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    a_words[g][t] = lanes[lane]->a[0];
    a_words[g + 8][t] = lanes[lane]->a[1];
    a_words[g][t + 4] = lanes[lane]->a[2];
    a_words[g + 8][t + 4] = lanes[lane]->a[3];
    b_words[g][t] = lanes[lane]->b[0];
    b_words[g][t + 4] = lanes[lane]->b[1];
  }
  using Wide = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;  // integers wrap
  T row[32];
  Wide a[16][32], b[32][8], d[16][8] = {};
  const auto decode_row = [&](Element type, const uint32_t* words) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(words);
    const uint32_t count = decode(type, bytes, row);
    return count + decode(type, bytes + 16, row + count);
  };
  const uint32_t depth = 32 / element_bytes(a_type);
  for (int i = 0; i < 16; ++i) {
    decode_row(a_type, a_words[i]);
    for (uint32_t k = 0; k < depth; ++k) a[i][k] = static_cast<Wide>(row[k]);
  }
  for (int i = 0; i < 8; ++i) {
    decode_row(b_type, b_words[i]);
    for (uint32_t k = 0; k < depth; ++k) b[k][i] = static_cast<Wide>(row[k]);
  }
  for (int i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < depth; ++k) {
      for (int j = 0; j < 8; ++j) d[i][j] += a[i][k] * b[k][j];
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    T* sums = static_cast<T*>(lanes[lane]->d);
    for (uint32_t i = 0; i < 4; ++i) {
      sums[i] = static_cast<T>(static_cast<Wide>(sums[i]) + d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
    }
  }
}

struct MatricesCall {
  uint32_t* words;
  const uint32_t* stored;
  uint32_t count, address;
  bool transposed;
};

void move_matrices(Scheduler& s, const uint64_t* lanes, Place place) {
  const auto call_of = [&](uint32_t lane) { return reinterpret_cast<const MatricesCall*>(lanes[lane]); };
  const MatricesCall& first = *call_of(0);
  Block& block = *s.current().owner;
  for (uint32_t matrix = 0; matrix < first.count; ++matrix) {
    for (uint32_t row = 0; row < 8; ++row) {
      const MatricesCall& owner = *call_of(8 * matrix + row);
      uint8_t* at =
          shared_at(s, block, owner.address, 16, 16, first.stored == nullptr ? "ldmatrix" : "stmatrix", place);
      for (uint32_t column = 0; column < 8; ++column) {
        // The lane that holds this element, in which half of its word.
        const uint32_t r = first.transposed ? column : row, c = first.transposed ? row : column;
        const MatricesCall& holder = *call_of(4 * r + c / 2);
        const uint32_t shift = c % 2 * 16;
        if (first.stored == nullptr) {
          const auto element = word_at<uint16_t>(at + 2 * column);
          uint32_t& word = holder.words[matrix];
          word = (word & ~(0xffffu << shift)) | static_cast<uint32_t>(element) << shift;
        } else {
          const auto element = static_cast<uint16_t>(holder.stored[matrix] >> shift);
          std::memcpy(at + 2 * column, &element, 2);
        }
      }
    }
  }
}

}  // namespace

uint32_t decode(Element type, const uint8_t* from, float* to) {
  static const std::array<float, 256> e4m3 = table_of(4, false), e5m2 = table_of(5, true);
  static const std::array<float, 65536> halves = table_of_halves();
  switch (type) {
    case Element::kHalf:
      for (int i = 0; i < 8; ++i) to[i] = halves[word_at<uint16_t>(from + 2 * i)];
      return 8;
    case Element::kBfloat:
      for (int i = 0; i < 8; ++i) {
        to[i] = __builtin_bit_cast(float, static_cast<uint32_t>(word_at<uint16_t>(from + 2 * i)) << 16);
      }
      return 8;
    case Element::kTf32:  // the bits below are not read
      for (int i = 0; i < 4; ++i) to[i] = __builtin_bit_cast(float, word_at<uint32_t>(from + 4 * i) & ~0x1fffu);
      return 4;
    case Element::kE4M3:
      for (int i = 0; i < 16; ++i) to[i] = e4m3[from[i]];
      return 16;
    case Element::kE5M2:
      for (int i = 0; i < 16; ++i) to[i] = e5m2[from[i]];
      return 16;
    default:
      return 0;
  }
}

uint32_t decode(Element type, const uint8_t* from, int32_t* to) {
  for (int i = 0; i < 16; ++i) to[i] = type == Element::kInt8 ? static_cast<int8_t>(from[i]) : from[i];
  return 16;
}

void mma(Scheduler& s, const emulated::MmaCall& call, Place place) {
  whole_warp(s, Collective::kMma, reinterpret_cast<uint64_t>(&call), place,
             [](Scheduler&, const uint64_t* values, Place) {
               const emulated::MmaCall* lanes[32];
               for (int lane = 0; lane < 32; ++lane)
                 lanes[lane] = reinterpret_cast<const emulated::MmaCall*>(values[lane]);
               if (is_integer(lanes[0]->a_type)) {
                 multiply<int32_t>(lanes);
               } else {
                 multiply<float>(lanes);
               }
             });
}

void load_matrices(Scheduler& s, uint32_t* words, uint32_t count, bool transposed, uint32_t address, Place place) {
  const MatricesCall call = {words, nullptr, count, address, transposed};
  whole_warp(s, Collective::kLoadMatrices, reinterpret_cast<uint64_t>(&call), place, &move_matrices);
}

void store_matrices(Scheduler& s, const uint32_t* words, uint32_t count, bool transposed, uint32_t address,
                    Place place) {
  const MatricesCall call = {nullptr, words, count, address, transposed};
  whole_warp(s, Collective::kStoreMatrices, reinterpret_cast<uint64_t>(&call), place, &move_matrices);
}

}  // namespace heddle::emulator
