#include "codegen/scalar/scalar.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "codegen/scalar/fast_math.h"
#include "codegen/scalar/operation.h"
#include "codegen/text/numbers.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;

ScalarEmitter::ScalarEmitter(const schedule::ExprPool& pool, Names names, Writer& out)
    : GatherEmitter(pool, std::move(names)), out_(out), byte_forms_(pool), scopes_(1) {}

const TextValue* ScalarEmitter::find(ExprId e) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    // A value of a surrounding vector loop is of no use to the scalar code of one lane.
    if (const auto at = scope->find(e); at != scope->end() && (lanes_ || !at->second.wide)) return &at->second;
  }
  return nullptr;
}

TextValue ScalarEmitter::value(ExprId e) {
  if (const TextValue* known = find(e)) return *known;
  if (const auto at = names_.cached.find(e); at != names_.cached.end() && (lanes_ || !at->second.wide)) {
    return at->second;
  }
  return write(e);
}

TextValue ScalarEmitter::write(ExprId e) {
  const Expr& expr = pool_[e];
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return write_constant(expr);
    case Expr::Kind::kLocal: {
      const auto at = names_.locals.find(expr.id);
      HEDDLE_CHECK(at != names_.locals.end(), "local {} has no name", expr.id);
      return at->second;
    }
    case Expr::Kind::kLoad:
      return write_load(e);
    case Expr::Kind::kIndex:
      return write_index(e);
    case Expr::Kind::kRandom:
      return write_random(e);
    case Expr::Kind::kGuard:
      return write_guard(e);
    case Expr::Kind::kOp:
      if (auto form = write_short_form(e)) return *form;
      return write_op(e);
  }
  return {};
}

std::string ScalarEmitter::declare(ExprId e, const std::string& text) {
  const std::string* what = pool_.description(e);
  if (!assigned_ || assigned_->first != e) return out_.value(fmt::format("t{}", next_++), text, what ? *what : "");
  std::string name = assigned_->second;
  out_.line("{} = {};{}", name, text, what ? "  " + comment_of(*what) : "");
  assigned_.reset();
  return name;
}

void ScalarEmitter::assign(const std::string& to, ExprId e) {
  if (wide(e) == lanes_.has_value() && pool_[e].dtype != DType::kBool) assigned_.emplace(e, to);
  const std::string value = vector(e);
  assigned_.reset();
  if (value != to) out_.line("{} = {};", to, value);
}

std::string ScalarEmitter::vector(ExprId e) {
  const TextValue v = value(e);
  return widened(v, width(true));
}

TextValue ScalarEmitter::write_constant(const Expr& e) const {
  std::string text = literal_text(e);
  const bool finite = !is_float(e.dtype) || std::isfinite(std::bit_cast<double>(e.bits));
  if (marked_ && e.dtype != DType::kBool && finite) {
    text = marked(computed_type(e.dtype), static_cast<int64_t>(e.bits), text);
  }
  return {std::move(text), e.dtype, false, 0, true};
}

TextValue ScalarEmitter::write_random(ExprId e) {
  const Expr& expr = pool_[e];
  if (wide(e)) return per_lane(e);
  const bool f64 = expr.dtype == DType::kF64;
  const int bits = f64 ? 53 : expr.lo || expr.dtype == DType::kF32 ? 24 : expr.dtype == DType::kF16 ? 11 : 8;
  const std::string call = fmt::format("tile::philox_{}<{}, {}>({}ull, {})", expr.lo ? "normal" : "uniform",
                                       computed_type(expr.dtype), bits, expr.bits, index(expr.index));
  return keep(e, {declare(e, fmt::format("tile::splat<1>({})", call)), expr.dtype});
}

TextValue ScalarEmitter::write_load(ExprId e) {
  const Expr& expr = pool_[e];
  const bool is_wide = wide(e), apart = is_wide && !lane_stride(expr.index);
  const std::optional<std::string> text = apart ? gather(e) : load(e);
  if (!text) return per_lane(e);
  TextValue value = loaded_value(*text, expr.dtype, is_wide);
  value.text = declare(e, value.text);
  return keep(e, std::move(value));
}

TextValue ScalarEmitter::write_index(ExprId e) {
  const Expr& expr = pool_[e];
  const std::string_view type = computed_type(expr.dtype);
  const auto stride = lane_stride(expr.index);
  const bool is_wide = wide(e);
  const schedule::Range range = pool_.indices.range(expr.index);
  // Lane numbers are added in the element type: exact in f32 only up to 2^24.
  const bool exact = !is_float(expr.dtype) || (range.lo >= 0 && range.hi < (1 << 24));
  if (is_wide && !stride && expr.dtype == DType::kI32) {
    if (const auto text = lane_index(expr.index)) return keep(e, {declare(e, *text), expr.dtype, true});
  }
  if (is_wide && (!stride || !exact)) return per_lane(e);
  std::string text = fmt::format("{}({})", type, index(expr.index));
  if (!is_wide) return keep(e, {declare(e, fmt::format("tile::splat<1>({})", text)), expr.dtype});
  text = fmt::format("tile::splat<{0}>({1}) + tile::iota<{2}, {0}>() * {2}({3})", lanes_->width, text, type, *stride);
  return keep(e, {declare(e, text), expr.dtype, true});
}

// One lane at a time: what has no vector form (an index with a division, a condition that differs between lanes).
TextValue ScalarEmitter::per_lane(ExprId e) {
  const Expr& expr = pool_[e];
  const std::string name = fmt::format("t{}", next_++), lane = fmt::format("k{}", next_);
  const std::string type(computed_type(expr.dtype));
  const bool is_bool = expr.dtype == DType::kBool;
  assigned_.reset();  // what is assigned to takes all lanes
  out_.open(fmt::format("const auto {} = {}tile::lanes_of<{}, {}>({}, [&]({} {}) -> {} {{", name,
                        is_bool ? "tile::to_mask(" : "", lanes_->width, type, lanes_->count, style_.index, lane, type));
  const std::optional<Lanes> outer = lanes_;
  const Names outer_names = names_;
  lanes_.reset();
  if (const auto var = names_.vars.find(outer->var); var != names_.vars.end()) {
    var->second = fmt::format("({} + {})", var->second, lane);
  }
  for (auto& [id, local] : names_.locals) {
    if (local.wide) local = {fmt::format("tile::lane({}, {})", local.text, lane), local.dtype, false, local.mask_bytes};
  }
  push_scope();
  const TextValue result = value(e);
  if (result.literal) {
    out_.line("return {};", result.text);
  } else if (result.mask_bytes > 0) {
    out_.line("return {}[0];", result.text);
  } else {
    out_.line("return {}.v;", result.text);
  }
  pop_scope();
  names_ = outer_names;
  lanes_ = outer;
  out_.close(is_bool ? "}));" : "});");
  return keep(e, {name, expr.dtype, true, is_bool ? 1 : 0});
}

TextValue ScalarEmitter::write_guard(ExprId e) {
  const Expr& expr = pool_[e];
  if (!same_for_all_lanes(expr)) return per_lane(e);
  const bool is_wide = wide(e);
  const bool is_bool = expr.dtype == DType::kBool;
  const std::string name = fmt::format("t{}", next_++);
  if (is_bool) {
    out_.line("tile::mask<1, {}> {};", width(is_wide), name);
  } else {
    out_.line("tile::vec<{}, {}> {};", computed_type(expr.dtype), width(is_wide), name);
  }
  for (size_t side = 0; side < 2; ++side) {
    if (side == 0) {
      out_.open(fmt::format("if ({}) {{", condition(expr)));
    } else {
      out_.middle("} else {");
    }
    push_scope();
    TextValue v = value(expr.args[side]);
    if (is_bool) v.text = as_mask(v, 1), v.mask_bytes = 1, v.literal = false;
    out_.line("{} = {};", name, widened(v, width(is_wide)));
    pop_scope();
  }
  out_.close();
  return keep(e, {name, expr.dtype, is_wide, is_bool ? 1 : 0});
}

TextValue ScalarEmitter::write_op(ExprId e) {
  const Expr& expr = pool_[e];
  const bool is_wide = wide(e);
  std::vector<TextValue> args;
  bool shared_divisor = false;
  for (ExprId arg : expr.args) {
    TextValue v = value(arg);
    shared_divisor = is_wide && !v.wide && is_float(v.dtype);
    // Constants become vectors here; what is shared by all lanes is spread where another operand is not.
    const bool condition_of_select = expr.op == Op::kSelect && args.empty();
    v.text = widened(v, width(is_wide));
    if (v.literal && v.dtype == DType::kBool) v.mask_bytes = 1;
    v.literal = false;
    v.wide = is_wide;
    if (condition_of_select && v.mask_bytes == 0) v = {fmt::format("tile::to_mask({})", v.text), v.dtype, is_wide, 1};
    args.push_back(std::move(v));
  }
  if (const auto divisor = expr.op == Op::kDiv ? divisors_.find(expr.args[1]) : divisors_.end();
      divisor != divisors_.end()) {
    const std::string text = fmt::format("{}.divide({})", divisor->second.first, args[0].text);
    return keep(e, {declare(e, text), expr.dtype, is_wide});
  }
  if (expr.op == Op::kDiv && shared_divisor) {
    const std::string text = fmt::format("tile::divide_by({}, {})", args[0].text, args[1].text);
    return keep(e, {declare(e, text), expr.dtype, is_wide});
  }
  TextValue result = operation(pool_, expr, std::move(args));
  result.text = declare(e, result.text);
  return keep(e, std::move(result));
}

std::optional<TextValue> ScalarEmitter::write_short_form(ExprId e) {
  const bool gpu = style_.cuda || style_.fast;
  auto form = gpu ? short_form_of(pool_, e, style_.fast, rounded_) : std::nullopt;
  if (!form) form = byte_forms_.find(e, style_.cpu);
  const bool divides = form && pool_[e].op == Op::kDiv && form->arguments.size() == 2;
  if (!form || (divides && divisors_.contains(pool_[e].args[1]))) return std::nullopt;
  const bool is_wide = wide(e);
  std::string arguments[2];
  for (size_t i = 0; i < form->arguments.size(); ++i) {
    arguments[i] = widened(value(form->arguments[i]), width(is_wide));
  }
  const std::string text = fmt::format(fmt::runtime(form->format), arguments[0], arguments[1], width(is_wide));
  return keep(e, {declare(e, text), pool_[e].dtype, is_wide});
}

void ScalarEmitter::hoist(ExprId root, uint64_t bound) {
  const auto enter = [&](ExprId e) {
    if (find(e) != nullptr || names_.cached.count(e) != 0) return false;
    const Expr& expr = pool_[e];
    if (expr.kind == Expr::Kind::kConstant || expr.kind == Expr::Kind::kLocal) return false;
    if ((pool_.vars(e) & ~bound) == 0 && !has_wide_local(e)) {
      value(e);
      return false;
    }
    return expr.kind != Expr::Kind::kGuard;
  };
  const auto leave = [&](ExprId e) {
    const Expr& expr = pool_[e];
    if (expr.kind != Expr::Kind::kOp || expr.op != Op::kDiv || !lanes_) return;
    const ExprId by = expr.args[1];
    const bool shared = (pool_.vars(by) & ~bound) == 0 && wide(by) && is_float(expr.dtype) && divisors_.count(by) == 0;
    if (!shared) return;
    const std::string name = fmt::format("t{}", next_++);
    out_.line("const tile::divisor {}({});", name, vector(by));
    divisors_[by] = {name, scopes_.size()};
  };
  // Through the values that indices are computed from, too.
  schedule::ExprWalk(pool_, schedule::Follow::kIndices).run(root, enter, leave);
}

void ScalarEmitter::store(const std::string& buffer, DType storage, const Index& at, ExprId e, bool stream) {
  const TextValue v = value(e);
  std::string text = widened(v, width(true));
  if (storage == DType::kBool && !v.literal && v.mask_bytes > 0) {
    text = fmt::format("tile::from_mask<uint8_t>({})", text);
  } else if (storage == DType::kBool && v.literal) {
    text = fmt::format("tile::splat<{}>({})", width(true), v.text);
  }
  out_.raw(AddressEmitter::store(buffer, at, text, stream));
}

}  // namespace heddle::codegen
