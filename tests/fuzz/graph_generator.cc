#include "tests/fuzz/graph_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/builder.h"
#include "ir/reference/eval.h"
#include "tests/fuzz/generator_quantised.h"
#include "tests/fuzz/generator_state.h"

namespace heddle::fuzz {
namespace {

using ir::Ints;
using ir::Op;
using ir::ValueId;

// Functions whose operand is first brought into their domain.
ValueId make_unary(State& s, Op op, ValueId x) {
  ir::Builder& g = s.builder();
  switch (op) {
    case Op::kLog:
    case Op::kLog2:
    case Op::kSqrt:
    case Op::kRsqrt:
      return g.unary(op, g.binary(Op::kAdd, g.unary(Op::kAbs, x), 0.25));
    case Op::kLog1p:
      return g.unary(op, g.unary(Op::kAbs, x));
    case Op::kAcosh:
      return g.unary(op, g.binary(Op::kAdd, g.unary(Op::kAbs, x), 1.25));
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtanh:
      return g.unary(op, g.binary(Op::kMul, g.unary(Op::kTanh, x), 0.875));
    case Op::kTan:
      return g.unary(op, g.unary(Op::kTanh, x));
    case Op::kExp:
    case Op::kExp2:
    case Op::kExpm1:
    case Op::kSinh:
    case Op::kCosh:
      return g.unary(op, g.binary(Op::kMin, x, 4.0));
    default:
      return g.unary(op, x);
  }
}

void add_unary(State& s) {
  static const std::vector<Op> real_ops = {
      Op::kNeg,   Op::kAbs,  Op::kSign,  Op::kFloor,    Op::kCeil,  Op::kRound, Op::kTrunc, Op::kSqrt,  Op::kRsqrt,
      Op::kExp,   Op::kExp2, Op::kExpm1, Op::kLog,      Op::kLog1p, Op::kLog2,  Op::kErfc,  Op::kSin,   Op::kCos,
      Op::kTan,   Op::kAsin, Op::kAcos,  Op::kAtan,     Op::kSinh,  Op::kCosh,  Op::kTanh,  Op::kAsinh, Op::kAcosh,
      Op::kAtanh, Op::kErf,  Op::kIsNan, Op::kSoftsign, Op::kNeg,   Op::kExp,   Op::kTanh,  Op::kErf,   Op::kSqrt};
  static const std::vector<Op> int_ops = {Op::kNeg, Op::kAbs, Op::kSign, Op::kNot};
  const ValueId x = s.any();
  const DType dtype = s.builder().dtype(x);
  const Op op = dtype == DType::kBool ? Op::kNot : is_float(dtype) ? s.pick_op(real_ops) : s.pick_op(int_ops);
  if (s.allows(op)) s.keep(make_unary(s, op, x));
}

void add_binary(State& s) {
  static const std::vector<Op> real_ops = {Op::kAdd, Op::kSub, Op::kMul, Op::kMax,   Op::kMin, Op::kAdd, Op::kMul,
                                           Op::kSub, Op::kDiv, Op::kPow, Op::kAtan2, Op::kRem, Op::kMod};
  static const std::vector<Op> int_ops = {Op::kAdd, Op::kSub, Op::kMul, Op::kMax, Op::kMin, Op::kDiv, Op::kRem,
                                          Op::kMod, Op::kAnd, Op::kOr,  Op::kXor, Op::kShl, Op::kShr, Op::kPow};
  static const std::vector<Op> bool_ops = {Op::kAnd, Op::kOr, Op::kXor, Op::kEq, Op::kNe};
  static const std::vector<Op> comparisons = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};
  ir::Builder& g = s.builder();
  const ValueId a = s.any();
  const DType dtype = g.dtype(a);
  ValueId b = s.partner(a);
  Op op = dtype == DType::kBool ? s.pick_op(bool_ops) : is_float(dtype) ? s.pick_op(real_ops) : s.pick_op(int_ops);
  if (dtype != DType::kBool && s.rng().chance(0.12)) op = s.pick_op(comparisons);
  if (!s.allows(op)) return;
  if (is_float(dtype) && (op == Op::kDiv || op == Op::kRem || op == Op::kMod)) {
    b = g.binary(Op::kAdd, g.unary(Op::kAbs, b), 0.5);
  }
  if (op == Op::kPow) {
    if (is_float(dtype)) {
      return s.keep(g.binary(op, g.binary(Op::kAdd, g.unary(Op::kAbs, a), 0.5),
                             s.rng().pick(std::vector<double>{2, 3, 0.5, -1, -0.5, 1.5})));
    }
    return s.keep(g.binary(op, a, static_cast<double>(s.rng().range(0, 3))));
  }
  s.rng().chance(0.5) ? s.keep(g.binary(op, a, b)) : s.keep(g.binary(op, b, a));
}

void add_select(State& s) {
  ir::Builder& g = s.builder();
  const ValueId a = s.any(), b = s.partner(a);
  const Shape to = ir::broadcast_shapes(g.shape(a), g.shape(b));
  const Op compare = g.dtype(a) == DType::kBool ? Op::kNe : Op::kGt;
  const ValueId condition = s.rng().chance(0.5) ? s.random_value(DType::kBool, s.thinned(to)) : g.binary(compare, a, b);
  s.keep(g.select(condition, a, b));
}

void add_cast(State& s) {
  static const std::vector<DType> targets = {DType::kF32, DType::kF32,  DType::kF16, DType::kBF16,
                                             DType::kF64, DType::kI64,  DType::kI32, DType::kI8,
                                             DType::kU8,  DType::kBool, DType::kI16, DType::kU16};
  static const std::vector<DType> rare = {DType::kU32, DType::kU64, DType::kI4, DType::kU4, DType::kI2, DType::kU2};
  const ValueId x = s.any();
  s.keep(s.builder().cast(x, s.rng().pick(s.rng().chance(0.15) ? rare : targets)));
}

void add_bitcast(State& s) {
  static const std::map<int, std::vector<DType>> same_size = {
      {8, {DType::kI8, DType::kU8}},
      {16, {DType::kI16, DType::kU16, DType::kF16, DType::kBF16}},
      {32, {DType::kI32, DType::kU32, DType::kF32}},
      {64, {DType::kI64, DType::kU64, DType::kF64}}};
  const ValueId x = s.any_number();
  const auto targets = same_size.find(bits_of(s.builder().dtype(x)));
  if (targets == same_size.end()) return;
  s.keep(s.builder().emit(Op::kBitcast, {x}, {{"to", s.rng().pick(targets->second)}}));
}

// Values are finite, so a few are made infinite first.
void add_is_inf(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  const Shape& shape = g.shape(x);
  const ValueId some = s.random_value(DType::kBool, s.thinned(shape)), more = s.random_value(DType::kBool, shape);
  const ValueId low = g.select(some, g.full(g.dtype(x), shape, -HUGE_VAL), x);
  const ValueId both = g.select(more, g.full(g.dtype(x), shape, HUGE_VAL), low);
  const int64_t signs = s.rng().range(0, 3);
  s.keep(g.emit(Op::kIsInf, {both}, {{"positive", signs & 1}, {"negative", signs >> 1}}));
}

void add_random(State& s) {
  static const std::vector<DType> dtypes = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  const std::string kind = s.rng().chance(0.5) ? "normal" : "uniform";
  const DType dtype = s.rng().pick(dtypes);
  const auto seed = static_cast<int64_t>(s.rng().bits());
  s.keep(s.builder().emit(Op::kRandom, {}, {{"kind", kind}, {"dtype", dtype}, {"shape", s.shape(3)}, {"seed", seed}}));
}

// A row or column statistic with its consumers, the shape of softmax and of normalisations.
void add_normalisation(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  const Ints dims = s.some_dims(g.shape(x), false);
  if (dims.empty() || s.elements_of(dims, x) == 0) return;
  switch (s.rng().range(0, 2)) {
    case 0:
      return s.keep(g.softmax(x, dims));
    case 1: {
      const ValueId centred = g.sub(x, g.mean(x, dims, true));
      const ValueId variance = g.mean(g.mul(centred, centred), dims, true);
      return s.keep(g.mul(centred, g.unary(Op::kRsqrt, g.binary(Op::kAdd, variance, 0.125))));
    }
    default:
      return s.keep(g.binary(Op::kMul, x, g.reduce(s.rng().chance(0.5) ? "max" : "min", x, dims, true)));
  }
}

void add_reduce(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any();
  const DType dtype = g.dtype(x);
  static const std::vector<std::string> number_kinds = {"sum", "sum", "max", "min", "prod"};
  static const std::vector<std::string> bool_kinds = {"any", "all"};
  const std::string kind = s.rng().pick(dtype == DType::kBool ? bool_kinds : number_kinds);
  const Ints dims = s.some_dims(g.shape(x), true);
  if (kind == "prod" && s.elements_of(dims, x) > 16) return;
  s.keep(g.reduce(kind, x, dims, s.rng().chance(0.5)));
}

// Rows and columns of the same data reduced, and what is made of both: the shape of gradients of normalisations.
void add_rows_and_columns(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  if (g.rank(x) < 2 || element_count(g.shape(x)) == 0) return;
  Ints rows, columns;
  for (int64_t d = 0; d < g.rank(x); ++d) (s.rng().chance(0.5) ? rows : columns).push_back(d);
  if (rows.empty() || columns.empty()) return;
  static const std::vector<std::string> kinds = {"sum", "max", "min"};
  const ValueId scaled = g.binary(Op::kMul, x, s.partner(x));
  const ValueId by_row = g.reduce(s.rng().pick(kinds), x, rows, true);
  const ValueId by_column = g.reduce(s.rng().pick(kinds), scaled, columns, true);
  s.keep(by_row);
  s.keep(by_column);
  s.keep(g.binary(s.rng().chance(0.5) ? Op::kSub : Op::kMax, g.binary(Op::kMul, x, by_row), by_column));
}

// A costly value per row that every element of the row then needs.
void add_costly_broadcast(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_float();
  const Ints dims = s.some_dims(g.shape(x), false);
  if (dims.empty() || s.elements_of(dims, x) == 0) return;
  const ValueId statistic = g.reduce("max", g.unary(Op::kAbs, x), dims, true);
  const double power = s.rng().pick(std::vector<double>{0.5, -0.5, 1.25, -1});
  const ValueId weight = g.binary(Op::kPow, g.binary(Op::kAdd, statistic, 0.5), power);
  s.keep(g.binary(Op::kMul, x, s.rng().chance(0.5) ? weight : g.unary(Op::kTanh, weight)));
}

void add_scan_or_order(State& s, Op op) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_number();
  if (g.rank(x) == 0) return;
  const int64_t dim = s.rng().range(0, g.rank(x) - 1);
  const int64_t extent = g.shape(x)[static_cast<size_t>(dim)];
  const int64_t flag = s.rng().range(0, 1), other = s.rng().range(0, 1);
  if (op == Op::kScan) {
    static const std::vector<std::string> kinds = {"sum", "max", "min"};
    s.keep(
        g.emit(op, {x}, {{"kind", s.rng().pick(kinds)}, {"dim", dim}, {"exclusive", int64_t{0}}, {"reverse", flag}}));
  } else if (op == Op::kArgReduce) {
    if (extent > 0) s.keep(g.emit(op, {x}, {{"kind", flag ? "max" : "min"}, {"dim", dim}, {"last", other}}));
  } else {
    const auto results =
        g.emit_all(op, {x}, {{"k", s.rng().range(0, extent)}, {"dim", dim}, {"largest", flag}, {"sorted", int64_t{1}}});
    for (ValueId v : results) s.keep(v);
  }
}

void add_window(State& s) {
  ir::Builder& g = s.builder();
  const ValueId x = s.any_number();
  const Shape shape = g.shape(x);
  if (shape.empty()) return;
  Ints window(shape.size(), 1), strides(shape.size(), 1), low(shape.size(), 0), high(shape.size(), 0),
      dilations(shape.size(), 1);
  for (size_t d = shape.size() > 2 ? 1 : 0; d < shape.size(); ++d) {
    if (shape[d] < 1 || s.rng().chance(0.3)) continue;
    window[d] = s.rng().range(1, 3);
    strides[d] = s.rng().range(1, 2);
    dilations[d] = s.rng().range(1, 2);
    low[d] = s.rng().range(0, (window[d] - 1) * dilations[d]);
    high[d] = s.rng().range(0, (window[d] - 1) * dilations[d]);
    if (shape[d] + low[d] + high[d] < (window[d] - 1) * dilations[d] + 1) return;
  }
  static const std::vector<std::string> kinds = {"sum", "max", "max", "min"};
  // An empty window of max would be infinite.
  const std::string kind = s.rng().pick(kinds);
  s.keep(g.emit(Op::kWindowReduce, {x},
                {{"kind", kind},
                 {"window", window},
                 {"strides", strides},
                 {"low", low},
                 {"high", high},
                 {"dilations", dilations}}));
}

struct Move {
  int weight;
  Op guard;  // only where this op is allowed
  void (*run)(State&);
};

const std::vector<Move>& memory_bound_moves() {
  static const std::vector<Move> all = {
      {24, Op::kAdd, add_binary},
      {14, Op::kExp, add_unary},
      {3, Op::kSelect, add_select},
      {4, Op::kCast, add_cast},
      {14, Op::kReduce, add_reduce},
      {10, Op::kReduce, add_normalisation},
      {6, Op::kReduce, add_rows_and_columns},
      {5, Op::kReduce, add_costly_broadcast},
      {5, Op::kBroadcast, add_broadcast},
      {6, Op::kReshape, add_reshape},
      {8, Op::kTranspose, add_transpose},
      {4, Op::kSlice, add_slice},
      {2, Op::kReverse, add_reverse},
      {3, Op::kPad, add_pad},
      {5, Op::kConcat, add_concat},
      {3, Op::kGather, add_gather},
      {1, Op::kGatherElements, add_gather_elements},
      {1, Op::kGatherNd, add_gather_nd},
      {2, Op::kScan, [](State& s) { add_scan_or_order(s, Op::kScan); }},
      {3, Op::kArgReduce, [](State& s) { add_scan_or_order(s, Op::kArgReduce); }},
      {1, Op::kIota, add_iota},
      {1, Op::kRandom, add_random},
  };
  return all;
}

const std::vector<Move>& moves() {
  static const std::vector<Move> all = {
      {24, Op::kAdd, add_binary},
      {18, Op::kExp, add_unary},
      {4, Op::kSelect, add_select},
      {5, Op::kCast, add_cast},
      {8, Op::kReduce, add_reduce},
      {8, Op::kReduce, add_normalisation},
      {4, Op::kBroadcast, add_broadcast},
      {5, Op::kReshape, add_reshape},
      {6, Op::kTranspose, add_transpose},
      {4, Op::kSlice, add_slice},
      {2, Op::kReverse, add_reverse},
      {3, Op::kPad, add_pad},
      {4, Op::kConcat, add_concat},
      {4, Op::kGather, add_gather},
      {2, Op::kGatherElements, add_gather_elements},
      {2, Op::kGatherNd, add_gather_nd},
      {1, Op::kScatterElements, add_scatter_elements},
      {1, Op::kScatterNd, add_scatter_nd},
      {1, Op::kScan, [](State& s) { add_scan_or_order(s, Op::kScan); }},
      {1, Op::kTopK, [](State& s) { add_scan_or_order(s, Op::kTopK); }},
      {2, Op::kArgReduce, [](State& s) { add_scan_or_order(s, Op::kArgReduce); }},
      {2, Op::kWindowReduce, add_window},
      {6, Op::kDot, add_dot},
      {2, Op::kDequantize, add_packed_product},
      {4, Op::kConv, add_conv},
      {1, Op::kIota, add_iota},
      {2, Op::kBitcast, add_bitcast},
      {1, Op::kIsInf, add_is_inf},
      {1, Op::kRandom, add_random},
      {1, Op::kLoop, add_loop},
      {1, Op::kIf, add_if},
  };
  return all;
}

const std::vector<Move>& quantised_moves() {
  static const std::vector<Move> all = {
      {8, Op::kRound, add_quantisation},
      {6, Op::kCast, add_dequantisation},
      {14, Op::kDot, add_dequantised_dot},
      {14, Op::kConv, add_dequantised_conv},
      {6, Op::kDot, add_integer_dot},
      {6, Op::kConv, add_integer_conv},
      {6, Op::kDot, add_dynamic_dot},
      {6, Op::kDot, add_dot_of_few_bits},
      {6, Op::kAdd, add_residual},
      {6, Op::kWindowReduce, add_pool_of_bytes},
      {2, Op::kLoop, add_loop_of_bytes},
      {3, Op::kAdd, add_binary},
      {2, Op::kExp, add_unary},
      {3, Op::kReshape, add_reshape},
      {3, Op::kTranspose, add_transpose},
      {2, Op::kSlice, add_slice},
      {2, Op::kPad, add_pad},
      {2, Op::kConcat, add_concat},
      {1, Op::kGather, add_gather},
  };
  return all;
}

// Every value that nothing reads becomes an output, and now and then one that is read.
void choose_outputs(State& s, int64_t most, double chance_of_read) {
  const auto readers = ir::users(s.graph());
  std::vector<ValueId> sinks;
  for (ValueId v : s.values()) {
    const bool computed = s.graph().producer(v).op != Op::kParameter;
    if (computed && (readers[v].empty() || s.rng().chance(chance_of_read))) sinks.push_back(v);
  }
  if (sinks.empty()) sinks.push_back(s.values().back());
  s.rng().shuffle(sinks);
  sinks.resize(std::min<size_t>(sinks.size(), static_cast<size_t>(s.rng().range(1, most))));
  for (size_t i = 0; i < sinks.size(); ++i) s.graph().output(fmt::format("y{}", i), sinks[i]);
}

}  // namespace

Case generate_case(uint64_t seed, const GeneratorOptions& options) {
  State s(seed, options);
  std::vector<const Move*> enabled;
  int total = 0;
  for (const Move& move : options.quantised      ? quantised_moves()
                          : options.memory_bound ? memory_bound_moves()
                                                 : moves()) {
    const bool elementwise = move.run == add_binary || move.run == add_unary;
    if (!elementwise && !s.allows(move.guard)) continue;
    enabled.push_back(&move);
    total += move.weight;
  }
  const int64_t steps = s.rng().range(2, options.max_nodes);
  for (int64_t i = 0; i < steps; ++i) {
    int64_t ticket = s.rng().range(0, total - 1);
    size_t chosen = 0;
    while (ticket >= enabled[chosen]->weight) ticket -= enabled[chosen++]->weight;
    enabled[chosen]->run(s);
  }
  options.memory_bound ? choose_outputs(s, 8, 0.12) : choose_outputs(s, 5, 0.05);
  return s.take();
}

}  // namespace heddle::fuzz
