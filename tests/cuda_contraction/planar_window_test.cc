// Depthwise convolutions and pooling with channels first on the emulated GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "testing.h"

namespace heddle {
namespace {

using testing::CudaBatch;

struct Case {
  const char* name;
  std::vector<int64_t> x, window, strides, low, high, dilations;
};

std::string list(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

std::vector<int64_t> result_of(const Case& c) {
  std::vector<int64_t> y = {c.x[0], c.x[1]};
  for (size_t i = 0; i < c.window.size(); ++i) {
    const int64_t reach = (c.window[i] - 1) * c.dilations[i] + 1;
    y.push_back((c.x[2 + i] + c.low[i] + c.high[i] - reach) / c.strides[i] + 1);
  }
  return y;
}

// With a bias, another operand of the result's shape, and relu.
std::string depthwise_text(const Case& c, const std::string& type, bool constant = true) {
  const std::string y = type + list(result_of(c)), ones = list(std::vector<int64_t>(c.window.size(), 1));
  std::vector<int64_t> w = {c.x[1], 1};
  w.insert(w.end(), c.window.begin(), c.window.end());
  const std::string filters = type + list(w);
  std::string text = fmt::format("graph g(%x: {}{}, %r: {}", type, list(c.x), y);
  text += constant ? fmt::format(") {{\n  %w = constant {{value = {}{{1}}}}\n", filters) : ", %w: " + filters + ") {\n";
  text += fmt::format("  %b = constant {{value = {}[{}]{{1}}}}\n  %z = constant {{value = {}[]{{0}}}}\n", type, c.x[1],
                      type);
  text += fmt::format(
      "  %0 = conv(%x, %w) {{strides = {}, low = {}, high = {}, dilations = {}, lhs_dilations = {}, groups = {}, "
      "layout = "
      "\"nchw\"}} : {}\n",
      list(c.strides), list(c.low), list(c.high), list(c.dilations), ones, c.x[1], y);
  text += fmt::format("  %1 = broadcast(%b) {{shape = {}, dims = [1]}} : {}\n", list(result_of(c)), y);
  text += fmt::format("  %2 = add(%0, %1) : {0}\n  %3 = add(%2, %r) : {0}\n", y);
  text += fmt::format("  %4 = broadcast(%z) {{shape = {}, dims = []}} : {}\n", list(result_of(c)), y);
  return text + fmt::format("  %5 = max(%3, %4) : {}\n  return \"y\" = %5\n}}", y);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"rows of whole loads", {2, 5, 64}, {7}, {1}, {3}, {3}, {1}},
      {"an odd row", {2, 3, 53}, {15}, {1}, {7}, {7}, {1}},
      {"causal", {1, 4, 40}, {4}, {1}, {3}, {0}, {1}},
      {"causal and dilated", {1, 3, 48}, {3}, {1}, {16}, {0}, {8}},
      {"dilated oddly", {1, 3, 90}, {5}, {1}, {26}, {26}, {13}},
      {"dilated far", {1, 2, 400}, {3}, {1}, {128}, {128}, {128}},
      {"parts of a long row", {1, 3, 80}, {63}, {1}, {31}, {31}, {1}},
      {"parts without padding", {1, 2, 230}, {127}, {1}, {0}, {0}, {1}},
      {"parts of a dilated row", {1, 2, 150}, {21}, {1}, {30}, {30}, {3}},
      {"one tap", {1, 3, 24}, {1}, {1}, {0}, {0}, {1}},
      {"every second", {2, 4, 64}, {5}, {2}, {2}, {2}, {1}},
      {"every third", {1, 3, 50}, {8}, {3}, {1}, {4}, {1}},
      {"patches", {1, 2, 96}, {16}, {16}, {0}, {0}, {1}},
      {"few outputs far apart", {1, 2, 333}, {3}, {100}, {0}, {0}, {1}},
      {"cropped", {1, 3, 40}, {5}, {1}, {-3}, {-6}, {1}},
      {"shorter than the window", {1, 3, 6}, {13}, {1}, {6}, {6}, {1}},
      {"images", {2, 3, 9, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"odd images", {2, 3, 7, 7}, {7, 7}, {1, 1}, {3, 3}, {3, 3}, {1, 1}},
      {"images, strided", {1, 4, 13, 22}, {5, 5}, {2, 2}, {2, 2}, {2, 2}, {1, 1}},
      {"images, dilated", {1, 3, 12, 20}, {3, 3}, {1, 2}, {2, 3}, {2, 3}, {2, 3}},
      {"long windows of images", {1, 2, 12, 40}, {5, 31}, {1, 1}, {2, 15}, {2, 15}, {1, 1}},
  };
  return all;
}

TEST(CudaPlanarWindow, Depthwise) {
  CudaBatch batch;
  for (const char* type : {"f16", "f32", "bf16"}) {
    const double tolerance = type[0] == 'b' ? 2e-2 : type[1] == '3' ? 1e-5 : 4e-3;
    for (unsigned skip = 0; skip < 3; ++skip) {
      for (const Case& c : cases()) {
        const CudaBatch::Options options{.tolerance = tolerance, .family = "planar_window", .skip = skip};
        batch.add(fmt::format("{} {} {}", type, c.name, skip), depthwise_text(c, type), options);
      }
    }
  }
  batch.add("doubles", depthwise_text({"", {1, 3, 22}, {5}, {1}, {2}, {2}, {1}}, "f64"), {.tolerance = 1e-12});
  batch.add("filters that are no constants", depthwise_text({"", {2, 3, 24}, {5}, {1}, {2}, {2}, {1}}, "f16", false),
            {.tolerance = 4e-3});
  batch.add("one channel", depthwise_text({"", {2, 1, 10, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, "f16"),
            {.tolerance = 4e-3});
  batch.add("bytes", R"(graph g(%x: u8[2,3,50], %w: i8[3,1,5]) {
      %0 = conv(%x, %w) {strides = [1], low = [2], high = [2], dilations = [1], lhs_dilations = [1], groups = 3, layout = "nchw"} : i32[2,3,50]
      return "y" = %0
    })");
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaPlanarWindow, Pooling) {
  CudaBatch batch;
  for (const char* kind : {"max", "sum", "min", "prod"}) {
    batch.add(fmt::format("{} of rows", kind),
              fmt::format(R"(graph g(%x: f16[2,3,13,36]) {{
      %0 = window_reduce(%x) {{kind = "{}", window = [1,1,3,5], strides = [1,1,2,1], low = [0,0,1,2], high = [0,0,1,2], dilations = [1,1,1,2]}} : f16[2,3,7,32]
      return "y" = %0
    }})",
                          kind),
              {.tolerance = 3e-3, .family = "planar_window"});
  }
  batch.add("bytes in a line", R"(graph g(%x: u8[40]) {
      %0 = window_reduce(%x) {kind = "max", window = [5], strides = [1], low = [2], high = [2], dilations = [1]} : u8[40]
      return "y" = %0
    })",
            {.family = "planar_window"});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

}  // namespace
}  // namespace heddle
