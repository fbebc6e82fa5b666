#include <algorithm>
#include <array>
#include <functional>

#include "frontend/onnx/lowering/quantize.h"
#include "frontend/onnx/lowering/step_loop.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Ints;
using ir::Op;
using ir::ValueId;

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

// Defaults of the functions that have parameters, and how many they have.
struct ActivationRule {
  std::string_view name;
  int parameters;
  double alpha, beta;
};

constexpr std::array kActivations = {
    ActivationRule{"Relu", 0, 0, 0},         ActivationRule{"Tanh", 0, 0, 0},
    ActivationRule{"Sigmoid", 0, 0, 0},      ActivationRule{"Affine", 2, 1, 0},
    ActivationRule{"LeakyRelu", 1, 0.01, 0}, ActivationRule{"ThresholdedRelu", 1, 1, 0},
    ActivationRule{"ScaledTanh", 2, 1, 1},   ActivationRule{"HardSigmoid", 2, 0.2, 0.5},
    ActivationRule{"Elu", 1, 1, 0},          ActivationRule{"Softsign", 0, 0, 0},
    ActivationRule{"Softplus", 0, 0, 0},
};

ValueId apply(Builder& b, const Activation& f, ValueId x) {
  const auto number = [&](double value) { return b.full(b.dtype(x), b.shape(x), value); };
  if (f.name == "Tanh") return b.unary(Op::kTanh, x);
  if (f.name == "Softsign") return b.unary(Op::kSoftsign, x);
  if (f.name == "Sigmoid") return b.sigmoid(x);
  if (f.name == "Relu") return b.max(x, number(0));
  if (f.name == "Affine") return b.add(b.mul(x, number(f.alpha)), number(f.beta));
  const ValueId positive = b.binary(Op::kGe, x, number(0));
  if (f.name == "LeakyRelu") return b.select(positive, x, b.mul(x, number(f.alpha)));
  if (f.name == "ThresholdedRelu") return b.select(b.binary(Op::kGt, x, number(f.alpha)), x, number(0));
  if (f.name == "ScaledTanh") return b.mul(number(f.alpha), b.unary(Op::kTanh, b.mul(x, number(f.beta))));
  if (f.name == "HardSigmoid") {
    return b.max(b.min(b.add(b.mul(x, number(f.alpha)), number(f.beta)), number(1)), number(0));
  }
  if (f.name == "Elu") return b.select(positive, x, b.mul(number(f.alpha), b.unary(Op::kExpm1, x)));
  const ValueId magnitude = b.unary(Op::kAbs, x);
  // Softplus without overflow.
  return b.add(b.max(x, number(0)), b.unary(Op::kLog1p, b.unary(Op::kExp, b.unary(Op::kNeg, magnitude))));
}

// The attributes and inputs that the three operators share.
struct Recurrence {
  NodeContext& ctx;
  Builder& b;
  int64_t gates, states;  // rows of W and R per hidden unit; state tensors (LSTM: 2)
  int64_t directions = 1, steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool batch_first = false;
  std::string direction;
  double clip = 0;  // 0: none
  std::vector<Activation> activations;
  DType dtype = DType::kF32;
  bool rounds = false;  // whether products quantise x and h, each with one scale for all its elements
  ValueId x = 0;        // [steps, batch, inputs]

  Recurrence(NodeContext& context, int64_t gate_count, int64_t state_count)
      : ctx(context), b(context.b), gates(gate_count), states(state_count) {}
};

std::vector<Activation> read_activations(const NodeContext& ctx, std::vector<std::string> defaults,
                                         int64_t directions) {
  std::vector<std::string> names = ctx.attr_strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * static_cast<size_t>(directions)) {
    ctx.invalid(fmt::format("{} activations, {} expected", names.size(), defaults.size() * directions));
  }
  const auto alphas = ctx.attr_floats("activation_alpha"), betas = ctx.attr_floats("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> result;
  for (const std::string& name : names) {
    const auto rule = std::find_if(kActivations.begin(), kActivations.end(), [&](const ActivationRule& r) {
      return std::equal(name.begin(), name.end(), r.name.begin(), r.name.end(),
                        [](char p, char q) { return std::tolower(p) == std::tolower(q); });
    });
    if (rule == kActivations.end()) ctx.unsupported(fmt::format("activation \"{}\" is not known", name));
    Activation f{std::string(rule->name), rule->alpha, rule->beta};
    if (rule->parameters >= 1 && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (rule->parameters >= 2 && beta < betas.size()) f.beta = betas[beta++];
    result.push_back(std::move(f));
  }
  return result;
}

void require_shape(const NodeContext& ctx, size_t input, const char* name, const Shape& expected) {
  if (ctx.has(input) && ctx.shape(input) != expected) {
    ctx.invalid(fmt::format("{} is {}, {} expected", name, to_string(ctx.shape(input)), to_string(expected)));
  }
}

Recurrence read_recurrence(NodeContext& ctx, int64_t gates, int64_t states, std::vector<std::string> defaults) {
  Recurrence r(ctx, gates, states);
  r.direction = ctx.attr_string("direction", "forward");
  if (r.direction != "forward" && r.direction != "reverse" && r.direction != "bidirectional") {
    ctx.invalid("direction \"" + r.direction + "\" is none of forward, reverse, bidirectional");
  }
  r.directions = r.direction == "bidirectional" ? 2 : 1;
  r.batch_first = ctx.attr_int("layout", 0) != 0;
  if (ctx.rank(0) != 3 || ctx.rank(1) != 3 || ctx.rank(2) != 3) ctx.invalid("X, W and R must have rank 3");
  r.x = r.batch_first ? r.b.transpose(ctx.in(0), {1, 0, 2}) : ctx.in(0);
  r.steps = r.b.shape(r.x)[0];
  r.batch = r.b.shape(r.x)[1];
  r.inputs = r.b.shape(r.x)[2];
  r.hidden = ctx.shape(2)[2];
  if (ctx.has_attr("hidden_size") && ctx.attr_int("hidden_size") != r.hidden) {
    ctx.invalid(fmt::format("hidden_size is {}, R has {}", ctx.attr_int("hidden_size"), r.hidden));
  }
  require_shape(ctx, 1, "W", {r.directions, gates * r.hidden, r.inputs});
  require_shape(ctx, 2, "R", {r.directions, gates * r.hidden, r.hidden});
  require_shape(ctx, 3, "B", {r.directions, 2 * gates * r.hidden});
  require_shape(ctx, 4, "sequence_lens", {r.batch});
  for (int64_t s = 0; s < states; ++s) {
    require_shape(ctx, static_cast<size_t>(5 + s), "an initial state",
                  r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden});
  }
  r.clip = ctx.attr_float("clip", 0);
  r.activations = read_activations(ctx, std::move(defaults), r.directions);
  r.dtype = ctx.dtype(0);
  return r;
}

// Entry d of the leading dimension, which disappears.
ValueId pick(Builder& b, ValueId x, int64_t d) {
  const Shape shape = b.shape(x);
  return b.reshape(b.slice_dim(x, 0, d, d + 1), Shape(shape.begin() + 1, shape.end()));
}

// The operand of a product: x, or x quantised and dequantised if `rounds`. `b` builds the graph of x.
ValueId product_operand(const Recurrence& r, Builder& b, ValueId x) {
  if (!r.rounds) return x;
  const DynamicallyQuantized q = dynamically_quantized(b, x);
  const ValueId zero = b.broadcast(b.cast(q.zero_point, DType::kI32), b.shape(x), {});
  const ValueId centred = b.sub(b.cast(q.value, DType::kI32), zero);
  return b.mul(b.cast(centred, DType::kF32), b.broadcast(q.scale, b.shape(x), {}));
}

// One direction of one operator: what its cell sees in a step.
struct CellInputs {
  Builder& b;
  StepLoop& step;
  const Recurrence& r;
  int64_t direction;
  std::span<const Activation> activations;
  ValueId projected;               // [batch, gates * hidden], with the input's bias
  std::span<const ValueId> state;  // h, and c of an LSTM

  ValueId gate(ValueId all, int64_t g) const { return b.slice_dim(all, 1, g * r.hidden, (g + 1) * r.hidden); }
  ValueId activate(size_t f, ValueId x) const {
    if (r.clip > 0) {
      x = b.min(b.max(x, b.full(r.dtype, b.shape(x), -r.clip)), b.full(r.dtype, b.shape(x), r.clip));
    }
    return apply(b, activations[f], x);
  }
  // state[0] times the recurrent weights of gates [first, last).
  ValueId recur(ValueId h, const char* name, int64_t first, int64_t last) const {
    Builder& outer = r.b;
    ValueId weights = pick(outer, r.ctx.in(2), direction);
    weights = outer.transpose(outer.slice_dim(weights, 0, first * r.hidden, last * r.hidden), {1, 0});
    return b.matmul(product_operand(r, b, h), step.outer(name, weights));
  }
  // The recurrent bias of gates [first, last), [(last - first) * hidden].
  ValueId recurrent_bias(int64_t first, int64_t last) const {
    const ValueId bias = pick(r.b, r.ctx.in(3), direction);
    return r.b.slice_dim(bias, 0, (r.gates + first) * r.hidden, (r.gates + last) * r.hidden);
  }
};

using Cell = std::function<std::vector<ValueId>(const CellInputs&)>;

// Position t of each sequence counted from its end, and padding in place: i64[steps, batch].
ValueId reversed_positions(const Recurrence& r, ValueId lengths) {
  const Shape shape = {r.steps, r.batch};
  const ValueId t = r.b.iota(DType::kI64, shape, 0);
  const ValueId length = r.b.broadcast(lengths, shape, {1});
  const ValueId mirrored = r.b.sub(r.b.binary(Op::kSub, length, 1.0), t);
  return r.b.select(r.b.binary(Op::kLt, t, length), mirrored, t);
}

// Turns time round; within each sequence where lengths are given.
ValueId reverse_time(const Recurrence& r, ValueId x, std::optional<ValueId> lengths) {
  if (!lengths) return r.b.emit(Op::kReverse, {x}, {{"dims", Ints{0}}});
  const ValueId at = r.b.broadcast(reversed_positions(r, *lengths), r.b.shape(x), {0, 1});
  return r.b.emit(Op::kGatherElements, {x, at}, {{"dim", int64_t{0}}});
}

// Lengths as i64; nullopt if every sequence is known to have all steps.
std::optional<ValueId> sequence_lengths(const Recurrence& r) {
  if (!r.ctx.has(4)) return std::nullopt;
  const ValueId lengths = r.b.cast(r.ctx.in(4), DType::kI64);
  if (const auto known = r.ctx.try_constant_of(lengths)) {
    const auto values = known->values<int64_t>();
    if (std::all_of(values.begin(), values.end(), [&](int64_t n) { return n == r.steps; })) return std::nullopt;
  }
  return lengths;
}

// x with zeros after the end of the longest sequence, so that elements there do not widen its range.
ValueId without_rest(const Recurrence& r, ValueId lengths) {
  Builder& b = r.b;
  const Shape shape = b.shape(r.x);
  const ValueId longest = b.broadcast(b.reduce("max", lengths, {0}), shape, {});
  const ValueId counts = b.binary(Op::kLt, b.iota(DType::kI64, shape, 0), longest);
  return b.select(counts, r.x, b.full(r.dtype, shape, 0));
}

// The input projection of all steps at once, [steps, batch, gates * hidden]: one large matrix product outside the loop
// instead of a small one in every step. `merged` gates take the recurrent bias here too.
ValueId project(const Recurrence& r, int64_t direction, int64_t merged, std::optional<ValueId> lengths) {
  Builder& b = r.b;
  const ValueId weights = b.transpose(pick(b, r.ctx.in(1), direction), {1, 0});
  const ValueId known = r.rounds && lengths ? without_rest(r, *lengths) : r.x;
  const ValueId x = b.reshape(known, {r.steps * r.batch, r.inputs});
  ValueId all = b.matmul(product_operand(r, b, x), weights);
  if (r.ctx.has(3)) {
    const int64_t width = r.gates * r.hidden;
    const ValueId both = pick(b, r.ctx.in(3), direction);
    ValueId recurrent = b.slice_dim(both, 0, width, width + merged * r.hidden);
    if (merged < r.gates) {
      const std::array parts = {recurrent, b.full(r.dtype, {(r.gates - merged) * r.hidden}, 0)};
      recurrent = b.concat(parts, 0);
    }
    all = b.add(all, b.add(b.slice_dim(both, 0, 0, width), recurrent));
  }
  return b.reshape(all, {r.steps, r.batch, r.gates * r.hidden});
}

struct DirectionResult {
  ValueId y = 0;                // [steps, batch, hidden], if wanted
  std::vector<ValueId> states;  // each [batch, hidden]
};

DirectionResult run_direction(const Recurrence& r, int64_t direction, int64_t merged, const Cell& cell) {
  Builder& b = r.b;
  const bool backward = r.direction == "reverse" || direction == 1;
  const std::optional<ValueId> lengths = sequence_lengths(r);
  ValueId projected = project(r, direction, merged, lengths);
  if (backward) projected = reverse_time(r, projected, lengths);
  StepLoop step(r.ctx);
  std::vector<ValueId> state;
  for (int64_t s = 0; s < r.states; ++s) {
    const auto input = static_cast<size_t>(5 + s);
    ValueId initial;
    if (!r.ctx.has(input)) {
      initial = b.full(r.dtype, {r.batch, r.hidden}, 0);
    } else if (r.batch_first) {
      initial = b.reshape(b.slice_dim(r.ctx.in(input), 1, direction, direction + 1), {r.batch, r.hidden});
    } else {
      initial = pick(b, r.ctx.in(input), direction);
    }
    state.push_back(step.state(initial));
  }
  const ValueId now = step.entry("projected", projected);
  const size_t functions = r.activations.size() / static_cast<size_t>(r.directions);
  const auto first = r.activations.begin() + direction * static_cast<int64_t>(functions);
  std::vector<ValueId> next = cell({step.body(), step, r, direction, {first, first + functions}, now, state});
  ValueId slice = next[0];
  if (lengths) {  // a sequence that has ended keeps its state and puts out zeros
    Builder& body = step.body();
    const ValueId inside = step.outer("lengths", *lengths);
    const ValueId running = body.broadcast(body.binary(Op::kLt, step.iteration(), inside), {r.batch, r.hidden}, {0});
    slice = body.select(running, next[0], body.full(r.dtype, {r.batch, r.hidden}, 0));
    for (size_t s = 0; s < next.size(); ++s) next[s] = body.select(running, next[s], state[s]);
  }
  const bool stacked = r.ctx.wants(0);
  const std::vector<ValueId> results =
      step.run(r.steps, next, stacked ? std::span<const ValueId>(&slice, 1) : std::span<const ValueId>());
  DirectionResult result;
  result.states.assign(results.begin(), results.begin() + r.states);
  if (stacked) result.y = backward ? reverse_time(r, results.back(), lengths) : results.back();
  return result;
}

// `merged`: how many gates, counted from the first, add their recurrent bias before the loop.
void lower_recurrence(const Recurrence& r, int64_t merged, const Cell& cell) {
  Builder& b = r.b;
  std::vector<ValueId> ys;
  std::vector<std::vector<ValueId>> finals(static_cast<size_t>(r.states));
  const int64_t axis = r.batch_first ? 1 : 0;  // of the directions in a state
  for (int64_t d = 0; d < r.directions; ++d) {
    DirectionResult result = run_direction(r, d, merged, cell);
    if (r.ctx.wants(0)) {
      const ValueId y = r.batch_first ? b.transpose(result.y, {1, 0, 2}) : result.y;
      ys.push_back(
          b.reshape(y, r.batch_first ? Shape{r.batch, r.steps, 1, r.hidden} : Shape{r.steps, 1, r.batch, r.hidden}));
    }
    for (size_t s = 0; s < finals.size(); ++s) {
      finals[s].push_back(
          b.reshape(result.states[s], r.batch_first ? Shape{r.batch, 1, r.hidden} : Shape{1, r.batch, r.hidden}));
    }
  }
  if (r.ctx.wants(0)) r.ctx.set(0, b.concat(ys, r.batch_first ? 2 : 1));
  for (size_t s = 0; s < finals.size(); ++s) {
    if (r.ctx.wants(1 + s)) r.ctx.set(1 + s, b.concat(finals[s], axis));
  }
}

void lower_rnn(NodeContext& ctx) {
  const Recurrence r = read_recurrence(ctx, 1, 1, {"Tanh"});
  lower_recurrence(r, 1, [](const CellInputs& in) {
    const ValueId sum = in.b.add(in.projected, in.recur(in.state[0], "recurrent", 0, 1));
    return std::vector<ValueId>{in.activate(0, sum)};
  });
}

// Gates in the order z (update), r (reset), h (candidate).
void lower_gru(NodeContext& ctx) {
  const Recurrence r = read_recurrence(ctx, 3, 1, {"Sigmoid", "Tanh"});
  const bool linear_first = ctx.attr_int("linear_before_reset", 0) != 0;
  // With linear_before_reset the candidate's recurrent bias is multiplied by the reset gate.
  lower_recurrence(r, linear_first ? 2 : 3, [linear_first](const CellInputs& in) {
    Builder& b = in.b;
    const ValueId h = in.state[0];
    const ValueId x_zr = b.slice_dim(in.projected, 1, 0, 2 * in.r.hidden);
    const ValueId x_h = in.gate(in.projected, 2);
    ValueId zr = 0, candidate = 0;
    if (linear_first) {
      const ValueId all = in.recur(h, "recurrent", 0, 3);
      zr = in.activate(0, b.add(x_zr, b.slice_dim(all, 1, 0, 2 * in.r.hidden)));
      ValueId linear = in.gate(all, 2);
      if (in.r.ctx.has(3)) linear = b.add(linear, in.step.outer("bias", in.recurrent_bias(2, 3)));
      candidate = in.activate(1, b.add(x_h, b.mul(in.gate(zr, 1), linear)));
    } else {
      zr = in.activate(0, b.add(x_zr, in.recur(h, "recurrent", 0, 2)));
      const ValueId reset = b.mul(in.gate(zr, 1), h);
      candidate = in.activate(1, b.add(x_h, in.recur(reset, "recurrent_candidate", 2, 3)));
    }
    const ValueId z = in.gate(zr, 0);
    const ValueId one = b.full(in.r.dtype, b.shape(z), 1);
    return std::vector<ValueId>{b.add(b.mul(b.sub(one, z), candidate), b.mul(z, h))};
  });
}

// Gates in the order i (input), o (output), f (forget), c (cell); peepholes in the order i, o, f.
void lower_lstm_of(NodeContext& ctx, bool rounds) {
  Recurrence r = read_recurrence(ctx, 4, 2, {"Sigmoid", "Tanh", "Tanh"});
  r.rounds = rounds;
  require_shape(ctx, 7, "P", {r.directions, 3 * r.hidden});
  const bool coupled = ctx.attr_int("input_forget", 0) != 0;
  lower_recurrence(r, 4, [coupled](const CellInputs& in) {
    Builder& b = in.b;
    const ValueId c = in.state[1];
    const ValueId all = b.add(in.projected, in.recur(in.state[0], "recurrent", 0, 4));
    ValueId peepholes = 0;
    if (in.r.ctx.has(7)) peepholes = in.step.outer("peepholes", pick(in.r.b, in.r.ctx.in(7), in.direction));
    const auto peeped = [&](int64_t gate, ValueId cell) {
      const ValueId sum = in.gate(all, gate);
      if (!in.r.ctx.has(7)) return sum;
      return b.add(sum, b.mul(b.slice_dim(peepholes, 0, gate * in.r.hidden, (gate + 1) * in.r.hidden), cell));
    };
    const ValueId i = in.activate(0, peeped(0, c));
    const ValueId one = b.full(in.r.dtype, b.shape(i), 1);
    const ValueId f = coupled ? b.sub(one, i) : in.activate(0, peeped(2, c));
    const ValueId next_c = b.add(b.mul(f, c), b.mul(i, in.activate(1, in.gate(all, 3))));
    const ValueId o = in.activate(0, peeped(1, next_c));
    // The clip is of the gates' sums; the cell state is not clipped.
    const ValueId next_h = b.mul(o, apply(b, in.activations[2], next_c));
    return std::vector<ValueId>{next_h, next_c};
  });
}

void lower_lstm(NodeContext& ctx) {
  lower_lstm_of(ctx, false);
}

// Converts weights [directions, rows, 4 * hidden] of bytes to the form of the ONNX standard: floats, with the last two
// dimensions swapped.
ValueId dequantized_weights(NodeContext& ctx, size_t input, size_t scale) {
  Builder& b = ctx.b;
  const Shape shape = ctx.shape(input);
  if (shape.size() != 3) ctx.invalid(fmt::format("input {} must have rank 3", input));
  const auto spread = [&](size_t i) {
    const int64_t columns = element_count(ctx.shape(i)) == shape[0] ? 1 : shape[2];
    return b.reshape(ctx.in(i), {shape[0], 1, columns});
  };
  const ValueId centred = b.sub(b.cast(ctx.in(input), DType::kI32), b.cast(spread(scale + 1), DType::kI32));
  return b.transpose(b.mul(b.cast(centred, DType::kF32), spread(scale)), {0, 2, 1});
}

// Like ONNX Runtime, quantises the whole of x once, and h of all sequences in each step.
void lower_dynamic_quantize_lstm(NodeContext& ctx) {
  ctx.replace_input(1, dequantized_weights(ctx, 1, 8));
  ctx.replace_input(2, dequantized_weights(ctx, 2, 10));
  lower_lstm_of(ctx, true);
}

}  // namespace

std::span<const OpHandler> rnn_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "RNN", 1, kNewestOpset, lower_rnn},
      OpHandler{"", "GRU", 1, kNewestOpset, lower_gru},
      OpHandler{"", "LSTM", 1, kNewestOpset, lower_lstm},
      OpHandler{kMicrosoft, "DynamicQuantizeLSTM", 1, kAnyVersion, lower_dynamic_quantize_lstm},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
