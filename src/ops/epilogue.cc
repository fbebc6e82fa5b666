#include "ops/epilogue.h"

#include <algorithm>
#include <map>

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

// Expressions of one floating type, and conditions.
class Builder {
 public:
  Builder(schedule::ExprPool& pool, DType type) : pool_(pool), type_(type) {}

  ExprId number(double value) { return pool_.constant(type_, value); }
  ExprId op(Op op, std::vector<ExprId> args) { return make(op, std::move(args), type_); }
  ExprId condition(Op op, std::vector<ExprId> args) { return make(op, std::move(args), DType::kBool); }
  ExprId make(Op op, std::vector<ExprId> args, DType dtype) {
    Expr e{Expr::Kind::kOp, dtype};
    e.op = op;
    e.args = std::move(args);
    return pool_.add(std::move(e));
  }
  ExprId cast(ExprId x, DType to) { return pool_[x].dtype == to ? x : make(Op::kCast, {x}, to); }
  ExprId add(ExprId x, ExprId y) { return op(Op::kAdd, {x, y}); }
  ExprId sub(ExprId x, ExprId y) { return op(Op::kSub, {x, y}); }
  ExprId mul(ExprId x, ExprId y) { return op(Op::kMul, {x, y}); }
  ExprId mul(ExprId x, double y) { return mul(x, number(y)); }
  ExprId clamp(ExprId x, ExprId low, ExprId high) { return op(Op::kMin, {op(Op::kMax, {x, low}), high}); }
  ExprId sigmoid(ExprId x) { return op(Op::kDiv, {number(1), add(number(1), op(Op::kExp, {op(Op::kNeg, {x})}))}); }
  // log(1 + e^x) without overflow.
  ExprId softplus(ExprId x) {
    return add(op(Op::kMax, {x, number(0)}), op(Op::kLog1p, {op(Op::kExp, {op(Op::kNeg, {op(Op::kAbs, {x})})})}));
  }
  ExprId positive(ExprId x) { return condition(Op::kGt, {x, number(0)}); }
  ExprId select(ExprId c, ExprId x, ExprId y) { return op(Op::kSelect, {c, x, y}); }

 private:
  schedule::ExprPool& pool_;
  const DType type_;
};

using Args = std::vector<ExprId>;

struct Function {
  size_t arguments;
  ExprId (*make)(Builder& b, const Args& x);
};

template <Op kOp>
ExprId plain(Builder& b, const Args& x) {
  return b.op(kOp, x);
}
template <Op kOp>
ExprId compare(Builder& b, const Args& x) {
  return b.condition(kOp, x);
}

// By name. Operators have names that no text can call.
const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> table = {
      {"+", {2, plain<Op::kAdd>}},
      {"-", {2, plain<Op::kSub>}},
      {"*", {2, plain<Op::kMul>}},
      {"/", {2, plain<Op::kDiv>}},
      {"<", {2, compare<Op::kLt>}},
      {"<=", {2, compare<Op::kLe>}},
      {">", {2, compare<Op::kGt>}},
      {">=", {2, compare<Op::kGe>}},
      {"==", {2, compare<Op::kEq>}},
      {"!=", {2, compare<Op::kNe>}},
// Functions of the tile IR alone have no text in kernels of products.
#define HEDDLE_EPILOGUE_kTile(enumerator, name)
#define HEDDLE_EPILOGUE_kGraph(enumerator, name) {name, {1, plain<Op::enumerator>}},
#define HEDDLE_EPILOGUE_kBoth HEDDLE_EPILOGUE_kGraph
#define HEDDLE_FUNCTION(enumerator, name, users, ...) HEDDLE_EPILOGUE_##users(enumerator, name)
#include "ir/ops.def"
#undef HEDDLE_EPILOGUE_kTile
#undef HEDDLE_EPILOGUE_kGraph
#undef HEDDLE_EPILOGUE_kBoth
      {"max", {2, plain<Op::kMax>}},
      {"min", {2, plain<Op::kMin>}},
      {"pow", {2, plain<Op::kPow>}},
      {"select", {3, [](Builder& b, const Args& x) { return b.select(x[0], x[1], x[2]); }}},
      {"clamp", {3, [](Builder& b, const Args& x) { return b.clamp(x[0], x[1], x[2]); }}},
      {"square", {1, [](Builder& b, const Args& x) { return b.mul(x[0], x[0]); }}},
      {"relu",
       {1,
        [](Builder& b, const Args& x) {
          return b.op(Op::kMax, {x[0], b.number(0)});
        }}},
      {"relu6", {1, [](Builder& b, const Args& x) { return b.clamp(x[0], b.number(0), b.number(6)); }}},
      {"leaky_relu",
       {2, [](Builder& b, const Args& x) { return b.select(b.positive(x[0]), x[0], b.mul(x[0], x[1])); }}},
      {"elu",
       {2, [](Builder& b,
              const Args& x) { return b.select(b.positive(x[0]), x[0], b.mul(x[1], b.op(Op::kExpm1, {x[0]}))); }}},
      {"sigmoid", {1, [](Builder& b, const Args& x) { return b.sigmoid(x[0]); }}},
      {"silu", {1, [](Builder& b, const Args& x) { return b.mul(x[0], b.sigmoid(x[0])); }}},
      {"softplus", {1, [](Builder& b, const Args& x) { return b.softplus(x[0]); }}},
      {"mish", {1, [](Builder& b, const Args& x) { return b.mul(x[0], b.op(Op::kTanh, {b.softplus(x[0])})); }}},
      {"gelu",
       {1,
        [](Builder& b, const Args& x) {
          const ExprId phi = b.add(b.op(Op::kErf, {b.mul(x[0], 0.70710678118654752)}), b.number(1));
          return b.mul(b.mul(x[0], 0.5), phi);
        }}},
      {"gelu_tanh",
       {1,
        [](Builder& b, const Args& x) {
          const ExprId cube = b.mul(b.mul(x[0], x[0]), b.mul(x[0], 0.044715));
          const ExprId t = b.op(Op::kTanh, {b.mul(b.add(x[0], cube), 0.79788456080286536)});
          return b.mul(b.mul(x[0], 0.5), b.add(t, b.number(1)));
        }}},
      {"hardsigmoid",
       {1, [](Builder& b,
              const Args& x) { return b.mul(b.clamp(b.add(x[0], b.number(3)), b.number(0), b.number(6)), 1.0 / 6); }}},
      {"hardswish",
       {1,
        [](Builder& b, const Args& x) {
          return b.mul(b.mul(x[0], b.clamp(b.add(x[0], b.number(3)), b.number(0), b.number(6))), 1.0 / 6);
        }}},
  };
  return table;
}

bool is_readable(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2 || dtype == DType::kI8 || dtype == DType::kU8 ||
         dtype == DType::kI32;
}

class Lowering {
 public:
  Lowering(const Expression& text, const GemmProblem& problem, DType type, LoweredEpilogue& result)
      : text_(text), problem_(problem), result_(result), build_(result.epilogue.pool, type), type_(type) {}

  ExprId run(ExprId accumulator) {
    accumulator_ = build_.cast(accumulator, type_);
    return lower(text_.root(), false);
  }

 private:
  ExprId lower(size_t at, bool condition) {
    const Node& node = text_[at];
    ExprId e = 0;
    if (node.kind == Node::Kind::kNumber) {
      e = build_.number(node.number);
    } else if (node.kind == Node::Kind::kName) {
      e = node.name == kAccumulator ? accumulator_ : operand(at);
    } else {
      e = call(at);
    }
    const bool is_condition = result_.epilogue.pool[e].dtype == DType::kBool;
    if (is_condition && !condition) {
      text_.refuse(at, "a condition stands where a value belongs", "Write select(condition, value, value)");
    }
    if (!is_condition && condition) {
      text_.refuse(at, "a value stands where a condition belongs", "Compare it, for example select(x > 0, x, 0)");
    }
    return e;
  }

  ExprId call(size_t at) {
    const Node& node = text_[at];
    const auto found = functions().find(node.name);
    if (found == functions().end()) {
      text_.refuse(at, fmt::format("there is no function \"{}\"", node.name), "There are " + epilogue_functions());
    }
    if (node.args.size() != found->second.arguments) {
      text_.refuse(at,
                   fmt::format("{} takes {} argument{}, not {}", node.name, found->second.arguments,
                               found->second.arguments == 1 ? "" : "s", node.args.size()),
                   "");
    }
    Args args;
    for (size_t i = 0; i < node.args.size(); ++i) args.push_back(lower(node.args[i], node.name == "select" && i == 0));
    return found->second.make(build_, args);
  }

  ExprId operand(size_t at) {
    const Node& node = text_[at];
    for (size_t i = 0; i < problem_.operands.size(); ++i) {
      if (problem_.operands[i].name == node.name) return build_.cast(load(i), type_);
    }
    std::string known = "x (the accumulator)";
    for (const Operand& operand : problem_.operands) known += ", " + operand.name;
    text_.refuse(at, fmt::format("there is no operand \"{}\"", node.name), "There are " + known);
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

  const Expression& text_;
  const GemmProblem& problem_;
  LoweredEpilogue& result_;
  Builder build_;
  const DType type_;
  ExprId accumulator_ = 0;
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
  std::string list;
  for (const auto& [name, function] : functions()) {
    if (name[0] >= 'a' && name[0] <= 'z') list += (list.empty() ? "" : ", ") + name;
  }
  return list + "; + - * / and comparisons";
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
  ExprId value = e.pool.local(accumulator, 0);
  if (!p.epilogue.empty()) value = Lowering(Expression::parse(p.epilogue), p, type, result).run(value);
  const schedule::Index at = indices.add(
      indices.add(indices.scale(indices.var(e.batch), p.stride_d), indices.scale(indices.var(e.row), p.ldd)),
      indices.var(e.col));
  e.stores.push_back({kOperandD, at, Builder(e.pool, type).cast(value, p.out)});
  for (const Reduction& r : p.reductions) {
    check_reduction(r, p, accumulator);
    const bool rows = r.over == Reduction::Over::kRows;
    const Shape shape = shape_of(r, p);
    const schedule::Index line = indices.add(indices.scale(indices.var(e.batch), shape[1]), indices.var(e.row));
    ExprId reduced = value;
    if (!r.expression.empty()) {
      reduced = Lowering(Expression::parse(r.expression), p, type, result).run(e.pool.local(accumulator, 0));
    }
    e.reductions.push_back({static_cast<uint32_t>(result.operands.size()), kind_name(r.kind), rows,
                            indices.add(indices.scale(line, shape[2]), indices.var(e.col)), reduced});
    result.operands.push_back({Role::kOutput, DType::kF32, shape, {}});
  }
  return result;
}

}  // namespace heddle::ops
