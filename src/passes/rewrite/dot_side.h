#pragma once

#include <algorithm>

#include "ir/graph.h"

namespace heddle::passes {

// One operand of a dot, with its dimensions grouped by role: batch, free and contracted.
struct DotSide {
  Shape shape;
  ir::Ints batch, free, contract;

  DotSide(const ir::Graph& graph, const ir::Node& dot, size_t side)
      : shape(graph.shape(dot.inputs[side])),
        batch(dot.attrs.ints(side == 0 ? "lhs_batch" : "rhs_batch")),
        contract(dot.attrs.ints(side == 0 ? "lhs_contract" : "rhs_contract")) {
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      const auto has = [d](const ir::Ints& dims) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
      if (!has(batch) && !has(contract)) free.push_back(d);
    }
  }

  int64_t batches() const { return count(batch); }
  int64_t lines() const { return count(free); }
  int64_t terms() const { return count(contract); }
  // The dimensions in the order batch, free, contracted.
  ir::Ints row_major() const {
    ir::Ints order = batch;
    order.insert(order.end(), free.begin(), free.end());
    order.insert(order.end(), contract.begin(), contract.end());
    return order;
  }
  // True if the memory order is that of row_major(). Dimensions of extent 1 are ignored.
  bool is_row_major() const {
    ir::Ints order = row_major();
    std::erase_if(order, [&](int64_t d) { return shape[static_cast<size_t>(d)] == 1; });
    return std::is_sorted(order.begin(), order.end());
  }

 private:
  int64_t count(const ir::Ints& dims) const {
    int64_t count = 1;
    for (const int64_t d : dims) count *= shape[static_cast<size_t>(d)];
    return count;
  }
};

}  // namespace heddle::passes
