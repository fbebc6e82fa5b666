#include "schedule/region/cuda/rewrites/column_riders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "schedule/region/cuda/rewrites/row_order.h"

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

// How many rows a node reduces over all their columns; 0: it is no such reduction.
int64_t rows_of_row_reduction(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != ir::Op::kReduce && node.op != ir::Op::kArgReduce) return 0;
  const std::vector<int64_t> dims = reduced_dims(node);
  const Shape& shape = graph.shape(node.inputs[0]);
  const size_t kept = shape.size() - dims.size();
  if (dims.empty() || kept == 0) return 0;
  int64_t rows = 1;
  for (size_t k = 0; k < kept; ++k) rows *= shape[k];
  const bool is_last =
      std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return d >= static_cast<int64_t>(kept); });
  return is_last ? rows : 0;
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
  std::vector<Rider> riders;
  for (const ir::Node& node : graph.nodes()) {
    std::optional<Rider> rider = rider_of(node);
    if (!rider) continue;
    rider->pass = pass_of(*rider, riders);
    riders.push_back(*rider);
  }
  carry(riders);
  region_.sources.clear();
}

std::optional<ColumnRiders::Rider> ColumnRiders::rider_of(const ir::Node& node) {
  const ir::Graph& graph = region_.local.graph;
  const int64_t rows = rows_of_columns(graph, node);
  if (rows < kShortCarry || element_count(graph.shape(node.inputs[0])) < kWorthwhile) return std::nullopt;
  const ColumnReduction columns{node.outputs[0], rows, element_count(graph.shape(node.inputs[0]))};
  const int64_t parts = parts_for(rows, is_float(graph.dtype(columns.value)));
  std::optional<ir::ValueId> along = parts == 0 ? std::nullopt : rows_of(columns);
  if (!along) {
    if (region_.options.global) along = reduction_beside(columns);
    if (!along || !saves_time(columns, *along, parts)) return std::nullopt;
  }
  return Rider{columns.value, *along, parts, 0};
}

// The pass of earlier riders that reads the same rows and computes nothing that this one needs; else a new one.
size_t ColumnRiders::pass_of(const Rider& rider, const std::vector<Rider>& riders) {
  size_t passes = 0;
  for (const Rider& other : riders) passes = std::max(passes, other.pass + 1);
  for (size_t pass = 0; pass < passes; ++pass) {
    const bool fits = std::all_of(riders.begin(), riders.end(), [&](const Rider& other) {
      return other.pass != pass || (other.rows == rider.rows && other.parts == rider.parts &&
                                    !region_.sources.depends(rider.value, other.value));
    });
    if (fits) return pass;
  }
  return passes;
}

// The output over whole rows whose kernel reads what the columns are reduced from.
std::optional<ir::ValueId> ColumnRiders::rows_of(const ColumnReduction& columns) {
  const ir::Graph& graph = region_.local.graph;
  std::set<ir::ValueId> spans;
  for (const auto& port : graph.outputs()) spans.insert(port.value);
  for (const ir::ValueId span : spans) {
    const bool fits = element_count(graph.shape(span)) == columns.elements && !region_.is_scan(span) &&
                      region_.sources.related({span}, columns.value) && !region_.sources.depends(span, columns.value);
    if (fits) return span;
  }
  return std::nullopt;
}

// The last reduction of the same rows whose kernel reads what the columns are reduced from: it is a result itself, or
// the columns are computed with it.
std::optional<ir::ValueId> ColumnRiders::reduction_beside(const ColumnReduction& columns) {
  const ir::Graph& graph = region_.local.graph;
  for (size_t id = graph.nodes().size(); id-- > 0;) {
    const ir::Node& node = graph.node(static_cast<ir::NodeId>(id));
    if (rows_of_row_reduction(graph, node) != columns.rows) continue;
    const ir::ValueId rows = node.outputs[0];
    if (element_count(graph.shape(node.inputs[0])) != columns.elements) continue;
    const bool below = region_.sources.depends(columns.value, rows);
    const bool beside = is_output(rows) && region_.sources.related({rows}, columns.value) &&
                        !region_.sources.depends(rows, columns.value);
    if (below || beside) return rows;
  }
  return std::nullopt;
}

bool ColumnRiders::is_output(ir::ValueId value) const {
  const auto& outputs = region_.local.graph.outputs();
  return std::any_of(outputs.begin(), outputs.end(), [&](const auto& port) { return port.value == value; });
}

// Compares the time to read the shared operands again with the time to store parts of the columns and to combine them
// in another kernel, and with the time lost if the parts are fewer than the SMs.
bool ColumnRiders::saves_time(const ColumnReduction& columns, ir::ValueId rows, int64_t parts) {
  const GpuTarget& cuda = region_.target.gpu();
  const ir::Graph& graph = region_.local.graph;
  const std::string what =
      fmt::format("reduce {} reads again what reduce {} reads: ", ir::to_string(graph.type(columns.value)),
                  ir::to_string(graph.type(rows)));
  if (parts == 0) {
    refusals_.push_back(what + fmt::format("{} rows do not divide into parts for {} SMs", columns.rows, cuda.sms));
    return false;
  }
  double bytes = 0;
  for (const ir::ValueId v : region_.sources.shared(columns.value, rows)) {
    if (region_.is_input(v) && element_count(graph.shape(v)) == columns.elements) bytes += region_.bytes_of(v);
  }
  const double stored = static_cast<double>(parts * (columns.elements / columns.rows) * int64_t{sizeof(float)});
  const auto& chip = cuda.model.chip;
  const double again = bytes / (chip.copy_tbps * 1e6);
  const double idle =
      std::max(0.0, bytes / (static_cast<double>(std::min<int64_t>(parts, cuda.sms)) * chip.sm_gbps * 1e3) - again);
  const double extra = 2 * stored / (chip.copy_tbps * 1e6) + chip.second_us + idle;
  if (extra < again) return true;
  refusals_.push_back(what +
                      fmt::format("reading takes {:.2g} us, {} parts would take {:.2g} us", again, parts, extra));
  return false;
}

// Returns a number of parts, one per block, that gives all SMs equally many blocks; an SM runs two at a time. Prefers
// divisors of the rows. With `may_be_uneven`, the rows need not fill the last parts.
int64_t ColumnRiders::parts_for(int64_t rows, bool may_be_uneven) const {
  constexpr double kEven = 0.9, kOneBlock = 0.75;  // of the speed of two blocks on each SM
  const int64_t sms = region_.target.gpu().sms, wanted = std::min<int64_t>(2 * sms, rows / kBlockTurns);
  int64_t best = 0;
  double most = 0;
  for (int64_t p = wanted; p > 1; --p) {
    if (rows % p != 0 || rows / p == p) continue;
    double score = static_cast<double>(p) / static_cast<double>(round_up(p, sms));
    score *= 4 * p <= 5 * sms ? kOneBlock : 1;
    if (score > most) best = p, most = score;
  }
  if (may_be_uneven && most < kEven && wanted >= sms && ceil_div(rows, wanted) != wanted) return wanted;
  return best >= std::min<int64_t>(sms / 2, rows / kBlockTurns / 2) ? best : 0;
}

// Splits the reductions into parts. `riders` are in the order of the graph.
void ColumnRiders::carry(const std::vector<Rider>& riders) {
  std::vector<ValueMap> moves;  // for each split: from old values to their replacements
  const auto current = [&](ir::ValueId original) {
    for (const ValueMap& m : moves) original = m.at(original);
    return original;
  };
  std::map<size_t, size_t> known;  // the first of passes_ for a rider's pass
  for (const Rider& rider : riders) {
    ValueMap moved;
    RegionBackend::Planned own = split(current(rider.value), current(rider.rows), rider.parts, moved);
    renumber(moved);
    moves.push_back(std::move(moved));
    const auto [at, is_new] = known.try_emplace(rider.pass, passes_.size());
    if (!is_new && passes_[at->second].parts == own.parts) {
      passes_[at->second].partials.push_back(own.partials[0]);
    } else {
      passes_.push_back(std::move(own));
    }
  }
}

void ColumnRiders::renumber(const ValueMap& now) {
  for (RegionBackend::Planned& pass : passes_) {
    pass.rows = now.at(pass.rows);
    for (ir::ValueId& v : pass.partials) v = now.at(v);
  }
}

RegionBackend::Planned ColumnRiders::split(ir::ValueId value, ir::ValueId rows, int64_t parts, ValueMap& moved) {
  LocalGraph& local = region_.local;
  const ir::ValueId x = local.graph.producer(value).inputs[0];
  const Shape shape = local.graph.shape(x);
  const size_t reduced = local.graph.producer(value).attrs.ints("dims").size();
  std::vector<RowMove> moves;
  if (reduced + 1 == shape.size()) {
    const bool reduces = rows_of_row_reduction(local.graph, local.graph.producer(rows)) != 0;
    moves = moves_to_order(
        local.graph, x, reduces ? local.graph.producer(rows).inputs[0] : targets_of(context_, rows, true).front().part);
  }
  const ir::ValueId partial = split_rows(local, value, parts, moves, moved);
  int64_t length = 1;
  for (size_t k = 0; k < reduced; ++k) length *= shape[k];
  RowParts space{{ceil_div(length, parts), parts}, length};
  for (size_t k = reduced; k < shape.size(); ++k) {
    if (shape[k] != 1) space.extents.push_back(shape[k]);
  }
  return {moved.at(rows), {partial}, std::move(space)};
}

}  // namespace heddle::schedule
