#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/attention/axes.h"
#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Location of an operand whose keys a gather by a table takes in whole pages. Strides are by axis; that of the keys is
// within a page.
struct PagedIndex {
  // The page table; strides by axis, without one for the keys.
  struct Table {
    ir::ValueId value = 0;
    int64_t offset = 0, entry = 0;
    std::vector<int64_t> strides;
    int64_t keys = 0, pool = 0;  // keys per page; pages in the pool
    bool operator==(const Table&) const = default;
  };
  Table table;
  int64_t offset = 0, page = 0;  // page: distance between pages
  std::vector<int64_t> strides;
};

// An index over the variables of all axes, as an index into pages. nullopt if it is none or if the keys of a page are
// not a multiple of 16, the granularity of tiles.
std::optional<PagedIndex> paged_index(const ExprPool& pool, const Index& index, const ChainAxes& axes);

}  // namespace heddle::schedule
