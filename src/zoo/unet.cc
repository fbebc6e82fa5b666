#include <fmt/format.h>

#include <array>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kGroups = 32;
constexpr int64_t kHeads = 8;

// Two convolutions with the embedded time step `t` [n,4*width] added between them.
Value res_block(GraphBuilder& g, std::string_view name, const Value& x, const Value& t, int64_t out) {
  const auto scope = g.scope(name);
  const Value first = conv(g, "c1", silu(g, group_norm(g, "n1", x, kGroups)), {.out = out, .pad = 1});
  const Value shift = g.unsqueeze(g.unsqueeze(linear(g, "t", silu(g, t), out), {2}), {3});
  const Value hidden = silu(g, group_norm(g, "n2", g.add(first, shift), kGroups));
  const Value branch = conv(g, "c2", hidden, {.out = out, .pad = 1, .gain = kBranch});
  return g.add(x.shape[1] == out ? x : conv(g, "s", x, {.out = out, .kernel = 1, .gain = 1}), branch);
}

// A transformer block over the pixels: attention on themselves, on the context, and a gated feed-forward part.
Value spatial_block(GraphBuilder& g, std::string_view name, const Value& x, const Value& context) {
  const auto scope = g.scope(name);
  const int64_t n = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
  const Value mapped = conv(g, "i", group_norm(g, "n", x, kGroups), {.out = c, .kernel = 1, .gain = 1});
  Value y = g.transpose(g.reshape(mapped, {n, c, -1}), {0, 2, 1});
  const Attention options{.heads = kHeads, .gain = kBranch};
  const Value own = layer_norm(g, "n1", y);
  y = g.add(y, attention(g, "a1", own, own, options));
  y = g.add(y, attention(g, "a2", layer_norm(g, "n2", y), context, options));
  const std::vector<Value> halves = g.split(linear(g, "f1", layer_norm(g, "n3", y), 8 * c), 2, -1);
  y = g.add(y, linear(g, "f2", g.mul(halves[0], gelu(g, halves[1])), c, kBranch));
  const Value image = g.reshape(g.transpose(y, {0, 2, 1}), {n, c, h, w});
  return g.add(x, conv(g, "o", image, {.out = c, .kernel = 1, .gain = kBranch}));
}

Value upsample(GraphBuilder& g, const Value& x) {
  return g.node("Resize", {x, Value{}, g.floats({4}, {1, 1, 2, 2})},
                {{"coordinate_transformation_mode", "asymmetric"}, {"mode", "nearest"}, {"nearest_mode", "floor"}},
                {x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]});
}

// Cosines and sines of the step [n] at geometric frequencies, then two linear layers: [n,4*width].
Value time_embedding(GraphBuilder& g, const Value& step, int64_t width) {
  const int64_t half = width / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = static_cast<float>(std::pow(1e4, -static_cast<double>(i) / static_cast<double>(half)));
  }
  const Value angle = g.mul(g.cast(g.unsqueeze(step, {1}), DType::kF32), g.floats({half}, frequencies));
  const auto scope = g.scope("te");
  const Value waves = g.concat({g.unary("Cos", angle), g.unary("Sin", angle)}, -1);
  return linear(g, "2", silu(g, linear(g, "0", waves, 4 * width, kRelu)), 4 * width, kRelu);
}

}  // namespace

// Rombach et al. 2022: the denoiser of Stable Diffusion 1.x, 860 million parameters at width 320.
void sd_unet(GraphBuilder& g, const Options& options) {
  constexpr std::array<int64_t, 4> kMultiples{1, 2, 4, 4};
  constexpr size_t kAttentionLevels = 3;
  const Value latent = g.input("sample", DType::kF32, {options.batch, 4, options.size, options.size});
  const Value step = g.index_input("timestep", 1000, {options.batch});
  const Value context = g.input("context", DType::kF32, {options.batch, options.seq, 768});
  const Value t = time_embedding(g, step, options.width);

  Value x = conv(g, "ci", latent, {.out = options.width, .pad = 1, .gain = 1});
  std::vector<Value> skips{x};
  int down = 0;
  for (size_t level = 0; level < kMultiples.size(); ++level) {
    for (int i = 0; i < 2; ++i, ++down) {
      const auto scope = g.scope(fmt::format("down.{}", down));
      x = res_block(g, "0", x, t, options.width * kMultiples[level]);
      if (level < kAttentionLevels) x = spatial_block(g, "1", x, context);
      skips.push_back(x);
    }
    if (level + 1 == kMultiples.size()) break;
    x = conv(g, fmt::format("down.{}", down++), x, {.out = x.shape[1], .stride = 2, .pad = 1, .gain = 1});
    skips.push_back(x);
  }

  x = res_block(g, "m1", x, t, x.shape[1]);
  x = res_block(g, "m2", spatial_block(g, "ma", x, context), t, x.shape[1]);

  int up = 0;
  for (size_t level = kMultiples.size(); level-- > 0;) {
    for (int i = 0; i < 3; ++i, ++up) {
      const auto scope = g.scope(fmt::format("up.{}", up));
      x = res_block(g, "0", g.concat({x, skips.back()}, 1), t, options.width * kMultiples[level]);
      skips.pop_back();
      if (level < kAttentionLevels) x = spatial_block(g, "1", x, context);
    }
    if (level == 0) break;
    x = conv(g, fmt::format("up.{}", up++), upsample(g, x), {.out = x.shape[1], .pad = 1, .gain = 1});
  }
  g.output(conv(g, "co", silu(g, group_norm(g, "n", x, kGroups)), {.out = 4, .pad = 1, .gain = 1}), "output");
}

}  // namespace heddle::zoo
