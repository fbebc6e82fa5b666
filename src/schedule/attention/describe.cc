#include "schedule/attention/describe.h"

#include <bit>
#include <cmath>
#include <map>

#include "heddle/error.h"
#include "schedule/attention/masks/mask.h"
#include "schedule/attention/pages/key_pages.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

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

OperandView operand_of(const AttentionForm& form, const AttentionForm::Operand& o,
                       int64_t AttentionForm::Batch::*stride, const AttentionValues& values) {
  OperandView view;
  view.dtype = values.dtype(o.value);
  view.operand = values.operand(o.value);
  view.offset = o.offset;
  for (const AttentionForm::Batch& b : form.batch) view.batch.emplace_back(b.extent, b.*stride);
  join_batches(view);
  return view;
}

void make_scores(AttentionDesc& desc, AttentionForm& form, const AttentionValues& values) {
  if (form.softmax.sinks.size() > 1) {
    fail(ErrorCode::kUnsupportedOperator, "attention", "a row has several scores beside those of keys");
  }
  desc.zero_if_empty = form.softmax.zero_if_empty;
  Epilogue& e = desc.scores;
  e.pool = std::move(form.scores);
  e.batch = form.batch_var, e.row = form.row_var, e.col_outer = form.outer_var, e.col = form.key_var;
  e.split = desc.n;
  e.accumulator = DType::kF32;
  // Loads name values so far.
  std::map<ExprId, ExprId> operands;
  std::map<uint32_t, const Tensor*> constants;
  std::vector<ExprId> used = form.softmax.sinks;
  used.push_back(form.softmax.score);
  visit_exprs(e.pool, used, [&](ExprId id) {
    Expr load = e.pool[id];
    if (load.kind != Expr::Kind::kLoad) return;
    const Tensor* constant = values.constant(load.id);
    load.id = values.operand(load.id);
    if (constant != nullptr) constants[load.id] = constant;
    operands.emplace(id, e.pool.add(std::move(load)));
  });
  for (ExprId& sink : form.softmax.sinks) sink = e.pool.substitute(sink, {}, operands);
  const ExprId score = e.pool.substitute(form.softmax.score, {}, operands);
  if (!form.softmax.sinks.empty()) {
    desc.sink = e;
    desc.sink->stores.push_back({0, {}, form.softmax.sinks.front()});
  }
  e.stores.push_back({0, {}, score});
  const std::optional<double> factor = constant_factor(e.pool, score);
  desc.scaled = factor.has_value();
  desc.scale = factor.value_or(1);
  if (desc.scaled) return;
  const auto constant = [&](uint32_t operand) {
    const auto at = constants.find(operand);
    return at == constants.end() ? nullptr : at->second;
  };
  classify_scores(desc, constant, values.with_lengths);
}

}  // namespace

AttentionDesc describe_attention(AttentionForm& form, const AttentionValues& values) {
  AttentionDesc desc;
  desc.m = form.rows, desc.n = form.keys, desc.depth = form.depth, desc.width = form.width;
  desc.batch = form.batches();
  desc.q = operand_of(form, form.q, &AttentionForm::Batch::q, values);
  desc.q.row = form.q.line, desc.q.k = form.q.element, desc.q.depth = desc.depth;
  desc.k = operand_of(form, form.k, &AttentionForm::Batch::k, values);
  desc.k.row = form.k.line, desc.k.k = form.k.element, desc.k.depth = desc.depth;
  desc.v = operand_of(form, form.v, &AttentionForm::Batch::v, values);
  desc.v.row = form.v.element, desc.v.k = form.v.line, desc.v.depth = desc.n;
  desc.type = desc.q.dtype;
  set_pages(desc, form, values);
  make_scores(desc, form, values);
  return desc;
}

void name_result(AttentionDesc& attention) {
  const uint32_t result = attention.epilogue.stores.at(0).operand;
  attention.scores.stores[0].operand = result;
  if (attention.sink) attention.sink->stores[0].operand = result;
  if (attention.length) attention.length->value.stores[0].operand = result;
}

}  // namespace heddle::schedule
