#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "zoo/layers.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kClasses = 1000;
// Gain of the last layer of a residual branch: sixteen blocks in a row then grow the activations less than threefold.
constexpr double kConvBranch = 0.4;

Value image_input(GraphBuilder& g, const Options& options) {
  return g.input("input", DType::kF32, {options.batch, 3, options.size, options.size});
}

Value conv_bn(GraphBuilder& g, std::string_view conv_name, std::string_view norm_name, const Value& x, Conv options,
              double norm_gain = 1.0) {
  options.bias = false;
  return batch_norm(g, norm_name, conv(g, conv_name, x, options), norm_gain);
}

// ResNet: He et al. 2015, in torchvision's form (stride on the 3x3 convolution of a bottleneck).

Value resnet_shortcut(GraphBuilder& g, const Value& x, int64_t width, int64_t stride) {
  if (stride == 1 && x.shape[1] == width) return x;
  const auto scope = g.scope("downsample");
  return conv_bn(g, "0", "1", x, {.out = width, .kernel = 1, .stride = stride, .gain = 1});
}

Value basic_block(GraphBuilder& g, const Value& x, int64_t width, int64_t stride) {
  Value y = g.relu(conv_bn(g, "conv1", "bn1", x, {.out = width, .stride = stride, .pad = 1}));
  y = conv_bn(g, "conv2", "bn2", y, {.out = width, .pad = 1}, kConvBranch);
  return g.relu(g.add(y, resnet_shortcut(g, x, width, stride)));
}

Value bottleneck(GraphBuilder& g, const Value& x, int64_t width, int64_t stride) {
  Value y = g.relu(conv_bn(g, "conv1", "bn1", x, {.out = width, .kernel = 1}));
  y = g.relu(conv_bn(g, "conv2", "bn2", y, {.out = width, .stride = stride, .pad = 1}));
  y = conv_bn(g, "conv3", "bn3", y, {.out = 4 * width, .kernel = 1}, kConvBranch);
  return g.relu(g.add(y, resnet_shortcut(g, x, 4 * width, stride)));
}

void resnet(GraphBuilder& g, const Options& options, const std::array<int, 4>& depths, bool bottlenecks) {
  Value x = conv_bn(g, "conv1", "bn1", image_input(g, options), {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = max_pool(g, g.relu(x), {3, 3, 2, 2, 1, 1});
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < depths[static_cast<size_t>(stage)]; ++block) {
      const auto stage_scope = g.scope(fmt::format("layer{}", stage + 1));
      const auto block_scope = g.scope(fmt::format("{}", block));
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = bottlenecks ? bottleneck(g, x, 64 << stage, stride) : basic_block(g, x, 64 << stage, stride);
    }
  }
  g.output(linear(g, "fc", flatten(g, global_average_pool(g, x)), kClasses), "output");
}

// VGG: Simonyan and Zisserman 2014, configurations D and E.
void vgg(GraphBuilder& g, const Options& options, const std::array<int, 5>& depths) {
  constexpr std::array<int64_t, 5> kWidths{64, 128, 256, 512, 512};
  Value x = image_input(g, options);
  {
    const auto features = g.scope("features");
    int layer = 0;
    for (size_t stage = 0; stage < depths.size(); ++stage) {
      for (int i = 0; i < depths[stage]; ++i, layer += 2) {
        x = g.relu(conv(g, fmt::format("{}", layer), x, {.out = kWidths[stage], .pad = 1}));
      }
      x = max_pool(g, x, {2, 2, 2, 2});
      ++layer;
    }
  }
  // Adaptive pooling to 7x7; a smaller map goes to the classifier as it is.
  const int64_t window = x.shape[2] / 7;
  if (window > 0) x = average_pool(g, x, {window, window, window, window});
  const auto classifier = g.scope("classifier");
  Value y = g.relu(linear(g, "0", flatten(g, x), 4096, kRelu));
  y = g.relu(linear(g, "3", y, 4096, kRelu));
  g.output(linear(g, "6", y, kClasses), "output");
}

// RepVGG: Ding et al. 2021, after its branches were merged: plain 3x3 convolutions.
void repvgg(GraphBuilder& g, const Options& options, const std::array<int, 4>& depths,
            const std::array<int64_t, 4>& widths) {
  Value x = g.relu(
      conv(g, "stem", image_input(g, options), {.out = std::min<int64_t>(64, widths[0]), .stride = 2, .pad = 1}));
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int block = 0; block < depths[stage]; ++block) {
      const auto scope = g.scope(fmt::format("stages.{}", stage));
      x = g.relu(conv(g, fmt::format("{}", block), x, {.out = widths[stage], .stride = block == 0 ? 2 : 1, .pad = 1}));
    }
  }
  const auto head = g.scope("head");
  g.output(linear(g, "fc", flatten(g, global_average_pool(g, x)), kClasses), "output");
}

// MobileNetV2: Sandler et al. 2018.

Value relu6(GraphBuilder& g, const Value& x) {
  return g.node("Clip", {x, g.scalar(0.0F), g.scalar(6.0F)}, {}, x.shape);
}

Value inverted_residual(GraphBuilder& g, const Value& x, int64_t out, int64_t stride, int64_t expansion) {
  const auto scope = g.scope("conv");
  const int64_t hidden = x.shape[1] * expansion;
  const bool residual = stride == 1 && out == x.shape[1];
  Value y = x;
  int layer = 0;
  if (expansion != 1) {
    y = relu6(g, conv_bn(g, "0.0", "0.1", y, {.out = hidden, .kernel = 1}));
    layer = 1;
  }
  y = relu6(g, conv_bn(g, fmt::format("{}.0", layer), fmt::format("{}.1", layer), y,
                       {.out = hidden, .stride = stride, .pad = 1, .groups = hidden}));
  y = conv_bn(g, fmt::format("{}", layer + 1), fmt::format("{}", layer + 2), y, {.out = out, .kernel = 1},
              residual ? kConvBranch : 1.0);
  return residual ? g.add(x, y) : y;
}

}  // namespace

void resnet18(GraphBuilder& g, const Options& options) {
  resnet(g, options, {2, 2, 2, 2}, false);
}
void resnet50(GraphBuilder& g, const Options& options) {
  resnet(g, options, {3, 4, 6, 3}, true);
}
void vgg16(GraphBuilder& g, const Options& options) {
  vgg(g, options, {2, 2, 3, 3, 3});
}
void vgg19(GraphBuilder& g, const Options& options) {
  vgg(g, options, {2, 2, 4, 4, 4});
}
void repvgg_a0(GraphBuilder& g, const Options& options) {
  repvgg(g, options, {2, 4, 14, 1}, {48, 96, 192, 1280});
}
void repvgg_b0(GraphBuilder& g, const Options& options) {
  repvgg(g, options, {4, 6, 16, 1}, {64, 128, 256, 1280});
}

void mobilenet_v2(GraphBuilder& g, const Options& options) {
  struct Stage {
    int64_t expansion, out;
    int repeats;
    int64_t stride;
  };
  constexpr std::array<Stage, 7> kStages{
      {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};
  Value x = image_input(g, options);
  {
    const auto features = g.scope("features");
    x = relu6(g, conv_bn(g, "0.0", "0.1", x, {.out = 32, .stride = 2, .pad = 1}));
    int block = 1;
    for (const Stage& stage : kStages) {
      for (int i = 0; i < stage.repeats; ++i, ++block) {
        const auto scope = g.scope(fmt::format("{}", block));
        x = inverted_residual(g, x, stage.out, i == 0 ? stage.stride : 1, stage.expansion);
      }
    }
    x = relu6(g, conv_bn(g, fmt::format("{}.0", block), fmt::format("{}.1", block), x, {.out = 1280, .kernel = 1}));
  }
  g.output(linear(g, "classifier.1", flatten(g, global_average_pool(g, x)), kClasses), "output");
}

}  // namespace heddle::zoo
