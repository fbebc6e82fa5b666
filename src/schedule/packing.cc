#include "schedule/packing.h"

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

}  // namespace

Packing panel_packing(const tile::PanelSource& s, int64_t offset, int64_t width) {
  return {"panels",
          {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride, offset, width}};
}

Tensor pack_constant(const Tensor& constant, const Packing& packing) {
  if (packing.kind.empty()) return constant;
  HEDDLE_CHECK(packing.kind == "panels" && packing.params.size() == 10, "packing \"{}\"", packing.kind);
  const auto& p = packing.params;
  const tile::PanelSource source{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
  HEDDLE_CHECK(last_element(source, p[8]) < constant.size(), "packing reads behind {}", to_string(constant.shape()));
  Tensor result(constant.dtype(), {tile::packed_elements(source, p[9])});
  switch (size_of(constant.dtype())) {
    case 1:
      pack<uint8_t>(constant, p[8], source, p[9], result);
      break;
    case 2:
      pack<uint16_t>(constant, p[8], source, p[9], result);
      break;
    case 4:
      pack<uint32_t>(constant, p[8], source, p[9], result);
      break;
    case 8:
      pack<uint64_t>(constant, p[8], source, p[9], result);
      break;
    default:
      HEDDLE_CHECK(false, "packing of {}", to_string(constant.dtype()));
  }
  return result;
}

}  // namespace heddle::schedule
