#include "schedule/product/packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/clones.h"
#include "base/divide.h"
#include "base/narrow_float.h"
#include "ir/ops/parallel.h"
#include "ir/reference/scalar.h"

namespace heddle::schedule {
namespace {

template <typename T>
void pack(const Tensor& from, int64_t offset, const tile::PanelSource& source, int64_t width, void* to) {
  tile::pack_panels(static_cast<T*>(to), static_cast<const T*>(from.data()) + offset, source, width,
                    [](T x) { return x; });
}

// The last element that packing reads, or -1.
int64_t last_element(const tile::PanelSource& s, int64_t offset) {
  if (s.groups == 0 || s.outer == 0 || s.inner == 0 || s.n == 0) return -1;
  int64_t last = offset;
  for (const auto& [extent, stride] :
       {std::pair{s.groups, s.group_stride}, {s.outer, s.outer_stride}, {s.inner, s.inner_stride}, {s.n, s.n_stride}}) {
    if (stride > 0) last += (extent - 1) * stride;
  }
  return last;
}

// [group][n][pitch], zeros behind the outer * inner elements of a row.
template <typename T>
void pack_rows(const Tensor& from, int64_t offset, const tile::PanelSource& s, int64_t pitch, void* to) {
  const T* source = static_cast<const T*>(from.data()) + offset;
  T* out = static_cast<T*>(to);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t n = 0; n < s.n; ++n, out += pitch) {
      const T* row = source + g * s.group_stride + n * s.n_stride;
      T* at = out;
      for (int64_t o = 0; o < s.outer; ++o) {
        for (int64_t i = 0; i < s.inner; ++i) *at++ = row[o * s.outer_stride + i * s.inner_stride];
      }
      std::fill(at, out + pitch, T{});
    }
  }
}

// [groups / together][n / run][together][run][pitch], of the channels of `together` groups those of the row's own
// group.
template <typename T>
void pack_diagonal(const Tensor& from, const tile::PanelSource& s, int64_t pitch, int64_t together, int64_t run,
                   void* to) {
  const T* source = static_cast<const T*>(from.data());
  T* const rows = static_cast<T*>(to);
  std::fill_n(rows, s.groups * s.n * pitch, T{});
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t n = 0; n < s.n; ++n) {
      const int64_t block = g / together * s.n / run + n / run;
      T* out = rows + ((block * together + g % together) * run + n % run) * pitch;
      const T* row = source + g * s.group_stride + n * s.n_stride;
      for (int64_t o = 0; o < s.outer; ++o) {
        T* at = out + (o * together + g % together) * s.inner;
        for (int64_t i = 0; i < s.inner; ++i) at[i] = row[o * s.outer_stride + i * s.inner_stride];
      }
    }
  }
}

template <typename F>
void by_size(DType dtype, const F& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      HEDDLE_CHECK(false, "packing of {}", to_string(dtype));
  }
}

void pack_winograd(const Tensor& constant, const std::vector<int64_t>& params, float* to) {
  const int64_t o = params[0], c = params[1], width = params[2];
  std::fill_n(to, tile::panel_count(o, width) * tile::kWinogradPoints * c * width, 0.0f);
  const DType dtype = constant.dtype();
  if (dtype == DType::kF32) {
    tile::pack_winograd(to, static_cast<const float*>(constant.data()), o, c, width, [](float x) { return double{x}; });
  } else {
    tile::pack_winograd(to, static_cast<const uint16_t*>(constant.data()), o, c, width,
                        [dtype](uint16_t x) { return decode_float(dtype, x); });
  }
}

// Calls f with the elements of small integers.
template <typename F>
auto with_small_integers(const Tensor& from, const F& f) {
  if (from.dtype() == DType::kI16) return f(static_cast<const int16_t*>(from.data()));
  if (from.dtype() == DType::kU8) return f(static_cast<const uint8_t*>(from.data()));
  HEDDLE_CHECK(from.dtype() == DType::kI8, "words of {}", to_string(from.dtype()));
  return f(static_cast<const int8_t*>(from.data()));
}

// Bytes as words of four of them or as words of two 16-bit numbers, and bf16 numbers as words of two.
void pack_words(const Tensor& from, const tile::PanelSource& source, const std::vector<int64_t>& params, void* to) {
  const int64_t offset = params[8], width = params[9], elements = params[11];
  const auto as = [&](auto* out) {
    if (from.dtype() == DType::kBF16) {
      return tile::pack_words(out, static_cast<const int16_t*>(from.data()) + offset, source, width, elements);
    }
    with_small_integers(from, [&](const auto* x) { tile::pack_words(out, x + offset, source, width, elements); });
  };
  if (elements == 4) {
    as(static_cast<int8_t*>(to));
  } else {
    as(static_cast<int16_t*>(to));
  }
}

void pack_fragments(const Tensor& from, int64_t n, int64_t k, int64_t bits, uint32_t* to) {
  const auto* words = static_cast<const uint32_t*>(from.data());
  ir::parallel_for(ceil_div(n, tile::kFragmentRows), tile::kFragmentRows * k, [&](int64_t begin, int64_t end) {
    if (bits == 2) tile::pack_fragments<2>(to, words, n, k, begin, end);
    if (bits == 4) tile::pack_fragments<4>(to, words, n, k, begin, end);
    if (bits == 8) tile::pack_fragments<8>(to, words, n, k, begin, end);
  });
}

HEDDLE_CLONES void multiply(float* values, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

// Elements of a tensor, from `first` on, as f32.
HEDDLE_CLONES void read_floats(const Tensor& from, int64_t first, int64_t count, float* to) {
  const auto* bits = static_cast<const uint16_t*>(from.data()) + first;
  if (from.dtype() == DType::kF16) {
    for (int64_t i = 0; i < count; ++i) to[i] = from_f16(bits[i]);
  } else if (from.dtype() == DType::kBF16) {
    for (int64_t i = 0; i < count; ++i) to[i] = from_bf16(bits[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(ir::real_at(from, first + i));
  }
}

HEDDLE_CLONES void write_narrow(const float* from, DType dtype, int64_t count, uint16_t* to) {
  if (dtype == DType::kF16) {
    for (int64_t i = 0; i < count; ++i) to[i] = to_f16(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
  }
}

void pack_scales(const Tensor& from, const std::vector<int64_t>& p, void* to) {
  const int64_t n = p[0], blocks = p[1], padded = p[2];
  const auto dtype = static_cast<DType>(p[3]);
  const float factor = std::ldexp(1.0f, static_cast<int>(p[4]));
  auto* out = static_cast<uint16_t*>(to);
  std::fill_n(out, ceil_div(n, tile::kFragmentRows) * tile::kFragmentRows * padded, uint16_t{0});
  ir::parallel_for(n, blocks, [&](int64_t begin, int64_t end) {
    std::vector<float> values(static_cast<size_t>(blocks));
    std::vector<uint16_t> bits(static_cast<size_t>(blocks));
    for (int64_t row = begin; row < end; ++row) {
      read_floats(from, row * blocks, blocks, values.data());
      multiply(values.data(), blocks, factor);
      write_narrow(values.data(), dtype, blocks, bits.data());
      uint16_t* const place = out + tile::fragment_scale_place(row, 0, padded);
      for (int64_t i = 0; i < blocks; ++i) place[i * tile::kFragmentRows] = bits[static_cast<size_t>(i)];
    }
  });
}

void pack_numbers(const Tensor& from, DType dtype, void* to) {
  for (int64_t i = 0; i < from.size(); ++i) {
    const double value = ir::real_at(from, i);
    if (dtype == DType::kF32) {
      static_cast<float*>(to)[i] = static_cast<float>(value);
    } else {
      static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(encode_float(dtype, value));
    }
  }
}

// The type of weights that are packed for tensor cores; nullopt for other packings.
std::optional<ir::TensorType> fragment_type(const Tensor& constant, const Packing& packing) {
  const auto& p = packing.params;
  const auto require = [&](size_t count, int64_t size) {
    HEDDLE_CHECK(p.size() == count && size == constant.size(), "packing \"{}\" of {}", packing.kind,
                 to_string(constant.shape()));
  };
  if (packing.kind == "fragments") {
    require(3, p[0] * ceil_div(p[1], tile::packed_per_word(p[2])));
    return ir::TensorType{DType::kU32, {tile::fragment_matrix_words(p[0], p[1], p[2])}};
  }
  if (packing.kind == "fragment_scales") {
    require(5, p[0] * p[1]);
    return ir::TensorType{static_cast<DType>(p[3]), {ceil_div(p[0], tile::kFragmentRows) * tile::kFragmentRows * p[2]}};
  }
  if (packing.kind == "numbers") {
    require(2, p[0]);
    return ir::TensorType{static_cast<DType>(p[1]), {p[0]}};
  }
  return std::nullopt;
}

tile::PanelSource source_of(const Packing& packing) {
  const auto& p = packing.params;
  const bool panels = packing.kind == "panels" || packing.kind == "words";
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], panels ? p[10] : 1};
}

}  // namespace

Packing winograd_packing(int64_t o, int64_t c, int64_t width) {
  return {"winograd", {o, c, width}};
}

// The largest sums of a filter are those for images of one sign, at the places of its positive or negative elements.
bool fits_winograd_words(const Tensor& filters) {
  const int64_t count = filters.size(), terms = count / std::max<int64_t>(filters.shape()[0], 1);
  return with_small_integers(filters, [&](const auto* w) {
    for (int64_t first = 0; first < count; first += terms) {
      int64_t positive = 0, negative = 0, largest = 0;
      for (int64_t i = first; i < first + terms; ++i) {
        const int64_t element = w[i];
        positive += std::max<int64_t>(element, 0), negative += std::max<int64_t>(-element, 0);
        largest = std::max(largest, std::abs(element));
      }
      if (largest > tile::kWinogradFilter) return false;
      if (std::max(positive, negative) * tile::kWinogradImage > tile::kWinogradSum) return false;
    }
    return true;
  });
}

Packing winograd_word_packing(int64_t o, int64_t c, int64_t width) {
  return {"winograd_words", {o, c, width}};
}

Packing diagonal_packing(const tile::PanelSource& s, int64_t pitch, int64_t together, int64_t run) {
  return {"diagonal",
          {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride, 0, pitch,
           together, run}};
}

Packing panel_packing(const tile::PanelSource& s, int64_t offset, int64_t width) {
  return {"panels",
          {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride, offset, width,
           s.phases}};
}

Packing word_packing(const tile::PanelSource& s, int64_t offset, int64_t width, int64_t elements) {
  Packing packing = panel_packing(s, offset, width);
  packing.kind = "words";
  packing.params.push_back(elements);
  return packing;
}

Packing fragment_packing(int64_t n, int64_t k, int64_t bits) {
  return {"fragments", {n, k, bits}};
}

Packing fragment_scale_packing(int64_t n, int64_t blocks, int64_t padded, DType dtype, int exponent) {
  return {"fragment_scales", {n, blocks, padded, static_cast<int64_t>(dtype), exponent}};
}

Packing number_packing(int64_t count, DType dtype) {
  return {"numbers", {count, static_cast<int64_t>(dtype)}};
}

ir::TensorType packed_type(const Tensor& constant, const Packing& packing) {
  const auto& p = packing.params;
  if (packing.kind.empty()) return {constant.dtype(), constant.shape()};
  if (const auto type = fragment_type(constant, packing)) return *type;
  if (packing.kind == "winograd" || packing.kind == "winograd_words") {
    HEDDLE_CHECK(p.size() == 3 && p[0] * p[1] * 9 == constant.size(), "winograd packing of {}",
                 to_string(constant.shape()));
    const bool words = packing.kind == "winograd_words";
    const int64_t depth = words ? ceil_div(p[1], int64_t{2}) : p[1];
    return {words ? DType::kI32 : DType::kF32, {tile::panel_count(p[0], p[2]) * tile::kWinogradPoints * depth * p[2]}};
  }
  const bool diagonal = packing.kind == "diagonal", rows = packing.kind == "rows" || diagonal;
  const bool words = packing.kind == "words";
  HEDDLE_CHECK((rows || words || packing.kind == "panels") && p.size() == (diagonal || words ? 12
                                                                           : rows            ? 10
                                                                                             : 11),
               "packing \"{}\"", packing.kind);
  tile::PanelSource source = source_of(packing);
  HEDDLE_CHECK(last_element(source, p[8]) < constant.size(), "packing reads behind {}", to_string(constant.shape()));
  if (words) {
    source.inner = (source.inner + p[11] - 1) / p[11];
    return {DType::kI32, {tile::packed_elements(source, p[9])}};
  }
  const int64_t length = source.outer * source.inner * (diagonal ? p[10] : 1);
  HEDDLE_CHECK(!rows || p[9] >= length, "rows of {} in {}", length, p[9]);
  return {constant.dtype(), {rows ? source.groups * source.n * p[9] : tile::packed_elements(source, p[9])}};
}

void pack_constant(const Tensor& constant, const Packing& packing, void* to) {
  const auto& p = packing.params;
  if (packing.kind.empty()) {
    if (constant.bytes() > 0) std::memcpy(to, constant.data(), constant.bytes());
    return;
  }
  if (packing.kind == "winograd") return pack_winograd(constant, p, static_cast<float*>(to));
  if (packing.kind == "winograd_words") {
    return with_small_integers(constant, [&](const auto* filters) {
      tile::pack_winograd(static_cast<int16_t*>(to), filters, p[0], p[1], p[2]);
    });
  }
  if (packing.kind == "words") return pack_words(constant, source_of(packing), p, to);
  if (packing.kind == "fragments") {
    return pack_fragments(constant, p[0], p[1], p[2], static_cast<uint32_t*>(to));
  }
  if (packing.kind == "fragment_scales") return pack_scales(constant, p, to);
  if (packing.kind == "numbers") return pack_numbers(constant, static_cast<DType>(p[1]), to);
  by_size(constant.dtype(), [&](auto word) {
    if (packing.kind == "diagonal") {
      pack_diagonal<decltype(word)>(constant, source_of(packing), p[9], p[10], p[11], to);
    } else if (packing.kind == "rows") {
      pack_rows<decltype(word)>(constant, p[8], source_of(packing), p[9], to);
    } else {
      pack<decltype(word)>(constant, p[8], source_of(packing), p[9], to);
    }
  });
}

Tensor pack_constant(const Tensor& constant, const Packing& packing) {
  if (packing.kind.empty()) return constant;
  const ir::TensorType type = packed_type(constant, packing);
  Tensor result = Tensor::unfilled(type.dtype, type.shape);
  pack_constant(constant, packing, result.mutable_data());
  return result;
}

}  // namespace heddle::schedule
