#include <fmt/format.h>

#include <functional>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

using Activation = std::function<Value(GraphBuilder&, const Value&)>;

struct Block {
  int64_t heads;
  int64_t hidden;  // width of the feed-forward part
  Activation activation;
  bool dynamic_shapes = false;
};

// Normalisation after each residual sum (Vaswani et al. 2017). With a memory the block is a decoder's: causal attention
// on itself, then attention on the memory.
Value post_norm_block(GraphBuilder& g, std::string_view name, Value x, const Value* memory, const Block& block) {
  const auto scope = g.scope(name);
  const Attention own{.heads = block.heads, .causal = memory != nullptr, .dynamic_shapes = block.dynamic_shapes};
  x = layer_norm(g, "n1", g.add(x, attention(g, "a", x, x, own)));
  if (memory != nullptr) x = layer_norm(g, "n2", g.add(x, attention(g, "c", x, *memory, {.heads = block.heads})));
  const Value hidden = block.activation(g, linear(g, "f1", x, block.hidden));
  return layer_norm(g, "n3", g.add(x, linear(g, "f2", hidden, x.shape[2])));
}

// The first rows of a learned table [1,positions,width].
Value positions(GraphBuilder& g, int64_t table_rows, int64_t rows, int64_t width) {
  return g.slice(g.weight("p", {1, table_rows, width}, Fill::normal(0, 0.02)), 1, 0, rows);
}

Value relu(GraphBuilder& g, const Value& x) {
  return g.relu(x);
}

Value pre_norm_block(GraphBuilder& g, const Value& x, int64_t heads) {
  constexpr float kEpsilon = 1e-6F;
  const int64_t n = x.shape[0], t = x.shape[1], width = x.shape[2];
  Value mixed;
  {
    const Value normed = layer_norm(g, "norm1", x, kEpsilon);
    const auto scope = g.scope("attn");
    const Value joined = g.reshape(linear(g, "qkv", normed, 3 * width), {n, t, 3, heads, width / heads});
    const Value parts = g.transpose(joined, {2, 0, 3, 1, 4});
    const Value q = g.gather(parts, g.index(0), 0);
    const Value k = g.transpose(g.gather(parts, g.index(1), 0), {0, 1, 3, 2});
    const Value v = g.gather(parts, g.index(2), 0);
    mixed = linear(g, "proj", scaled_dot_product(g, q, k, v, {.heads = heads}), width, kBranch);
  }
  const Value y = g.add(x, mixed);
  const Value normed = layer_norm(g, "norm2", y, kEpsilon);
  const auto scope = g.scope("mlp");
  return g.add(y, linear(g, "fc2", gelu(g, linear(g, "fc1", normed, 4 * width)), width, kBranch));
}

constexpr int64_t kHead = 64;  // channels of a head

}  // namespace

// Dosovitskiy et al. 2020, in the form of the package timm.
void vit_b16(GraphBuilder& g, const Options& options) {
  constexpr int64_t kPatch = 16;
  const int64_t width = options.width;
  const Value image = g.input("input", DType::kF32, {options.batch, 3, options.size, options.size});
  Value x = conv(g, "patch_embed.proj", image, {.out = width, .kernel = kPatch, .stride = kPatch, .gain = 1});
  x = g.transpose(g.reshape(x, {options.batch, width, -1}), {0, 2, 1});
  const Value token = g.weight("cls_token", {1, 1, width}, Fill::normal(0, 0.5));
  const Value tokens = g.node("Expand", {token, g.ints({options.batch, 1, width})}, {}, {options.batch, 1, width});
  x = g.concat({tokens, x}, 1);
  x = g.add(x, g.weight("pos_embed", {1, x.shape[1], width}, Fill::normal(0, 0.2)));
  for (int i = 0; i < 12; ++i) {
    const auto scope = g.scope(fmt::format("blocks.{}", i));
    x = pre_norm_block(g, x, width / kHead);
  }
  x = g.gather(layer_norm(g, "norm", x, 1e-6F), g.index(0), 1);
  g.output(linear(g, "head", x, 1000), "output");
}

// Devlin et al. 2018, encoder only.
void bert_base(GraphBuilder& g, const Options& options) {
  const int64_t width = options.width;
  const Value ids = g.index_input("input_ids", 30522, {options.batch, options.seq});
  const Value types = g.index_input("token_type_ids", 2, {options.batch, options.seq});
  const Value words = g.add(embedding(g, "e", ids, 30522, width, 0.5), embedding(g, "t", types, 2, width, 0.1));
  Value x = layer_norm(g, "n", g.add(words, positions(g, 512, options.seq, width)));
  const Block block{.heads = width / kHead, .hidden = 4 * width, .activation = gelu, .dynamic_shapes = true};
  for (int i = 0; i < 12; ++i) x = post_norm_block(g, fmt::format("l.{}", i), x, nullptr, block);
  g.output(x, "last_hidden_state");
}

// Vaswani et al. 2017, base size, encoder and decoder.
void transformer(GraphBuilder& g, const Options& options) {
  constexpr int64_t kWidth = 512, kWords = 32000;
  constexpr float kScale = 22.6F;  // the root of the width
  const Value source_ids = g.index_input("src", kWords, {options.batch, options.seq});
  const Value target_ids = g.index_input("tgt", kWords, {options.batch, options.seq});
  const Value table = g.weight("e.weight", {kWords, kWidth}, Fill::normal(0, 1.0 / kScale));
  const auto embed = [&](const Value& ids) { return g.mul(g.gather(table, ids, 0), g.scalar(kScale)); };
  const Value places = positions(g, 512, options.seq, kWidth);
  Value memory = g.add(embed(source_ids), places);
  Value y = g.add(embed(target_ids), places);
  const Block block{.heads = 8, .hidden = 2048, .activation = relu};
  for (int i = 0; i < 6; ++i) memory = post_norm_block(g, fmt::format("enc.{}", i), memory, nullptr, block);
  for (int i = 0; i < 6; ++i) y = post_norm_block(g, fmt::format("dec.{}", i), y, &memory, block);
  g.output(g.log_softmax(linear(g, "o", y, kWords), -1), "output");
}

// Speech recognition: two strided convolutions over 80 mel bands, then a transformer encoder with a CTC head.
void asr(GraphBuilder& g, const Options& options) {
  constexpr int64_t kBands = 80, kWidth = 256;
  Value x = g.unsqueeze(g.input("features", DType::kF32, {options.batch, options.seq, kBands}), {1});
  x = g.relu(conv(g, "c1", x, {.out = kWidth, .stride = 2}));
  x = g.transpose(g.relu(conv(g, "c2", x, {.out = kWidth, .stride = 2})), {0, 2, 1, 3});
  x = linear(g, "o", g.reshape(x, {options.batch, x.shape[1], -1}), kWidth);
  x = g.add(x, positions(g, 1000, x.shape[1], kWidth));
  const Block block{.heads = 4, .hidden = 2048, .activation = silu};
  for (int i = 0; i < 12; ++i) x = post_norm_block(g, fmt::format("l.{}", i), x, nullptr, block);
  g.output(g.log_softmax(linear(g, "ctc", x, 5000), -1), "output");
}

}  // namespace heddle::zoo
