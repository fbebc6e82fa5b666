#include "codegen/scalar/byte_form.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "codegen/scalar/text_value.h"
#include "ir/schema.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/expr/match.h"
#include "schedule/expr/saturated.h"
#include "schedule/region/cost.h"

namespace heddle::codegen {
namespace {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;
using schedule::ExprPool;
using schedule::is_byte;
using schedule::kMostOffset;
using schedule::RoundedSum;

// A table of 256 bytes in registers takes 23 instructions with AVX2, and 9 with AVX-512. A GPU loads bytes of a table
// at an eighth of the rate of its multiplications.
constexpr double kTableSteps = 20;
// Of a longer chain of bytes, each that is stored would be evaluated from its beginning.
constexpr int kMostOperations = 256;
// What a value is computed from, if that is no single number of 8 bits.
constexpr int64_t kConstants = -1, kOthers = -2;

bool is_wider(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kI16;
}

std::optional<int64_t> as_integer(const ExprPool& pool, ExprId id) {
  const Expr& e = pool[id];
  if (e.kind != Expr::Kind::kConstant || is_float(e.dtype)) return std::nullopt;
  return static_cast<int64_t>(e.bits);
}

std::string bounded_text(const char* function, DType byte, int64_t zero, const std::string& arguments = "") {
  const std::string more = zero != 0 ? fmt::format(", {}", zero) : "";
  return fmt::format("tile::{}<{}{}>({{0}}{})", function, computed_type(byte), more, arguments);
}

// 1 / divisor in two parts.
struct Reciprocal {
  explicit Reciprocal(float divisor)
      : first(1 / divisor), rest(static_cast<float>(1 / double{divisor} - double{first})) {}
  float first, rest;
};

// Whether products with the reciprocal round to the same integers from `low` to `high` as quotients by the divisor.
// Both grow with the dividend, so they agree everywhere if they agree around the dividends of all ties.
bool products_round_alike(float divisor, const Reciprocal& reciprocal, int64_t low, int64_t high) {
  constexpr int kAround = 3;  // floats; both step within two of a tie
  for (int64_t k = low; k < high; ++k) {
    auto x = static_cast<float>((static_cast<double>(k) + 0.5) * double{divisor});
    for (int i = 0; i < kAround; ++i) x = std::nextafter(x, -INFINITY);
    for (int i = 0; i <= 2 * kAround; ++i, x = std::nextafter(x, INFINITY)) {
      const float product = std::fma(x, reciprocal.first, x * reciprocal.rest);
      if (std::nearbyint(product) != std::nearbyint(x / divisor)) return false;
    }
  }
  return true;
}

// A value within the range of a type of 8 bits, less a zero point.
ShortForm saturated_form(const ExprPool& pool, DType byte, const RoundedSum& sum, bool on_cpu) {
  const auto quotient = on_cpu || !sum.rounds ? std::nullopt : quotient_of(pool, sum.x);
  if (!quotient) return {bounded_text("saturated", byte, sum.offset), {sum.x}};
  const Reciprocal reciprocal(quotient->divisor);
  const int64_t low = (byte == DType::kI8 ? -128 : 0) - sum.offset;
  const bool near = products_round_alike(quotient->divisor, reciprocal, low, low + 255);
  const std::string numbers =
      fmt::format(", {:.9e}f, {:.9e}f, {:.9e}f", quotient->divisor, reciprocal.first, reciprocal.rest);
  return {bounded_text(near ? "saturated_near_quotient" : "saturated_quotient", byte, sum.offset, numbers),
          {quotient->dividend}};
}

std::string plus(int64_t offset, bool in_floats) {
  if (offset == 0) return "";
  return fmt::format(" + tile::splat<{{2}}>({})",
                     in_floats ? fmt::format("{}.0f", offset) : fmt::format("int32_t({})", offset));
}

// Whether evaluate() knows an operation.
bool is_known(const ExprPool& pool, const Expr& e) {
  const auto has_values = [](DType type) {
    return is_wider(type) || is_byte(type) || type == DType::kF64 || type == DType::kBool;
  };
  if (!ir::is_elementwise(e.op) || e.op == Op::kIsInf || e.op == Op::kBitcast || !has_values(e.dtype)) return false;
  for (const ExprId arg : e.args) {
    if (!has_values(pool[arg].dtype)) return false;
  }
  return true;
}

ir::Array evaluate(const Expr& e, const std::map<ExprId, ir::Array>& known) {
  constexpr int64_t kCount = 256;
  if (e.kind == Expr::Kind::kConstant) {
    ir::Array all(e.dtype, {kCount});
    if (all.real()) std::fill(all.f().begin(), all.f().end(), std::bit_cast<double>(e.bits));
    if (!all.real()) std::fill(all.i().begin(), all.i().end(), static_cast<int64_t>(e.bits));
    return all;
  }
  std::vector<const ir::Array*> inputs;
  for (const ExprId arg : e.args) inputs.push_back(&known.at(arg));
  ir::Attrs attrs;
  if (e.op == Op::kCast) attrs.set("to", e.dtype);
  const std::vector<ir::TensorType> types = {{e.dtype, {kCount}}};
  std::vector<ir::Array> result = ir::schema(e.op).eval({e.op, inputs, types, attrs, true});
  if (result[0].real()) ir::round_all(e.dtype, result[0].f());
  return std::move(result[0]);
}

}  // namespace

std::optional<ByteForms::Widened> ByteForms::widened(ExprId id) const {
  ExprId at = id;
  if (!is_byte(pool_[id].dtype)) {
    const Expr* const cast = as_op(pool_, id, Op::kCast);
    if (cast == nullptr || !is_wider(cast->dtype)) return std::nullopt;
    at = cast->args[0];
  }
  int64_t offset = 0;
  while (pool_[at].kind == Expr::Kind::kOp && pool_[at].dtype != DType::kF32 && is_wider(pool_[at].dtype)) {
    const Expr& e = pool_[at];
    if (e.op != Op::kCast) {
      const auto number = e.op == Op::kAdd || e.op == Op::kSub ? as_integer(pool_, e.args[1]) : std::nullopt;
      if (!number || std::abs(*number) > kMostOffset) return std::nullopt;
      offset += e.op == Op::kAdd ? *number : -*number;
      if (std::abs(offset) > kMostOffset) return std::nullopt;
    }
    at = e.args[0];
  }
  return is_byte(pool_[at].dtype) ? std::optional(Widened{at, offset}) : std::nullopt;
}

// The one number of 8 bits, loaded or saturated, that a value is computed from with constants only. The number itself
// if it is computed from others.
int64_t ByteForms::source_of(ExprId id) {
  for (auto next = static_cast<ExprId>(sources_.size()); next <= id; ++next) {
    sources_.push_back(find_source(pool_[next], next));
  }
  return sources_[id];
}

int64_t ByteForms::find_source(const Expr& e, ExprId id) const {
  if (e.kind == Expr::Kind::kConstant) return kConstants;
  if (e.kind == Expr::Kind::kLoad && is_byte(e.dtype)) return id;
  int64_t source = e.kind == Expr::Kind::kOp && is_known(pool_, e) ? kConstants : kOthers;
  for (const ExprId arg : e.args) {
    const int64_t of_arg = sources_[arg];
    if (source == kOthers || of_arg == kConstants) continue;
    source = source == kConstants || source == of_arg ? of_arg : kOthers;
  }
  return source == kOthers && e.kind == Expr::Kind::kOp && is_saturated(pool_, id) ? static_cast<int64_t>(id) : source;
}

bool ByteForms::pays(ExprId from, ExprId to) const {
  double cycles = 0;
  int operations = 0;
  schedule::ExprWalk(pool_).run(to, [&](ExprId e) {
    if (e == from || ++operations > kMostOperations) return false;
    cycles += schedule::node_cycles(pool_, e);
    return true;
  });
  return cycles >= kTableSteps && operations <= kMostOperations;
}

// The values of `to` by the bits of `from`.
ByteForms::Values ByteForms::values(ExprId from, ExprId to) const {
  std::map<ExprId, ir::Array> known;
  ir::Array all(pool_[from].dtype, {int64_t{std::tuple_size_v<Values>}});
  for (size_t i = 0; i < all.i().size(); ++i) all.i()[i] = ir::wrap(all.dtype, static_cast<int64_t>(i));
  known[from] = std::move(all);
  const ir::Array& results = schedule::made_once(pool_, known, to, [&](ExprId e) { return evaluate(pool_[e], known); });
  Values values;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(results.i()[i]);
  return values;
}

// A saturated or loaded number of 8 bits as integers of 32 bits, less the offset of its rounded sum.
ByteForms::Integers ByteForms::integers(ExprId byte, bool on_cpu) const {
  if (!is_saturated(pool_, byte)) return {"tile::convert<int32_t>({0})", byte, 0};
  const RoundedSum sum = rounded_sum_of(pool_, pool_[byte].args[0]);
  const ShortForm inside = saturated_form(pool_, pool_[byte].dtype, sum, on_cpu);
  const char* const to_integer = !sum.rounds ? "tile::convert<int32_t>"
                                 : on_cpu    ? "tile::round_to_int"
                                             : "tile::round_small_to_int";
  return {fmt::format("{}({})", to_integer, inside.format), inside.arguments[0], sum.offset};
}

std::optional<ByteForms::Integers> ByteForms::looked_up(ExprId byte, bool on_cpu) {
  const int64_t source = source_of(byte);
  if (source < 0 || source == static_cast<int64_t>(byte)) return std::nullopt;
  const auto from = static_cast<ExprId>(source);
  if (!pays(from, byte)) return std::nullopt;
  const Values table = values(from, byte);
  std::string words;
  for (size_t i = 0; i < table.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    for (size_t k = 0; k < sizeof(word); ++k) word |= uint64_t{table[i + k]} << (8 * k);
    words += fmt::format("{}{:#x}", i > 0 ? ", " : "", word);
  }
  Integers result = integers(from, on_cpu);
  const char* const function = on_cpu ? "tile::look_up_bytes" : "tile::cuda::look_up_cached";
  const char* const place = on_cpu ? "tile" : "tile::cuda";
  result.format = fmt::format("{}<{}>({}::byte_table<{}>, {}{})", function, computed_type(pool_[byte].dtype), place,
                              words, result.format, plus(result.offset, false));
  result.offset = 0;
  return result;
}

std::optional<ShortForm> ByteForms::stored_by_gpu(ExprId byte) {
  if (!is_byte(pool_[byte].dtype)) return std::nullopt;
  if (const auto form = looked_up(byte, false)) return ShortForm{form->format, {form->argument}};
  if (!is_saturated(pool_, byte)) return std::nullopt;
  const RoundedSum sum = rounded_sum_of(pool_, pool_[byte].args[0]);
  if (!sum.rounds) return std::nullopt;
  if (quotient_of(pool_, sum.x)) {
    const Integers form = integers(byte, false);
    return ShortForm{form.format + plus(form.offset, false), {form.argument}};
  }
  return ShortForm{bounded_text("unsaturated", pool_[byte].dtype, sum.offset), {sum.x}};
}

std::optional<ShortForm> ByteForms::find(ExprId id, bool on_cpu) {
  const auto found = widened(id);
  if (!found) return std::nullopt;
  const DType to = pool_[id].dtype, byte = pool_[found->byte].dtype;
  auto form = looked_up(found->byte, on_cpu);
  if (!form) {
    if (!is_saturated(pool_, found->byte)) {
      if (on_cpu || to != DType::kF32) return std::nullopt;
      return ShortForm{fmt::format("tile::cuda::float_of_bytes<{}>({{0}})", found->offset), {found->byte}};
    }
    if (to == DType::kF32) {
      const RoundedSum sum = rounded_sum_of(pool_, pool_[found->byte].args[0]);
      ShortForm form = saturated_form(pool_, byte, sum, on_cpu);
      const char* round = on_cpu ? "tile::round_even" : "tile::round_even_small";
      if (sum.rounds) form.format = fmt::format("{}({})", round, form.format);
      form.format += plus(sum.offset + found->offset, true);
      return form;
    }
    form = integers(found->byte, on_cpu);
  }
  std::string text = form->format + plus(form->offset + found->offset, false);
  if (to == DType::kF32 && !on_cpu) {
    text = fmt::format("tile::small_to_float({})", text);
  } else if (to != DType::kI32) {
    text = fmt::format("tile::convert<{}>({})", computed_type(to), text);
  }
  return ShortForm{std::move(text), {form->argument}};
}

}  // namespace heddle::codegen
