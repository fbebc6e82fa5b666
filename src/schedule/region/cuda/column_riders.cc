#include "schedule/region/cuda/column_riders.h"

#include <algorithm>

#include "base/divide.h"
#include "schedule/region/row_order.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kShortCarry = 64;       // rows below which a column reduction is not carried along
constexpr int64_t kBlockTurns = 8;        // rows that the teams of a block should have at least
constexpr int64_t kWorthwhile = 1 << 16;  // elements

// How many rows a node reduces the columns of; 0: it is no such reduction. One of a single column reduces everything.
int64_t rows_of_columns(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != ir::Op::kReduce) return 0;
  const std::vector<int64_t>& dims = node.attrs.ints("dims");
  const Shape& shape = graph.shape(node.inputs[0]);
  if (dims.empty() || dims.size() >= shape.size()) return 0;
  int64_t rows = 1;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] != static_cast<int64_t>(k)) return 0;
    rows *= shape[k];
  }
  return rows == element_count(shape) ? 0 : rows;
}

// Returns the operand [..., columns] of a reduction over rows in two steps; nullopt if the node is no such reduction,
// or if the first step has other readers.
std::optional<ir::ValueId> rows_in_two_steps(const LocalGraph& local, const std::vector<std::vector<ir::NodeId>>& users,
                                             const ir::Node& node) {
  const ir::Graph& graph = local.graph;
  if (node.op != ir::Op::kReduce || node.attrs.ints("dims") != ir::Ints{0}) return std::nullopt;
  const ir::Node& first = graph.producer(node.inputs[0]);
  if (first.op != ir::Op::kReduce || first.attrs.ints("dims") != ir::Ints{1} ||
      first.attrs.text("kind") != node.attrs.text("kind") || users[first.outputs[0]].size() != 1 ||
      local.outer.count(first.outputs[0]) != 0) {
    return std::nullopt;
  }
  const ir::Node* split = &graph.producer(first.inputs[0]);
  if (split->op == ir::Op::kCast) split = &graph.producer(split->inputs[0]);
  if (split->op != ir::Op::kReshape) return std::nullopt;
  const Shape &from = graph.shape(split->inputs[0]), &to = graph.shape(split->outputs[0]);
  if (from.size() < 2 || to.size() != 3 || from.back() != to.back()) return std::nullopt;
  return split->inputs[0];
}

// Joins reductions in two steps into one where an output spans their rows, so that the kernel of that output also
// computes the reduction.
void join_steps(LocalGraph& local) {
  const auto users = ir::users(local.graph);
  const auto is_spanned = [&](ir::ValueId v) {
    const auto& outputs = local.graph.outputs();
    return std::any_of(outputs.begin(), outputs.end(), [&](const auto& port) {
      return element_count(local.graph.shape(port.value)) == element_count(local.graph.shape(v));
    });
  };
  GraphCopier copier(local);
  ir::Graph& graph = copier.to.graph;
  for (const ir::Node& node : local.graph.nodes()) {
    const auto rows = rows_in_two_steps(local, users, node);
    if (!rows || !is_spanned(*rows)) {
      copier.node(node);
      continue;
    }
    ir::ValueId x = copier.map.at(*rows);
    const DType dtype = local.graph.dtype(node.outputs[0]);
    if (graph.dtype(x) != dtype) x = graph.emit(ir::Op::kCast, {x}, {{"to", dtype}}, node.origins);
    ir::Ints dims;
    for (size_t d = 0; d + 1 < graph.shape(x).size(); ++d) dims.push_back(static_cast<int64_t>(d));
    copier.map[node.outputs[0]] =
        graph.emit(ir::Op::kReduce, {x}, {{"kind", node.attrs.text("kind")}, {"dims", dims}}, node.origins);
  }
  copier.finish(local);
  local = std::move(copier.to);
}

}  // namespace

void ColumnRiders::find() {
  join_steps(region_.local);
  const ir::Graph& graph = region_.local.graph;
  const bool reduces_columns = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const ir::Node& node) {
    return rows_of_columns(graph, node) >= kShortCarry && element_count(graph.shape(node.inputs[0])) >= kWorthwhile;
  });
  if (!reduces_columns) return;
  unify_row_order(region_.local);
  std::set<ir::ValueId> spans;  // outputs over whole rows
  for (const auto& port : graph.outputs()) spans.insert(port.value);
  struct Found {
    ir::ValueId value, rows;
    int64_t parts;
  };
  std::vector<Found> found;
  for (const ir::Node& node : graph.nodes()) {
    const int64_t rows = rows_of_columns(graph, node);
    if (rows < kShortCarry || element_count(graph.shape(node.inputs[0])) < kWorthwhile) continue;
    const int64_t elements = element_count(graph.shape(node.inputs[0]));
    for (ir::ValueId span : spans) {
      if (element_count(graph.shape(span)) != elements || region_.is_scan(span)) continue;
      if (!region_.sources.related({span}, node.outputs[0])) continue;
      if (region_.sources.depends(span, node.outputs[0])) continue;
      const int64_t parts = parts_for(rows, node.attrs.text("kind") == "sum");
      if (parts != 0) found.push_back({node.outputs[0], span, parts});
      break;
    }
  }
  for (const Found& f : found) carry(current(f.value), f.rows, f.parts);
  region_.sources.clear();
}

// Returns a number of parts, one per block, that gives all SMs equally many blocks; an SM runs two at a time. Prefers
// divisors of the rows. The last rows of a sum need not fill all parts.
int64_t ColumnRiders::parts_for(int64_t rows, bool is_sum) const {
  constexpr double kEven = 0.9, kOneBlock = 0.75;  // of the speed of two blocks on each SM
  const int64_t sms = region_.target.cuda.sms, wanted = std::min<int64_t>(2 * sms, rows / kBlockTurns);
  int64_t best = 0;
  double most = 0;
  for (int64_t p = wanted; p > 1; --p) {
    if (rows % p != 0 || rows / p == p) continue;
    double score = static_cast<double>(p) / static_cast<double>(round_up(p, sms));
    score *= 4 * p <= 5 * sms ? kOneBlock : 1;
    if (score > most) best = p, most = score;
  }
  if (is_sum && most < kEven && wanted >= sms && ceil_div(rows, wanted) != wanted) return wanted;
  return best >= std::min<int64_t>(sms / 2, rows / kBlockTurns / 2) ? best : 0;
}

void ColumnRiders::carry(ir::ValueId value, ir::ValueId rows, int64_t parts) {
  LocalGraph& local = region_.local;
  const Shape shape = local.graph.shape(local.graph.producer(value).inputs[0]);
  const size_t reduced = local.graph.producer(value).attrs.ints("dims").size();
  std::map<ir::ValueId, ir::ValueId> moved;
  const ir::ValueId x = local.graph.producer(value).inputs[0];
  std::vector<RowMove> moves;
  if (reduced + 1 == shape.size()) {
    moves = moves_to_order(local.graph, x, targets_of(context_, current(rows), true).front().part);
  }
  const ir::ValueId partial = split_rows(local, value, parts, moves, moved);
  int64_t length = 1;
  for (size_t k = 0; k < reduced; ++k) length *= shape[k];
  std::vector<int64_t> extents = {ceil_div(length, parts), parts};
  for (size_t k = reduced; k < shape.size(); ++k) {
    if (shape[k] != 1) extents.push_back(shape[k]);
  }
  for (Rows& pass : passes_) {
    pass.rows = moved.at(pass.rows);
    for (ir::ValueId& v : pass.partials) v = moved.at(v);
  }
  moved_.push_back(std::move(moved));
  const ir::ValueId now = current(rows);
  for (Rows& pass : passes_) {
    if (pass.rows == now && pass.extents == extents) {
      pass.partials.push_back(partial);
      return;
    }
  }
  passes_.push_back({now, {partial}, std::move(extents)});
}

ir::ValueId ColumnRiders::current(ir::ValueId original) const {
  for (const auto& m : moved_) original = m.at(original);
  return original;
}

std::optional<RegionBackend::Planned> ColumnRiders::next() {
  while (!passes_.empty()) {
    const Rows pass = std::move(passes_.front());
    passes_.erase(passes_.begin());
    std::vector<ir::ValueId> roots = {pass.rows};
    for (ir::ValueId v : pass.partials) {
      if (region_.pending.count(v) != 0) roots.push_back(v);
    }
    if (roots.size() > 1 && region_.pending.count(pass.rows) != 0) {
      return RegionBackend::Planned{std::move(roots), pass.extents};
    }
  }
  return std::nullopt;
}

}  // namespace heddle::schedule
