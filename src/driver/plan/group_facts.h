#pragma once

#include <cstdint>
#include <string>

#include "ir/group.h"

namespace heddle::driver {

// "mul add reduce x3 exp ...": the ops of a group in order of first appearance.
std::string summarise_ops(const ir::Graph& graph, const ir::Group& group);
// The model's nodes that a group comes from, the first few by name.
std::string summarise_origins(const ir::Graph& graph, const ir::Group& group);

// Bytes of a dense value. Throws kOutOfMemory if no machine has memory for it.
int64_t bytes_of(const ir::TensorType& type);
// Bytes of the values that stay inside a group, each written once and read once.
int64_t bytes_inside(const ir::Graph& graph, const ir::Group& group);
// Bytes that a stitch group has to move: every outside value once. If it only looks up elements of a value, these
// elements.
double compulsory_bytes(const ir::Graph& graph, const ir::Group& group);

}  // namespace heddle::driver
