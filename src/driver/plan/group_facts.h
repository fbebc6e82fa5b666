#pragma once

#include <cstdint>
#include <string>

#include "ir/group.h"

namespace heddle::driver {

// The ops of a group in order of first appearance: "mul add reduce x3 exp ...".
std::string summarise_ops(const ir::Graph& graph, const ir::Group& group);
// The names of the model nodes that a group was made from. Lists only the first few.
std::string summarise_origins(const ir::Graph& graph, const ir::Group& group);

// The size in bytes of a dense value. Throws kOutOfMemory if no machine has that much memory.
int64_t bytes_of(const ir::TensorType& type);
// The memory traffic in bytes that fusion saves: without fusion, each value inside the group would be written once and
// read once.
int64_t bytes_inside(const ir::Graph& graph, const ir::Group& group);
// The bytes that a stitch group must transfer: every input and output once. If the group only gathers elements of an
// input, only these elements count.
double compulsory_bytes(const ir::Graph& graph, const ir::Group& group);

}  // namespace heddle::driver
