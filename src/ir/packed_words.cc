#include "ir/packed_words.h"

#include <algorithm>
#include <type_traits>

#include "base/divide.h"
#include "ir/ops/parallel.h"
#include "tile/core/pack.h"

namespace heddle::ir {

int64_t integers_per_word(int64_t bits) {
  return tile::packed_per_word(bits);
}

Tensor pack_words(const Tensor& rows, int64_t bits, int64_t offset) {
  const int64_t count = rows.shape()[0], k = rows.shape()[1], per_word = integers_per_word(bits),
                pitch = ceil_div(k, per_word);
  Tensor result = Tensor::unfilled(DType::kU32, {count, pitch});
  const auto* from = static_cast<const uint8_t*>(rows.data());
  auto* to = static_cast<uint32_t*>(result.mutable_data());
  const auto pack_row = [&](auto bits_of_one, int64_t row) {
    constexpr int64_t kBits = decltype(bits_of_one)::value, kPerWord = tile::packed_per_word(kBits);
    for (int64_t w = 0; w < pitch; ++w) {
      const int64_t first = w * kPerWord, left = std::min(kPerWord, k - first);
      uint32_t word = 0;
      for (int64_t i = 0; i < left; ++i) {
        word |= uint32_t{static_cast<uint8_t>(from[row * k + first + i] + offset)} << tile::packed_shift(i, kBits);
      }
      to[row * pitch + w] = word;
    }
  };
  parallel_for(count, k, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (bits == 2) pack_row(std::integral_constant<int64_t, 2>(), row);
      if (bits == 4) pack_row(std::integral_constant<int64_t, 4>(), row);
      if (bits == 8) pack_row(std::integral_constant<int64_t, 8>(), row);
    }
  });
  return result;
}

}  // namespace heddle::ir
