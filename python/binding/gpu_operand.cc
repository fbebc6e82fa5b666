#include "gpu_operand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::python {

Array gpu_operand(nanobind::handle object, const std::string& where, void* stream, int& device, Use use) {
  const Family& family = family_of(object, where);
  Array array = use == Use::kWrite ? family.view_to_write(object, where, stream) : family.view(object, where, stream);
  if (array.device == kHost) {
    fail(ErrorCode::kInvalidInput, where, "it lies in host memory, the operator runs on a GPU",
         family.how_to_move(std::max(device, 0)));
  }
  if (device != kHost && array.device != device) {
    fail(ErrorCode::kInvalidInput, where,
         fmt::format("it lies on {}, another operand on cuda:{}", array.place(), device), family.how_to_move(device));
  }
  device = array.device;
  return array;
}

std::vector<int64_t> strides_of(const Array& array) {
  if (!array.strides.empty()) return array.strides;
  std::vector<int64_t> strides(array.shape.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * array.shape[d];
  return strides;
}

}  // namespace heddle::python
