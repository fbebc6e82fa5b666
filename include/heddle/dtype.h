#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "heddle/export.h"

namespace heddle {

// Element types. Types narrower than a byte (i4, u4, i2, u2, f4e2m1) are held one element per byte; they are packed
// only in files. kString occurs only at a model's inputs and outputs.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E4M3Fnuz,
  kF8E5M2,
  kF8E5M2Fnuz,
  kF8E8M0,
  kF4E2M1,
  kI64,
  kI32,
  kI16,
  kI8,
  kI4,
  kI2,
  kU64,
  kU32,
  kU16,
  kU8,
  kU4,
  kU2,
  kBool,
  kString,
};

// "f32", "bf16", "f8e4m3", "i64", "bool", ...: the spelling of the textual IR and of messages.
HEDDLE_API std::string_view to_string(DType type);
HEDDLE_API std::optional<DType> parse_dtype(std::string_view text);

// Bytes of one element in memory; 0 for kString.
HEDDLE_API size_t size_of(DType type);
// Bits of one element as ONNX stores it (4 for i4, u4, f4e2m1; 2 for i2, u2).
HEDDLE_API int bits_of(DType type);

HEDDLE_API bool is_float(DType type);
HEDDLE_API bool is_signed_int(DType type);
HEDDLE_API bool is_unsigned_int(DType type);
inline bool is_int(DType type) {
  return is_signed_int(type) || is_unsigned_int(type);
}

// Conversions between double and the narrow floating types, round to nearest even. With `saturate`, values beyond the
// largest finite number of a float8 or float4 type become that number (ONNX Cast, attribute saturate). f16 and bf16 go
// to infinity.
HEDDLE_API double round_to(DType type, double value, bool saturate = true);
HEDDLE_API uint32_t encode_float(DType type, double value, bool saturate = true);
HEDDLE_API double decode_float(DType type, uint32_t bits);

}  // namespace heddle
