#include "codegen/scalar/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "codegen/text/numbers.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {

using ir::Op;
using schedule::Atom;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "tile::half";
    case DType::kBF16:
      return "tile::bfloat";
    case DType::kF8E4M3:
      return "tile::f8e4m3";
    case DType::kF8E4M3Fnuz:
      return "tile::f8e4m3fnuz";
    case DType::kF8E5M2:
      return "tile::f8e5m2";
    case DType::kF8E5M2Fnuz:
      return "tile::f8e5m2fnuz";
    case DType::kF8E8M0:
      return "tile::f8e8m0";
    case DType::kF4E2M1:
      return "tile::f4e2m1";
    case DType::kI64:
      return "int64_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return "int8_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU16:
      return "uint16_t";
    default:
      return "uint8_t";
  }
}

std::string_view computed_type(DType dtype) {
  return storage_type(schedule::compute_dtype(dtype));
}

ScalarEmitter::ScalarEmitter(const schedule::ExprPool& pool, Names names, Writer& out)
    : pool_(pool), names_(std::move(names)), out_(out), scopes_(1) {}

const std::string& ScalarEmitter::width(bool wide) const {
  static const std::string one = "1";
  return wide && lanes_ ? lanes_->width : one;
}

bool ScalarEmitter::has_wide_local(ExprId root) const {
  const auto enter = [this](ExprId e) {
    if (wide_local_memo_.contains(e)) return false;
    const Expr& expr = pool_[e];
    if (const auto at = names_.cached.find(e); at != names_.cached.end()) {
      wide_local_memo_[e] = at->second.wide;
    } else if (expr.kind == Expr::Kind::kLocal) {
      const auto local = names_.locals.find(expr.id);
      wide_local_memo_[e] = local != names_.locals.end() && local->second.wide;
    } else {
      return true;
    }
    return false;
  };
  const auto leave = [this](ExprId e) {
    const std::vector<ExprId>& args = pool_[e].args;
    wide_local_memo_[e] =
        std::any_of(args.begin(), args.end(), [this](ExprId arg) { return wide_local_memo_.at(arg); });
  };
  if (const auto known = wide_local_memo_.find(root); known != wide_local_memo_.end()) return known->second;
  schedule::ExprWalk(pool_).run(root, enter, leave);
  return wide_local_memo_.at(root);
}

bool ScalarEmitter::wide(ExprId e) const {
  if (!lanes_) return false;
  return (pool_.vars(e) >> lanes_->var & 1) != 0 || has_wide_local(e);
}

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
      return {literal(expr), expr.dtype, false, 0, true};
    case Expr::Kind::kLocal: {
      const auto at = names_.locals.find(expr.id);
      HEDDLE_CHECK(at != names_.locals.end(), "local {} has no name", expr.id);
      return at->second;
    }
    case Expr::Kind::kLoad:
      return write_load(e);
    case Expr::Kind::kIndex:
      return write_index(e);
    case Expr::Kind::kRandom: {
      if (wide(e)) return per_lane(e);
      const bool f64 = expr.dtype == DType::kF64;
      const int bits = f64 ? 53 : expr.lo || expr.dtype == DType::kF32 ? 24 : expr.dtype == DType::kF16 ? 11 : 8;
      const std::string call = fmt::format("tile::philox_{}<{}, {}>({}ull, {})", expr.lo ? "normal" : "uniform",
                                           computed_type(expr.dtype), bits, expr.bits, index(expr.index));
      return keep(e, {declare(e, fmt::format("tile::splat<1>({})", call)), expr.dtype});
    }
    case Expr::Kind::kGuard:
      return write_guard(e);
    case Expr::Kind::kOp:
      if (auto fast = write_fast(e)) return *fast;
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

std::string ScalarEmitter::literal(const Expr& e) const {
  const std::string plain = plain_literal(e);
  const bool finite = !is_float(e.dtype) || std::isfinite(std::bit_cast<double>(e.bits));
  if (!marked_ || e.dtype == DType::kBool || !finite) return plain;
  return marked(computed_type(e.dtype), static_cast<int64_t>(e.bits), plain);
}

std::string ScalarEmitter::plain_literal(const Expr& e) const {
  const std::string_view type = computed_type(e.dtype);
  if (!is_float(e.dtype)) {
    if (e.dtype == DType::kI64) {
      const auto v = static_cast<int64_t>(e.bits);
      return v == INT64_MIN ? "int64_t(-9223372036854775807ll - 1)" : fmt::format("int64_t({}ll)", v);
    }
    if (e.dtype == DType::kU64) return fmt::format("uint64_t({}ull)", e.bits);
    return fmt::format("{}({})", type, static_cast<int64_t>(e.bits));
  }
  const double v = std::bit_cast<double>(e.bits);
  const char* suffix = e.dtype == DType::kF64 ? "" : "f";
  if (std::isnan(v)) return fmt::format("{}(__builtin_nan(\"\"))", type);
  if (std::isinf(v)) return fmt::format("{}({}__builtin_inf())", type, v < 0 ? "-" : "");
  std::string digits = e.dtype == DType::kF64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + suffix;
}

std::string ScalarEmitter::widened(const TextValue& v, bool to_wide) const {
  if (v.literal) {
    if (v.dtype == DType::kBool) {
      return fmt::format("tile::to_mask(tile::splat<{}>({}))", width(to_wide), v.text);
    }
    return fmt::format("tile::splat<{}>({})", width(to_wide), v.text);
  }
  if (v.wide || !to_wide || width(true) == "1") return v.text;
  if (v.mask_bytes > 0) return fmt::format("tile::splat_mask<{}>({})", width(true), v.text);
  return fmt::format("tile::splat<{}>({}.v)", width(true), v.text);
}

std::string ScalarEmitter::vector(ExprId e) {
  const TextValue v = value(e);
  return widened(v, lanes_.has_value());
}

std::string ScalarEmitter::as_mask(const TextValue& v, int bytes) const {
  if (v.literal) return fmt::format("tile::convert_mask<{}>({})", bytes, widened(v, false));
  return v.mask_bytes == bytes ? v.text : fmt::format("tile::convert_mask<{}>({})", bytes, v.text);
}

std::optional<int64_t> ScalarEmitter::lane_stride(const Index& at) const {
  if (!lanes_) return 0;
  int64_t stride = 0;
  for (const auto& [id, c] : at.terms) {
    const Atom& atom = pool_.indices.atom(id);
    if (atom.kind == Atom::Kind::kVar) {
      if (atom.id == lanes_->var) stride += c;
      continue;
    }
    const Index alone{0, {{id, 1}}};
    if ((pool_.vars(alone) >> lanes_->var & 1) != 0) {
      // Within an aligned vector a quotient stays the same and a remainder counts on.
      const bool fits = lanes_->aligned > 1 && atom.a % lanes_->aligned == 0 &&
                        (atom.kind == Atom::Kind::kDiv || atom.kind == Atom::Kind::kMod);
      const std::optional<int64_t> inner = fits ? lane_stride(atom.arg) : std::nullopt;
      if (inner != 1 || pool_.indices.divisor(atom.arg, multiples()) % lanes_->aligned != 0) return std::nullopt;
      if (atom.kind == Atom::Kind::kMod) stride += c;
      continue;
    }
    if (atom.kind == Atom::Kind::kDynamic && has_wide_local(atom.id)) return std::nullopt;
  }
  return stride;
}

std::string ScalarEmitter::number(int64_t value) const {
  if (const auto name = names_.numbers.find(value); name != names_.numbers.end()) return name->second;
  return extent(value);
}

std::string ScalarEmitter::extent(int64_t value) const {
  return marked_ ? marked(value, style_.index) : fmt::format("{}", value);
}

std::map<schedule::VarId, int64_t> ScalarEmitter::multiples() const {
  std::map<schedule::VarId, int64_t> all = style_.multiples;
  if (lanes_) all[lanes_->var] = lanes_->aligned;
  return all;
}

// Elements by which a position is known to divide, a power of two up to the width of an aligned vector.
int64_t ScalarEmitter::alignment(const Index& at) const {
  if (!lanes_) return 1;
  const int64_t d = pool_.indices.divisor(at, multiples());
  return d == 0 ? lanes_->aligned : std::min(lanes_->aligned, d & -d);
}

std::string ScalarEmitter::index(const Index& at) {
  std::string text;
  for (const auto& [id, c] : at.terms) {
    const Atom& atom = pool_.indices.atom(id);
    std::string term;
    switch (atom.kind) {
      case Atom::Kind::kVar: {
        const auto name = names_.vars.find(atom.id);
        HEDDLE_CHECK(name != names_.vars.end(), "variable {} is not in scope", atom.id);
        term = name->second;
        break;
      }
      case Atom::Kind::kDiv:
      case Atom::Kind::kMod: {
        const bool natural = pool_.indices.range(atom.arg).lo >= 0;
        const bool div = atom.kind == Atom::Kind::kDiv;
        term = natural ? fmt::format("{} {} {}", factor(index(atom.arg)), div ? '/' : '%', extent(atom.a))
                       : fmt::format("tile::floor_{}({}, {})", div ? "div" : "mod", index(atom.arg), extent(atom.a));
        if (natural) term = "(" + term + ")";
        break;
      }
      case Atom::Kind::kClamp:
        term = fmt::format("tile::clamp_index({}, {}, {})", index(atom.arg), extent(atom.a), extent(atom.b));
        break;
      case Atom::Kind::kReflect:
        term = fmt::format("tile::reflect_index({}, {})", index(atom.arg), extent(atom.a));
        break;
      case Atom::Kind::kDynamic:
        term = fmt::format("tile::wrap_index({}, {})",
                           value(atom.id).literal ? value(atom.id).text : value(atom.id).text + ".v", extent(atom.a));
        if (style_.index != "int64_t") term = fmt::format("{}({})", style_.index, term);
        break;
    }
    if (term == "0") continue;
    if (c == 1) {
      text += (text.empty() ? "" : " + ") + term;
    } else if (c == -1) {
      text += (text.empty() ? "-" : " - ") + term;
    } else if (c < 0) {
      text += fmt::format("{}{} * {}", text.empty() ? "-" : " - ", number(-c), term);
    } else {
      text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", number(c), term);
    }
  }
  if (text.empty()) return at.constant < 0 ? "-" + number(-at.constant) : number(at.constant);
  if (at.constant > 0) text += " + " + number(at.constant);
  if (at.constant < 0) text += " - " + number(-at.constant);
  return text;
}

std::string ScalarEmitter::pointer(const Expr& load) {
  HEDDLE_CHECK(load.id < names_.buffers.size(), "buffer {} has no name", load.id);
  const std::string at = index(load.index), &buffer = names_.buffers[load.id];
  return sum(buffer, factor(at));
}
const char* ScalarEmitter::load_kind(uint32_t buffer) const {
  return names_.evict_first.count(buffer) != 0   ? "_evict_first"
         : names_.l1_resident.count(buffer) != 0 ? "_l1_resident"
                                                 : "";
}

std::string ScalarEmitter::stored(ExprId load) {
  const Expr& expr = pool_[load];
  const std::string_view lanes = lanes_ ? std::string_view(lanes_->width) : "1";
  return fmt::format("tile::load_stored{}<{}, {}>({})", load_kind(expr.id), lanes, alignment(expr.index),
                     pointer(expr));
}

bool ScalarEmitter::aligned_at(ExprId load) const {
  const Expr& expr = pool_[load];
  if (!lanes_ || expr.kind != Expr::Kind::kLoad || !wide(load) || lane_stride(expr.index) != 1) return false;
  return fmt::format("{}", alignment(expr.index)) == lanes_->width;
}
std::string ScalarEmitter::place(ExprId load) {
  return sum(names_.buffers[pool_[load].id], factor(index(pool_[load].index)));
}

TextValue ScalarEmitter::write_load(ExprId e) {
  const Expr& expr = pool_[e];
  const bool is_wide = wide(e);
  const auto stride = lane_stride(expr.index);
  if (is_wide && !stride) return per_lane(e);
  const std::string pointer = this->pointer(expr);
  std::string text;
  if (!is_wide) {
    text = fmt::format("tile::load<1>({})", pointer);
  } else if (style_.cuda && *stride == 1) {
    text = fmt::format("tile::load{}<{}, {}>({})", load_kind(expr.id), lanes_->width, alignment(expr.index), pointer);
  } else if (style_.cuda) {
    text = fmt::format("tile::load_strided<{}>({}, {})", lanes_->width, pointer, *stride);
  } else if (*stride == 1) {
    text = fmt::format("tile::fetch<{}>({}, {})", lanes_->width, pointer, lanes_->count);
  } else {
    text = fmt::format("tile::fetch_strided<{}>({}, {}, {})", lanes_->width, pointer, extent(*stride), lanes_->count);
  }
  int mask_bytes = 0;
  if (expr.dtype == DType::kBool) {
    text = fmt::format("tile::to_mask({})", text);
    mask_bytes = 1;
  }
  return keep(e, {declare(e, text), expr.dtype, is_wide, mask_bytes});
}

TextValue ScalarEmitter::write_index(ExprId e) {
  const Expr& expr = pool_[e];
  const std::string_view type = computed_type(expr.dtype);
  const auto stride = lane_stride(expr.index);
  const bool is_wide = wide(e);
  const schedule::Range range = pool_.indices.range(expr.index);
  // Lane numbers are added in the element type: exact in f32 only up to 2^24.
  const bool exact = !is_float(expr.dtype) || (range.lo >= 0 && range.hi < (1 << 24));
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

std::string ScalarEmitter::condition(const Expr& guard) {
  const schedule::Range r = pool_.indices.range(guard.index);
  const std::string at = index(guard.index);
  std::string text;
  if (r.lo < guard.lo) text = fmt::format("{} >= {}", at, extent(guard.lo));
  if (r.hi >= guard.hi) text += fmt::format("{}{} < {}", text.empty() ? "" : " && ", at, extent(guard.hi));
  return text.empty() ? "true" : text;
}

bool ScalarEmitter::same_for_all_lanes(const Expr& guard) const {
  const auto stride = lane_stride(guard.index);
  if (stride == 0) return true;
  if (stride != 1 || lanes_->aligned == 1) return false;
  const int64_t d = pool_.indices.divisor(guard.index, multiples());
  return d % lanes_->aligned == 0 && guard.lo % lanes_->aligned == 0 && guard.hi % lanes_->aligned == 0;
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
    out_.line("{} = {};", name, widened(v, is_wide));
    pop_scope();
  }
  out_.close();
  return keep(e, {name, expr.dtype, is_wide, is_bool ? 1 : 0});
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
  const auto stride = lane_stride(at);
  HEDDLE_CHECK(stride.has_value(), "a store that is not affine in its vector variable");
  std::string text = widened(v, lanes_.has_value());
  if (storage == DType::kBool && !v.literal && v.mask_bytes > 0) {
    text = fmt::format("tile::from_mask<uint8_t>({})", text);
  } else if (storage == DType::kBool && v.literal) {
    text = fmt::format("tile::splat<{}>({})", width(lanes_.has_value()), v.text);
  }
  const std::string pointer = sum(buffer, index(at));
  if (!lanes_) {
    out_.line("tile::store({}, {});", pointer, text);
  } else if (style_.cuda && *stride == 1) {
    out_.line("tile::store<{}>({}, {});", alignment(at), pointer, text);
  } else if (style_.cuda) {
    out_.line("tile::store_strided({}, {}, {});", pointer, *stride, text);
  } else if (*stride == 1) {
    out_.line("tile::put{}({}, {}, {});", stream ? "_stream" : "", pointer, text, lanes_->count);
  } else {
    out_.line("tile::put_strided({}, {}, {}, {});", pointer, extent(*stride), text, lanes_->count);
  }
}

}  // namespace heddle::codegen
