#include "schedule/packing.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::schedule {
namespace {

template <typename T>
void pack(const Tensor& from, int64_t offset, const tile::PanelSource& source, int64_t width, Tensor& to) {
  tile::pack_panels(static_cast<T*>(to.mutable_data()), static_cast<const T*>(from.data()) + offset, source, width,
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
void pack_rows(const Tensor& from, int64_t offset, const tile::PanelSource& s, int64_t pitch, Tensor& to) {
  const T* source = static_cast<const T*>(from.data()) + offset;
  T* out = static_cast<T*>(to.mutable_data());
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

Tensor pack_winograd(const Tensor& constant, const std::vector<int64_t>& params) {
  HEDDLE_CHECK(params.size() == 3 && params[0] * params[1] * 9 == constant.size(), "winograd packing of {}",
               to_string(constant.shape()));
  const int64_t o = params[0], c = params[1], width = params[2];
  Tensor result(DType::kF32, {tile::panel_count(o, width) * tile::kWinogradPoints * c * width});
  auto* to = static_cast<float*>(result.mutable_data());
  const DType dtype = constant.dtype();
  if (dtype == DType::kF32) {
    tile::pack_winograd(to, static_cast<const float*>(constant.data()), o, c, width, [](float x) { return double{x}; });
  } else {
    tile::pack_winograd(to, static_cast<const uint16_t*>(constant.data()), o, c, width,
                        [dtype](uint16_t x) { return decode_float(dtype, x); });
  }
  return result;
}

}  // namespace

Packing winograd_packing(int64_t o, int64_t c, int64_t width) {
  return {"winograd", {o, c, width}};
}

Packing panel_packing(const tile::PanelSource& s, int64_t offset, int64_t width) {
  return {"panels",
          {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride, offset, width}};
}

Tensor pack_constant(const Tensor& constant, const Packing& packing) {
  if (packing.kind.empty()) return constant;
  if (packing.kind == "winograd") return pack_winograd(constant, packing.params);
  const bool rows = packing.kind == "rows";
  HEDDLE_CHECK((rows || packing.kind == "panels") && packing.params.size() == 10, "packing \"{}\"", packing.kind);
  const auto& p = packing.params;
  const tile::PanelSource source{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
  HEDDLE_CHECK(last_element(source, p[8]) < constant.size(), "packing reads behind {}", to_string(constant.shape()));
  HEDDLE_CHECK(!rows || p[9] >= source.outer * source.inner, "rows of {} in {}", source.outer * source.inner, p[9]);
  Tensor result = Tensor::unfilled(constant.dtype(),
                                   {rows ? source.groups * source.n * p[9] : tile::packed_elements(source, p[9])});
  by_size(constant.dtype(), [&](auto word) {
    if (rows) {
      pack_rows<decltype(word)>(constant, p[8], source, p[9], result);
    } else {
      pack<decltype(word)>(constant, p[8], source, p[9], result);
    }
  });
  return result;
}

}  // namespace heddle::schedule
