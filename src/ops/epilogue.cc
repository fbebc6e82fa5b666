#include "ops/epilogue.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "ir/analysis/partial_reduction.h"
#include "ops/expression.h"
#include "ops/gemm_kernel.h"

namespace heddle::ops {
namespace {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;
using Node = Expression::Node;

constexpr std::string_view kAccumulator = "x";

// The operations of the table by name; those that C++ writes with a sign, by that sign.
const std::map<std::string, Op, std::less<>>& operations() {
  static const auto table = [] {
    std::map<std::string, Op, std::less<>> all = {{"select", Op::kSelect}};
    const auto add = [&](Op op, const char* name, unsigned users, std::string_view text) {
      if ((users & ir::kGraph) != 0) all.emplace(text.starts_with("tile::") ? name : text, op);
    };
#define HEDDLE_FUNCTION(enumerator, name, users, ...) add(Op::enumerator, name, ir::users, "tile::");
#define HEDDLE_BINARY_FUNCTION(enumerator, name, users, text, ...) add(Op::enumerator, name, ir::users, text);
#define HEDDLE_COMPARISON(enumerator, name, sign, ...) add(Op::enumerator, name, ir::kBoth, #sign);
#include "ir/ops.def"
    return all;
  }();
  return table;
}

// A function that is defined by an expression of its arguments, which are named x, y and z.
struct Derived {
  size_t arguments;
  const char* text;
};

const std::map<std::string, Derived, std::less<>>& derived_functions() {
  static const std::map<std::string, Derived, std::less<>> table = {
      {"clamp", {3, "min(max(x, y), z)"}},
      {"elu", {2, "select(x > 0, x, y * expm1(x))"}},
      {"gelu", {1, "x * 0.5 * (erf(x * 0.70710678118654752) + 1)"}},
      {"gelu_tanh", {1, "x * 0.5 * (tanh((x + x * x * (x * 0.044715)) * 0.79788456080286536) + 1)"}},
      {"hardsigmoid", {1, "clamp(x + 3, 0, 6) * 0.16666666666666666"}},
      {"hardswish", {1, "x * clamp(x + 3, 0, 6) * 0.16666666666666666"}},
      {"leaky_relu", {2, "select(x > 0, x, x * y)"}},
      {"mish", {1, "x * tanh(softplus(x))"}},
      {"relu", {1, "max(x, 0)"}},
      {"relu6", {1, "clamp(x, 0, 6)"}},
      {"sigmoid", {1, "1 / (1 + exp(-x))"}},
      {"silu", {1, "x * sigmoid(x)"}},
      {"softplus", {1, "max(x, 0) + log1p(exp(-abs(x)))"}},  // does not overflow
      {"square", {1, "x * x"}},
  };
  return table;
}

// nullopt if there is no such function.
std::optional<size_t> arguments_of(const std::string& function) {
  if (const auto found = derived_functions().find(function); found != derived_functions().end()) {
    return found->second.arguments;
  }
  const auto found = operations().find(function);
  if (found == operations().end()) return std::nullopt;
  const ir::OpClass op_class = class_of(found->second);
  return op_class == ir::OpClass::kUnary ? 1 : op_class == ir::OpClass::kBinary ? 2 : 3;
}

bool is_readable(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2 || dtype == DType::kI8 || dtype == DType::kU8 ||
         dtype == DType::kI32;
}

// Writes expressions in one floating type.
class Lowering {
 public:
  Lowering(const GemmProblem& problem, DType type, LoweredEpilogue& result)
      : problem_(problem), result_(result), type_(type) {}

  ExprId run(const std::string& text) {
    const Expression expression = Expression::parse(text);
    return lower({expression, nullptr}, expression.root(), false);
  }
  ExprId accumulator() { return cast(result_.epilogue.pool.local(result_.epilogue.accumulator, 0), type_); }
  ExprId cast(ExprId x, DType to) { return result_.epilogue.pool[x].dtype == to ? x : make(Op::kCast, {x}, to); }

 private:
  // A text, and its arguments if it defines a function.
  struct Scope {
    const Expression& text;
    const std::vector<ExprId>* arguments;
  };

  ExprId make(Op op, std::vector<ExprId> args, DType dtype) {
    Expr e{Expr::Kind::kOp, dtype};
    e.op = op;
    e.args = std::move(args);
    return result_.epilogue.pool.add(std::move(e));
  }

  ExprId lower(const Scope& scope, size_t at, bool condition) {
    const Node& node = scope.text[at];
    const ExprId e = node.kind == Node::Kind::kNumber ? result_.epilogue.pool.constant(type_, node.number)
                     : node.kind == Node::Kind::kName ? named(scope, at)
                                                      : call(scope, at);
    const bool is_condition = result_.epilogue.pool[e].dtype == DType::kBool;
    if (is_condition && !condition) {
      scope.text.refuse(at, "a condition stands where a value belongs", "Write select(condition, value, value)");
    }
    if (!is_condition && condition) {
      scope.text.refuse(at, "a value stands where a condition belongs", "Compare it, for example select(x > 0, x, 0)");
    }
    return e;
  }

  ExprId call(const Scope& scope, size_t at) {
    const Node& node = scope.text[at];
    const auto arguments = arguments_of(node.name);
    if (!arguments) {
      scope.text.refuse(at, fmt::format("there is no function \"{}\"", node.name), "There are " + epilogue_functions());
    }
    if (node.args.size() != *arguments) {
      scope.text.refuse(at,
                        fmt::format("{} takes {} argument{}, not {}", node.name, *arguments, *arguments == 1 ? "" : "s",
                                    node.args.size()),
                        "");
    }
    std::vector<ExprId> args;
    for (size_t i = 0; i < node.args.size(); ++i) {
      args.push_back(lower(scope, node.args[i], node.name == "select" && i == 0));
    }
    if (const auto derived = derived_functions().find(node.name); derived != derived_functions().end()) {
      const Expression text = Expression::parse(derived->second.text);
      return lower({text, &args}, text.root(), false);
    }
    const Op op = operations().at(node.name);
    return make(op, std::move(args), ir::is_comparison(op) ? DType::kBool : type_);
  }

  ExprId named(const Scope& scope, size_t at) {
    const std::string& name = scope.text[at].name;
    if (scope.arguments != nullptr) return scope.arguments->at(static_cast<size_t>(name[0] - 'x'));
    if (name == kAccumulator) return accumulator();
    for (size_t i = 0; i < problem_.operands.size(); ++i) {
      if (problem_.operands[i].name == name) return cast(load(i), type_);
    }
    std::string known = "x (the accumulator)";
    for (const Operand& operand : problem_.operands) known += ", " + operand.name;
    scope.text.refuse(at, fmt::format("there is no operand \"{}\"", name), "There are " + known);
  }

  ExprId load(size_t i) {
    const Operand& o = problem_.operands[i];
    schedule::Epilogue& e = result_.epilogue;
    schedule::IndexPool& indices = e.pool.indices;
    const bool matrix = o.kind == Operand::Kind::kMatrix;
    schedule::Index index = indices.scale(indices.var(e.batch), *o.stride);
    if (matrix) index = indices.add(index, indices.scale(indices.var(e.row), o.leading));
    if (o.kind == Operand::Kind::kRow) index = indices.add(index, indices.var(e.row));
    if (matrix || o.kind == Operand::Kind::kColumn) index = indices.add(index, indices.var(e.col));
    return e.pool.load(o.dtype, kFirstOperand + static_cast<uint32_t>(i), index);
  }

  const GemmProblem& problem_;
  LoweredEpilogue& result_;
  const DType type_;
};

// Elements of a reduction's result.
Shape shape_of(const Reduction& r, const GemmProblem& p) {
  return r.over == Reduction::Over::kRows ? Shape{p.batch, p.m / ir::kPartialRows, p.n}
                                          : Shape{p.batch, p.m, p.n / ir::kPartialColumns};
}

void check_reduction(const Reduction& r, const GemmProblem& p, DType accumulator) {
  const auto refuse = [](ErrorCode code, const std::string& why, const std::string& remedy) {
    fail(code, "gemm: a reduction", why, remedy);
  };
  if (accumulator != DType::kF32) {
    refuse(ErrorCode::kUnsupportedType,
           fmt::format("sums of {} are {}, not f32", to_string(p.in), to_string(accumulator)),
           "Reduce D behind the product");
  }
  const bool rows = r.over == Reduction::Over::kRows;
  const int64_t extent = rows ? p.m : p.n, group = rows ? ir::kPartialRows : ir::kPartialColumns;
  if (extent % group != 0) {
    refuse(ErrorCode::kInvalidArgument,
           fmt::format("D has {} {}, no multiple of {}", extent, rows ? "rows" : "columns", group),
           "Pad the product, or reduce D behind it");
  }
  if (p.k == 0) refuse(ErrorCode::kInvalidArgument, "k is 0", "Compute the epilogue alone");
}

void check_operands(const std::vector<Operand>& operands, int64_t columns) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = operands[i];
    const auto refuse = [&](ErrorCode code, const std::string& why, const std::string& remedy = {}) {
      fail(code, fmt::format("epilogue operand \"{}\"", o.name), why, remedy);
    };
    if (o.name == kAccumulator) refuse(ErrorCode::kInvalidArgument, "x is the accumulator", "Name it otherwise");
    for (size_t k = 0; k < i; ++k) {
      if (operands[k].name == o.name) refuse(ErrorCode::kInvalidArgument, "there are two of this name");
    }
    if (!is_readable(o.dtype)) {
      refuse(ErrorCode::kUnsupportedType, fmt::format("epilogues do not read {}", to_string(o.dtype)),
             "Types: f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, u8, i32");
    }
    if (o.leading < 0 || (o.leading > 0 && o.kind == Operand::Kind::kMatrix && o.leading < columns)) {
      refuse(ErrorCode::kInvalidArgument,
             fmt::format("its leading dimension is {}, smaller than a row of {} elements", o.leading, columns));
    }
    constexpr int64_t kMost = int64_t{1} << 40;
    if (o.leading > kMost || std::abs(o.stride.value_or(0)) > kMost || o.stride.value_or(0) < 0) {
      refuse(ErrorCode::kInvalidArgument,
             fmt::format("leading dimension {}, batch stride {}: out of range", o.leading, o.stride.value_or(0)));
    }
  }
}

}  // namespace

std::string epilogue_functions() {
  std::set<std::string> names;
  for (const auto& [name, op] : operations()) {
    if (name[0] >= 'a' && name[0] <= 'z') names.insert(name);
  }
  for (const auto& [name, function] : derived_functions()) names.insert(name);
  return fmt::format("{}; + - * / and comparisons", fmt::join(names, ", "));
}

const char* kind_name(Reduction::Kind kind) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min"};
  return kNames[static_cast<size_t>(kind)];
}

LoweredEpilogue lower_epilogue(const GemmProblem& p, DType accumulator) {
  using Role = schedule::Operand::Role;
  check_operands(p.operands, p.n);
  LoweredEpilogue result;
  schedule::Epilogue& e = result.epilogue;
  schedule::IndexPool& indices = e.pool.indices;
  e.batch = indices.new_var(std::max<int64_t>(p.batch, 1));
  e.row = indices.new_var(std::max<int64_t>(p.m, 1));
  e.split = std::max<int64_t>(p.n, 1);
  e.col_outer = indices.new_var(1), e.col = indices.new_var(e.split);
  e.accumulator = accumulator;
  result.operands = {{Role::kInput, p.in, {p.batch, p.m, p.k}, {}},
                     {Role::kInput, p.in, {p.batch, p.k, p.n}, {}},
                     {Role::kOutput, p.out, {p.batch, p.m, p.n}, {}}};
  for (const Operand& o : p.operands) result.operands.push_back({Role::kInput, o.dtype, {extent_of(o, p)}, {}});
  const DType type = accumulator == DType::kF64 ? DType::kF64 : DType::kF32;
  Lowering lowering(p, type, result);
  const ExprId value = p.epilogue.empty() ? e.pool.local(accumulator, 0) : lowering.run(p.epilogue);
  const schedule::Index at = indices.add(
      indices.add(indices.scale(indices.var(e.batch), p.stride_d), indices.scale(indices.var(e.row), p.ldd)),
      indices.var(e.col));
  e.stores.push_back({kOperandD, at, lowering.cast(value, p.out)});
  for (const Reduction& r : p.reductions) {
    check_reduction(r, p, accumulator);
    const bool rows = r.over == Reduction::Over::kRows;
    const Shape shape = shape_of(r, p);
    const schedule::Index line = indices.add(indices.scale(indices.var(e.batch), shape[1]), indices.var(e.row));
    const ExprId reduced = r.expression.empty() ? value : lowering.run(r.expression);
    e.reductions.push_back({static_cast<uint32_t>(result.operands.size()), kind_name(r.kind), rows,
                            indices.add(indices.scale(line, shape[2]), indices.var(e.col)), reduced});
    result.operands.push_back({Role::kOutput, DType::kF32, shape, {}});
  }
  return result;
}

}  // namespace heddle::ops
