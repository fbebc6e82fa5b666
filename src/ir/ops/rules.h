#pragma once

#include <string>

#include "base/check.h"
#include "ir/schema.h"

namespace heddle::ir {

// The messages of inference functions for broken rules. Arguments are formatted only if a rule is broken. Shapes,
// types, dtypes and ops print as in the textual IR. Graph::add puts the node in front of the message.

namespace rules {

inline std::string text(const Shape& shape) {
  return heddle::to_string(shape);
}
inline std::string text(const TensorType& type) {
  return to_string(type);
}
inline std::string text(DType dtype) {
  return std::string(heddle::to_string(dtype));
}
inline std::string text(Op op) {
  return std::string(to_string(op));
}
inline const std::string& text(const std::string& s) {
  return s;
}
inline const char* text(const char* s) {
  return s;
}
inline int64_t text(int64_t value) {
  return value;
}
inline int64_t text(size_t value) {
  return static_cast<int64_t>(value);
}
inline int64_t text(int value) {
  return value;
}

}  // namespace rules

template <typename... Args>
void require(bool holds, const char* rule, const Args&... args) {
  if (holds) [[likely]]
    return;
  fail(ErrorCode::kInvalidNode, "", fmt::format(fmt::runtime(rule), rules::text(args)...));
}

// A dimension attribute within [0, rank).
void require_dim(const char* name, int64_t dim, const Shape& shape);
// A list of dimensions, strictly increasing and within [0, rank).
void require_dims(const char* name, const Ints& dims, const Shape& shape);
// One entry per dimension of `shape`.
void require_per_dim(const char* name, const Ints& values, const Shape& shape);
// Tensors of the IR are numbers and booleans: extents >= 0, no strings.
void require_type(const TensorType& type);

inline bool is_number(DType type) {
  return is_float(type) || is_int(type);
}

// Throws kValueOutOfRange.
[[noreturn]] void bad_index(Op op, int64_t index, int64_t extent);

}  // namespace heddle::ir
