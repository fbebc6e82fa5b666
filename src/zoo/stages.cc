// Networks for pictures in stages, each of half the extent and twice the channels of the one before, without batch
// normalisation.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kWindow = 7;  // of Swin, in both directions
constexpr int64_t kDepths[] = {2, 2, 6, 2}, kConvDepths[] = {3, 3, 9, 3};

// [n,c,h,w] with the channels normalised.
Value norm_of_channels(GraphBuilder& g, std::string_view name, const Value& x) {
  return g.transpose(layer_norm(g, name, g.transpose(x, {0, 2, 3, 1}), 1e-6F), {0, 3, 1, 2});
}

// [n,h,w,c] rolled by `shift` towards the origin in both directions.
Value roll(GraphBuilder& g, Value x, int64_t shift) {
  for (const int64_t axis : {1, 2}) {
    const int64_t extent = x.shape[static_cast<size_t>(axis)], cut = (shift % extent + extent) % extent;
    x = g.concat({g.slice(x, axis, cut, extent), g.slice(x, axis, 0, cut)}, axis);
  }
  return x;
}

// A learned bias for each distance within a window and head: [1,heads,49,49].
Value window_bias(GraphBuilder& g, int64_t heads) {
  constexpr int64_t kAll = kWindow * kWindow, kSide = 2 * kWindow - 1;
  Ints at;
  for (int64_t i = 0; i < kAll; ++i) {
    for (int64_t j = 0; j < kAll; ++j) {
      const int64_t down = i / kWindow - j / kWindow + kWindow - 1, across = i % kWindow - j % kWindow + kWindow - 1;
      at.push_back(down * kSide + across);
    }
  }
  const Value table = g.weight("relative_position_bias_table", {kSide * kSide, heads}, Fill::normal(0, 0.5));
  const Value bias = g.reshape(g.gather(table, g.ints(at), 0), {kAll, kAll, heads});
  return g.unsqueeze(g.transpose(bias, {2, 0, 1}), {0});
}

// Of shifted windows: -100 between pixels that were apart before the roll, else 0: [1,windows,1,49,49].
Value window_mask(GraphBuilder& g, int64_t height, int64_t width, int64_t shift) {
  constexpr int64_t kAll = kWindow * kWindow;
  const auto part = [&](int64_t at, int64_t extent) { return at < extent - kWindow ? 0 : at < extent - shift ? 1 : 2; };
  std::vector<float> mask;
  for (int64_t window = 0; window < height * width / kAll; ++window) {
    const int64_t top = window / (width / kWindow) * kWindow, left = window % (width / kWindow) * kWindow;
    const auto region = [&](int64_t i) {
      return 3 * part(top + i / kWindow, height) + part(left + i % kWindow, width);
    };
    for (int64_t i = 0; i < kAll; ++i) {
      for (int64_t j = 0; j < kAll; ++j) mask.push_back(region(i) == region(j) ? 0.0F : -100.0F);
    }
  }
  return g.floats({1, height * width / kAll, 1, kAll, kAll}, mask);
}

// Attention within windows of x [n,h,w,c].
Value window_attention(GraphBuilder& g, const Value& x, int64_t heads, int64_t shift) {
  constexpr int64_t kAll = kWindow * kWindow;
  const int64_t n = x.shape[0], h = x.shape[1], w = x.shape[2], width = x.shape[3], depth = width / heads;
  const int64_t windows = h * w / kAll;
  const auto scope = g.scope("attn");
  const Value moved = shift > 0 ? roll(g, x, shift) : x;
  const Value cut =
      g.transpose(g.reshape(moved, {n, h / kWindow, kWindow, w / kWindow, kWindow, width}), {0, 1, 3, 2, 4, 5});
  const Value joined = linear(g, "qkv", g.reshape(cut, {n * windows, kAll, width}), 3 * width);
  const Value parts = g.transpose(g.reshape(joined, {n * windows, kAll, 3, heads, depth}), {2, 0, 3, 1, 4});
  const Value root = g.scalar(1 / std::sqrt(static_cast<float>(depth)));
  const Value q = g.mul(g.gather(parts, g.index(0), 0), root);
  const Value k = g.transpose(g.gather(parts, g.index(1), 0), {0, 1, 3, 2});
  Value scores = g.add(g.matmul(q, k), window_bias(g, heads));
  if (shift > 0) {
    const Value apart = g.reshape(scores, {n, windows, heads, kAll, kAll});
    scores = g.reshape(g.add(apart, window_mask(g, h, w, shift)), {n * windows, heads, kAll, kAll});
  }
  const Value mixed = g.matmul(g.softmax(scores, -1), g.gather(parts, g.index(2), 0));
  const Value merged = linear(g, "proj", merge_heads(g, mixed), width, kBranch);
  const Value back =
      g.transpose(g.reshape(merged, {n, h / kWindow, w / kWindow, kWindow, kWindow, width}), {0, 1, 3, 2, 4, 5});
  const Value whole = g.reshape(back, {n, h, w, width});
  return shift > 0 ? roll(g, whole, -shift) : whole;
}

// Neighbours of 2x2 side by side, normalised, at half of their channels.
Value merge_patches(GraphBuilder& g, const Value& x) {
  const auto scope = g.scope("downsample");
  const int64_t n = x.shape[0], h = x.shape[1], w = x.shape[2], width = x.shape[3];
  const Value cut = g.transpose(g.reshape(x, {n, h / 2, 2, w / 2, 2, width}), {0, 1, 3, 4, 2, 5});
  return linear(g, "reduction", layer_norm(g, "norm", g.reshape(cut, {n, h / 2, w / 2, 4 * width})), 2 * width, 1,
                false);
}

Value mlp(GraphBuilder& g, const Value& x, double gain) {
  const auto scope = g.scope("mlp");
  return linear(g, "fc2", gelu(g, linear(g, "fc1", x, 4 * x.shape.back())), x.shape.back(), gain);
}

Value convnext_block(GraphBuilder& g, const Value& x) {
  const int64_t width = x.shape[1];
  const Value mixed = conv(g, "conv_dw", x, {.out = width, .kernel = 7, .pad = 3, .groups = width, .gain = 1});
  const Value normed = layer_norm(g, "norm", g.transpose(mixed, {0, 2, 3, 1}), 1e-6F);
  const Value branch = g.mul(mlp(g, normed, 1), g.weight("gamma", {width}, Fill::uniform(0.3, 0.6)));
  return g.add(g.transpose(branch, {0, 3, 1, 2}), x);
}

}  // namespace

// Liu et al. 2021, tiny, in the form of the package timm. The extents are whole windows in every stage.
void swin_t(GraphBuilder& g, const Options& options) {
  const Value image = g.input("input", DType::kF32, {options.batch, 3, options.size, options.size});
  Value x = conv(g, "patch_embed.proj", image, {.out = options.width, .kernel = 4, .stride = 4, .gain = 1});
  x = layer_norm(g, "patch_embed.norm", g.transpose(x, {0, 2, 3, 1}));
  constexpr int64_t kHeadWidth = 32;
  for (size_t stage = 0; stage < std::size(kDepths); ++stage) {
    const auto scope = g.scope(fmt::format("layers.{}", stage));
    if (stage > 0) x = merge_patches(g, x);
    for (int64_t i = 0; i < kDepths[stage]; ++i) {
      const auto inside = g.scope(fmt::format("blocks.{}", i));
      const int64_t shift = i % 2 == 1 && x.shape[1] > kWindow ? kWindow / 2 : 0;
      x = g.add(x, window_attention(g, layer_norm(g, "norm1", x), x.shape[3] / kHeadWidth, shift));
      x = g.add(x, mlp(g, layer_norm(g, "norm2", x), kBranch));
    }
  }
  x = layer_norm(g, "norm", x);
  x = g.node("ReduceMean", {x}, {{"axes", Ints{1, 2}}, {"keepdims", 0}}, {options.batch, x.shape[3]});
  g.output(linear(g, "head.fc", x, 1000), "output");
}

// Liu et al. 2022, tiny, in the form of the package timm.
void convnext_t(GraphBuilder& g, const Options& options) {
  const Value image = g.input("input", DType::kF32, {options.batch, 3, options.size, options.size});
  Value x = conv(g, "stem.0", image, {.out = options.width, .kernel = 4, .stride = 4, .gain = 1});
  x = norm_of_channels(g, "stem.1", x);
  for (size_t stage = 0; stage < std::size(kConvDepths); ++stage) {
    const auto scope = g.scope(fmt::format("stages.{}", stage));
    if (stage > 0) {
      x = norm_of_channels(g, "downsample.0", x);
      x = conv(g, "downsample.1", x, {.out = 2 * x.shape[1], .kernel = 2, .stride = 2, .gain = 1});
    }
    for (int64_t i = 0; i < kConvDepths[stage]; ++i) {
      const auto inside = g.scope(fmt::format("blocks.{}", i));
      x = convnext_block(g, x);
    }
  }
  x = norm_of_channels(g, "head.norm", global_average_pool(g, x));
  g.output(linear(g, "head.fc", flatten(g, x), 1000), "output");
}

}  // namespace heddle::zoo
