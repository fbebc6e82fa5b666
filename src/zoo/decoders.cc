// Language models that write one token after another.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

// The head whose weights are the embedding's.
Value tied_head(GraphBuilder& g, const Value& x, const Value& table) {
  return g.matmul(x, g.transpose(table, {1, 0}));
}

// 0 where a token may see another, itself included, minus infinity elsewhere, from a comparison of positions: [t,t].
Value mask_of_positions(GraphBuilder& g, int64_t t) {
  const Value all = g.node("Range", {g.index(0), g.index(t), g.index(1)}, {}, {t}, DType::kI64);
  const Value seen = g.binary("LessOrEqual", g.unsqueeze(all, {0}), g.unsqueeze(all, {1}));
  return g.node("Where", {seen, g.scalar(0.0F), g.scalar(-std::numeric_limits<float>::infinity())}, {}, {t, t});
}

// Cosines or sines of rotary embeddings (Su et al. 2021), [t,depth]: position times a frequency for each pair.
Value rotations(GraphBuilder& g, int64_t t, int64_t depth, double base, bool sine) {
  std::vector<float> table;
  for (int64_t position = 0; position < t; ++position) {
    for (int64_t i = 0; i < depth; ++i) {
      const double exponent = static_cast<double>(i % (depth / 2)) * 2 / static_cast<double>(depth);
      const double angle = static_cast<double>(position) * std::pow(base, -exponent);
      table.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return g.floats({t, depth}, table);
}

// x [n,heads,t,c] turned by pairs of halves.
Value rotate(GraphBuilder& g, const Value& x, const Value& cosines, const Value& sines) {
  const int64_t depth = x.shape[3];
  const Value second = g.unary("Neg", g.slice(x, 3, depth / 2, depth));
  const Value swapped = g.concat({second, g.slice(x, 3, 0, depth / 2)}, -1);
  return g.add(g.mul(x, cosines), g.mul(swapped, sines));
}

// Keys or values [n,heads,t,c] for `group` heads of queries each.
Value repeat_heads(GraphBuilder& g, const Value& x, int64_t group) {
  if (group == 1) return x;
  const int64_t n = x.shape[0], heads = x.shape[1], t = x.shape[2], depth = x.shape[3];
  const Value wide =
      g.node("Expand", {g.unsqueeze(x, {2}), g.ints({n, heads, group, t, depth})}, {}, {n, heads, group, t, depth});
  return g.reshape(wide, {n, heads * group, t, depth});
}

// One token of each sequence, whose keys and values so far lie in buffers of a fixed length (a static cache).
struct Step {
  Value positions;  // [n], of the tokens
  Value is_new;     // [n,1,s,1], true of the token's own place
  Value mask;       // [n,1,1,s], 0 where the token sees a key, itself included, minus infinity elsewhere
};
Step make_step(GraphBuilder& g, int64_t n, int64_t s) {
  Step step{g.index_input("positions", s, {n}), {}, {}};
  const Value all = g.node("Range", {g.index(0), g.index(s), g.index(1)}, {}, {s}, DType::kI64);
  const Value places = g.unsqueeze(all, {0}), own = g.unsqueeze(step.positions, {1});
  step.is_new = g.unsqueeze(g.node("Equal", {places, own}, {}, {n, s}, DType::kBool), {1, 3});
  const Value seen = g.node("LessOrEqual", {places, own}, {}, {n, s}, DType::kBool);
  const Value mask =
      g.node("Where", {seen, g.scalar(0.0F), g.scalar(-std::numeric_limits<float>::infinity())}, {}, {n, s});
  step.mask = g.unsqueeze(mask, {1, 2});
  return step;
}

// A buffer [n,heads,s,c] with x [n,heads,1,c] at the token's place. The model takes it and gives it back.
Value with_cache(GraphBuilder& g, const Step& step, const std::string& name, const Value& x) {
  const Shape shape{x.shape[0], x.shape[1], step.mask.shape[3], x.shape[3]};
  const Value past = g.input("past." + name, x.dtype, shape);
  const Value present = g.node("Where", {step.is_new, x, past}, {}, shape);
  g.output(present, "present." + name);
  return present;
}

// softmax(q k^T / root + mask) v of heads that share keys, merged: [n,t,heads*c].
Value masked_attention(GraphBuilder& g, const Value& q, const Value& k, const Value& v, const Value& mask) {
  const int64_t group = q.shape[1] / k.shape[1];
  const Value scores = g.mul(g.matmul(q, g.transpose(repeat_heads(g, k, group), {0, 1, 3, 2})),
                             g.scalar(1 / std::sqrt(static_cast<float>(q.shape[3]))));
  const Value weights = g.softmax(g.add(scores, mask), -1);
  return merge_heads(g, g.matmul(weights, repeat_heads(g, v, group)));
}

// `step` and the layer's number where one token is written.
Value gpt2_block(GraphBuilder& g, const Value& x, int64_t heads, const Step* step = nullptr, int layer = 0) {
  const int64_t width = x.shape[2];
  Value mixed;
  {
    const Value normed = layer_norm(g, "ln_1", x);
    const auto scope = g.scope("attn");
    const std::vector<Value> parts = g.split(linear(g, "c_attn", normed, 3 * width), 3, 2);
    const Value q = split_heads(g, parts[0], heads), k = split_heads(g, parts[1], heads);
    const Value v = split_heads(g, parts[2], heads);
    const Value merged =
        step == nullptr ? scaled_dot_product(g, q, g.transpose(k, {0, 1, 3, 2}), v, {.heads = heads, .causal = true})
                        : masked_attention(g, q, with_cache(g, *step, fmt::format("{}.key", layer), k),
                                           with_cache(g, *step, fmt::format("{}.value", layer), v), step->mask);
    mixed = linear(g, "c_proj", merged, width, kBranch);
  }
  const Value y = g.add(mixed, x);
  const Value normed = layer_norm(g, "ln_2", y);
  const auto scope = g.scope("mlp");
  return g.add(y, linear(g, "c_proj", gelu_tanh(g, linear(g, "c_fc", normed, 4 * width)), width, kBranch));
}

struct LlamaBlock {
  int64_t heads, key_heads, hidden;
  Value cosines, sines, mask;
  const Step* step = nullptr;  // where one token is written
};

Value llama_block(GraphBuilder& g, const Value& x, const LlamaBlock& block, int layer) {
  const int64_t width = x.shape[2], depth = width / block.heads, shared = block.key_heads * depth;
  Value mixed;
  {
    const Value normed = rms_norm(g, "input_layernorm", x, 1e-5F);
    const auto scope = g.scope("self_attn");
    const Value q = split_heads(g, linear(g, "q_proj", normed, width, 1, false), block.heads);
    const Value k = split_heads(g, linear(g, "k_proj", normed, shared, 1, false), block.key_heads);
    const Value v = split_heads(g, linear(g, "v_proj", normed, shared, 1, false), block.key_heads);
    Value keys = rotate(g, k, block.cosines, block.sines), values = v;
    if (block.step != nullptr) {
      keys = with_cache(g, *block.step, fmt::format("{}.key", layer), keys);
      values = with_cache(g, *block.step, fmt::format("{}.value", layer), values);
    }
    const Value queries = rotate(g, q, block.cosines, block.sines);
    mixed = linear(g, "o_proj", masked_attention(g, queries, keys, values, block.mask), width, kBranch, false);
  }
  const Value y = g.add(x, mixed);
  const Value normed = rms_norm(g, "post_attention_layernorm", y, 1e-5F);
  const auto scope = g.scope("mlp");
  const Value gate = silu(g, linear(g, "gate_proj", normed, block.hidden, 1, false));
  const Value up = linear(g, "up_proj", normed, block.hidden, 1, false);
  return g.add(y, linear(g, "down_proj", g.mul(gate, up), width, kBranch, false));
}

// The bucket of `key - query` (Raffel et al. 2020): half of them exact, the others wider with the logarithm.
int64_t t5_bucket(int64_t distance, bool both_ways) {
  constexpr int64_t kBuckets = 32, kFarthest = 128;
  int64_t buckets = kBuckets, first = 0;
  if (both_ways) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = -std::min<int64_t>(distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double far = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                     std::log(static_cast<double>(kFarthest) / static_cast<double>(exact));
  return first + std::min(exact + static_cast<int64_t>(far * static_cast<double>(buckets - exact)), buckets - 1);
}

// A learned bias for each bucket and head, [1,heads,t,t].
Value t5_bias(GraphBuilder& g, int64_t t, int64_t heads, bool both_ways) {
  Ints buckets;
  for (int64_t query = 0; query < t; ++query) {
    for (int64_t key = 0; key < t; ++key) buckets.push_back(t5_bucket(key - query, both_ways));
  }
  const Value table = g.weight("relative_attention_bias.weight", {32, heads}, Fill::normal(0, 0.5));
  return g.unsqueeze(g.transpose(g.gather(table, g.reshape(g.ints(buckets), {t, t}), 0), {2, 0, 1}), {0});
}

// Attention without a scale: the weights of q hold it. `bias` may be left out.
Value t5_attention(GraphBuilder& g, const Value& x, const Value& memory, int64_t heads, const Value* bias) {
  constexpr double kOfQueries = 0.125;  // the root of a head's width
  const int64_t width = x.shape[2];
  const Value q = split_heads(g, linear(g, "q", x, width, kOfQueries, false), heads);
  const Value k = split_heads(g, linear(g, "k", memory, width, 1, false), heads);
  const Value v = split_heads(g, linear(g, "v", memory, width, 1, false), heads);
  Value scores = g.matmul(q, g.transpose(k, {0, 1, 3, 2}));
  if (bias != nullptr) scores = g.add(scores, *bias);
  return linear(g, "o", merge_heads(g, g.matmul(g.softmax(scores, -1), v)), width, kBranch, false);
}

// With `memory` a block of the decoder.
Value t5_block(GraphBuilder& g, std::string_view name, Value x, const Value* memory, const Value& bias) {
  constexpr int64_t kHeads = 8, kHidden = 2048;
  const auto scope = g.scope(name);
  const auto attend = [&](std::string_view layer, const Value* to, const Value* with) {
    const auto inside = g.scope(layer);
    const Value normed = rms_norm(g, "layer_norm", x);
    x = g.add(x, t5_attention(g, normed, to != nullptr ? *to : normed, kHeads, with));
  };
  attend("SelfAttention", nullptr, &bias);
  if (memory != nullptr) attend("EncDecAttention", memory, nullptr);
  const auto inside = g.scope("DenseReluDense");
  const Value hidden = g.relu(linear(g, "wi", rms_norm(g, "layer_norm", x), kHidden, kRelu, false));
  return g.add(x, linear(g, "wo", hidden, x.shape[2], kBranch, false));
}

void gpt2_model(GraphBuilder& g, const Options& options, bool is_step) {
  constexpr int64_t kWords = 50257, kPositions = 1024, kDepth = 64;
  const Value ids = g.index_input("input_ids", kWords, {options.batch, is_step ? 1 : options.seq});
  const Step step = is_step ? make_step(g, options.batch, options.seq) : Step{};
  const Value table = g.weight("wte.weight", {kWords, options.width}, Fill::normal(0, 0.1));
  const Value places = g.weight("wpe.weight", {kPositions, options.width}, Fill::normal(0, 0.1));
  const Value place =
      is_step ? g.unsqueeze(g.gather(places, step.positions, 0), {1}) : g.slice(places, 0, 0, options.seq);
  Value x = g.add(g.gather(table, ids, 0), place);
  for (int i = 0; i < 12; ++i) {
    const auto scope = g.scope(fmt::format("h.{}", i));
    x = gpt2_block(g, x, options.width / kDepth, is_step ? &step : nullptr, i);
  }
  g.output(tied_head(g, layer_norm(g, "ln_f", x), table), "logits");
}

void llama_model(GraphBuilder& g, const Options& options, bool is_step) {
  constexpr int64_t kWords = 128256, kDepth = 64, kGroup = 4;
  constexpr double kBase = 500000;
  const Value ids = g.index_input("input_ids", kWords, {options.batch, is_step ? 1 : options.seq});
  const Step step = is_step ? make_step(g, options.batch, options.seq) : Step{};
  const Value table = g.weight("embed_tokens.weight", {kWords, options.width}, Fill::normal(0, 0.1));
  const int64_t heads = options.width / kDepth;
  // Of one token for each sequence: [n,1,1,depth].
  const auto turns = [&](bool sine) {
    const Value all = rotations(g, options.seq, kDepth, kBase, sine);
    return is_step ? g.unsqueeze(g.gather(all, step.positions, 0), {1, 2}) : all;
  };
  const LlamaBlock block{.heads = heads,
                         .key_heads = heads / kGroup,
                         .hidden = 4 * options.width,
                         .cosines = turns(false),
                         .sines = turns(true),
                         .mask = is_step ? step.mask : mask_of_positions(g, options.seq),
                         .step = is_step ? &step : nullptr};
  Value x = g.gather(table, ids, 0);
  for (int i = 0; i < 16; ++i) {
    const auto scope = g.scope(fmt::format("layers.{}", i));
    x = llama_block(g, x, block, i);
  }
  g.output(tied_head(g, rms_norm(g, "norm", x, 1e-5F), table), "logits");
}

}  // namespace

// Radford et al. 2019, the smallest, in the form of the package transformers.
void gpt2(GraphBuilder& g, const Options& options) {
  gpt2_model(g, options, false);
}
void gpt2_step(GraphBuilder& g, const Options& options) {
  gpt2_model(g, options, true);
}

// Llama 3.2 1B (Grattafiori et al. 2024) at its own width of 2048: heads of 64, four of queries for one of keys.
void llama(GraphBuilder& g, const Options& options) {
  llama_model(g, options, false);
}
void llama_step(GraphBuilder& g, const Options& options) {
  llama_model(g, options, true);
}

// Raffel et al. 2020, small, encoder and decoder.
void t5_small(GraphBuilder& g, const Options& options) {
  constexpr int64_t kWidth = 512, kWords = 32128, kHeads = 8, kLayers = 6;
  const Value source = g.index_input("input_ids", kWords, {options.batch, options.seq});
  const Value target = g.index_input("decoder_input_ids", kWords, {options.batch, options.seq});
  const Value table = g.weight("shared.weight", {kWords, kWidth}, Fill::normal(0, 1));
  Value memory = g.gather(table, source, 0), y = g.gather(table, target, 0);
  {
    const auto scope = g.scope("encoder");
    const Value bias = t5_bias(g, options.seq, kHeads, true);
    for (int i = 0; i < kLayers; ++i) memory = t5_block(g, fmt::format("block.{}", i), memory, nullptr, bias);
    memory = rms_norm(g, "final_layer_norm", memory);
  }
  {
    const auto scope = g.scope("decoder");
    const Value bias = g.add(t5_bias(g, options.seq, kHeads, false), causal_mask(g, options.seq, options.seq));
    for (int i = 0; i < kLayers; ++i) y = t5_block(g, fmt::format("block.{}", i), y, &memory, bias);
    y = rms_norm(g, "final_layer_norm", y);
  }
  g.output(tied_head(g, g.mul(y, g.scalar(1 / std::sqrt(static_cast<float>(kWidth)))), table), "logits");
}

}  // namespace heddle::zoo
