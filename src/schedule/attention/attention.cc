#include "schedule/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/check.h"
#include "schedule/attention/form.h"
#include "schedule/attention/mask.h"
#include "schedule/attention/pack_rows.h"
#include "schedule/backend.h"
#include "schedule/config/config_source.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {
namespace {

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

std::string operand_text(const OperandView& o) {
  std::string text = fmt::format("{}:{}", o.row, o.k);
  for (const auto& [extent, stride] : o.batch) text += fmt::format(",{}:{}", extent, stride);
  return text;
}

// What a tuner's result is for (ConfigSource). Of masks: how many keys rows have, how many of them plain.
std::string problem_text(const AttentionDesc& d) {
  int64_t keys = 0, plain = 0;
  for (const KeyRange& r : d.ranges) keys += r.last - r.first, plain += r.plain_last - r.plain_first;
  return fmt::format("attention {} {}x{}x{}x{}x{} q {} k {} v {}{}{}", to_string(d.type), d.batch, d.m, d.n, d.depth,
                     d.width, operand_text(d.q), operand_text(d.k), operand_text(d.v),
                     d.scaled ? "" : fmt::format(" scores {} keys {} plain {}", d.scores.pool.size(), keys, plain),
                     d.sink ? " sink" : "");
}

class AttentionScheduler {
 public:
  AttentionScheduler(const ir::Graph& graph, const ir::Group& group, const Target& target, ConfigSource* configs)
      : graph_(graph),
        group_(group),
        target_(target),
        backend_(backend_of(target).attention()),
        configs_(configs),
        builder_(graph, part_, target, nullptr) {}

  ScheduledGroup run() {
    backend_.check_target(target_);
    form_ = attention_form(graph_, group_);
    check_types();
    pack_rows(form_);
    make_operands();
    make_scores();
    make_results();
    backend_.check(desc_, {graph_.dtype(form_.weights), graph_.dtype(group_.outputs[0])});
    const double products = static_cast<double>(desc_.batch) * static_cast<double>(desc_.m) *
                            static_cast<double>(desc_.n) * static_cast<double>(desc_.depth + desc_.width);
    return finish(2 * products);
  }
  const AttentionDesc& desc() const { return desc_; }

 private:
  void check_types() {
    desc_.type = graph_.dtype(graph_.node(form_.scores_product).inputs[0]);
    if (group_.outputs.size() != 1) refuse("its result is of another type");
    for (const ir::NodeId id : form_.inside) {
      if (graph_.dtype(graph_.node(id).outputs[0]) == DType::kF64) refuse("its softmax is computed in f64");
    }
  }

  void make_operands() {
    desc_.m = form_.rows, desc_.n = form_.keys, desc_.depth = form_.depth, desc_.width = form_.width;
    desc_.batch = form_.batches();
    const auto operand = [&](const AttentionForm::Operand& o, int64_t AttentionForm::Batch::*stride) {
      OperandView view;
      view.dtype = graph_.dtype(o.value);
      view.operand = builder_.input(o.value);
      view.offset = o.offset;
      for (const AttentionForm::Batch& b : form_.batch) view.batch.emplace_back(b.extent, b.*stride);
      join_batches(view);
      return view;
    };
    desc_.q = operand(form_.q, &AttentionForm::Batch::q);
    desc_.q.row = form_.q.line, desc_.q.k = form_.q.element, desc_.q.depth = desc_.depth;
    desc_.k = operand(form_.k, &AttentionForm::Batch::k);
    desc_.k.row = form_.k.line, desc_.k.k = form_.k.element, desc_.k.depth = desc_.depth;
    desc_.v = operand(form_.v, &AttentionForm::Batch::v);
    desc_.v.row = form_.v.element, desc_.v.k = form_.v.line, desc_.v.depth = desc_.n;
  }

  void make_scores() {
    if (form_.softmax.sinks.size() > 1) refuse("a row has several scores beside those of keys");
    desc_.zero_if_empty = form_.softmax.zero_if_empty;
    Epilogue& e = desc_.scores;
    e.pool = std::move(form_.scores);
    e.batch = form_.batch_var, e.row = form_.row_var, e.col_outer = form_.outer_var, e.col = form_.key_var;
    e.split = desc_.n;
    e.accumulator = DType::kF32;
    // Loads name values so far.
    std::map<ExprId, ExprId> operands;
    std::map<uint32_t, const Tensor*> constants;
    std::vector<ExprId> used = form_.softmax.sinks;
    used.push_back(form_.softmax.score);
    visit_exprs(e.pool, used, [&](ExprId id) {
      Expr load = e.pool[id];
      if (load.kind != Expr::Kind::kLoad) return;
      const Tensor* constant = graph_.constant_of(load.id);
      load.id = builder_.input(load.id);
      if (constant != nullptr) constants[load.id] = constant;
      operands.emplace(id, e.pool.add(std::move(load)));
    });
    for (ExprId& sink : form_.softmax.sinks) sink = e.pool.substitute(sink, {}, operands);
    const ExprId score = e.pool.substitute(form_.softmax.score, {}, operands);
    if (!form_.softmax.sinks.empty()) {
      desc_.sink = e;
      desc_.sink->stores.push_back({0, {}, form_.softmax.sinks.front()});
    }
    e.stores.push_back({0, {}, score});
    const std::optional<double> factor = constant_factor(e.pool, score);
    desc_.scaled = factor.has_value();
    desc_.scale = factor.value_or(1);
    if (desc_.scaled) return;
    classify_scores(desc_, [&](uint32_t operand) {
      const auto at = constants.find(operand);
      return at == constants.end() ? nullptr : at->second;
    });
  }

  void make_results() {
    std::set<ir::NodeId> after{form_.values_product};
    for (const ir::NodeId id : group_.nodes) {
      const auto& inputs = graph_.node(id).inputs;
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](ir::ValueId v) { return after.contains(graph_.value(v).producer); })) {
        after.insert(id);
      }
    }
    part_ = part_of(graph_, after, form_.values_product, group_.outputs);
    for (const auto& [quotient, dividend] : form_.divisions) builder_.set_same(quotient, dividend);
    builder_.make_epilogue(desc_.batch, desc_.m, desc_.width, backend_.lanes(target_), form_.result_at);
    desc_.epilogue = std::move(builder_.desc().epilogue);
    const auto result = desc_.epilogue.stores.at(0).operand;  // for its type alone
    desc_.scores.stores[0].operand = result;
    if (desc_.sink) desc_.sink->stores[0].operand = result;
    if (desc_.length) desc_.length->value.stores[0].operand = result;
  }

  ScheduledGroup finish(double operations) {
    const Config config =
        choose_config(configs_, {problem_text(desc_)}, [&] { return backend_.candidates(desc_, target_); });
    Product peak;
    peak.multiply_a = peak.multiply_b = desc_.type;
    builder_.desc().problem = std::move(peak);
    const std::string label = fmt::format("attention {}x{}x{}x{}{}{}{}", desc_.batch, desc_.m, desc_.n, desc_.depth,
                                          desc_.width == desc_.depth ? "" : fmt::format("x{}", desc_.width),
                                          desc_.scaled ? "" : " + scores", desc_.sink ? " + sink" : "");
    ScheduledGroup result;
    result.notes = {fmt::format("{}: {}", label, config.reason)};
    result.kernels.push_back(builder_.finish(config, label, operations));
    result.kernels[0].desc.body = std::make_shared<const AttentionDesc>(desc_);
    return result;
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Target& target_;
  const AttentionBackend& backend_;
  ConfigSource* const configs_;
  ir::Group part_{};  // that the builder looks at
  ContractionBuilder builder_;
  AttentionForm form_;
  AttentionDesc desc_;
};

}  // namespace

ScheduledGroup schedule_attention(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                  ConfigSource* configs) {
  return AttentionScheduler(graph, group, target, configs).run();
}

bool can_attend(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason) {
  try {
    AttentionScheduler scheduler(graph, group, target, nullptr);
    const double fused = scheduler.run().kernels.at(0).config.predicted_us;
    const AttentionBackend& backend = backend_of(target).attention();
    const double separate = backend.separate_us(scheduler.desc(), target);
    *reason = fmt::format("scores stay in {}: {:.1f} us predicted, {:.1f} us as product, softmax and product",
                          backend.scores_place(), fused, separate);
    return fused < separate;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
    *reason = error.why();
    return false;
  }
}

}  // namespace heddle::schedule
