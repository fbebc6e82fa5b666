#include "schedule/expr/memory.h"

#include <vector>

namespace heddle::schedule {

Index ValueMemory::position(IndexPool& indices, std::span<const Index> at) const {
  if (place == nullptr) return indices.linear(at, shape);
  std::vector<Index> there(at.begin(), at.end());
  for (size_t d = 0; d < there.size(); ++d) there[d] = indices.offset(there[d], place->start[d]);
  return indices.linear(there, shape);
}

ValueMemory memory_of(const ir::Graph& graph, const ir::Placements& placed, ir::ValueId value) {
  const auto found = placed.find(value);
  if (found == placed.end()) return {graph.shape(value)};
  return {found->second.shape, &found->second};
}

}  // namespace heddle::schedule
