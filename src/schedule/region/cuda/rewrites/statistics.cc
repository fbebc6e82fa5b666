#include "schedule/region/cuda/rewrites/statistics.h"

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "schedule/region/cuda/cta_group.h"

namespace heddle::schedule {
namespace {

bool is_column_sum(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != Op::kReduce || node.attrs.text("kind") != "sum") return false;
  const auto& dims = node.attrs.ints("dims");
  const DType dtype = graph.dtype(node.inputs[0]);
  if (dims.empty() || dims.size() >= graph.shape(node.inputs[0]).size()) return false;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] != static_cast<int64_t>(k)) return false;
  }
  return dtype == DType::kF32 || dtype == DType::kF64;
}

// What a value that is the same for all rows is spread from: a tensor over the kept dimensions.
std::optional<ValueId> shared_by_rows(const ir::Graph& graph, ValueId v, size_t reduced) {
  const Shape& shape = graph.shape(v);
  const ir::Node& node = graph.producer(v);
  if (node.op != Op::kBroadcast) return std::nullopt;
  const auto& dims = node.attrs.ints("dims");
  const Shape& from = graph.shape(node.inputs[0]);
  int64_t kept = 1;
  for (size_t k = reduced; k < shape.size(); ++k) kept *= shape[k];
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<size_t>(dims[i]) < reduced && from[i] != 1) return std::nullopt;
  }
  if (element_count(from) != kept) return std::nullopt;
  return node.inputs[0];
}

}  // namespace

std::optional<Deviation> find_deviation(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (!is_column_sum(graph, node)) return std::nullopt;
  const ir::Node& square = graph.producer(node.inputs[0]);
  if (square.op != Op::kMul || square.inputs[0] != square.inputs[1]) return std::nullopt;
  const ir::Node& centred = graph.producer(square.inputs[0]);
  if (centred.op != Op::kSub) return std::nullopt;
  const size_t reduced = node.attrs.ints("dims").size();
  const auto centre = shared_by_rows(graph, centred.inputs[1], reduced);
  if (!centre) return std::nullopt;
  Deviation d{node.outputs[0], centred.inputs[0], *centre, 0, std::nullopt, 1, reduced};
  const Shape& shape = graph.shape(d.x);
  for (size_t k = 0; k < reduced; ++k) d.rows *= shape[k];
  std::optional<ValueId> sum;
  for (const ir::Node& other : graph.nodes()) {
    if (!is_column_sum(graph, other) || other.attrs.ints("dims") != node.attrs.ints("dims")) continue;
    if (other.inputs[0] == d.x && !sum) sum = other.outputs[0];
    if (other.inputs[0] == square.inputs[0]) d.drift = other.outputs[0];
  }
  if (!sum) return std::nullopt;
  d.sum = *sum;
  return d;
}

void split_deviation(LocalGraph& local, const Deviation& d, int64_t parts) {
  GraphCopier copier(local);
  ir::Builder b(copier.to.graph);
  const Shape shape = local.graph.shape(d.x);
  const int64_t length = d.rows / parts;
  const Shape kept(shape.begin() + static_cast<ptrdiff_t>(d.reduced), shape.end());
  Shape cut = {parts, length}, partial = {parts};
  cut.insert(cut.end(), kept.begin(), kept.end());
  partial.insert(partial.end(), kept.begin(), kept.end());
  const auto spread = [&](ValueId v, const Shape& to, int64_t skipped) {
    ir::Ints dims;
    for (int64_t k = 0; k < static_cast<int64_t>(to.size()); ++k) {
      if (k != skipped) dims.push_back(k);
    }
    return b.emit(Op::kBroadcast, {v}, {{"shape", to}, {"dims", dims}});
  };
  const auto total = [&](ValueId v) {
    const ValueId sum = b.reduce("sum", v, {0}, false);
    copier.to.whole.insert(sum);
    return sum;
  };
  const auto n = static_cast<double>(length);
  ValueId rows = 0, sums = 0;
  const auto add_up = [&](ValueId terms) {
    const ValueId sum = b.reduce("sum", terms, {1}, false);
    copier.to.forced.insert(sum);
    copier.to.whole.insert(sum);
    if (sums != 0) copier.to.paired.insert({sum, sums});
    return sum;
  };
  // A part loses no digits around the mean of its own rows; the differences between the means are added part by part.
  const auto split = [&] {
    ValueId mean = b.binary(Op::kDiv, sums, n);
    const ValueId own = b.sub(rows, spread(mean, cut, 1));
    ValueId squares = add_up(b.mul(own, own));
    if (d.drift) {
      const ValueId drift = add_up(own), shift = b.binary(Op::kDiv, drift, n);
      copier.to.paired.insert({drift, squares});
      squares = b.binary(Op::kMax, b.sub(squares, b.mul(drift, shift)), 0.0);
      mean = b.add(mean, shift);
    }
    const ValueId centre = b.reshape(copier.map.at(d.centre), kept);
    const ValueId off = b.sub(mean, spread(centre, partial, 0)), lacks = b.binary(Op::kMul, off, n);
    copier.map[d.value] = total(b.add(squares, b.mul(lacks, off)));
    if (d.drift) copier.map[*d.drift] = total(lacks);
  };
  for (const ir::Node& node : local.graph.nodes()) {
    const ValueId made = node.outputs.size() == 1 ? node.outputs[0] : d.x;
    if (made == d.sum) {
      rows = b.reshape(copier.map.at(d.x), cut);
      sums = add_up(rows);
      copier.map[made] = total(sums);
    } else if (made == d.value || (d.drift && made == *d.drift)) {
      if (copier.map.count(made) == 0) split();
    } else {
      copier.node(node);
    }
  }
  copier.finish(local);
  local = std::move(copier.to);
}

namespace {

// What is read for a value that casts alone make of it.
ir::ValueId source_of(const ir::Graph& graph, ir::ValueId v) {
  while (graph.producer(v).op == ir::Op::kCast) v = graph.producer(v).inputs[0];
  return v;
}

// Whether a cluster keeps the columns for an output that spans them again.
bool stays_on_chip(const ir::Graph& graph, const Deviation& deviation, const GpuTarget& cuda) {
  const int64_t size = element_count(graph.shape(deviation.x));
  const auto& outputs = graph.outputs();
  const bool again = std::any_of(outputs.begin(), outputs.end(),
                                 [&](const auto& port) { return element_count(graph.shape(port.value)) >= size; });
  const auto bytes = static_cast<int64_t>(size_of(graph.dtype(source_of(graph, deviation.x))));
  const int64_t columns = size / deviation.rows;
  const int vector = static_cast<int>(std::gcd(columns, 16 / bytes));
  return again && cta_group_for_columns(cuda, deviation.rows, columns, 1, vector, {bytes, bytes}).has_value();
}

// In how many parts there are enough blocks; 0: it is not worth it.
int64_t parts_of(const LocalGraph& local, const Deviation& deviation, const GpuTarget& cuda) {
  constexpr int64_t kWorthwhile = 1 << 18;  // elements; fewer are read twice at no cost
  const int64_t size = element_count(local.graph.shape(deviation.x)), rows = deviation.rows;
  if (local.whole.count(deviation.value) != 0 || size < kWorthwhile) return 0;
  if (stays_on_chip(local.graph, deviation, cuda)) return 0;
  const int64_t blocks = (size / rows + 31) / 32;
  const int64_t wanted = std::max<int64_t>(2, 4 * cuda.sms / blocks);
  int64_t parts = std::min(wanted, rows / 16);
  while (parts > 1 && rows % parts != 0) --parts;
  return parts < 2 || parts < wanted / 4 ? 0 : parts;
}

bool split_next(LocalGraph& local, const GpuTarget& cuda) {
  for (ir::NodeId id = 0; id < local.graph.nodes().size(); ++id) {
    const auto deviation = find_deviation(local.graph, id);
    const int64_t parts = deviation ? parts_of(local, *deviation, cuda) : 0;
    if (parts == 0) continue;
    split_deviation(local, *deviation, parts);
    return true;
  }
  return false;
}

}  // namespace

void split_statistics(LocalGraph& local, const GpuTarget& cuda) {
  constexpr int kMost = 8;
  int done = 0;
  while (done < kMost && split_next(local, cuda)) ++done;
}

}  // namespace heddle::schedule
