#include "schedule/region/cut.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/divide.h"
#include "ir/ops/combine.h"
#include "ir/reference/scalar.h"

namespace heddle::schedule {
namespace {

// Groups that only move elements move the bits of narrow floats, without conversion.
bool only_moves(const ir::Graph& graph, const ir::Group& group) {
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](ir::NodeId id) {
    const Op op = graph.node(id).op;
    return ir::class_of(op) == ir::OpClass::kLayout || op == Op::kGather || op == Op::kGatherElements ||
           op == Op::kGatherNd;
  });
}

DType bits_as(DType dtype) {
  if (compute_dtype(dtype) == dtype) return dtype;
  return size_of(dtype) == 2 ? DType::kU16 : DType::kU8;
}

}  // namespace

LocalGraph extract(const ir::Graph& graph, const ir::Group& group) {
  LocalGraph local;
  const bool moves = only_moves(graph, group);
  local.graph.adopt_origins(graph);
  std::map<ValueId, ValueId> to;
  ExprPool scratch;
  const auto input = [&](ValueId v) {
    if (to.count(v) != 0) return;
    const Tensor* constant = graph.constant_of(v);
    ir::TensorType type = graph.type(v);
    if (moves) type.dtype = bits_as(type.dtype);
    if (constant != nullptr && splat_of(scratch, *constant)) {
      const auto owner = std::make_shared<const Tensor>(*constant);
      to[v] =
          local.graph.constant(Tensor::borrow(type.dtype, type.shape, owner->data(), owner), graph.producer(v).origins);
    } else {
      to[v] = local.graph.parameter(fmt::format("p{}", v), type);
      local.outer[to[v]] = v;
    }
  };
  for (ir::NodeId id : group.nodes) {
    const ir::Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) {
      input(v);
      inputs.push_back(to[v]);
    }
    const ir::NodeId added = local.graph.add(node.op, inputs, node.attrs, node.origins);
    for (size_t i = 0; i < node.outputs.size(); ++i) to[node.outputs[i]] = local.graph.node(added).outputs[i];
  }
  for (ValueId v : group.outputs) {
    local.graph.output(fmt::format("o{}", v), to.at(v));
    local.outer[to.at(v)] = v;
  }
  return local;
}

namespace {

using Users = std::vector<std::vector<ir::NodeId>>;

bool keeps_count(const ir::Graph& graph, const ir::Node& node, int64_t count) {
  return node.outputs.size() == 1 && element_count(graph.shape(node.outputs[0])) == count &&
         (ir::is_elementwise(node.op) || node.op == Op::kReshape);
}

// All that is made of these values, with them.
std::set<ValueId> made_of(const ir::Graph& graph, const Users& users, std::vector<ValueId> open) {
  std::set<ValueId> result;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!result.insert(v).second) continue;
    for (const ir::NodeId user : users[v]) {
      for (const ValueId made : graph.node(user).outputs) open.push_back(made);
    }
  }
  return result;
}

}  // namespace

std::set<ValueId> frontier(const ir::Graph& graph, const Users& users, ValueId value, const std::set<ValueId>& roots) {
  const int64_t size = element_count(graph.shape(value));
  std::set<ValueId> chain;
  std::vector<ValueId> open = {value}, others;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!chain.insert(v).second) continue;
    for (const ir::NodeId user : users[v]) {
      const ir::Node& node = graph.node(user);
      std::vector<ValueId>& to = keeps_count(graph, node, size) ? open : others;
      to.insert(to.end(), node.outputs.begin(), node.outputs.end());
    }
  }
  // What waits for a kernel that reads the result cannot be made with it.
  for (const ValueId later : made_of(graph, users, std::move(others))) chain.erase(later);
  std::set<ValueId> result;
  for (const ValueId v : chain) {
    if (roots.count(v) != 0) return {};
    const auto leaves = [&](ir::NodeId user) {
      const auto& outputs = graph.node(user).outputs;
      return std::none_of(outputs.begin(), outputs.end(), [&](ValueId made) { return chain.count(made) != 0; });
    };
    if (std::any_of(users[v].begin(), users[v].end(), leaves)) result.insert(v);
  }
  return result;
}

GraphCopier::GraphCopier(LocalGraph& local) : from_(local.graph) {
  to.graph.adopt_origins(from_);
}

void GraphCopier::node(const ir::Node& node) {
  if (node.op == Op::kParameter) {
    map[node.outputs[0]] = to.graph.parameter(node.attrs);
    return;
  }
  std::vector<ValueId> inputs;
  for (ValueId v : node.inputs) inputs.push_back(map.at(v));
  const ir::NodeId added = to.graph.add(node.op, inputs, node.attrs, node.origins);
  for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = to.graph.node(added).outputs[i];
}

void GraphCopier::finish(const LocalGraph& from) {
  for (const auto& port : from_.outputs()) to.graph.output(port.name, map.at(port.value));
  for (const auto& [inner, outer] : from.outer) to.outer[map.at(inner)] = outer;
  for (ValueId v : from.forced) to.forced.insert(map.at(v));
  for (ValueId v : from.whole) to.whole.insert(map.at(v));
  for (ValueId v : from.folded) to.folded.insert(map.at(v));
  for (const auto& [v, dim] : from.part_dim) to.part_dim[map.at(v)] = dim;
  for (const auto& [of, from_value] : from.paired) to.paired.insert({map.at(of), map.at(from_value)});
}

namespace {

// The largest divisor of n that is at most `limit`.
int64_t divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

// Sums of narrow floats have wider partial results.
bool widens(const ir::Graph& graph, ValueId x, const std::string& kind) {
  const DType dtype = graph.dtype(x);
  return is_float(dtype) && size_of(dtype) < 4 && (kind == "sum" || kind == "prod");
}

// A shape and dimensions of it, ascending.
struct Dims {
  Shape shape;
  ir::Ints dims;

  int64_t widest() const {
    return *std::max_element(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return at(a) < at(b); });
  }
  int64_t at(int64_t dim) const { return shape[static_cast<size_t>(dim)]; }
};

// With each run of neighbouring dimensions joined to one.
Dims with_joined_runs(const Shape& shape, ir::Ints dims) {
  std::sort(dims.begin(), dims.end());
  Dims joined;
  for (size_t d = 0, k = 0; d < shape.size(); ++d) {
    const bool is_one = k < dims.size() && dims[k] == static_cast<int64_t>(d);
    if (is_one && k++ > 0 && dims[k - 2] + 1 == static_cast<int64_t>(d)) {
      joined.shape.back() *= shape[d];
      continue;
    }
    if (is_one) joined.dims.push_back(static_cast<int64_t>(joined.shape.size()));
    joined.shape.push_back(shape[d]);
  }
  return joined;
}

// The reduction `node` over x in `parts` parts of its widest dimension, plus a rest that does not divide. Neighbouring
// dimensions become one if none of them has as many steps, or if the parts of the last one would be short pieces of
// many rows. Contiguous parts are read along memory, each by a group of threads.
ValueId in_parts(LocalGraph& local, const ir::Node& node, ValueId x, int64_t parts) {
  ir::Graph& graph = local.graph;
  const DType dtype = graph.dtype(x);
  const bool wide = widens(graph, x, node.attrs.text("kind"));
  if (wide) x = graph.emit(Op::kCast, {x}, {{"to", DType::kF32}}, node.origins);
  const auto emit = [&](Op op, std::vector<ValueId> inputs, ir::Attrs attrs) {
    return graph.emit(op, std::move(inputs), std::move(attrs), node.origins);
  };
  constexpr int64_t kLeastPiece = 32;  // elements
  Dims reduced{graph.shape(x), node.attrs.ints("dims")};
  const bool last = reduced.widest() + 1 == static_cast<int64_t>(reduced.shape.size());
  if (reduced.at(reduced.widest()) < (last ? kLeastPiece * parts : parts)) {
    const size_t rank = reduced.shape.size();
    reduced = with_joined_runs(reduced.shape, reduced.dims);
    if (reduced.shape.size() != rank) x = emit(Op::kReshape, {x}, {{"shape", reduced.shape}});
  }
  const auto& [shape, dims] = reduced;
  const std::string kind = node.attrs.text("kind");
  const auto d = static_cast<size_t>(reduced.widest());
  const int64_t extent = shape[d];
  int64_t count = divisor(extent, 2 * parts);
  if (count < parts) count = std::min(parts, extent);
  const int64_t length = extent / count, covered = length * count;
  const auto slice = [&](int64_t start, int64_t limit) {
    ir::Ints starts(shape.size(), 0), limits = shape, strides(shape.size(), 1);
    starts[d] = start;
    limits[d] = limit;
    return emit(Op::kSlice, {x}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
  };
  const ValueId body = covered == extent ? x : slice(0, covered);
  Shape cut = shape;
  cut[d] = count;
  cut.insert(cut.begin() + static_cast<int64_t>(d) + 1, length);
  ir::Ints inner;
  size_t before = 0;  // kept dimensions before the parts
  for (int64_t dim : dims) inner.push_back(dim + (dim >= static_cast<int64_t>(d)));
  for (size_t k = 0; k < d; ++k) before += std::find(dims.begin(), dims.end(), static_cast<int64_t>(k)) == dims.end();
  const ValueId partial =
      emit(Op::kReduce, {emit(Op::kReshape, {body}, {{"shape", cut}})}, {{"kind", kind}, {"dims", inner}});
  local.forced.insert(partial);
  local.whole.insert(partial);
  local.part_dim[partial] = before;
  ValueId result = emit(Op::kReduce, {partial}, {{"kind", kind}, {"dims", ir::Ints{static_cast<int64_t>(before)}}});
  local.whole.insert(result);
  if (covered != extent) {
    const ValueId rest = emit(Op::kReduce, {slice(covered, extent)}, {{"kind", kind}, {"dims", dims}});
    local.whole.insert(rest);
    result = emit(ir::combined_by(kind), {result, rest}, {});
  }
  if (wide) result = emit(Op::kCast, {result}, {{"to", dtype}});
  return result;
}

// The reduction `node` over neighbouring dimensions of x with `rows` steps of them joined to one.
ValueId in_rows(LocalGraph& local, const ir::Node& node, ValueId x, int64_t rows) {
  ir::Graph& graph = local.graph;
  const DType dtype = graph.dtype(x);
  const bool wide = widens(graph, x, node.attrs.text("kind"));
  if (wide) x = graph.emit(Op::kCast, {x}, {{"to", DType::kF32}}, node.origins);
  const auto [merged, dims] = with_joined_runs(graph.shape(x), node.attrs.ints("dims"));
  const std::string kind = node.attrs.text("kind");
  const auto d = static_cast<size_t>(dims.at(0));
  const int64_t extent = merged[d];
  const auto emit = [&](Op op, std::vector<ValueId> inputs, ir::Attrs attrs) {
    return graph.emit(op, std::move(inputs), std::move(attrs), node.origins);
  };
  const ValueId whole = emit(Op::kReshape, {x}, {{"shape", merged}});
  const int64_t length = extent / rows, covered = length * rows;
  const auto slice = [&](int64_t start, int64_t limit) {
    ir::Ints starts(merged.size(), 0), limits = merged, strides(merged.size(), 1);
    starts[d] = start;
    limits[d] = limit;
    return emit(Op::kSlice, {whole}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
  };
  Shape cut = merged;
  cut[d] = length;
  cut.insert(cut.begin() + static_cast<int64_t>(d) + 1, rows);
  const ValueId body = covered == extent ? whole : slice(0, covered);
  const ir::Attrs over = {{"kind", kind}, {"dims", ir::Ints{static_cast<int64_t>(d)}}};
  const ValueId partial = emit(Op::kReduce, {emit(Op::kReshape, {body}, {{"shape", cut}})}, over);
  local.forced.insert(partial);
  local.folded.insert(partial);
  ValueId result = emit(Op::kReduce, {partial}, over);
  local.folded.insert(result);
  local.whole.insert(result);
  if (covered != extent) {
    const ValueId rest = emit(Op::kReduce, {slice(covered, extent)}, over);
    local.whole.insert(rest);
    local.folded.insert(rest);
    result = emit(ir::combined_by(kind), {result, rest}, {});
  }
  if (wide) result = emit(Op::kCast, {result}, {{"to", dtype}});
  return result;
}

bool are_neighbours(std::vector<int64_t> dims) {
  std::sort(dims.begin(), dims.end());
  return !dims.empty() && dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
}

}  // namespace

ValueMap fold_reduction(LocalGraph& local, ValueId value, int64_t rows) {
  const ir::Graph& graph = local.graph;
  if (!are_neighbours(graph.producer(value).attrs.ints("dims"))) {
    local.folded.insert(value);
    ValueMap same;
    for (ValueId v = 0; v < graph.value_count(); ++v) same.emplace(v, v);
    return same;
  }
  GraphCopier copier(local);
  for (const ir::Node& node : graph.nodes()) {
    if (node.outputs.size() == 1 && node.outputs[0] == value) {
      copier.map[value] = in_rows(copier.to, node, copier.map.at(node.inputs[0]), rows);
    } else {
      copier.node(node);
    }
  }
  copier.finish(local);
  local = std::move(copier.to);
  return std::move(copier.map);
}

std::vector<ir::ValueId> read_reductions(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users) {
  std::vector<ir::ValueId> found;
  for (const ir::Node& node : graph.nodes()) {
    if (ir::class_of(node.op) != ir::OpClass::kReduction || users[node.outputs[0]].empty()) continue;
    if (element_count(graph.shape(node.outputs[0])) > 0) found.push_back(node.outputs[0]);
  }
  return found;
}

ValueMap split_reduction(LocalGraph& local, ValueId value, int64_t parts) {
  const ir::Graph& graph = local.graph;
  GraphCopier copier(local);
  for (const ir::Node& node : graph.nodes()) {
    if (node.outputs.size() == 1 && node.outputs[0] == value) {
      copier.map[value] = in_parts(copier.to, node, copier.map.at(node.inputs[0]), parts);
    } else {
      copier.node(node);
    }
  }
  copier.finish(local);
  local = std::move(copier.to);
  return std::move(copier.map);
}

ValueId split_rows(LocalGraph& local, ValueId value, int64_t parts, const std::vector<RowMove>& moves,
                   ValueMap& moved) {
  GraphCopier copier(local);
  ValueId partial = 0;
  for (const ir::Node& node : local.graph.nodes()) {
    if (node.outputs.size() != 1 || node.outputs[0] != value) {
      copier.node(node);
      continue;
    }
    ir::Graph& graph = copier.to.graph;
    ValueId x = copier.map.at(node.inputs[0]);
    const DType dtype = graph.dtype(x);
    const bool wide = widens(graph, x, node.attrs.text("kind"));
    if (wide) x = graph.emit(Op::kCast, {x}, {{"to", DType::kF32}}, node.origins);
    const Shape shape = graph.shape(x);
    const size_t reduced = node.attrs.ints("dims").size();
    int64_t count = 1;
    for (size_t k = 0; k < reduced; ++k) count *= shape[k];
    Shape cut = {ceil_div(count, parts), parts};
    cut.insert(cut.end(), shape.begin() + static_cast<int64_t>(reduced), shape.end());
    const std::string kind = node.attrs.text("kind");
    const auto emit = [&](Op op, ValueId input, ir::Attrs attrs) {
      return graph.emit(op, {input}, std::move(attrs), node.origins);
    };
    for (const RowMove& move : moves) x = emit(move.op, x, {{move.op == Op::kReshape ? "shape" : "perm", move.to}});
    if (const int64_t lacks = cut[0] * parts - count; lacks > 0) {
      Shape joined = {count};
      joined.insert(joined.end(), cut.begin() + 2, cut.end());
      ir::Ints low(joined.size(), 0), high = low;
      high[0] = lacks;
      const double neutral = ir::real_identity(ir::combined_by(kind), graph.dtype(x));
      const ValueId filling = graph.constant(ir::splat(graph.dtype(x), {}, neutral), node.origins);
      x = emit(Op::kReshape, x, {{"shape", joined}});
      x = graph.emit(Op::kPad, {x, filling}, {{"low", low}, {"high", high}, {"mode", "constant"}}, node.origins);
    }
    const ValueId rows = emit(Op::kReshape, x, {{"shape", cut}});
    partial = emit(Op::kReduce, rows, {{"kind", kind}, {"dims", ir::Ints{0}}});
    const ValueId total = emit(Op::kReduce, partial, {{"kind", kind}, {"dims", ir::Ints{0}}});
    copier.to.forced.insert(partial);
    copier.to.whole.insert({partial, total});
    copier.map[value] = wide ? emit(Op::kCast, total, {{"to", dtype}}) : total;
  }
  copier.finish(local);
  moved = copier.map;
  local = std::move(copier.to);
  return partial;
}

std::string title_of(const ir::Graph& graph, const KernelExprs& exprs, const std::function<bool(ValueId)>& is_input) {
  constexpr size_t kMaxNames = 10;
  std::set<ValueId> seen;
  std::vector<ValueId> open;
  for (const Root& root : exprs.roots) open.push_back(root.value);
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (is_input(v) || !seen.insert(v).second) continue;
    for (ValueId input : graph.producer(v).inputs) open.push_back(input);
  }
  std::vector<std::string> ops, origins;
  const auto add = [](std::vector<std::string>& list, std::string name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  };
  for (ValueId v : seen) {  // ascending, so topological
    const ir::Node& node = graph.producer(v);
    if (node.op == Op::kConstant || node.op == Op::kBroadcast || node.op == Op::kReshape) continue;
    const bool reduce = node.op == Op::kReduce || node.op == Op::kArgReduce;
    add(ops, reduce ? std::string(to_string(combine_of(node))) : std::string(ir::to_string(node.op)));
    for (ir::OriginId id : node.origins) add(origins, graph.origin(id).op_type);
  }
  if (ops.empty()) ops.push_back("copy");
  const bool more = ops.size() > kMaxNames;
  if (more) ops.resize(kMaxNames);
  if (origins.size() > 4) origins.resize(4);
  return fmt::format("{}{}{}{} {}", fmt::join(ops, ", "), more ? ", ..." : "", origins.empty() ? "" : " of ",
                     fmt::join(origins, ", "), ir::to_string(graph.type(exprs.roots[0].value)));
}

const std::vector<ValueId>& Sources::of(ValueId root) {
  const auto [known, is_new] = known_.try_emplace(root);
  std::vector<ValueId>& found = known->second;
  if (!is_new) return found;
  std::vector<ValueId> open = {root};
  std::vector<bool> seen(local_.graph.value_count());
  seen[root] = true;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (v != root && element_count(local_.graph.shape(v)) > 1) found.push_back(v);
    if (v != root && is_input_(v)) continue;
    for (const ValueId input : local_.graph.producer(v).inputs) {
      if (!seen[input]) open.push_back(input);
      seen[input] = true;
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool Sources::depends(ValueId root, ValueId value) {
  const std::vector<ValueId>& found = of(root);
  return std::binary_search(found.begin(), found.end(), value);
}

namespace {

// Skips in either set what lies before the other's next value: sets of neighbouring values take a few steps.
bool intersect(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
  auto in_a = a.begin(), in_b = b.begin();
  while (in_a != a.end() && in_b != b.end()) {
    if (*in_a == *in_b) return true;
    if (*in_a < *in_b) {
      in_a = std::lower_bound(in_a, a.end(), *in_b);
    } else {
      in_b = std::lower_bound(in_b, b.end(), *in_a);
    }
  }
  return false;
}

}  // namespace

bool Sources::related(const std::vector<ValueId>& roots, ValueId other) {
  const std::vector<ValueId>& theirs = of(other);
  return std::any_of(roots.begin(), roots.end(), [&](ValueId root) {
    return depends(other, root) || depends(root, other) || intersect(of(root), theirs);
  });
}

std::vector<ValueId> Sources::shared(ValueId a, ValueId b) {
  const std::vector<ValueId>&first = of(a), &second = of(b);
  std::vector<ValueId> both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
  return both;
}

}  // namespace heddle::schedule
