#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dlpack.h"
#include "heddle/dtype.h"

namespace heddle::python {

// Convert types from and to DLPack. dtype_of() and dlpack_type() return nullopt if there is no equivalent type.
std::optional<DType> dtype_of(const dlpack::DataType& type);
std::optional<dlpack::DataType> dlpack_type(DType type);

// Converts a format of the buffer protocol: "f", "<q", "?". Returns nullopt unless the format describes a single number
// in native byte order.
std::optional<DType> dtype_of_format(std::string_view format, size_t item_bytes);
// True if a format of the buffer protocol (">f", "!i") is not in native byte order.
bool is_byte_swapped(std::string_view format, size_t item_bytes);
// The format of a buffer with elements of `type`. For a type that the protocol lacks, the format of an integer of the
// same size: "H" for bf16, "B" for 8-bit floats, "b" for i4.
const char* buffer_format(DType type);

// Finds a type by its NumPy name: "float32", "bfloat16" (of ml_dtypes).
std::optional<DType> dtype_of_numpy(std::string_view name);
std::string_view numpy_name(DType type);
// True if NumPy gets the type from ml_dtypes.
bool is_extension(DType type);

// The text of a type for messages: "float8_e4m3fn 8 bits".
std::string describe(const dlpack::DataType& type);

}  // namespace heddle::python
