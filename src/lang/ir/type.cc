#include "lang/ir/type.h"

#include <fmt/format.h>

#include <array>

namespace heddle::lang {
namespace {

struct Info {
  std::string_view name;
  int bits;
  DType dtype;
};

constexpr std::array<Info, kElements> kInfo = {{
    {"i1", 1, DType::kBool},
    {"i8", 8, DType::kI8},
    {"i16", 16, DType::kI16},
    {"i32", 32, DType::kI32},
    {"i64", 64, DType::kI64},
    {"u8", 8, DType::kU8},
    {"u16", 16, DType::kU16},
    {"u32", 32, DType::kU32},
    {"u64", 64, DType::kU64},
    {"f16", 16, DType::kF16},
    {"bf16", 16, DType::kBF16},
    {"f32", 32, DType::kF32},
    {"f64", 64, DType::kF64},
    {"f8e4m3", 8, DType::kF8E4M3},
    {"f8e5m2", 8, DType::kF8E5M2},
    {"f8e4m3b8", 8, DType::kF8E4M3Fnuz},
    {"f8e4m3b15", 8, DType::kF8E4M3},
    {"f8e5m2b16", 8, DType::kF8E5M2Fnuz},
}};

}  // namespace

std::string_view to_string(Element element) {
  return kInfo[static_cast<size_t>(element)].name;
}

std::optional<Element> parse_element(std::string_view text) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (kInfo[i].name == text) return static_cast<Element>(i);
  }
  return std::nullopt;
}

DType dtype_of(Element element) {
  return kInfo[static_cast<size_t>(element)].dtype;
}

std::optional<Element> element_of(DType dtype) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (kInfo[i].dtype == dtype) return static_cast<Element>(i);
  }
  return std::nullopt;
}

int bits_of(Element element) {
  return kInfo[static_cast<size_t>(element)].bits;
}

int64_t size_of(Element element) {
  return (bits_of(element) + 7) / 8;
}

int64_t Type::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Type Type::with_shape(std::vector<int64_t> other) const {
  return {other.empty() ? Kind::kScalar : Kind::kTile, pointer, element, std::move(other)};
}

std::string to_string(const Type& type) {
  std::string element(to_string(type.element));
  if (type.pointer) element = fmt::format("ptr<{}>", element);
  if (type.is_scalar()) return element;
  std::string text = type.is_tile() ? "tile<" : "view<";
  for (const int64_t extent : type.shape) text += fmt::format("{}x", extent);
  return text + element + ">";
}

}  // namespace heddle::lang
