// Filter gradients of convolutions whose images and gradients have their channels last, on the emulated GPU.
#include <fmt/format.h>

#include "testing.h"

namespace heddle {
namespace {

using testing::CudaBatch;

// A convolution whose filters have the gradient. `high`: padding after the image that is not needed for the results.
struct Forward {
  int images, height, width, channels, filters, tall, wide;
  int stride_y = 1, stride_x = 1, low_y = 0, low_x = 0, dilation_y = 1, dilation_x = 1, groups = 1;
  int out_height = 0, out_width = 0;  // 0: without padding after the image beyond that before it
};

int extent(int given, int in, int low, int kernel, int dilation, int stride) {
  return given > 0 ? given : (in + 2 * low - dilation * (kernel - 1) - 1) / stride + 1;
}

std::string gradient_text(const std::string& t, const Forward& f, const std::string& more = "  return \"w\" = %y") {
  const int h = extent(f.out_height, f.height, f.low_y, f.tall, f.dilation_y, f.stride_y);
  const int w = extent(f.out_width, f.width, f.low_x, f.wide, f.dilation_x, f.stride_x);
  const int c = f.channels / f.groups, n = f.images, g = f.groups;
  const int high_y = (h - 1) * f.stride_y + (f.tall - 1) * f.dilation_y + 1 - f.height - f.low_y;
  const int high_x = (w - 1) * f.stride_x + (f.wide - 1) * f.dilation_x + 1 - f.width - f.low_x;
  const auto type = [&](const auto&... extents) {
    std::string text;
    ((text += (text.empty() ? "" : ",") + std::to_string(extents)), ...);
    return fmt::format("{}[{}]", t, text);
  };
  std::string text =
      fmt::format("graph g(%x: {}, %d: {}) {{\n", type(n, f.height, f.width, f.channels), type(n, h, w, f.filters));
  if (g == 1) {
    text += fmt::format("  %i = transpose(%x) {{perm = [3,1,2,0]}} : {}\n", type(c, f.height, f.width, n));
  } else {
    text += fmt::format("  %0 = reshape(%x) {{shape = [{},{},{},{},{}]}} : {}\n", n, f.height, f.width, g, c,
                        type(n, f.height, f.width, g, c));
    text += fmt::format("  %1 = transpose(%0) {{perm = [4,1,2,3,0]}} : {}\n", type(c, f.height, f.width, g, n));
    text += fmt::format("  %i = reshape(%1) {{shape = [{},{},{},{}]}} : {}\n", c, f.height, f.width, g * n,
                        type(c, f.height, f.width, g * n));
  }
  text += fmt::format("  %f = transpose(%d) {{perm = [3,1,2,0]}} : {}\n", type(f.filters, h, w, n));
  text += fmt::format(
      "  %y = conv(%i, %f) {{strides = [{},{}], low = [{},{}], high = [{},{}], dilations = [{},{}], "
      "lhs_dilations = [1,1], groups = {}, layout = \"nhwc\", filters = \"ohwi\"}} : {}\n",
      f.dilation_y, f.dilation_x, f.low_y, f.low_x, high_y, high_x, f.stride_y, f.stride_x, g,
      type(c, f.tall, f.wide, f.filters));
  return text + more + "\n}";
}

TEST(CudaFilterGradient, ByTheCopyEngine) {
  CudaBatch batch;
  const auto add = [&](const char* name, const Forward& f, unsigned skip = 0, bool split = false) {
    batch.add(fmt::format("{} {}", name, skip), gradient_text("f16", f),
              {.tolerance = 3e-3, .family = "wgmma_wgrad", .split = split, .skip = skip});
  };
  add("padded", {3, 6, 7, 64, 16, 3, 3, 1, 1, 1, 1});
  add("channels that end within a strip", {2, 6, 7, 72, 24, 3, 3, 1, 1, 1, 1});
  add("strided", {2, 9, 10, 64, 40, 3, 2, 2, 3, 1, 0});
  add("dilated", {1, 9, 11, 64, 8, 3, 3, 1, 1, 2, 2, 2, 2});
  add("padded unevenly", {2, 5, 6, 40, 8, 3, 4, 1, 1, 0, 3, 1, 1, 1, 5, 7});
  add("one tap, every second", {3, 7, 9, 128, 72, 1, 1, 2, 2});
  add("a line", {2, 1, 50, 64, 16, 1, 5, 1, 2, 0, 2});
  add("one window an image", {70, 3, 3, 64, 16, 3, 3});
  add("groups", {2, 8, 9, 128, 48, 3, 3, 1, 1, 1, 1, 1, 1, 2});
  add("split", {7, 11, 13, 64, 136, 3, 3, 1, 1, 1, 1}, 0, true);
  for (unsigned skip = 2; skip < 60; skip += 9) {  // clusters, ping-pong, stream-K, parts of k
    add("many windows", {5, 11, 13, 96, 136, 3, 3, 1, 1, 1, 1}, skip);
  }
  const std::string epilogue = R"(  %2 = cast(%y) {to = f32} : f32[64,3,3,24]
  %3 = add(%2, %2) : f32[64,3,3,24]
  %4 = transpose(%3) {perm = [3,1,2,0]} : f32[24,3,3,64]
  return "w" = %4)";
  batch.add("transposed result", gradient_text("bf16", {2, 6, 7, 64, 24, 3, 3, 1, 1, 1, 1}, epilogue),
            {.tolerance = 1e-5, .family = "wgmma_wgrad"});
  compile_and_run(batch, CudaBatch::Compiled::kKinds);
}

TEST(CudaFilterGradient, Depthwise) {
  CudaBatch batch;
  const auto add = [&](const char* name, const Forward& f, unsigned skip = 0) {
    for (const char* t : {"f16", "bf16", "f32"}) {
      batch.add(fmt::format("{} {} {}", t, name, skip), gradient_text(t, f),
                {.tolerance = t[0] == 'b'   ? 2e-2
                              : t[1] == '1' ? 3e-3
                                            : 1e-5,
                 .family = "depthwise_wgrad",
                 .skip = skip});
    }
  };
  for (unsigned skip = 0; skip < 20; skip += 4) {  // channels of a thread, threads of a block, parts
    add("3x3", {3, 9, 11, 40, 40, 3, 3, 1, 1, 1, 1, 1, 1, 40}, skip);
    add("7x7", {2, 10, 15, 20, 20, 7, 7, 1, 1, 3, 3, 1, 1, 20}, skip);
  }
  add("odd channels", {2, 6, 5, 37, 37, 3, 3, 1, 1, 1, 1, 1, 1, 37});
  add("every second", {2, 12, 13, 16, 16, 5, 5, 2, 2, 2, 2, 1, 1, 16});
  add("strides of two kinds", {2, 9, 14, 8, 8, 3, 4, 1, 3, 0, 1, 1, 1, 8});
  add("no padding", {2, 9, 8, 8, 8, 2, 3, 1, 1, 0, 0, 1, 1, 8});
  add("apart", {1, 12, 12, 8, 8, 2, 2, 3, 3, 0, 0, 1, 1, 8});
  add("padding on one side", {1, 1, 50, 12, 12, 1, 9, 1, 1, 0, 8, 1, 1, 12, 1, 50});
  add("a long line", {2, 1, 70, 6, 6, 1, 31, 1, 1, 0, 15, 1, 1, 6});
  add("an image within the window", {5, 2, 2, 8, 8, 5, 5, 1, 1, 2, 2, 1, 1, 8});
  compile_and_run(batch, CudaBatch::Compiled::kKinds);
}

}  // namespace
}  // namespace heddle
