#include "ir/packed_words.h"

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
  Tensor result(DType::kU32, {count, pitch});
  const auto* from = static_cast<const uint8_t*>(rows.data());
  auto* to = static_cast<uint32_t*>(result.mutable_data());
  parallel_for(count, k, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < k; ++i) {
        const auto q = static_cast<uint8_t>(from[row * k + i] + offset);
        to[row * pitch + i / per_word] |= uint32_t{q} << tile::packed_shift(i % per_word, bits);
      }
    }
  });
  return result;
}

}  // namespace heddle::ir
