#include "ir/packed_words.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/clones.h"
#include "base/divide.h"
#include "ir/ops/parallel.h"
#include "tile/core/pack.h"

namespace heddle::ir {

namespace {

HEDDLE_CLONES std::pair<int, int> range_of(const uint8_t* values, int64_t count) {
  uint8_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, values[i]);
  return {0, most};
}

HEDDLE_CLONES std::pair<int, int> range_of(const int8_t* values, int64_t count) {
  int8_t least = 0, most = 0;
  for (int64_t i = 0; i < count; ++i) least = std::min(least, values[i]), most = std::max(most, values[i]);
  return {least, most};
}

// A row of words. Four neighbours are the bytes of a word of 32 bits, which is shifted into its place (packed_shift()).
template <int kBits>
void pack_row(const uint8_t* from, int64_t k, uint8_t offset, uint32_t* to) {
  constexpr int64_t kPerWord = tile::packed_per_word(kBits);
  const auto plus_offset = [offset](uint32_t four) {
    const uint32_t offsets = offset * 0x01010101u;
    return ((four & 0x7f7f7f7f) + (offsets & 0x7f7f7f7f)) ^ ((four ^ offsets) & 0x80808080);
  };
  for (int64_t w = 0; w < k / kPerWord; ++w) {
    uint32_t word = 0;
    for (int64_t i = 0; i < kPerWord; i += 4) {
      uint32_t four;
      std::memcpy(&four, from + w * kPerWord + i, sizeof(four));
      word |= plus_offset(four) << tile::packed_shift(i, kBits);
    }
    to[w] = word;
  }
  if (const int64_t rest = k % kPerWord; rest > 0) {
    uint32_t word = 0;
    for (int64_t i = 0; i < rest; ++i) {
      word |= uint32_t{static_cast<uint8_t>(from[k - rest + i] + offset)} << tile::packed_shift(i, kBits);
    }
    to[k / kPerWord] = word;
  }
}

template <int kBits>
void unpack(const uint32_t* words, int64_t count, uint8_t* to) {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  constexpr auto kPerWord = static_cast<int>(tile::packed_per_word(kBits));
  for (int64_t w = 0; w < count; ++w) {
    for (int i = 0; i < kPerWord; ++i) {
      to[w * kPerWord + i] = static_cast<uint8_t>(words[w] >> tile::packed_shift(i, kBits) & kMask);
    }
  }
}

// Not exported: the symbols of clones ignore the visibility that they are compiled with.
HEDDLE_CLONES void unpack_of(const uint32_t* words, int64_t count, int64_t bits, uint8_t* to) {
  if (bits == 2) unpack<2>(words, count, to);
  if (bits == 4) unpack<4>(words, count, to);
  if (bits == 8) unpack<8>(words, count, to);
}

}  // namespace

int64_t integers_per_word(int64_t bits) {
  return tile::packed_per_word(bits);
}

ByteRows rows_of(const Tensor& matrix) {
  const int64_t length = matrix.shape()[1];
  return {matrix.shape()[0], length, is_signed_int(matrix.dtype()), [matrix, length](int64_t row, uint8_t*) {
            return static_cast<const uint8_t*>(matrix.data()) + row * length;
          }};
}

std::pair<int64_t, int64_t> range_of(const ByteRows& rows) {
  std::mutex mutex;
  std::pair<int64_t, int64_t> range{0, 0};
  parallel_for(rows.count, rows.length, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> buffer(static_cast<size_t>(rows.length));
    std::pair<int, int> part{0, 0};
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* values = rows.read(row, buffer.data());
      const auto [least, most] = rows.is_signed ? range_of(reinterpret_cast<const int8_t*>(values), rows.length)
                                                : range_of(values, rows.length);
      part = {std::min(part.first, least), std::max(part.second, most)};
    }
    const std::lock_guard lock(mutex);
    range = {std::min<int64_t>(range.first, part.first), std::max<int64_t>(range.second, part.second)};
  });
  return range;
}

Tensor pack_words(const ByteRows& rows, int64_t bits, int64_t offset) {
  const int64_t pitch = ceil_div(rows.length, integers_per_word(bits));
  Tensor result = Tensor::unfilled(DType::kU32, {rows.count, pitch});
  auto* to = static_cast<uint32_t*>(result.mutable_data());
  const auto pack = bits == 2 ? pack_row<2> : bits == 4 ? pack_row<4> : pack_row<8>;
  parallel_for(rows.count, rows.length, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> buffer(static_cast<size_t>(rows.length));
    for (int64_t row = begin; row < end; ++row) {
      pack(rows.read(row, buffer.data()), rows.length, static_cast<uint8_t>(offset), to + row * pitch);
    }
  });
  return result;
}

void unpack_words(const uint32_t* words, int64_t count, int64_t bits, uint8_t* to) {
  unpack_of(words, count, bits, to);
}

}  // namespace heddle::ir
