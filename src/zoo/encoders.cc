// Encoders of speech and text whose attention is no plain one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

// Three taps along the frames of [n,channels,frames].
Value conv_of_frames(GraphBuilder& g, std::string_view name, const Value& x, int64_t out, int64_t stride) {
  const auto scope = g.scope(name);
  const int64_t in = x.shape[1];
  const Value weight =
      g.weight("weight", {out, in, 3}, Fill::normal(0, kRelu / std::sqrt(3.0 * static_cast<double>(in))));
  return g.node("Conv", {x, weight, g.weight("bias", {out}, Fill::normal(0, 0.02))},
                {{"dilations", Ints{1}},
                 {"group", 1},
                 {"kernel_shape", Ints{3}},
                 {"pads", Ints{1, 1}},
                 {"strides", Ints{stride}}},
                {x.shape[0], out, (x.shape[2] - 1) / stride + 1});
}

Value whisper_block(GraphBuilder& g, const Value& x, int64_t heads) {
  const int64_t width = x.shape[2];
  Value mixed;
  {
    const Value normed = layer_norm(g, "self_attn_layer_norm", x);
    const auto scope = g.scope("self_attn");
    const auto root = 1 / std::sqrt(static_cast<float>(width / heads));
    const Value q = split_heads(g, g.mul(linear(g, "q_proj", normed, width), g.scalar(root)), heads);
    const Value k = split_heads(g, linear(g, "k_proj", normed, width, 1, false), heads);
    const Value v = split_heads(g, linear(g, "v_proj", normed, width), heads);
    const Value weights = g.softmax(g.matmul(q, g.transpose(k, {0, 1, 3, 2})), -1);
    mixed = linear(g, "out_proj", merge_heads(g, g.matmul(weights, v)), width, kBranch);
  }
  const Value y = g.add(x, mixed);
  const Value normed = layer_norm(g, "final_layer_norm", y);
  return g.add(y, linear(g, "fc2", gelu(g, linear(g, "fc1", normed, 4 * width)), width, kBranch));
}

constexpr int64_t kSpan = 256;  // relative positions of DeBERTa on either side

// The bucket of a distance (He et al. 2021): exact up to half of the span, then with its logarithm.
int64_t deberta_bucket(int64_t distance) {
  constexpr int64_t kExact = kSpan / 2;
  constexpr double kFarthest = 511;
  const int64_t far = std::abs(distance);
  if (far < kExact) return distance;
  const double share = std::log(static_cast<double>(far) / kExact) / std::log(kFarthest / kExact);
  const auto bucket = static_cast<int64_t>(std::ceil(share * (kExact - 1))) + kExact;
  return std::min(distance < 0 ? -bucket : bucket, kSpan - 1);
}

// For each query and key the row of the table of relative positions, [heads,t,t] for GatherElements.
Value places(GraphBuilder& g, int64_t rows, int64_t t, bool of_keys) {
  Ints list;
  for (int64_t i = 0; i < t; ++i) {
    for (int64_t j = 0; j < t; ++j) list.push_back(deberta_bucket(of_keys ? j - i : i - j) + kSpan);
  }
  const Value one = g.reshape(g.ints(list), {1, t, t});
  return g.node("Expand", {one, g.ints({rows, t, t})}, {}, {rows, t, t}, DType::kI64);
}

// [n,t,heads*c] -> [n*heads,t,c]
Value rows_of_heads(GraphBuilder& g, const Value& x, int64_t heads) {
  const Value split = split_heads(g, x, heads);
  return g.reshape(split, {x.shape[0] * heads, x.shape[1], x.shape[2] / heads});
}

// Scores are the sum of content with content, content with position, and position with content, the second and third
// gathered by distance.
Value disentangled_attention(GraphBuilder& g, const Value& x, const Value& positions, int64_t heads) {
  const int64_t n = x.shape[0], t = x.shape[1], width = x.shape[2], depth = width / heads, rows = n * heads;
  const Value root = g.scalar(std::sqrt(3.0F * static_cast<float>(depth)));
  const auto project = [&](const char* name) {
    const auto scope = g.scope(name);
    const Fill fill = Fill::normal(0, 1 / std::sqrt(static_cast<double>(width)));
    return std::pair{g.weight("weight", {width, width}, fill), g.weight("bias", {width}, Fill::normal(0, 0.02))};
  };
  const auto [query_weight, query_bias] = project("query_proj");
  const auto [key_weight, key_bias] = project("key_proj");
  const auto of = [&](const Value& y, const Value& weight, const Value& bias) {
    return rows_of_heads(g, g.add(g.matmul(y, weight), bias), heads);
  };
  const Value q = of(x, query_weight, query_bias), k = of(x, key_weight, key_bias);
  const Value v = rows_of_heads(g, linear(g, "value_proj", x, width), heads);
  // Positions share the weights of queries and keys; each sequence of a batch has the same.
  const auto of_positions = [&](const Value& weight, const Value& bias) {
    const Value one = of(positions, weight, bias);
    return g.node("Tile", {one, g.ints({n, 1, 1})}, {}, {rows, 2 * kSpan, depth});
  };
  const Value by_key = of_positions(key_weight, key_bias), by_query = of_positions(query_weight, query_bias);
  Value scores = g.matmul(q, g.div(g.transpose(k, {0, 2, 1}), root));
  const auto gathered = [&](const Value& y, const Value& at) {
    return g.node("GatherElements", {y, at}, {{"axis", -1}}, {rows, t, t});
  };
  const Value to_position = gathered(g.matmul(q, g.transpose(by_key, {0, 2, 1})), places(g, rows, t, false));
  scores = g.add(scores, g.div(to_position, root));
  const Value from_position = gathered(g.matmul(k, g.transpose(by_query, {0, 2, 1})), places(g, rows, t, true));
  scores = g.add(scores, g.div(g.transpose(from_position, {0, 2, 1}), root));
  const Value weights = g.softmax(g.reshape(scores, {n, heads, t, t}), -1);
  return merge_heads(g, g.matmul(weights, g.reshape(v, {n, heads, t, depth})));
}

}  // namespace

// The encoder of Whisper base (Radford et al. 2022): 80 mel bands, two frames for each position.
void whisper_encoder(GraphBuilder& g, const Options& options) {
  constexpr int64_t kBands = 80, kWidth = 512, kPositions = 1500;
  Value x = g.input("input_features", DType::kF32, {options.batch, kBands, options.seq});
  x = gelu(g, conv_of_frames(g, "conv1", x, kWidth, 1));
  x = gelu(g, conv_of_frames(g, "conv2", x, kWidth, 2));
  x = g.transpose(x, {0, 2, 1});
  const Value table = g.weight("embed_positions.weight", {kPositions, kWidth}, Fill::uniform(-1, 1));
  x = g.add(x, g.slice(table, 0, 0, x.shape[1]));
  for (int i = 0; i < 6; ++i) {
    const auto scope = g.scope(fmt::format("layers.{}", i));
    x = whisper_block(g, x, 8);
  }
  g.output(layer_norm(g, "layer_norm", x), "last_hidden_state");
}

// DeBERTa v3 small (He et al. 2021).
void deberta(GraphBuilder& g, const Options& options) {
  constexpr int64_t kWords = 128100;
  const int64_t width = options.width, heads = width / 64, hidden_width = 4 * width;
  constexpr float kEpsilon = 1e-7F;
  const Value ids = g.index_input("input_ids", kWords, {options.batch, options.seq});
  Value x = layer_norm(g, "embeddings.LayerNorm", embedding(g, "embeddings.word_embeddings", ids, kWords, width, 0.5),
                       kEpsilon);
  const Value table = g.weight("encoder.rel_embeddings.weight", {2 * kSpan, width}, Fill::normal(0, 0.5));
  const Value positions = g.unsqueeze(layer_norm(g, "encoder.LayerNorm", table, kEpsilon), {0});
  for (int i = 0; i < 6; ++i) {
    const auto scope = g.scope(fmt::format("encoder.layer.{}", i));
    Value mixed;
    {
      const auto inside = g.scope("attention");
      mixed = linear(g, "output.dense", disentangled_attention(g, x, positions, heads), width);
      x = layer_norm(g, "output.LayerNorm", g.add(mixed, x), kEpsilon);
    }
    const Value hidden = gelu(g, linear(g, "intermediate.dense", x, hidden_width));
    x = layer_norm(g, "output.LayerNorm", g.add(linear(g, "output.dense", hidden, width), x), kEpsilon);
  }
  g.output(x, "last_hidden_state");
}

}  // namespace heddle::zoo
