#pragma once

#include <string>

#include "base/check.h"
#include "ir/schema.h"

namespace heddle::ir {

// Inference functions check their rules with require(). The message for a violated rule prints shapes, types, dtypes
// and ops as in the textual IR. Arguments are formatted only if the rule is violated. Graph::add() prepends the node to
// the message.

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

// Requires that a dimension attribute is in [0, rank).
void require_dim(const char* name, int64_t dim, const Shape& shape);
// Requires that a list of dimensions is strictly increasing, with all entries in [0, rank).
void require_dims(const char* name, const Ints& dims, const Shape& shape);
// Requires one entry per dimension of `shape`.
void require_per_dim(const char* name, const Ints& values, const Shape& shape);
// Requires a type that the IR supports: numbers or booleans, not strings, with extents >= 0.
void require_type(const TensorType& type);

inline bool is_number(DType type) {
  return is_float(type) || is_int(type);
}

// Throws kValueOutOfRange.
[[noreturn]] void bad_index(Op op, int64_t index, int64_t extent);

}  // namespace heddle::ir
