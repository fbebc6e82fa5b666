#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/attention/axes.h"
#include "schedule/expr/expr.h"

namespace heddle::schedule {

// The location of an operand whose keys are stored in pages: a gather selects whole pages by a page table. `strides`
// has an entry for each axis; the stride of the key axis applies within a page.
struct PagedIndex {
  // The page table. `strides` has an entry for each axis; that of the key axis is 0. `entry` is the stride between
  // consecutive entries of a sequence.
  struct Table {
    ir::ValueId value = 0;
    int64_t offset = 0, entry = 0;
    std::vector<int64_t> strides;
    int64_t keys = 0, pool = 0;  // keys per page; number of pages in the pool
    bool operator==(const Table&) const = default;
  };
  Table table;
  int64_t offset = 0, page = 0;  // page: stride between pages
  std::vector<int64_t> strides;
};

// Converts an index over the variables of all axes to an index into pages. Returns nullopt if the index does not have
// that form, or if the number of keys per page is not a multiple of 16, the granularity of tiles.
std::optional<PagedIndex> paged_index(const ExprPool& pool, const Index& index, const ChainAxes& axes);

}  // namespace heddle::schedule
