#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dlpack.h"
#include "heddle/dtype.h"

namespace heddle::python {

// None where Heddle has no such type, or the other side has not.
std::optional<DType> dtype_of(const dlpack::DataType& type);
std::optional<dlpack::DataType> dlpack_type(DType type);

// From a format of the buffer protocol: "f", "<q", "?". None for anything but a single number in native byte order.
std::optional<DType> dtype_of_format(std::string_view format, size_t item_bytes);
// True if a format of the buffer protocol (">f", "!i") is in the other byte order.
bool is_byte_swapped(std::string_view format, size_t item_bytes);
// The format of a buffer; of types that the protocol lacks that of unsigned integers of their size.
const char* buffer_format(DType type);

// By the name of a NumPy dtype: "float32", "bfloat16" (of ml_dtypes).
std::optional<DType> dtype_of_numpy(std::string_view name);
std::string_view numpy_name(DType type);
// Whether the type comes from ml_dtypes.
bool is_extension(DType type);

// "float8_e4m3fn 8 bits": for messages.
std::string describe(const dlpack::DataType& type);

}  // namespace heddle::python
