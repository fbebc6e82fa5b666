#include "schedule/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "ir/analysis/attention.h"
#include "schedule/attention/choice.h"
#include "schedule/expr/inline.h"
#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/dot_problem.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kCopyBytes = 16, kElement = 2, kMostDepth = 256;

[[noreturn]] void refuse(const std::string& why) {
  fail(ErrorCode::kUnsupportedOperator, "attention", why);
}

// The nodes of a group as a group of their own.
ir::Group part_of(const ir::Graph& graph, const std::set<ir::NodeId>& nodes, ir::NodeId anchor,
                  std::vector<ir::ValueId> outputs) {
  ir::Group part{ir::GroupKind::kContraction, {nodes.begin(), nodes.end()}, anchor, {}, std::move(outputs)};
  for (const ir::NodeId id : part.nodes) {
    for (const ir::ValueId v : graph.node(id).inputs) {
      const bool known = std::find(part.inputs.begin(), part.inputs.end(), v) != part.inputs.end();
      if (!known && !nodes.contains(graph.value(v).producer)) part.inputs.push_back(v);
    }
  }
  return part;
}

// Of one operand: batches with neighbours joined where one stride does.
void join_batches(OperandView& o) {
  std::vector<std::pair<int64_t, int64_t>> joined;
  for (const auto& [extent, stride] : o.batch) {
    if (extent == 1) continue;
    if (!joined.empty() && joined.back().second == extent * stride) {
      joined.back() = {joined.back().first * extent, stride};
    } else {
      joined.emplace_back(extent, stride);
    }
  }
  o.batch = std::move(joined);
}

// `lines` and `depth`: how many of each there are; `along_k`: memory is to be contiguous along the depth.
void check_readable(const char* name, const OperandView& o, int64_t lines, int64_t depth, bool along_k) {
  if ((along_k ? o.k : o.row) != 1) refuse(fmt::format("{} is not contiguous along its rows", name));
  if (o.batch.size() > 2) refuse(fmt::format("the batches of {} have more than two strides", name));
  const auto aligned = [](int64_t elements) { return elements * kElement % kCopyBytes == 0; };
  bool all = aligned(o.offset) && ((along_k ? lines : depth) == 1 || aligned(along_k ? o.row : o.k));
  for (const auto& [extent, stride] : o.batch) all = all && aligned(stride);
  if (!all) refuse(fmt::format("the rows of {} do not begin at multiples of 16 bytes", name));
}

// What scores do to a product, where that is a multiplication by a positive constant.
std::optional<double> constant_factor(const ExprPool& pool, ExprId id) {
  const Expr& e = pool[id];
  if (e.kind == Expr::Kind::kLocal) return 1.0;
  if (e.kind != Expr::Kind::kOp) return std::nullopt;
  if (e.op == ir::Op::kCast) return is_float(e.dtype) ? constant_factor(pool, e.args[0]) : std::nullopt;
  const auto number = [&](ExprId of) -> std::optional<double> {
    while (pool[of].kind == Expr::Kind::kOp && pool[of].op == ir::Op::kCast) of = pool[of].args[0];
    if (pool[of].kind != Expr::Kind::kConstant || !is_float(pool[of].dtype)) return std::nullopt;
    return std::bit_cast<double>(pool[of].bits);
  };
  if (e.op != ir::Op::kMul && e.op != ir::Op::kDiv) return std::nullopt;
  std::optional<double> factor = number(e.args[1]);
  ExprId rest = e.args[0];
  if (!factor && e.op == ir::Op::kMul) factor = number(e.args[0]), rest = e.args[1];
  if (!factor || !(*factor > 0) || !std::isfinite(*factor)) return std::nullopt;
  const std::optional<double> before = constant_factor(pool, rest);
  if (!before) return std::nullopt;
  return e.op == ir::Op::kMul ? *before * *factor : *before / *factor;
}

class AttentionScheduler {
 public:
  AttentionScheduler(const ir::Graph& graph, const ir::Group& group, const Target& target)
      : graph_(graph), group_(group), target_(target), builder_(graph, part_, target, nullptr) {}

  ScheduledGroup run() {
    const auto found = ir::match_attention(graph_, group_.anchor);
    if (!found) refuse("the group is no product, softmax and product");
    if (target_.kind != TargetKind::kCuda || target_.cuda.sm != 90) refuse("its kernel is for sm_90");
    check_types(*found);
    split(*found);
    part_ = part_of(graph_, before_, found->scores_product, {found->scores});
    const DotProblem s(builder_, false);
    make_scores(*found, s);
    part_ = part_of(graph_, after_, found->values_product, group_.outputs);
    const DotProblem o(builder_, false);
    make_results(o);
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
    if (std::max({desc_.m, desc_.n, desc_.batch * (desc_.m / 64 + 1)}) > kMost) refuse("it is too large");
    const AttentionChoice choice = choose_attention(desc_, target_.cuda);
    return finish(choice, s.operations() + o.operations());
  }
  const AttentionDesc& desc() const { return desc_; }

 private:
  void check_types(const ir::Attention& found) {
    const ir::Node &first = graph_.node(found.scores_product), &last = graph_.node(found.values_product);
    desc_.type = graph_.dtype(first.inputs[0]);
    const bool narrow = desc_.type == DType::kF16 || desc_.type == DType::kBF16;
    const auto is_type = [&](ir::ValueId v) { return graph_.dtype(v) == desc_.type; };
    if (!narrow || !is_type(first.inputs[1]) || !is_type(last.inputs[0]) || !is_type(last.inputs[1])) {
      refuse("its operands are not all f16 or all bf16");
    }
    if (group_.outputs.size() != 1 || !is_type(group_.outputs[0])) refuse("its result is of another type");
    if (element_count(graph_.shape(group_.outputs[0])) == 0 || element_count(graph_.shape(found.scores)) == 0) {
      refuse("it is empty");
    }
  }

  // Nodes that the scores need, and those of the second product.
  void split(const ir::Attention& found) {
    const std::set<ir::NodeId> all(group_.nodes.begin(), group_.nodes.end());
    std::vector<ir::ValueId> open{found.scores};
    while (!open.empty()) {
      const ir::NodeId id = graph_.value(open.back()).producer;
      open.pop_back();
      if (!all.contains(id) || !before_.insert(id).second) continue;
      for (const ir::ValueId v : graph_.node(id).inputs) open.push_back(v);
    }
    for (const ir::NodeId id : all) {
      const bool softmax = std::find(found.inside.begin(), found.inside.end(), id) != found.inside.end();
      if (!before_.contains(id) && !softmax && !spreads_one(id, found)) after_.insert(id);
    }
  }
  // Side nodes of the softmax: what 1 / sum divides.
  bool spreads_one(ir::NodeId id, const ir::Attention& found) const {
    const auto& outputs = graph_.node(id).outputs;
    return std::any_of(found.inside.begin(), found.inside.end(), [&](ir::NodeId inside) {
      const auto& inputs = graph_.node(inside).inputs;
      return std::find(inputs.begin(), inputs.end(), outputs[0]) != inputs.end();
    });
  }

  void make_scores(const ir::Attention& found, const DotProblem& s) {
    if (s.m.size() > 1 || s.n.size() > 1 || s.k.size() > 1) refuse("its rows have more than one stride");
    if (!s.a_affine || !s.b_affine) refuse("Q or K is no strided view");
    desc_.m = DotProblem::count(s.m), desc_.n = DotProblem::count(s.n), desc_.depth = DotProblem::count(s.k);
    desc_.batch = DotProblem::count(s.batch);
    const auto stride = [](const std::vector<DotDim>& dims, bool a) {
      return dims.empty() ? 1 : a ? dims[0].a : dims[0].b;
    };
    desc_.q = operand(s.a_view, s.batch, stride(s.m, true), stride(s.k, true), desc_.depth, true);
    desc_.k = operand(s.b_view, s.batch, stride(s.n, false), stride(s.k, false), desc_.depth, false);

    Epilogue& e = desc_.scores;
    IndexPool& indices = e.pool.indices;
    e.batch = indices.new_var(desc_.batch), e.row = indices.new_var(desc_.m);
    e.col_outer = indices.new_var(1), e.col = indices.new_var(desc_.n);
    e.split = desc_.n;
    e.accumulator = DType::kF32;
    const ir::ValueId product = graph_.node(found.scores_product).outputs[0];
    std::vector<Index> at = s.coordinates(indices, indices.var(e.batch), indices.var(e.row), indices.var(e.col));
    if (graph_.shape(product) != graph_.shape(found.scores)) {
      at = indices.delinear(indices.linear(at, graph_.shape(product)), graph_.shape(found.scores));
    }
    Inliner inliner(graph_, e.pool);
    inliner.set_binding([&](ir::ValueId value, const std::vector<Index>& index) -> std::optional<ExprId> {
      if (value == product) return e.pool.local(DType::kF32, 0);
      if (!builder_.is_input(value)) return std::nullopt;
      if (const Tensor* constant = graph_.constant_of(value)) {
        if (splat_of(e.pool, *constant)) return std::nullopt;
      }
      return e.pool.load(graph_.dtype(value), builder_.input(value), indices.linear(index, graph_.shape(value)));
    });
    const ExprId score = inliner.at(found.scores, at);
    e.stores.push_back({0, {}, score});
    const std::optional<double> factor = constant_factor(e.pool, score);
    desc_.scaled = factor.has_value();
    desc_.scale = factor.value_or(1);
  }

  void make_results(const DotProblem& o) {
    if (!o.b_affine || o.n.size() > 1 || o.k.size() > 1) refuse("V is no strided view");
    if (DotProblem::count(o.batch) != desc_.batch || DotProblem::count(o.m) != desc_.m ||
        DotProblem::count(o.k) != desc_.n) {
      refuse("its two products are batched differently");
    }
    desc_.width = DotProblem::count(o.n);
    const auto stride = [](const std::vector<DotDim>& dims) { return dims.empty() ? 1 : dims[0].b; };
    desc_.v = operand(o.b_view, o.batch, stride(o.n), stride(o.k), desc_.n, false);
    if (desc_.depth > kMostDepth || desc_.width > kMostDepth) refuse("its heads have more than 256 elements");
    check_readable("Q", desc_.q, desc_.m, desc_.depth, true);
    check_readable("K", desc_.k, desc_.n, desc_.depth, desc_.k_along_depth());
    check_readable("V", desc_.v, desc_.width, desc_.n, !desc_.v_along_width());
    builder_.make_epilogue(desc_.batch, desc_.m, desc_.width, 8,
                           [&](IndexPool& pool, const Index& batch, const Index& row, const Index& column) {
                             return o.coordinates(pool, batch, row, column);
                           });
    desc_.epilogue = std::move(builder_.desc().epilogue);
    desc_.scores.stores[0].operand = desc_.epilogue.stores.at(0).operand;  // for its type alone
  }

  OperandView operand(const View& view, const std::vector<DotDim>& batch, int64_t row, int64_t k, int64_t depth,
                      bool is_a) {
    OperandView o;
    o.dtype = graph_.dtype(view.value);
    o.operand = builder_.input(view.value);
    o.offset = view.offset;
    for (const DotDim& d : batch) o.batch.emplace_back(d.extent, is_a ? d.a : d.b);
    o.row = row, o.k = k, o.depth = depth;
    join_batches(o);
    return o;
  }

  ScheduledGroup finish(const AttentionChoice& choice, double operations) {
    Product peak;
    peak.multiply_a = peak.multiply_b = desc_.type;
    builder_.desc().problem = std::move(peak);
    const std::string label =
        fmt::format("attention {}x{}x{}x{}{}{}", desc_.batch, desc_.m, desc_.n, desc_.depth,
                    desc_.width == desc_.depth ? "" : fmt::format("x{}", desc_.width), desc_.scaled ? "" : " + scores");
    ScheduledGroup result;
    result.notes = {fmt::format("{}: {}", label, choice.reason)};
    result.kernels.push_back(builder_.finish({choice.config, 0, choice.reason}, label, operations));
    result.kernels[0].desc.body = std::make_shared<const AttentionDesc>(desc_);
    return result;
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Target& target_;
  ir::Group part_{};  // that the builder looks at
  ContractionBuilder builder_;
  std::set<ir::NodeId> before_, after_;
  AttentionDesc desc_;
};

}  // namespace

ScheduledGroup schedule_attention(const ir::Graph& graph, const ir::Group& group, const Target& target) {
  return AttentionScheduler(graph, group, target).run();
}

bool can_attend(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason) {
  try {
    AttentionScheduler scheduler(graph, group, target);
    const ScheduledGroup scheduled = scheduler.run();
    const double fused = choose_attention(scheduler.desc(), target.cuda).predicted_us;
    const double separate = separate_us(scheduler.desc(), target.cuda);
    *reason = fmt::format("scores stay in registers: {:.1f} us predicted, {:.1f} us as product, softmax and product",
                          fused, separate);
    return fused < separate;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
    *reason = error.why();
    return false;
  }
}

}  // namespace heddle::schedule
