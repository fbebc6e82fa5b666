#include "emulator/tensor_map.h"

#include <fmt/format.h>

#include <cstring>

#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

// Of the driver's types: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32 ftz, tf32, tf32 ftz.
constexpr int kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

// What both kinds of maps have.
TensorMap begin_map(int type, unsigned rank, void* base, const uint64_t* extents, const uint64_t* strides,
                    const uint32_t* element_strides) {
  TensorMap map{};
  map.rank = static_cast<uint8_t>(rank);
  map.base = reinterpret_cast<uint64_t>(base);
  map.type = type;
  if (type >= 0 && type < static_cast<int>(std::size(kElementBytes)))
    map.element_bytes = static_cast<uint8_t>(kElementBytes[type]);
  for (unsigned i = 0; i < rank; ++i) {
    map.extents[i] = extents[i];
    map.strides[i] = i == 0 ? map.element_bytes : strides[i - 1];
    map.box[i] = 1;
    map.element_strides[i] = static_cast<uint16_t>(std::min<uint32_t>(element_strides[i], 65535));
  }
  return map;
}

// "" or the rule of the driver that the arguments of either break.
std::string find_early_defect(void* to, unsigned rank, unsigned least, int swizzle) {
  if (reinterpret_cast<uintptr_t>(to) % 64 != 0) return "it is not aligned to 64 bytes";
  if (rank < least || rank > 5) return fmt::format("rank {}", rank);
  if (swizzle < 0 || swizzle > 3) return "this swizzle is not emulated";
  return {};
}

// "" or the rule of the driver that the arguments break.
std::string find_defect(const TensorMap& map, const uint64_t* strides, int interleave, int type) {
  if (type < 0 || type >= static_cast<int>(std::size(kElementBytes))) return "there is no such element type";
  if (interleave != 0) return "interleaved layouts are not emulated";
  if (map.base % 16 != 0) return "the address is not aligned to 16 bytes";
  for (int i = 0; i < map.rank; ++i) {
    if (map.extents[i] == 0 || map.extents[i] > uint64_t{1} << 32)
      return fmt::format("extent {} is {}", i, map.extents[i]);
    const int most_box = map.magic == TensorMap::kWindows && i == 1 ? 1024 : 256;
    if (map.box[i] == 0 || map.box[i] > most_box) return fmt::format("box {} is {}", i, map.box[i]);
    if (map.element_strides[i] == 0 || map.element_strides[i] > 8)
      return fmt::format("element stride {} is {}", i, map.element_strides[i]);
    if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= uint64_t{1} << 40)) {
      return fmt::format("stride {} is {}", i, strides[i - 1]);
    }
  }
  const int inner = map.box[0] * map.element_bytes;
  if (inner % 16 != 0) return fmt::format("rows of the box have {} bytes, no multiple of 16", inner);
  const int widest = map.swizzle == Swizzle::kNone ? 1 << 20 : 16 << static_cast<int>(map.swizzle);
  if (inner > widest) return fmt::format("rows of the box have {} bytes, more than the swizzle's {}", inner, widest);
  return {};
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT Result cuTensorMapEncodeTiled(void* to, int type, unsigned rank, void* base, const uint64_t* extents,
                                            const uint64_t* strides, const uint32_t* box,
                                            const uint32_t* element_strides, int interleave, int swizzle, int,
                                            int fill) {
  const Call call;
  const auto refuse = [&](const std::string& why) { return call.driver.error(kInvalidValue, "tensor map: " + why); };
  if (const std::string why = find_early_defect(to, rank, 1, swizzle); !why.empty()) return refuse(why);
  if (Settings::now().sm < 90) return call.driver.error(kNotSupported, "this device has no tensor maps");
  TensorMap map = begin_map(type, rank, base, extents, strides, element_strides);
  map.swizzle = static_cast<Swizzle>(swizzle);
  map.fill_nan = fill != 0;
  map.magic = TensorMap::kMagic;
  for (unsigned i = 0; i < rank; ++i) map.box[i] = static_cast<uint16_t>(std::min<uint32_t>(box[i], 65535));
  if (const std::string why = find_defect(map, strides, interleave, type); !why.empty()) return refuse(why);
  std::memset(to, 0, 128);
  std::memcpy(to, &map, sizeof map);
  return kSuccess;
}

HEDDLE_EXPORT Result cuTensorMapEncodeIm2col(void* to, int type, unsigned rank, void* base, const uint64_t* extents,
                                             const uint64_t* strides, const int* first, const int* last,
                                             uint32_t channels, uint32_t pixels, const uint32_t* element_strides,
                                             int interleave, int swizzle, int, int fill) {
  const Call call;
  const auto refuse = [&](const std::string& why) { return call.driver.error(kInvalidValue, "tensor map: " + why); };
  if (const std::string why = find_early_defect(to, rank, 3, swizzle); !why.empty()) return refuse(why);
  if (rank != 4) return refuse("windows of other than two dimensions are not emulated");
  if (Settings::now().sm < 90) return call.driver.error(kNotSupported, "this device has no tensor maps");
  TensorMap map = begin_map(type, rank, base, extents, strides, element_strides);
  map.swizzle = static_cast<Swizzle>(swizzle);
  map.fill_nan = fill != 0;
  map.magic = TensorMap::kWindows;
  map.box[0] = static_cast<uint16_t>(std::min<uint32_t>(channels, 65535));
  map.box[1] = static_cast<uint16_t>(std::min<uint32_t>(pixels, 65535));
  for (int i = 0; i < 2; ++i) {
    if (std::min(first[i], last[i]) < -128 || std::max(first[i], last[i]) > 127) {
      return refuse(fmt::format("windows from {} to {}", first[i], last[i]));
    }
    map.first[i] = static_cast<int16_t>(first[i]), map.last[i] = static_cast<int16_t>(last[i]);
  }
  if (const std::string why = find_defect(map, strides, interleave, type); !why.empty()) return refuse(why);
  std::memset(to, 0, 128);
  std::memcpy(to, &map, sizeof map);
  return kSuccess;
}
