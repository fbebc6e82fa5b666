#pragma once

#include <optional>
#include <vector>

#include "heddle/tensor.h"
#include "ir/packed_words.h"
#include "passes/names.h"

namespace heddle::passes {

// Numbers of few bits that are taken out of bytes: neighbours are fields of one byte.
struct ByteFields {
  struct Field {
    unsigned shift, mask;  // byte >> shift & mask
  };
  ValueId source;  // the bytes
  std::vector<Field> fields;
};

// Matches a concatenation of two or four fields of the same bytes along a last dimension of 1, perhaps reshaped.
std::optional<ByteFields> fields_of_bytes(const ir::Graph& graph, ValueId v);

// The numbers as rows of `length`, which has to be a multiple of the number of fields.
ir::ByteRows rows_of(const ByteFields& fields, const Tensor& bytes, int64_t length);

}  // namespace heddle::passes
