#include "runtime/cuda/tensor_map.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::runtime {
namespace {

// Numbers of the driver's interface.
constexpr int kMapU8 = 0, kMapU16 = 1, kMapU32 = 2, kMapTf32 = 11;
constexpr int kPromoteL2To128 = 2;  // 256 costs a fifth where rows begin between the L2's sectors

int map_type(TensorMapDesc::Element element) {
  switch (element) {
    case TensorMapDesc::Element::kBits8:
      return kMapU8;
    case TensorMapDesc::Element::kBits16:
      return kMapU16;
    case TensorMapDesc::Element::kBits32:
      return kMapU32;
    case TensorMapDesc::Element::kTf32:
      return kMapTf32;
  }
  return kMapU8;
}

int map_swizzle(int bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

void encode(const CudaContext& context, const TensorMapDesc& desc, uint64_t base, void* map) {
  if (desc.windows) {
    const TensorMapWindows& w = *desc.windows;
    const uint64_t extents[4] = {desc.extents[0], w.size[0], w.size[1], desc.extents[2]};
    const uint64_t strides[3] = {desc.strides[0], w.line, desc.strides[1]};
    const uint32_t steps[4] = {1, w.steps[0], w.steps[1], 1};
    context.check(
        context.driver().tensor_map_windows(map, map_type(desc.element), 4, reinterpret_cast<void*>(base), extents,
                                            strides, w.first.data(), w.last.data(), desc.box[0], desc.box[1], steps, 0,
                                            map_swizzle(desc.swizzle_bytes), kPromoteL2To128, 0),
        "cuTensorMapEncodeIm2col");
    return;
  }
  const uint64_t extents[4] = {desc.extents[0], desc.extents[1], desc.extents[2], desc.outer[0]};
  const uint64_t strides[3] = {desc.strides[0], desc.strides[1], desc.outer[1]};
  const uint32_t box[4] = {desc.box[0], desc.box[1], 1, 1}, ones[4] = {1, 1, 1, 1};
  context.check(
      context.driver().tensor_map(map, map_type(desc.element), desc.outer[0] > 0 ? 4 : 3, reinterpret_cast<void*>(base),
                                  extents, strides, box, ones, 0, map_swizzle(desc.swizzle_bytes), kPromoteL2To128, 0),
      "cuTensorMapEncodeTiled");
}

}  // namespace

TensorMap encode_tensor_map(const CudaContext& context, const TensorMapDesc& desc, uint64_t base, const char* symbol) {
  const uint64_t address = base + desc.offset;
  if (address % kCopyBytes != 0) {
    fail(ErrorCode::kInvalidArgument, symbol,
         fmt::format("operand {} lies at {:#x}, which is not aligned to {} bytes", desc.operand, address, kCopyBytes));
  }
  TensorMap map;
  encode(context, desc, address, &map);
  return map;
}

TensorMap TensorMapCache::get(const CudaContext& context, size_t index, const TensorMapDesc& desc, uint64_t base,
                              const char* symbol) {
  const std::lock_guard lock(mutex_);
  Entries& entries = entries_.at(index);
  const auto found = std::find_if(entries.kept.begin(), entries.kept.end(),
                                  [&](const Entry& entry) { return entry.base == base && entry.desc == desc; });
  if (found != entries.kept.end()) return found->map;
  const Entry made{desc, base, encode_tensor_map(context, desc, base, symbol)};
  if (entries.kept.size() < Entries::kMost) {
    entries.kept.push_back(made);
  } else {
    entries.kept[entries.next] = made;
    entries.next = (entries.next + 1) % Entries::kMost;
  }
  return made.map;
}

}  // namespace heddle::runtime
