#pragma once

#include <span>

#include "ir/group.h"
#include "schedule/expr/index.h"

namespace heddle::schedule {

// The memory that holds a value of a kernel: the value's own memory, or a part of the memory of another value, its
// host.
struct ValueMemory {
  const Shape& shape;  // the shape of the memory, which is dense and row-major
  const ir::Placement* place = nullptr;

  // Returns the linear index in this memory of the value's element at the indices `at`.
  Index position(IndexPool& indices, std::span<const Index> at) const;
};
ValueMemory memory_of(const ir::Graph& graph, const ir::Placements& placed, ir::ValueId value);

}  // namespace heddle::schedule
