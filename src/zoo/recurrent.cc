#include <fmt/format.h>

#include <array>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

Fill recurrent_fill(int64_t hidden) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  return Fill::uniform(-bound, bound);
}

Value zero_state(GraphBuilder& g, const Shape& shape) {
  return g.node("Expand", {g.scalar(0.0F), g.ints(shape)}, {}, shape);
}

// x [t,n,c] -> [t,n,2*hidden], the two directions side by side.
Value bidirectional_lstm(GraphBuilder& g, std::string_view name, const Value& x, int64_t hidden) {
  const auto scope = g.scope(name);
  const int64_t t = x.shape[0], n = x.shape[1];
  const Fill fill = recurrent_fill(hidden);
  const Value w = g.weight("W", {2, 4 * hidden, x.shape[2]}, fill);
  const Value r = g.weight("R", {2, 4 * hidden, hidden}, fill);
  const Value b = g.weight("B", {2, 8 * hidden}, fill);
  const Value h0 = zero_state(g, {2, n, hidden}), c0 = zero_state(g, {2, n, hidden});
  std::vector<Value> outputs{{"", {t, 2, n, hidden}}, {"", {2, n, hidden}}, {"", {2, n, hidden}}};
  g.multi_node("LSTM", {x, w, r, b, Value{}, h0, c0}, {{"direction", "bidirectional"}, {"hidden_size", hidden}},
               outputs);
  return g.reshape(g.transpose(outputs[0], {0, 2, 1, 3}), {t, n, 2 * hidden});
}

// x [n,t,c] -> [n,t,hidden]
Value batch_first_gru(GraphBuilder& g, std::string_view name, const Value& x, int64_t hidden) {
  const auto scope = g.scope(name);
  const int64_t n = x.shape[0], t = x.shape[1];
  const Fill fill = recurrent_fill(hidden);
  const Value w = g.weight("W", {1, 3 * hidden, x.shape[2]}, fill);
  const Value r = g.weight("R", {1, 3 * hidden, hidden}, fill);
  const Value b = g.weight("B", {1, 6 * hidden}, fill);
  std::vector<Value> outputs{{"", {t, 1, n, hidden}}, {"", {1, n, hidden}}};
  g.multi_node("GRU", {g.transpose(x, {1, 0, 2}), w, r, b, Value{}, zero_state(g, {1, n, hidden})},
               {{"hidden_size", hidden}, {"linear_before_reset", 1}}, outputs);
  return g.transpose(g.squeeze(outputs[0], 1), {1, 0, 2});
}

// GRU whose update gate is scaled by the attention of each step: gates [n,t,3*d], attention [n,t] -> last state [n,d].
Value augru(GraphBuilder& g, const Value& gates, const Value& attention) {
  const int64_t n = gates.shape[0], d = gates.shape[2] / 3;
  const Value step_attention = g.unsqueeze(attention, {2});
  GraphBuilder step = g.body("augru");
  const Value z = step.input("augru_z", DType::kF32, {n, d});
  const Value x = step.input("augru_x", DType::kF32, {n, 3 * d});
  const Value a = step.input("augru_a", DType::kF32, {n, 1});

  const Fill fill = recurrent_fill(d);
  const Value gh_weight = g.weight("gh.weight", {2 * d, d}, fill), gh_bias = g.weight("gh.bias", {2 * d}, fill);
  const Value gc_weight = g.weight("gc.weight", {d, d}, fill), gc_bias = g.weight("gc.bias", {d}, fill);
  const Value own = step.slice(x, 1, 0, 2 * d);
  const std::vector<Value> reset_update =
      step.split(step.sigmoid(step.add(own, step.gemm(z, gh_weight, gh_bias))), 2, 1);
  const Value past = step.gemm(step.mul(reset_update[0], z), gc_weight, gc_bias);
  const Value candidate = step.unary("Tanh", step.add(step.slice(x, 1, 2 * d, 3 * d), past));
  const Value update = step.mul(reset_update[1], a);
  const Value kept = step.mul(step.sub(step.scalar(1.0F), update), z);
  step.output(step.add(kept, step.mul(update, candidate)), "augru_next");

  return g.node("Scan", {zero_state(g, {n, d}), gates, step_attention},
                {{"body", step.finish_body()}, {"num_scan_inputs", 2}, {"scan_input_axes", Ints{1, 1}}}, {n, d});
}

Value prelu(GraphBuilder& g, std::string_view name, const Value& x) {
  const auto scope = g.scope(name);
  return g.node("PRelu", {x, g.weight("weight", {1}, Fill::constant(0.25))}, {}, x.shape);
}

}  // namespace

// Shi et al. 2015: text in a picture of height 32.
void crnn(GraphBuilder& g, const Options& options) {
  constexpr int64_t kHidden = 256, kClasses = 37;
  constexpr std::array<int64_t, 7> kWidths{64, 128, 256, 256, 512, 512, 512};
  Value x = g.input("input", DType::kF32, {options.batch, 1, 32, options.size});
  for (int i = 0; i < 7; ++i) {
    const auto scope = g.scope("cnn");
    const bool last = i == 6;
    x = conv(g, fmt::format("conv{}", i), x,
             {.out = kWidths[static_cast<size_t>(i)], .kernel = last ? 2 : 3, .pad = last ? 0 : 1});
    if (i == 2 || i == 4 || i == 6) x = batch_norm(g, fmt::format("bn{}", i), x);
    x = g.relu(x);
    if (i == 0 || i == 1) x = max_pool(g, x, {2, 2, 2, 2});
    if (i == 3 || i == 5) x = max_pool(g, x, {2, 2, 2, 1, 0, 1});
  }
  x = g.transpose(g.squeeze(x, 2), {2, 0, 1});
  x = linear(g, "l1", bidirectional_lstm(g, "r1", x, kHidden), kHidden, 2.0);
  x = linear(g, "l2", bidirectional_lstm(g, "r2", x, kHidden), kClasses, 4.0);
  g.output(g.log_softmax(x, -1), "output");
}

// Zhou et al. 2019: click prediction from a history of items.
void dien(GraphBuilder& g, const Options& options) {
  constexpr int64_t kUsers = 50000, kItems = 100000, kCategories = 1000, kEmbedding = 18, kWidth = 2 * kEmbedding;
  constexpr double kDeviation = 0.3;
  const int64_t n = options.batch, t = options.seq;
  const Value user = g.index_input("user", kUsers, {n});
  const Value item = g.index_input("item", kItems, {n});
  const Value category = g.index_input("cat", kCategories, {n});
  const Value past_items = g.index_input("hist_i", kItems, {n, t});
  const Value past_categories = g.index_input("hist_c", kCategories, {n, t});
  const Value mask = g.input("mask", DType::kF32, {n, t});

  const Value items = g.weight("i.weight", {kItems, kEmbedding}, Fill::normal(0, kDeviation));
  const Value categories = g.weight("c.weight", {kCategories, kEmbedding}, Fill::normal(0, kDeviation));
  const Value query = g.concat({g.gather(items, item, 0), g.gather(categories, category, 0)}, -1);
  const Value history = g.concat({g.gather(items, past_items, 0), g.gather(categories, past_categories, 0)}, -1);
  const Value interest = batch_first_gru(g, "gru", history, kWidth);

  const Value keyed = g.unsqueeze(linear(g, "w", query, kWidth, 3.0, false), {1});
  const Value scores = g.reduce("ReduceSum", g.mul(keyed, interest), -1, false);
  const Value penalty = g.mul(g.sub(mask, g.scalar(1.0F)), g.scalar(10000.0F));
  const Value attention = g.softmax(g.add(scores, penalty), -1);
  const Value state = augru(g, linear(g, "gx", interest, 3 * kWidth, 2.0), attention);

  const Value profile = embedding(g, "u", user, kUsers, kEmbedding, kDeviation);
  Value y = g.concat({profile, query, g.reduce("ReduceSum", history, 1, false), state}, -1);
  const auto scope = g.scope("mlp");
  y = prelu(g, "1", linear(g, "0", y, 200, kRelu));
  y = prelu(g, "3", linear(g, "2", y, 80, kRelu));
  g.output(g.softmax(linear(g, "4", y, 2), -1), "output");
}

}  // namespace heddle::zoo
