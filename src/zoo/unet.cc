#include <fmt/format.h>

#include <vector>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kGroups = 32;

// In what two UNets differ.
struct Form {
  std::vector<int64_t> multiples;  // of the width, by level
  std::vector<int> depths;         // transformer blocks of a spatial block, by level; 0: no spatial block
  int middle_depth;
  int64_t heads;        // of attention; 0: heads of 64 channels
  bool linear;          // the projections around transformer blocks are linear layers, not convolutions
  bool has_conditions;  // further inputs beside the step: a pooled text, and sizes
};

// Attention on the pixels themselves, on the context, and a gated feed-forward part. y is [n,pixels,c].
Value transformer_block(GraphBuilder& g, Value y, const Value& context, int64_t heads) {
  const int64_t c = y.shape[2];
  const Attention options{.heads = heads, .bias = false, .gain = kBranch};
  const Value own = layer_norm(g, "n1", y);
  y = g.add(y, attention(g, "a1", own, own, options));
  y = g.add(y, attention(g, "a2", layer_norm(g, "n2", y), context, options));
  const std::vector<Value> halves = g.split(linear(g, "f1", layer_norm(g, "n3", y), 8 * c), 2, -1);
  return g.add(y, linear(g, "f2", g.mul(halves[0], gelu(g, halves[1])), c, kBranch));
}

// Transformer blocks over the pixels.
Value spatial_block(GraphBuilder& g, std::string_view name, const Value& x, const Value& context, const Form& form,
                    int depth) {
  const auto scope = g.scope(name);
  const int64_t n = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
  const auto pixels = [&](const Value& image) { return g.transpose(g.reshape(image, {n, c, -1}), {0, 2, 1}); };
  const auto image = [&](const Value& rows) { return g.reshape(g.transpose(rows, {0, 2, 1}), {n, c, h, w}); };
  const Value normed = group_norm(g, "n", x, kGroups);
  Value y = form.linear ? linear(g, "i", pixels(normed), c)
                        : pixels(conv(g, "i", normed, {.out = c, .kernel = 1, .gain = 1}));
  for (int i = 0; i < depth; ++i) {
    const auto inside = g.scope(fmt::format("{}", i));
    y = transformer_block(g, y, context, form.heads > 0 ? form.heads : c / 64);
  }
  return g.add(x, form.linear ? image(linear(g, "o", y, c, kBranch))
                              : conv(g, "o", image(y), {.out = c, .kernel = 1, .gain = kBranch}));
}

// Cosines and sines of numbers [...] at geometric frequencies: [...,width].
Value waves_of(GraphBuilder& g, const Value& numbers, int64_t width) {
  const int64_t half = width / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = static_cast<float>(std::pow(1e4, -static_cast<double>(i) / static_cast<double>(half)));
  }
  const auto last = static_cast<int64_t>(numbers.shape.size());
  const Value angle = g.mul(g.cast(g.unsqueeze(numbers, {last}), DType::kF32), g.floats({half}, frequencies));
  return g.concat({g.unary("Cos", angle), g.unary("Sin", angle)}, -1);
}

Value embedded(GraphBuilder& g, std::string_view name, const Value& x, int64_t width) {
  const auto scope = g.scope(name);
  return linear(g, "2", silu(g, linear(g, "0", x, width, kRelu)), width, kRelu);
}

// The step, and the conditions if there are any, as [n,4*width].
Value embedding_of_inputs(GraphBuilder& g, const Form& form, const Options& options) {
  constexpr int64_t kSizes = 6, kWavesOfSize = 256;
  const Value step = g.index_input("timestep", 1000, {options.batch});
  const Value t = embedded(g, "te", waves_of(g, step, options.width), 4 * options.width);
  if (!form.has_conditions) return t;
  const Value text = g.input("text_embeds", DType::kF32, {options.batch, options.context * 5 / 8});
  const Value sizes = g.input("time_ids", DType::kF32, {options.batch, kSizes});
  const Value waves = g.reshape(waves_of(g, sizes, kWavesOfSize), {options.batch, kSizes * kWavesOfSize});
  return g.add(t, embedded(g, "ae", g.concat({text, waves}, -1), 4 * options.width));
}

void unet(GraphBuilder& g, const Form& form, const Options& options) {
  const Value latent = g.input("sample", DType::kF32, {options.batch, 4, options.size, options.size});
  const Value t = embedding_of_inputs(g, form, options);
  const Value context = g.input("encoder_hidden_states", DType::kF32, {options.batch, options.seq, options.context});
  const size_t levels = form.multiples.size();

  Value x = conv(g, "ci", latent, {.out = options.width, .pad = 1, .gain = 1});
  std::vector<Value> skips{x};
  int down = 0;
  for (size_t level = 0; level < levels; ++level) {
    for (int i = 0; i < 2; ++i, ++down) {
      const auto scope = g.scope(fmt::format("down.{}", down));
      x = res_block(g, "0", x, &t, options.width * form.multiples[level]);
      if (form.depths[level] > 0) x = spatial_block(g, "1", x, context, form, form.depths[level]);
      skips.push_back(x);
    }
    if (level + 1 == levels) break;
    x = conv(g, fmt::format("down.{}", down++), x, {.out = x.shape[1], .stride = 2, .pad = 1, .gain = 1});
    skips.push_back(x);
  }

  x = res_block(g, "m1", x, &t, x.shape[1]);
  x = res_block(g, "m2", spatial_block(g, "ma", x, context, form, form.middle_depth), &t, x.shape[1]);

  int up = 0;
  for (size_t level = levels; level-- > 0;) {
    for (int i = 0; i < 3; ++i, ++up) {
      const auto scope = g.scope(fmt::format("up.{}", up));
      x = res_block(g, "0", g.concat({x, skips.back()}, 1), &t, options.width * form.multiples[level]);
      skips.pop_back();
      if (form.depths[level] > 0) x = spatial_block(g, "1", x, context, form, form.depths[level]);
    }
    if (level == 0) break;
    x = conv(g, fmt::format("up.{}", up++), upsample(g, x), {.out = x.shape[1], .pad = 1, .gain = 1});
  }
  g.output(conv(g, "co", silu(g, group_norm(g, "n", x, kGroups)), {.out = 4, .pad = 1, .gain = 1}), "out_sample");
}

}  // namespace

// Rombach et al. 2022: the denoiser of Stable Diffusion 1.x, 860 million parameters at width 320.
void sd_unet(GraphBuilder& g, const Options& options) {
  unet(g,
       {.multiples = {1, 2, 4, 4},
        .depths = {1, 1, 1, 0},
        .middle_depth = 1,
        .heads = 8,
        .linear = false,
        .has_conditions = false},
       options);
}

// Podell et al. 2023: the denoiser of Stable Diffusion XL.
void sdxl_unet(GraphBuilder& g, const Options& options) {
  unet(g,
       {.multiples = {1, 2, 4},
        .depths = {0, 2, 10},
        .middle_depth = 10,
        .heads = 0,
        .linear = true,
        .has_conditions = true},
       options);
}

}  // namespace heddle::zoo
