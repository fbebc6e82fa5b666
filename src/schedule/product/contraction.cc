#include "schedule/product/contraction.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/backend.h"
#include "schedule/expr/inline.h"
#include "schedule/expr/lane_stride.h"
#include "schedule/floor.h"
#include "schedule/product/contraction_builder.h"
#include "schedule/product/conv_problem.h"

namespace heddle::schedule {

std::optional<DType> contraction_compute(DType a, DType b, DType out) {
  const auto narrow = [](DType t) { return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16; };
  const auto small = [](DType t) { return t == DType::kI8 || t == DType::kU8 || t == DType::kI16; };
  if (narrow(a) && narrow(b) && narrow(out)) return DType::kF32;
  if (small(a) && small(b) && out == DType::kI32) return DType::kI32;
  if (a == b && a == out && (a == DType::kF64 || a == DType::kI32 || a == DType::kI64)) return a;
  return std::nullopt;
}

int64_t elements_of(Words words) {
  return words == Words::kBytes ? 4 : words == Words::kNone ? 1 : 2;
}

DType element_of(Words words, bool is_a) {
  if (words == Words::kBfloats) return DType::kBF16;
  return words == Words::kShorts ? DType::kI16 : is_a ? DType::kU8 : DType::kI8;
}

std::string words_label(Words words, DType a, DType b) {
  return words == Words::kNone ? "" : fmt::format(" {} x {}", to_string(a), to_string(b));
}

Words words_for(DType a, DType b, const Target& target) {
  const auto small = [](DType t) { return t == DType::kI8 || t == DType::kU8 || t == DType::kI16; };
  if (a == DType::kBF16 && b == DType::kBF16 && target.cpu.avx512_bf16) return Words::kBfloats;
  if (!small(a) || !small(b)) return Words::kNone;
  return target.cpu.avx512_vnni && a == DType::kU8 && b == DType::kI8 ? Words::kBytes : Words::kShorts;
}

MicroLimits micro_limits(const Target& target) {
  switch (target.cpu.isa) {
    case CpuIsa::kAvx512:
      return {64, 14};
    case CpuIsa::kAvx2:
      return {32, 6};
    case CpuIsa::kPortable:
      break;
  }
  return {16, 6};
}

// With few rows the time is that of reading B, whatever multiplies it.
bool uses_matrices(const Target& target, Words words, int64_t rows) {
  constexpr int64_t kFewRows = 4;
  return target.cpu.amx && (words == Words::kBytes || words == Words::kBfloats) && rows > kFewRows;
}

int64_t micro_rows(const Target& target, Words words, int64_t rows) {
  constexpr int64_t kMatrixRows = 32;
  return uses_matrices(target, words, rows) ? kMatrixRows : micro_limits(target).rows;
}

int64_t panel_width(const Target& target, DType compute, int64_t columns) {
  const int64_t lanes = micro_limits(target).vector_bytes / static_cast<int64_t>(size_of(compute));
  const auto padded = [&](int64_t width) { return (columns + width - 1) / width * width; };
  // One vector of columns a row is bound by the loads of A: it does about two thirds of the rate.
  return padded(lanes) * 3 < padded(2 * lanes) * 2 ? lanes : 2 * lanes;
}

std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& e, const Index& at) {
  std::array<int64_t, 4> place = {0, 0, 0, at.constant};
  int64_t outer = 0, inner = 0;
  for (const auto& [id, coefficient] : at.terms) {
    const Atom& atom = e.pool.indices.atom(id);
    if (atom.kind != Atom::Kind::kVar) return std::nullopt;
    if (atom.id == e.batch) place[0] += coefficient;
    if (atom.id == e.row) place[1] += coefficient;
    if (atom.id == e.col) inner += coefficient;
    if (atom.id == e.col_outer) outer += coefficient;
  }
  if (e.pool.indices.extent(e.col_outer) > 1 && outer != inner * e.split) return std::nullopt;
  place[2] = inner;
  return place;
}

ContractionBuilder::ContractionBuilder(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                       ConfigSource* configs)
    : graph_(graph), group_(group), target_(target), configs_(configs) {
  find_gate();
}

ContractionBuilder::ContractionBuilder(const ContractionBuilder& before, const ir::Group& group)
    : graph_(before.graph_),
      group_(group),
      target_(before.target_),
      configs_(before.configs_),
      kernel_(before.kernel_),
      bindings_(before.bindings_),
      operands_(before.operands_),
      inner_(before.inner_) {
  find_gate();
}

void ContractionBuilder::find_gate() {
  if (target_.traits().gates_products) gate_ = ir::match_gated_product(graph_, group_.anchor);
  if (gate_ && std::find(group_.nodes.begin(), group_.nodes.end(), gate_->meet) == group_.nodes.end()) gate_.reset();
}

std::vector<Config> ContractionBuilder::for_extents(std::vector<Config> candidates,
                                                    const std::function<Config(Config)>& common) const {
  if (for_any_extents() && !candidates.empty()) candidates.insert(candidates.begin(), common(candidates.front()));
  return candidates;
}

bool ContractionBuilder::is_input(ir::ValueId value) const {
  return std::find(group_.inputs.begin(), group_.inputs.end(), value) != group_.inputs.end();
}

bool has_packed_weights(const ContractionBuilder& builder, ir::ValueId value) {
  return builder.graph().producer(value).op == Op::kDequantize && !builder.is_input(value);
}

ValueMemory ContractionBuilder::memory_of(ir::ValueId value) const {
  return schedule::memory_of(graph_, group_.placed, value);
}

uint32_t ContractionBuilder::input(ir::ValueId value, const Packing& packing) {
  if (value == inner_) return kInner;
  const auto [at, is_new] = operands_.try_emplace({value, packing.params}, static_cast<uint32_t>(bindings_.size()));
  if (is_new) {
    kernel_.operands.push_back({Operand::Role::kInput, graph_.dtype(value), memory_of(value).shape, packing,
                                graph_.constant_of(value) != nullptr});
    bindings_.push_back({Binding::Kind::kValue, value, 0});
  }
  return at->second;
}

uint32_t ContractionBuilder::workspace(uint32_t index, DType dtype, int64_t elements, Operand::Role role) {
  kernel_.operands.push_back({role, dtype, {elements}, {}});
  bindings_.push_back({Binding::Kind::kWorkspace, 0, index});
  return static_cast<uint32_t>(bindings_.size() - 1);
}

ExprId ContractionBuilder::inline_operand(ExprPool& pool, ir::ValueId operand, const std::vector<Index>& at,
                                          ir::ValueId* outside) {
  Inliner inliner(graph_, pool);
  inliner.set_binding([&](ir::ValueId value, const std::vector<Index>& index) -> std::optional<ExprId> {
    if (!is_input(value) && !(outside && has_packed_weights(*this, value))) return std::nullopt;
    if (outside) *outside = value;
    const uint32_t id = outside ? 0 : input(value);
    return pool.load(graph_.dtype(value), id, memory_of(value).position(pool.indices, index));
  });
  return inliner.at(operand, at);
}

View ContractionBuilder::view_of(ir::ValueId operand) {
  ExprPool pool;
  const Shape& shape = graph_.shape(operand);
  std::vector<Index> at;
  for (int64_t extent : shape) at.push_back(pool.indices.var(pool.indices.new_var(std::max<int64_t>(extent, 1))));
  View view;
  const Expr& e = pool[inline_operand(pool, operand, at, &view.value)];
  if (e.kind != Expr::Kind::kLoad) return view;
  view.offset = e.index.constant;
  view.strides.assign(shape.size(), 0);
  for (const auto& [id, coefficient] : e.index.terms) {
    const Atom& atom = pool.indices.atom(id);
    if (atom.kind != Atom::Kind::kVar) return view;
    view.strides[atom.id] = coefficient;
  }
  view.affine = true;
  return view;
}

namespace {

// Whether an index is linear in a variable (or independent of it).
bool is_affine(const ExprPool& pool, const Index& index, VarId var) {
  for (const auto& [id, coefficient] : index.terms) {
    if (pool.indices.atom(id).kind == Atom::Kind::kVar) continue;
    if (pool.vars(Index{0, {{id, 1}}}) >> var & 1) return false;
  }
  return true;
}

// Indices of epilogue values at the coordinates of an accumulator. Those of a value that depends on the accumulator are
// known from its operands. Those of a value computed beside it are known from its readers.
class EpilogueIndices {
 public:
  EpilogueIndices(const ir::Graph& graph, const ir::Group& group, IndexPool& indices,
                  std::vector<Epilogue::Bound>& bounds)
      : graph_(graph), group_(group), indices_(indices), bounds_(bounds) {}

  std::map<ir::ValueId, std::vector<Index>> walk(ir::ValueId first, std::vector<Index> coordinates) {
    at_[first] = std::move(coordinates);
    walk_to_results();
    walk_to_operands();
    walk_to_results();
    return std::move(at_);
  }

 private:
  void walk_to_results() {
    for (const ir::NodeId id : group_.nodes) {
      const ir::Node& node = graph_.node(id);
      if (id == group_.anchor || at_.contains(node.outputs[0])) continue;
      const auto from =
          std::find_if(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) { return at_.contains(v); });
      // Others are of the prologue or known from their readers. Reductions: ContractionBuilder::add_reduction().
      if (from == node.inputs.end() || node.op == Op::kReduce) continue;
      at_[node.outputs[0]] = index_of_result(node, *from);
    }
  }

  // What slices leave is in the bounds; fusion takes none beside which other values go on.
  std::vector<Index> index_of_result(const ir::Node& node, ir::ValueId from) {
    std::vector<Index> index = at_[from];
    if (node.op == Op::kReshape) {
      return indices_.delinear(indices_.linear(index, graph_.shape(from)), graph_.shape(node.outputs[0]));
    }
    if (node.op == Op::kTranspose) {
      const auto& perm = node.attrs.ints("perm");
      std::vector<Index> to(index.size());
      for (size_t d = 0; d < perm.size(); ++d) to[d] = index[static_cast<size_t>(perm[d])];
      return to;
    }
    if (node.op == Op::kReverse) {
      for (const int64_t dim : node.attrs.ints("dims")) {
        Index& i = index[static_cast<size_t>(dim)];
        i = indices_.offset(indices_.scale(i, -1), graph_.shape(from)[static_cast<size_t>(dim)] - 1);
      }
      return index;
    }
    if (node.op == Op::kSlice) {
      const Shape &whole = graph_.shape(from), &part = graph_.shape(node.outputs[0]);
      for (size_t d = 0; d < index.size(); ++d) {
        index[d] = indices_.offset(index[d], -node.attrs.ints("starts")[d]);
        if (part[d] != whole[d]) bounds_.push_back({index[d], part[d]});
      }
      return index;
    }
    if (ir::is_elementwise(node.op)) return index;
    fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(node.op)), "it has no place in an epilogue");
  }

  void walk_to_operands() {
    for (auto id = group_.nodes.rbegin(); id != group_.nodes.rend(); ++id) {
      const ir::Node& node = graph_.node(*id);
      const auto known = at_.find(node.outputs[0]);
      if (*id == group_.anchor || known == at_.end()) continue;
      const std::vector<Index> index = known->second;
      for (const ir::ValueId operand : node.inputs) {
        if (at_.contains(operand)) continue;
        if (ir::is_elementwise(node.op)) {
          at_[operand] = index;
        } else if (node.op == Op::kReshape) {
          at_[operand] =
              indices_.delinear(indices_.linear(index, graph_.shape(node.outputs[0])), graph_.shape(operand));
        }
      }
    }
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  IndexPool& indices_;
  std::vector<Epilogue::Bound>& bounds_;
  std::map<ir::ValueId, std::vector<Index>> at_;
};

}  // namespace

namespace {

// A value whose lanes outside of the bounds load nothing.
ExprId bounded(Epilogue& e, ExprId value) {
  if (!e.bounds_lanes()) return value;
  const DType dtype = e.pool[value].dtype;
  const ExprId zero = is_float(dtype) ? e.pool.constant(dtype, 0) : e.pool.integer(dtype, 0);
  for (const Epilogue::Bound& bound : e.bounds) value = e.pool.guard(bound.index, 0, bound.end, value, zero);
  return value;
}

}  // namespace

namespace {

// Bounds of the results of a row become Epilogue::results.
void crop_rows(Epilogue& e) {
  const Index row = e.pool.indices.var(e.row);
  e.results = {0, e.pool.indices.extent(e.row)};
  std::erase_if(e.bounds, [&](const Epilogue::Bound& bound) {
    if (bound.index.terms != row.terms) return false;
    e.results[0] = std::max(e.results[0], -bound.index.constant);
    e.results[1] = std::min(e.results[1], bound.end - bound.index.constant);
    return true;
  });
}

}  // namespace

uint32_t ContractionBuilder::output(ir::ValueId value) {
  if (value == inner_) return kInner;
  const auto [at, is_new] = operands_.try_emplace({value, {-1}}, static_cast<uint32_t>(bindings_.size()));
  if (is_new) {
    kernel_.operands.push_back({Operand::Role::kOutput, graph_.dtype(value), memory_of(value).shape, {}});
    bindings_.push_back({Binding::Kind::kValue, value, 0});
  }
  return at->second;
}

void ContractionBuilder::add_reduction(const ir::PartialReduction& found, ir::ValueId output_value,
                                       const ir::ResultMatrix& matrix, ExprId value) {
  Epilogue& e = desc_.epilogue;
  IndexPool& indices = e.pool.indices;
  const int64_t columns = found.rows ? matrix.columns : matrix.columns / ir::kPartialColumns;
  const int64_t rows = found.rows ? matrix.rows / ir::kPartialRows : matrix.rows;
  const Index row = indices.add(indices.scale(indices.var(e.batch), rows), indices.var(e.row));
  const Index at = indices.add(indices.scale(row, columns), indices.var(e.col));
  const ir::Node& reduce = graph_.producer(output_value);
  e.reductions.push_back({output(output_value), reduce.attrs.text("kind"), found.rows, at, value});
}

bool ContractionBuilder::try_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t split,
                                      const Coordinates& coordinates) {
  desc_.epilogue = {};
  Epilogue& e = desc_.epilogue;
  IndexPool& indices = e.pool.indices;
  e.batch = indices.new_var(batches), e.row = indices.new_var(rows);
  e.col_outer = indices.new_var(columns / split), e.col = indices.new_var(split);
  e.split = split;
  e.along_rows = lanes_along_rows_;
  e.interleaved = interleaved_;
  const ir::ValueId result = gate_ ? graph_.node(gate_->meet).outputs[0] : anchor().outputs[0];
  e.accumulator = graph_.dtype(result);
  const Index column = indices.add(indices.scale(indices.var(e.col_outer), split), indices.var(e.col));
  const std::vector<Index> here = coordinates(indices, indices.var(e.batch), indices.var(e.row), column);
  const auto at = EpilogueIndices(graph_, group_, indices, e.bounds).walk(result, here);
  if (interleaved_ > 1) crop_rows(e);
  if (gate_) {
    Inliner pairs(graph_, e.pool);
    bind(pairs, [&](ir::ValueId value) -> std::optional<ExprId> {
      if (value != gate_->first && value != gate_->second) return std::nullopt;
      return e.pool.local(graph_.dtype(value), value == gate_->first ? 1 : 2);
    });
    e.gate = {pairs.at(result, here), graph_.dtype(gate_->first)};
  }
  Inliner inliner(graph_, e.pool);
  bind(inliner, [&](ir::ValueId value) -> std::optional<ExprId> {
    if (value != result) return std::nullopt;
    const DType dtype = graph_.dtype(value);
    const ExprId sum = e.pool.local(dtype, 0);
    if (bits_of(dtype) >= 8) return sum;
    // It was added in more bits.
    return e.pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {sum}});
  });
  bool affine = !e.bounds_lanes();
  for (ir::ValueId output : group_.outputs) {
    const ir::NodeId producer = graph_.value(output).producer;
    if (graph_.node(producer).op == Op::kReduce) {
      const ir::ResultMatrix matrix{batches, rows, columns};
      const auto found = ir::match_partial_reduction(graph_, producer, matrix);
      HEDDLE_CHECK(found && at.contains(found->value), "a reduction that is none of the epilogue's");
      add_reduction(*found, output, matrix, inliner.at(found->value, at.at(found->value)));
      continue;
    }
    const auto known = at.find(output);
    if (known == at.end()) {
      fail(ErrorCode::kUnsupportedOperator, to_string(graph_.type(output)), "it does not depend on the contraction");
    }
    const Index position = memory_of(output).position(indices, known->second);
    e.stores.push_back({this->output(output), position, bounded(e, inliner.at(output, known->second))});
    affine = affine && is_affine(e.pool, position, e.lane());
  }
  for (ExprId id = 0; id < e.pool.size(); ++id) {
    if (e.pool[id].kind == Expr::Kind::kLoad) affine = affine && is_affine(e.pool, e.pool[id].index, e.lane());
  }
  return affine;
}

void ContractionBuilder::bind(Inliner& inliner, const std::function<std::optional<ExprId>(ir::ValueId)>& sum_of) {
  ExprPool& pool = desc_.epilogue.pool;
  inliner.set_binding(
      [this, &inliner, &pool, sum_of](ir::ValueId value, const std::vector<Index>& index) -> std::optional<ExprId> {
        if (const auto sum = sum_of(value)) return sum;
        if (const auto same = same_.find(value); same != same_.end()) return inliner.at(same->second, index);
        if (!is_input(value)) return std::nullopt;
        if (const Tensor* constant = graph_.constant_of(value)) {
          if (splat_of(pool, *constant)) return std::nullopt;
        }
        return pool.load(graph_.dtype(value), input(value), memory_of(value).position(pool.indices, index));
      });
}

bool Epilogue::bounds_lanes() const {
  return std::any_of(bounds.begin(), bounds.end(),
                     [this](const Bound& bound) { return (pool.vars(bound.index) >> lane() & 1) != 0; });
}

std::vector<ExprId> Epilogue::values() const {
  std::vector<ExprId> found;
  for (const Store& store : stores) found.push_back(store.value);
  for (const Reduction& reduction : reductions) found.push_back(reduction.value);
  if (gate) found.push_back(gate->value);
  return found;
}

void ContractionBuilder::make_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t lanes,
                                       const Coordinates& coordinates) {
  if (gate_) columns /= 2;
  if (try_epilogue(batches, rows, columns, columns, coordinates)) return;
  // Lanes that stay within one run of the innermost dimensions of some result make its index linear.
  std::vector<int64_t> splits;
  if (run_ % lanes == 0 && columns % run_ == 0) splits.push_back(run_);
  for (ir::NodeId id : group_.nodes) {
    int64_t run = 1;
    const Shape& shape = graph_.shape(graph_.node(id).outputs[0]);
    for (size_t d = shape.size(); d-- > 0 && run < columns;) {
      run *= shape[d];
      if (run % lanes == 0 && columns % run == 0) splits.push_back(run);
    }
  }
  std::sort(splits.begin(), splits.end(), std::greater<>());
  splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
  for (int64_t split : splits) {
    if (split < columns && try_epilogue(batches, rows, columns, split, coordinates)) return;
  }
  try_epilogue(batches, rows, columns, columns, coordinates);  // lane by lane where it must
}

bool ContractionBuilder::make_interleaved_epilogue(int64_t interleaved, int64_t rows, int64_t results, int64_t columns,
                                                   const Coordinates& coordinates) {
  lanes_along_rows_ = true, interleaved_ = interleaved;
  const bool affine = try_epilogue(rows, results, columns, columns, coordinates);
  lanes_along_rows_ = false, interleaved_ = 1;
  const Epilogue& e = desc_.epilogue;
  return affine && e.reductions.empty() && std::all_of(e.stores.begin(), e.stores.end(), [&](const auto& store) {
           return lane_stride(e.pool, store.at, {e.row}, {}) == 1;
         });
}

std::string ContractionBuilder::epilogue_label() const {
  std::vector<std::string> ops;
  for (ir::NodeId id : group_.nodes) {
    const ir::Node& node = graph_.node(id);
    if (id == group_.anchor || !(ir::is_elementwise(node.op) || node.op == Op::kReduce)) continue;
    std::string name(ir::to_string(node.op));
    if (std::find(ops.begin(), ops.end(), name) == ops.end()) ops.push_back(std::move(name));
  }
  std::string text;
  for (size_t i = 0; i < ops.size() && i < 5; ++i) text += (i == 0 ? " + " : ", ") + ops[i];
  return ops.size() > 5 ? text + ", ..." : text;
}

ScheduledKernel ContractionBuilder::finish(Config config, std::string label, double flops) {
  ScheduledKernel result{std::move(kernel_), std::move(config), std::move(bindings_), std::move(label)};
  const double bytes = traffic(graph_, group_, result);
  result.floor_seconds = backend_of(target_).floor_seconds(desc_, bytes, flops, target_);
  result.desc.body = std::make_shared<const ContractionDesc>(std::move(desc_));
  desc_ = {}, kernel_ = {}, bindings_ = {}, operands_ = {};
  return result;
}

bool can_compile_contraction(const ir::Graph& graph, const ir::Node& node, std::string* reason) {
  const auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return false;
  };
  const DType out = graph.dtype(node.outputs[0]);
  if (node.op == Op::kWindowReduce) {
    const auto& window = node.attrs.ints("window");
    size_t first = window.size(), last = 0;
    for (size_t d = 0; d < window.size(); ++d) {
      const bool plain = window[d] == 1 && node.attrs.ints("strides")[d] == 1 && node.attrs.ints("low")[d] == 0 &&
                         node.attrs.ints("high")[d] == 0;
      if (!plain) first = std::min(first, d), last = d + 1;
    }
    if (last > first + 3) return refuse("a window over more than three neighbouring dimensions");
    if (size_of(out) == 0 || (is_float(out) && size_of(out) == 1)) return refuse("pooling of float8");
    return true;
  }
  if (node.op != Op::kDot && node.op != Op::kConv) return refuse("not a contraction");
  if (!contraction_compute(graph.dtype(node.inputs[0]), graph.dtype(node.inputs[1]), out)) {
    return refuse(fmt::format("a contraction of {} and {} into {}", to_string(graph.dtype(node.inputs[0])),
                              to_string(graph.dtype(node.inputs[1])), to_string(out)));
  }
  if (node.op == Op::kConv && is_channels_first(node)) {
    const auto& spread = node.attrs.ints("lhs_dilations");
    if (std::any_of(spread.begin(), spread.end(), [](int64_t s) { return s != 1; })) {
      return refuse("a transposed convolution that is not nhwc");
    }
  }
  return true;
}

ScheduledGroup schedule_contraction(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                    ConfigSource* configs) {
  const ir::Node& anchor = graph.node(group.anchor);
  std::string reason;
  if (!can_compile_contraction(graph, anchor, &reason)) {
    fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(anchor.op)), reason);
  }
  if (element_count(graph.shape(anchor.outputs[0])) == 0) return {};
  ContractionBuilder builder(graph, group, target, configs);
  return backend_of(target).contraction(builder);
}

}  // namespace heddle::schedule
