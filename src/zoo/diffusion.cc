// What surrounds the UNet of Stable Diffusion: the text encoders (Radford et al. 2021) and the decoder of latents.
#include <fmt/format.h>

#include <cmath>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kTextHead = 64;  // channels of a head

Value quick_gelu(GraphBuilder& g, const Value& x) {
  return g.mul(x, g.sigmoid(g.mul(x, g.scalar(1.702F))));
}

struct TextForm {
  int layers;
  Value (*activation)(GraphBuilder&, const Value&);
  bool has_projection;
};

Value text_block(GraphBuilder& g, const Value& x, const TextForm& form) {
  const int64_t width = x.shape[2];
  const Value normed = layer_norm(g, "layer_norm1", x);
  const Attention own{.heads = width / kTextHead, .causal = true, .gain = kBranch};
  const Value y = g.add(x, attention(g, "self_attn", normed, normed, own));
  const Value hidden = form.activation(g, linear(g, "mlp.fc1", layer_norm(g, "layer_norm2", y), 4 * width));
  return g.add(y, linear(g, "mlp.fc2", hidden, width, kBranch));
}

// The row of each sequence at its token with the largest number, which ends the text.
Value row_of_end(GraphBuilder& g, const Value& x, const Value& ids) {
  const int64_t n = x.shape[0];
  const Value end = g.node("ArgMax", {ids}, {{"axis", -1}, {"keepdims", 1}}, {n, 1}, DType::kI64);
  Ints rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(i);
  const Value at = g.node("Concat", {g.reshape(g.ints(rows), {n, 1}), end}, {{"axis", 1}}, {n, 2}, DType::kI64);
  return g.node("GatherND", {x, at}, {}, {n, x.shape[2]});
}

// The last two hidden states have the names that optimum's exports of Stable Diffusion XL give them.
void text_model(GraphBuilder& g, const TextForm& form, const Options& options) {
  constexpr int64_t kWords = 49408, kPositions = 77;
  const Value ids = g.index_input("input_ids", kWords, {options.batch, options.seq});
  const Value places = g.weight("position_embedding.weight", {kPositions, options.width}, Fill::normal(0, 0.1));
  Value x = g.add(embedding(g, "token_embedding", ids, kWords, options.width, 0.5), g.slice(places, 0, 0, options.seq));
  Value before = x;
  for (int i = 0; i < form.layers; ++i) {
    const auto scope = g.scope(fmt::format("layers.{}", i));
    before = x;
    x = text_block(g, x, form);
  }
  const Value last = layer_norm(g, "final_layer_norm", x);
  const Value pooled = row_of_end(g, last, ids);
  if (form.has_projection) g.output(linear(g, "text_projection", pooled, options.width, 1, false), "text_embeds");
  g.output(last, "last_hidden_state");
  if (!form.has_projection) g.output(pooled, "pooler_output");
  g.output(before, fmt::format("hidden_states.{}", form.layers - 1));
  g.output(x, fmt::format("hidden_states.{}", form.layers));
}

// Attention of all pixels on each other, with one head.
Value pixel_attention(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("attn");
  const int64_t n = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
  const Value rows = g.transpose(g.reshape(group_norm(g, "n", x, 32), {n, c, -1}), {0, 2, 1});
  const Value mixed = attention(g, "a", rows, rows, {.heads = 1, .gain = kBranch});
  return g.add(x, g.reshape(g.transpose(mixed, {0, 2, 1}), {n, c, h, w}));
}

}  // namespace

// CLIP ViT-L/14: the text encoder of Stable Diffusion 1.x, and the first of XL.
void sd_text(GraphBuilder& g, const Options& options) {
  text_model(g, {.layers = 12, .activation = quick_gelu, .has_projection = false}, options);
}

// OpenCLIP ViT-bigG/14: the second text encoder of Stable Diffusion XL.
void sdxl_text_2(GraphBuilder& g, const Options& options) {
  text_model(g, {.layers = 32, .activation = gelu, .has_projection = true}, options);
}

// The decoder of the autoencoder of Rombach et al. 2022: eight pixels for one of the latent, in both directions.
void sd_vae_decoder(GraphBuilder& g, const Options& options) {
  constexpr int64_t kLatent = 4, kMultiples[] = {4, 4, 2, 1};
  const int64_t most = kMultiples[0] * options.width;
  const Value latent = g.input("latent_sample", DType::kF32, {options.batch, kLatent, options.size, options.size});
  Value x = conv(g, "post_quant_conv", latent, {.out = kLatent, .kernel = 1, .gain = 1});
  x = conv(g, "conv_in", x, {.out = most, .pad = 1, .gain = 1});
  x = res_block(g, "mid.0", x, nullptr, most);
  x = res_block(g, "mid.1", pixel_attention(g, x), nullptr, most);
  for (size_t level = 0; level < std::size(kMultiples); ++level) {
    const auto scope = g.scope(fmt::format("up.{}", level));
    for (int i = 0; i < 3; ++i) {
      x = res_block(g, fmt::format("{}", i), x, nullptr, kMultiples[level] * options.width);
    }
    if (level + 1 < std::size(kMultiples)) {
      x = conv(g, "upsample", upsample(g, x), {.out = x.shape[1], .pad = 1, .gain = 1});
    }
  }
  x = silu(g, group_norm(g, "norm", x, 32));
  g.output(conv(g, "conv_out", x, {.out = 3, .pad = 1, .gain = 0.5}), "sample");
}

}  // namespace heddle::zoo
