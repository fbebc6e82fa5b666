#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/attention/axes.h"
#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Where an operand of which a gather by a table takes whole pages of keys lies, with strides by axis: the one of the
// keys is within a page.
struct PagedIndex {
  // The table's line of pages; strides by axis, where the keys have none.
  struct Table {
    ir::ValueId value = 0;
    int64_t offset = 0, entry = 0;
    std::vector<int64_t> strides;
    int64_t keys = 0, pool = 0;  // of a page; pages that there are
    bool operator==(const Table&) const = default;
  };
  Table table;
  int64_t offset = 0, page = 0;  // page: from page to page
  std::vector<int64_t> strides;
};

// An index over the variables of all axes as one into pages; nullopt where it is none, or pages are no multiple of 16
// keys, which is what tiles are made of.
std::optional<PagedIndex> paged_index(const ExprPool& pool, const Index& index, const ChainAxes& axes);

}  // namespace heddle::schedule
