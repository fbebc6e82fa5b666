#pragma once

#include <span>

#include "ir/group.h"
#include "schedule/expr/index.h"

namespace heddle::schedule {

// The memory in which a kernel finds a value: its own, or a part of its host's.
struct ValueMemory {
  const Shape& shape;  // of the memory, dense row-major
  const ir::Placement* place = nullptr;

  // The linear position of the value's element at `at`.
  Index position(IndexPool& indices, std::span<const Index> at) const;
};
ValueMemory memory_of(const ir::Graph& graph, const ir::Placements& placed, ir::ValueId value);

}  // namespace heddle::schedule
