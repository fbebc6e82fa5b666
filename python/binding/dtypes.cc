#include "dtypes.h"

#include <fmt/format.h>

#include <array>

namespace heddle::python {
namespace {

struct Row {
  DType dtype;
  std::string_view numpy;
  const char* format;  // of a buffer
  bool extension;      // NumPy has it through ml_dtypes only
  int code, bits;      // of DLPack; -1: it has none
};

// Types narrower than a byte lie one element per byte, as those of ml_dtypes do; DLPack's are packed.
constexpr std::array kTable = {
    Row{DType::kF64, "float64", "d", false, dlpack::kFloat, 64},
    Row{DType::kF32, "float32", "f", false, dlpack::kFloat, 32},
    Row{DType::kF16, "float16", "e", false, dlpack::kFloat, 16},
    Row{DType::kBF16, "bfloat16", "H", true, dlpack::kBfloat, 16},
    Row{DType::kF8E4M3, "float8_e4m3fn", "B", true, dlpack::kFloat8E4M3Fn, 8},
    Row{DType::kF8E4M3Fnuz, "float8_e4m3fnuz", "B", true, dlpack::kFloat8E4M3Fnuz, 8},
    Row{DType::kF8E5M2, "float8_e5m2", "B", true, dlpack::kFloat8E5M2, 8},
    Row{DType::kF8E5M2Fnuz, "float8_e5m2fnuz", "B", true, dlpack::kFloat8E5M2Fnuz, 8},
    Row{DType::kF8E8M0, "float8_e8m0fnu", "B", true, dlpack::kFloat8E8M0Fnu, 8},
    Row{DType::kF4E2M1, "float4_e2m1fn", "B", true, -1, 8},
    Row{DType::kI64, "int64", "q", false, dlpack::kInt, 64},
    Row{DType::kI32, "int32", "i", false, dlpack::kInt, 32},
    Row{DType::kI16, "int16", "h", false, dlpack::kInt, 16},
    Row{DType::kI8, "int8", "b", false, dlpack::kInt, 8},
    Row{DType::kI4, "int4", "b", true, -1, 8},
    Row{DType::kI2, "int2", "b", true, -1, 8},
    Row{DType::kU64, "uint64", "Q", false, dlpack::kUInt, 64},
    Row{DType::kU32, "uint32", "I", false, dlpack::kUInt, 32},
    Row{DType::kU16, "uint16", "H", false, dlpack::kUInt, 16},
    Row{DType::kU8, "uint8", "B", false, dlpack::kUInt, 8},
    Row{DType::kU4, "uint4", "B", true, -1, 8},
    Row{DType::kU2, "uint2", "B", true, -1, 8},
    Row{DType::kBool, "bool", "?", false, dlpack::kBool, 8},
};

template <typename Predicate>
const Row* find(const Predicate& predicate) {
  for (const Row& row : kTable) {
    if (predicate(row)) return &row;
  }
  return nullptr;
}

const Row* row_of(DType type) {
  return find([&](const Row& row) { return row.dtype == type; });
}

}  // namespace

std::optional<DType> dtype_of(const dlpack::DataType& type) {
  const Row* row = find([&](const Row& r) { return r.code == type.code && r.bits == type.bits && type.lanes == 1; });
  return row == nullptr ? std::nullopt : std::optional(row->dtype);
}

std::optional<dlpack::DataType> dlpack_type(DType type) {
  const Row* row = row_of(type);
  if (row == nullptr || row->code < 0) return std::nullopt;
  return dlpack::DataType{static_cast<uint8_t>(row->code), static_cast<uint8_t>(row->bits), 1};
}

bool is_byte_swapped(std::string_view format, size_t item_bytes) {
  return item_bytes > 1 && (format.starts_with('>') || format.starts_with('!'));
}

std::optional<DType> dtype_of_format(std::string_view format, size_t item_bytes) {
  if (is_byte_swapped(format, item_bytes)) return std::nullopt;
  constexpr std::string_view kByteOrders = "@=<>!";
  if (!format.empty() && kByteOrders.find(format.front()) != std::string_view::npos) format.remove_prefix(1);
  if (format.size() != 1) return std::nullopt;
  constexpr std::string_view kSigned = "bhilqn", kUnsigned = "BHILQN", kFloats = "efd";
  const char letter = format.front();
  const char kind = kSigned.find(letter) != std::string_view::npos     ? 'i'
                    : kUnsigned.find(letter) != std::string_view::npos ? 'u'
                    : kFloats.find(letter) != std::string_view::npos   ? 'f'
                    : letter == '?'                                    ? '?'
                                                                       : ' ';
  const int code = kind == 'i'   ? dlpack::kInt
                   : kind == 'u' ? dlpack::kUInt
                   : kind == 'f' ? dlpack::kFloat
                   : kind == '?' ? dlpack::kBool
                                 : -1;
  if (code < 0) return std::nullopt;
  return dtype_of({static_cast<uint8_t>(code), static_cast<uint8_t>(8 * item_bytes), 1});
}

const char* buffer_format(DType type) {
  const Row* row = row_of(type);
  return row == nullptr ? "B" : row->format;
}

std::optional<DType> dtype_of_numpy(std::string_view name) {
  const Row* row = find([&](const Row& r) { return r.numpy == name; });
  return row == nullptr ? std::nullopt : std::optional(row->dtype);
}

std::string_view numpy_name(DType type) {
  const Row* row = row_of(type);
  return row == nullptr ? "object" : row->numpy;
}

bool is_extension(DType type) {
  const Row* row = row_of(type);
  return row != nullptr && row->extension;
}

std::string describe(const dlpack::DataType& type) {
  if (const auto known = dtype_of(type)) return std::string(to_string(*known));
  return fmt::format("code {} of DLPack with {} bits and {} lanes", type.code, type.bits, type.lanes);
}

}  // namespace heddle::python
