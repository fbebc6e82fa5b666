#include <algorithm>

#include "passes/rewrite/dot_side.h"
#include "passes/rewrite/emitter.h"
#include "passes/rewrite/refine.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

// A factor of a batch dimension. It is shared if one operand is only repeated along it: if 9 heads share 3 keys, the
// batch dimension of 9 consists of a factor 3 and a shared factor 3.
struct Factor {
  int64_t extent;
  bool is_shared;
};
using BatchFactors = std::vector<std::vector<Factor>>;  // by batch dimension, outermost factor first

// An operand reshape(broadcast(x)), the canonical form of a repeated value, and how to read x instead.
struct SharedOperand {
  BatchFactors batch;
  ValueId source = 0;  // x
  Shape parts;         // x with a dimension for each factor
  Shape spread;        // what remains of the broadcast without the shared factors,
  Ints places;         // and the dimensions of `parts` in it
  Shape shape;         // the operand without shared factors, with a dimension for each factor of a batch dimension
  Ints first;          // for each dimension of the operand, its first dimension in `shape`
};

// Returns nullopt if nothing is repeated along a batch dimension.
std::optional<SharedOperand> shared_operand(const Match& m, const DotSide& side, ValueId operand) {
  const ValueId wide = m.e.is(operand, Op::kReshape) ? m.e.def(operand).inputs[0] : operand;
  if (!m.e.is(wide, Op::kBroadcast)) return std::nullopt;
  const Ints& dims = m.e.def(wide).attrs.ints("dims");
  const auto split = refine(m.e.shape(wide), side.shape);
  if (!split) return std::nullopt;
  std::vector<bool> is_shared(split->extents.size());
  SharedOperand result;
  result.source = m.e.def(wide).inputs[0];
  const auto is_repeated = [&](size_t d) {
    const int64_t from = index_of(dims, static_cast<int64_t>(d));
    return from < 0 || m.e.shape(result.source)[at(from)] != m.e.shape(wide)[d];
  };
  for (size_t d = 0; d < split->from.size(); ++d) {
    for (const int64_t factor : split->from[d]) is_shared[at(factor)] = is_repeated(d);
  }
  for (size_t d = 0; d < side.shape.size(); ++d) {
    if (index_of(side.batch, static_cast<int64_t>(d)) >= 0) continue;
    for (const int64_t factor : split->to[d]) is_shared[at(factor)] = false;
  }
  if (std::find(is_shared.begin(), is_shared.end(), true) == is_shared.end()) return std::nullopt;
  for (const int64_t d : side.batch) {
    result.batch.emplace_back();
    for (const int64_t f : split->to[at(d)]) result.batch.back().push_back({split->extents[at(f)], is_shared[at(f)]});
  }
  for (size_t d = 0; d < split->from.size(); ++d) {
    for (const int64_t factor : split->from[d]) {
      if (is_shared[at(factor)]) continue;
      if (!is_repeated(d)) {
        result.places.push_back(static_cast<int64_t>(result.spread.size()));
        result.parts.push_back(split->extents[at(factor)]);
      }
      result.spread.push_back(split->extents[at(factor)]);
    }
  }
  for (size_t d = 0; d < side.shape.size(); ++d) {
    result.first.push_back(static_cast<int64_t>(result.shape.size()));
    const int64_t batch = index_of(side.batch, static_cast<int64_t>(d));
    if (batch < 0) result.shape.push_back(side.shape[d]);
    for (size_t i = 0; batch >= 0 && i < result.batch[at(batch)].size(); ++i) {
      const Factor& factor = result.batch[at(batch)][i];
      if (!factor.is_shared) result.shape.push_back(factor.extent);
    }
  }
  return result;
}

// The other operand: its shared factors become rows, in front of its free dimensions.
struct RowsOperand {
  Shape split;         // a dimension for each factor
  Ints order;          // of the dimensions of `split`: batches, shared factors, free, contracted
  size_t batches = 0;  // how many of them are batches
  size_t rows = 0;     // how many are shared factors or free
};

RowsOperand rows_operand(const DotSide& side, const BatchFactors& batch) {
  RowsOperand result;
  Ints first;
  for (size_t d = 0; d < side.shape.size(); ++d) {
    first.push_back(static_cast<int64_t>(result.split.size()));
    const int64_t i = index_of(side.batch, static_cast<int64_t>(d));
    if (i < 0) {
      result.split.push_back(side.shape[d]);
    } else {
      for (const Factor& factor : batch[at(i)]) result.split.push_back(factor.extent);
    }
  }
  const auto add_factors = [&](bool shared) {
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t j = 0; j < batch[i].size(); ++j) {
        if (batch[i][j].is_shared == shared) result.order.push_back(first[at(side.batch[i])] + static_cast<int64_t>(j));
      }
    }
  };
  add_factors(false);
  result.batches = result.order.size();
  add_factors(true);
  for (const int64_t d : side.free) result.order.push_back(first[at(d)]);
  result.rows = result.order.size() - result.batches;
  for (const int64_t d : side.contract) result.order.push_back(first[at(d)]);
  return result;
}

// True if the rows are not equally spaced in memory, so that a product needs a copy of them.
bool scatters_rows(const RowsOperand& operand) {
  std::optional<int64_t> last;
  for (size_t i = operand.batches; i < operand.batches + operand.rows; ++i) {
    const int64_t d = operand.order[i];
    if (operand.split[at(d)] == 1) continue;
    if (last && d < *last) return true;
    for (int64_t between = last ? *last + 1 : d; between < d; ++between) {
      if (operand.split[at(between)] != 1) return true;
    }
    last = d;
  }
  return false;
}

// The permutation of the new product's result [batches, free of the left side, free of the right side], where shared
// factors are the first free dimensions of the side of rows, that restores the order of the batch factors.
Ints result_order(const BatchFactors& batch, size_t batches, size_t shared_at, size_t rank) {
  Ints order;
  auto next = int64_t{0}, next_shared = static_cast<int64_t>(shared_at);
  for (const auto& factors : batch) {
    for (const Factor& factor : factors) order.push_back(factor.is_shared ? next_shared++ : next++);
  }
  for (auto d = static_cast<int64_t>(batches); d < static_cast<int64_t>(rank); ++d) {
    if (index_of(order, d) < 0) order.push_back(d);
  }
  return order;
}

bool moves_data(const Shape& shape, Ints order) {
  std::erase_if(order, [&](int64_t d) { return shape[at(d)] == 1; });
  return !std::is_sorted(order.begin(), order.end());
}

// The shared factors of a batch dimension belong to the rows of the other operand: the heads of queries that share a
// head of keys are rows of one product. The repeated operand is read once then, and no kernel stores it. This must not
// move more elements than the repetition has: rows that are not equally spaced are copied, and results that end up in
// another order, too.
Result share_operand(const Match& m, size_t wide) {
  const Node dot{Op::kDot, m.in, {}, m.attrs, {}};
  const DotSide sides[] = {{m.e.graph(), dot, 0}, {m.e.graph(), dot, 1}};
  const DotSide &side = sides[wide], &other = sides[1 - wide];
  if (side.batch.empty() || m.e.count(m.in[0]) * m.e.count(m.in[1]) == 0) return {};
  const auto shared = shared_operand(m, side, m.in[wide]);
  if (!shared) return {};
  const RowsOperand rows = rows_operand(other, shared->batch);
  Attrs attrs = m.attrs;
  Ints batch, contract, rows_contract;
  for (size_t i = 0; i < shared->batch.size(); ++i) {
    int64_t d = shared->first[at(side.batch[i])];
    for (const Factor& factor : shared->batch[i]) {
      if (!factor.is_shared) batch.push_back(d++);
    }
  }
  for (size_t i = 0; i < side.contract.size(); ++i) {
    contract.push_back(shared->first[at(side.contract[i])]);
    rows_contract.push_back(static_cast<int64_t>(rows.batches + rows.rows + i));
  }
  attrs.set(wide == 0 ? "lhs_batch" : "rhs_batch", batch);
  attrs.set(wide == 0 ? "lhs_contract" : "rhs_contract", contract);
  attrs.set(wide == 0 ? "rhs_batch" : "lhs_batch", counting(rows.batches));
  attrs.set(wide == 0 ? "rhs_contract" : "lhs_contract", rows_contract);

  Shape made;  // the result of the new product
  for (const int64_t d : batch) made.push_back(shared->shape[at(d)]);
  const auto add_rows = [&] {
    for (size_t i = 0; i < rows.rows; ++i) made.push_back(rows.split[at(rows.order[rows.batches + i])]);
  };
  if (wide == 1) add_rows();
  for (const int64_t d : side.free) made.push_back(side.shape[at(d)]);
  if (wide == 0) add_rows();
  const size_t shared_at = rows.batches + (wide == 0 ? side.free.size() : 0);
  const Ints order = result_order(shared->batch, rows.batches, shared_at, made.size());
  const bool moves_result = moves_data(made, order);
  const int64_t copied =
      (scatters_rows(rows) ? m.e.count(m.in[1 - wide]) : 0) + (moves_result ? element_count(made) : 0);
  if (copied > m.e.count(m.in[wide])) return {};

  Shape result;
  for (const int64_t d : sides[0].batch) result.push_back(sides[0].shape[at(d)]);
  for (const DotSide& s : sides) {
    for (const int64_t d : s.free) result.push_back(s.shape[at(d)]);
  }
  std::vector<ValueId> operands(2);
  operands[wide] = m.e.reshape(
      m.e.broadcast(m.e.reshape(shared->source, shared->parts), shared->spread, shared->places), shared->shape);
  operands[1 - wide] = m.e.transpose(m.e.reshape(m.in[1 - wide], rows.split), rows.order);
  const ValueId product = m.e.emit(Op::kDot, operands, std::move(attrs));
  return m.e.reshape(m.e.transpose(product, order), result);
}

Result share_rhs(const Match& m) {
  return share_operand(m, 1);
}
Result share_lhs(const Match& m) {
  return share_operand(m, 0);
}

}  // namespace

std::span<const Rule> shared_operand_rules() {
  static constexpr Rule kRules[] = {
      {Op::kDot, "share_rhs", share_rhs},
      {Op::kDot, "share_lhs", share_lhs},
  };
  return kRules;
}

}  // namespace heddle::passes
