// Convolutions and pooling on the emulated GPU.
#include <fmt/format.h>

#include <array>

#include "../contraction/phase_graphs.h"
#include "testing.h"

namespace heddle {
namespace {

using testing::conv_text;
using testing::CudaBatch;

std::string attributes(const char* strides, const char* low, const char* high, const char* dilations,
                       const char* lhs_dilations, int groups) {
  return fmt::format("strides = {}, low = {}, high = {}, dilations = {}, lhs_dilations = {}, groups = {}", strides, low,
                     high, dilations, lhs_dilations, groups);
}

// Of `type`: pointwise, strided, padded, grouped, dilated, one- and three-dimensional, cropped.
void add_convolutions(CudaBatch& batch, const std::string& t, const CudaBatch::Options& options) {
  const auto add = [&](const char* name, const std::string& x, const std::string& w, const std::string& attrs,
                       const std::string& y) {
    batch.add(t + " " + name, conv_text(t + x, t + w, attrs, t + y), options);
  };
  add("pointwise", "[2,7,9,24]", "[40,24,1,1]", attributes("[1,1]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1),
      "[2,7,9,40]");
  add("strided", "[2,7,9,24]", "[40,24,1,1]", attributes("[2,2]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1), "[2,4,5,40]");
  add("padded", "[2,6,7,8]", "[16,8,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 1), "[2,6,7,16]");
  add("grouped", "[1,7,9,24]", "[30,8,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 3), "[1,7,9,30]");
  add("dilated", "[1,9,9,5]", "[6,5,3,3]", attributes("[1,1]", "[2,2]", "[2,2]", "[2,2]", "[1,1]", 1), "[1,9,9,6]");
  add("transposed", "[1,4,5,6]", "[7,6,3,3]", attributes("[1,1]", "[1,1]", "[2,2]", "[1,1]", "[2,2]", 1), "[1,8,10,7]");
  add("sequence", "[2,50,6]", "[7,6,5]", attributes("[2]", "[2]", "[2]", "[1]", "[1]", 1), "[2,25,7]");
  add("volume", "[1,5,6,7,4]", "[6,4,3,2,3]", attributes("[1,2,1]", "[1,0,1]", "[1,0,1]", "[1,1,1]", "[1,1,1]", 1),
      "[1,5,3,7,6]");
  add("cropped", "[1,9,9,16]", "[6,16,3,3]", attributes("[1,1]", "[-1,-1]", "[-1,0]", "[1,1]", "[1,1]", 1),
      "[1,5,6,6]");
  CudaBatch::Options windows = options;  // which are no products
  windows.family.clear(), windows.skip = 0;
  const auto add_windows = [&](const char* name, const std::string& x, const std::string& w, const std::string& attrs,
                               const std::string& y) {
    batch.add(t + " " + name, conv_text(t + x, t + w, attrs, t + y), windows);
  };
  add_windows("depthwise", "[1,7,19,37]", "[37,1,3,3]", attributes("[2,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 37),
              "[1,4,19,37]");
  add_windows("depthwise of 16", "[2,7,9,16]", "[16,1,3,5]",
              attributes("[1,2]", "[1,2]", "[1,2]", "[1,1]", "[1,1]", 16), "[2,7,5,16]");
}

TEST(CudaConv, StorePhasesWithinBounds) {
  CudaBatch batch;
  for (const char* type : {"f32", "f16"}) {
    const CudaBatch::Options options{.tolerance = type[1] == '3' ? 1e-5 : 4e-3};
    for (const std::string& text : testing::phase_graphs(type)) batch.add(type, text, options);
  }
  compile_and_run(batch);
}

// Sums of bytes are exact, of unsigned and of signed ones, by every family and where the epilogue quantises them.
TEST(CudaConv, Bytes) {
  CudaBatch batch;
  for (const std::string x : {"u8", "i8"}) {
    const auto add = [&](const char* family, const std::string& image, const std::string& filters,
                         const std::string& attrs, const std::string& y) {
      batch.add(fmt::format("{} {} {}", x, family, image), conv_text(x + image, "i8" + filters, attrs, "i32" + y),
                {.family = family});
    };
    for (const char* family : {"wgmma_im2col", "im2col_splitk", "mma"}) {
      add(family, "[2,7,9,32]", "[48,32,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 1),
          "[2,7,9,48]");
      add(family, "[1,9,11,144]", "[24,144,3,2]", attributes("[2,2]", "[1,0]", "[1,1]", "[1,1]", "[1,1]", 1),
          "[1,5,6,24]");
    }
    for (const char* family : {"wgmma", "cluster_splitk", "mma"}) {
      add(family, "[2,7,9,48]", "[40,48,1,1]", attributes("[1,1]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1),
          "[2,7,9,40]");
    }
    add("", "[2,7,9,24]", "[40,24,1,1]", attributes("[1,1]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1), "[2,7,9,40]");
    add("", "[1,7,9,5]", "[6,5,3,3]", attributes("[1,1]", "[2,2]", "[2,2]", "[2,2]", "[1,1]", 1), "[1,7,9,6]");
    add("", "[1,7,9,37]", "[37,1,3,3]", attributes("[2,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 37), "[1,4,9,37]");
  }
  batch.add("quantised", R"(graph g(%x: u8[2,7,9,32], %r: u8[2,7,9,48]) {
      %w = constant {value = i8[48,32,3,3]{1}}
      %s = constant {value = f32[]{0.00390625}}
      %z = constant {value = f32[]{0.25}}
      %low = constant {value = f32[]{0}}
      %high = constant {value = f32[]{255}}
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : i32[2,7,9,48]
      %1 = cast(%0) {to = f32}
      %2 = broadcast(%s) {shape = [2,7,9,48], dims = []}
      %3 = mul(%1, %2)
      %4 = cast(%r) {to = f32}
      %5 = broadcast(%z) {shape = [2,7,9,48], dims = []}
      %6 = mul(%4, %5)
      %7 = add(%3, %6)
      %8 = round(%7)
      %9 = broadcast(%low) {shape = [2,7,9,48], dims = []}
      %10 = max(%8, %9)
      %11 = broadcast(%high) {shape = [2,7,9,48], dims = []}
      %12 = min(%10, %11)
      %13 = cast(%12) {to = u8}
      return "y" = %13
    })",
            {.family = "wgmma_im2col"});
  compile_and_run(batch);
}

TEST(CudaConv, Threads) {
  CudaBatch batch;
  add_convolutions(batch, "f32", {});
  batch.add("bias, residual, relu", R"(graph g(%x: f32[2,5,6,8], %r: f32[2,5,6,16]) {
      %w = constant {value = f32[16,8,3,3]{1}}
      %b = constant {value = f32[16]{1}}
      %z = constant {value = f32[]{0}}
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,5,6,16]
      %1 = broadcast(%b) {shape = [2,5,6,16], dims = [3]} : f32[2,5,6,16]
      %2 = add(%0, %1) : f32[2,5,6,16]
      %3 = add(%2, %r) : f32[2,5,6,16]
      %4 = broadcast(%z) {shape = [2,5,6,16], dims = []} : f32[2,5,6,16]
      %5 = max(%3, %4) : f32[2,5,6,16]
      return "y" = %5
    })");
  batch.add("filters that are no constants", R"(graph g(%x: f32[1,7,9,5], %w: f32[6,5,3,3]) {
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[1,7,9,6]
      return "y" = %0
    })");
  // Filters whose channels are last: rows in the order of the sum. Groups, taps of several dimensions, whole pieces.
  for (const auto& [x, w, groups, y] :
       {std::array<const char*, 4>{"f16[2,7,9,16]", "f16[24,3,2,16]", "1", "f16[2,5,8,24]"},
        {"f16[1,7,9,32]", "f16[20,3,3,16]", "2", "f16[1,5,7,20]"},
        {"f32[2,6,5,3]", "f32[4,2,2,3]", "1", "f32[2,5,4,4]"}}) {
    batch.add(
        fmt::format("filters of {} with channels last", w),
        fmt::format(
            "graph g(%x: {}, %w: {}) {{\n  %0 = conv(%x, %w) {{strides = [1,1], low = [0,0], high = [0,0], "
            "dilations = [1,1], lhs_dilations = [1,1], groups = {}, layout = \"nhwc\", filters = \"ohwi\"}} : {}\n"
            "  return \"y\" = %0\n}}",
            x, w, groups, y),
        {.tolerance = 3e-3});
  }
  batch.add("an image with channels first", R"(graph g(%x: f32[2,3,11,13]) {
      %w = constant {value = f32[10,3,3,3]{1}}
      %0 = transpose(%x) {perm = [0,2,3,1]} : f32[2,11,13,3]
      %1 = conv(%0, %w) {strides = [2,2], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32[2,6,7,10]
      return "y" = %1
    })");
  batch.add("bytes", R"(graph g(%x: u8[1,7,9,5], %w: i8[6,5,3,3]) {
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : i32[1,7,9,6]
      return "y" = %0
    })");
  // Threads with several outputs each: parts of tiles at the edges, windows that do not overlap, padding on one side.
  for (const char* t : {"f16", "f32"}) {
    const CudaBatch::Options options{.tolerance = 3e-3};
    const auto add = [&](const char* name, const std::string& x, const std::string& w, const std::string& attrs,
                         const std::string& y) {
      batch.add(fmt::format("{} {}", t, name), conv_text(t + x, t + w, attrs, t + y), options);
    };
    add("depthwise, large", "[3,29,31,40]", "[40,1,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 40),
        "[3,29,31,40]");
    add("depthwise, every second", "[2,27,30,24]", "[24,1,3,3]",
        attributes("[2,2]", "[0,1]", "[1,1]", "[1,1]", "[1,1]", 24), "[2,13,15,24]");
    add("depthwise 5x5", "[1,13,11,6]", "[6,1,5,5]", attributes("[1,1]", "[2,2]", "[2,2]", "[1,1]", "[1,1]", 6),
        "[1,13,11,6]");
    add("depthwise 7x7", "[1,15,14,12]", "[12,1,7,7]", attributes("[1,1]", "[3,3]", "[3,3]", "[1,1]", "[1,1]", 12),
        "[1,15,14,12]");
    add("depthwise 2x2 apart", "[1,17,17,8]", "[8,1,2,2]", attributes("[3,3]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 8),
        "[1,6,6,8]");
    add("depthwise, cropped", "[2,9,10,4]", "[4,1,3,3]", attributes("[1,1]", "[-1,-2]", "[2,0]", "[1,1]", "[1,1]", 4),
        "[2,8,6,4]");
    add("depthwise of a sequence", "[2,50,6]", "[6,1,9]", attributes("[1]", "[8]", "[0]", "[1]", "[1]", 6), "[2,50,6]");
  }
  batch.add("depthwise filters that are no constants", R"(graph g(%x: f32[1,7,9,8], %w: f32[8,1,3,3]) {
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 8, layout = "nhwc"} : f32[1,7,9,8]
      return "y" = %0
    })");
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaConv, TensorCores) {
  CudaBatch batch;
  add_convolutions(batch, "f16", {.tolerance = 3e-3, .sm = 80});
  batch.add("pointwise by wgmma",
            conv_text("f16[2,7,9,24]", "f16[40,24,1,1]", attributes("[1,1]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1),
                      "f16[2,7,9,40]"),
            {.tolerance = 3e-3, .family = "wgmma"});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaConv, WgmmaOnViews) {
  CudaBatch batch;
  const CudaBatch::Options options{.tolerance = 3e-3, .family = "wgmma_gather"};
  add_convolutions(batch, "f16", options);
  batch.add("wider than a tile",
            conv_text("bf16[1,9,20,16]", "bf16[72,16,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 1),
                      "bf16[1,9,20,72]"),
            {.tolerance = 2e-2, .family = "wgmma_gather"});
  batch.add("heads as strides", R"(graph g(%q: f16[2,11,96], %k: f16[2,13,96]) {
      %0 = reshape(%q) {shape = [2,11,3,32]} : f16[2,11,3,32]
      %1 = transpose(%0) {perm = [0,2,1,3]} : f16[2,3,11,32]
      %2 = reshape(%k) {shape = [2,13,3,32]} : f16[2,13,3,32]
      %3 = transpose(%2) {perm = [0,2,3,1]} : f16[2,3,32,13]
      %4 = dot(%1, %3) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f16[2,3,11,13]
      return "y" = %4
    })",
            options);
  batch.add("bytes", testing::matmul_text("i8", 19, 24, 40, "i32"), {.family = "wgmma_gather"});
  batch.add("along rows", testing::matmul_text("f16", 72, 70, 33, "", false, false, false), options);
  batch.add("split", testing::matmul_text("f16", 9, 41, 1300, "", true, true, false),
            {.tolerance = 3e-3, .family = "wgmma_gather", .split = true});
  for (unsigned skip = 3; skip < 40; skip += 9) {  // ping-pong, one and two consumers, narrow and wide
    batch.add(fmt::format("configuration {}", skip), testing::matmul_text("f16", 150, 130, 203, "", true, true, false),
              {.tolerance = 3e-3, .family = "wgmma_gather", .skip = skip});
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Windows that TMA gathers.
void add_windows(CudaBatch& batch, const std::string& family) {
  const auto add = [&](const char* name, const std::string& x, const std::string& w, const std::string& attrs,
                       const std::string& y, unsigned skip = 0) {
    batch.add(name, conv_text("f16" + x, "f16" + w, attrs, "f16" + y),
              {.tolerance = 3e-3, .family = family, .skip = skip});
  };
  const std::string padded = attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 1);
  add("padded", "[3,6,7,8]", "[16,8,3,3]", padded, "[3,6,7,16]");
  add("channels that end within a k-tile", "[2,6,7,72]", "[24,72,3,3]", padded, "[2,6,7,24]");
  add("strided, the end of a line left out", "[2,8,10,16]", "[40,16,3,2]",
      attributes("[2,3]", "[1,0]", "[1,0]", "[1,1]", "[1,1]", 1), "[2,4,3,40]");
  add("dilated", "[1,9,9,64]", "[8,64,3,3]", attributes("[1,1]", "[2,2]", "[2,2]", "[2,2]", "[1,1]", 1), "[1,9,9,8]");
  add("padded unevenly", "[2,5,6,8]", "[8,8,3,4]", attributes("[1,1]", "[0,3]", "[2,1]", "[1,1]", "[1,1]", 1),
      "[2,5,7,8]");
  add("a sequence", "[2,50,8]", "[16,8,5]", attributes("[2]", "[2]", "[2]", "[1]", "[1]", 1), "[2,25,16]");
  // Lines of windows as one tap.
  const std::string inside = attributes("[1,1]", "[0,0]", "[0,0]", "[1,1]", "[1,1]", 1);
  add("joined lines", "[2,9,11,16]", "[24,16,4,4]", inside, "[2,6,8,24]");
  add("joined lines that end within a k-tile", "[3,7,10,24]", "[16,24,2,3]",
      attributes("[2,3]", "[1,0]", "[1,0]", "[1,1]", "[1,1]", 1), "[3,4,3,16]");
  add("joined lines, the end of a line left out", "[2,7,9,8]", "[8,8,3,3]",
      attributes("[1,1]", "[0,0]", "[0,-1]", "[1,1]", "[1,1]", 1), "[2,5,6,8]");
  for (unsigned skip = 2; skip < 50; skip += 6) {  // clusters, ping-pong, stream-K
    add("many windows", "[5,11,13,16]", "[136,16,3,3]", padded, "[5,11,13,136]", skip);
  }
  batch.add("split", conv_text("f16[1,5,6,320]", "f16[16,320,3,3]", padded, "f16[1,5,6,16]"),
            {.tolerance = 3e-3, .family = family, .split = true});
  batch.add("bias, residual, relu", R"(graph g(%x: bf16[2,5,6,8], %r: bf16[2,5,6,16]) {
      %w = constant {value = bf16[16,8,3,3]{1}}
      %b = constant {value = bf16[16]{1}}
      %z = constant {value = bf16[]{0}}
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : bf16[2,5,6,16]
      %1 = broadcast(%b) {shape = [2,5,6,16], dims = [3]} : bf16[2,5,6,16]
      %2 = add(%0, %1) : bf16[2,5,6,16]
      %3 = add(%2, %r) : bf16[2,5,6,16]
      %4 = broadcast(%z) {shape = [2,5,6,16], dims = []} : bf16[2,5,6,16]
      %5 = max(%3, %4) : bf16[2,5,6,16]
      return "y" = %5
    })",
            {.tolerance = 3e-2, .family = family});
}

TEST(CudaConv, WindowsByTheCopyEngine) {
  CudaBatch batch;
  add_windows(batch, "wgmma_im2col");
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaConv, WindowsInPartsOfACluster) {
  CudaBatch batch;
  add_windows(batch, "im2col_splitk");
  // More k-tiles than a ring has stages, several of a tap, several taps passed over at once.
  const std::string padded = attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 1);
  for (unsigned skip = 0; skip < 60; skip += 15) {
    const CudaBatch::Options options{.tolerance = 3e-3, .family = "im2col_splitk", .skip = skip};
    batch.add("deep", conv_text("f16[1,9,11,328]", "f16[104,328,3,3]", padded, "f16[1,9,11,104]"), options);
    batch.add("a k-tile a tap", conv_text("f16[2,7,9,40]", "f16[24,40,5,5]", padded, "f16[2,5,7,24]"), options);
  }
  batch.add("groups",
            conv_text("f16[2,8,9,256]", "f16[48,128,3,3]", attributes("[1,1]", "[1,1]", "[1,1]", "[1,1]", "[1,1]", 2),
                      "f16[2,8,9,48]"),
            {.tolerance = 3e-3, .family = "im2col_splitk"});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Rows shorter and longer than the ring, several turns of it, strides, parts of a thread's outputs, padding on one
// side.
TEST(CudaWindow, PixelsInARing) {
  CudaBatch batch;
  for (const char* t : {"f16", "f32"}) {
    for (unsigned skip = 0; skip < 12; skip += 3) {
      const CudaBatch::Options options{.tolerance = 3e-3, .family = "register_ring_window", .skip = skip};
      const auto add = [&](const char* name, const std::string& x, const std::string& w, const std::string& attrs,
                           const std::string& y) {
        batch.add(fmt::format("{} {} {}", t, name, skip), conv_text(t + x, t + w, attrs, t + y), options);
      };
      add("a sequence", "[2,50,6]", "[6,1,9]", attributes("[1]", "[8]", "[0]", "[1]", "[1]", 6), "[2,50,6]");
      add("a long row", "[1,5,61,8]", "[8,1,3,31]", attributes("[2,1]", "[1,15]", "[1,15]", "[1,1]", "[1,1]", 8),
          "[1,3,61,8]");
      add("every second", "[2,4,43,12]", "[12,1,2,13]", attributes("[1,2]", "[0,-1]", "[0,7]", "[1,1]", "[1,1]", 12),
          "[2,3,19,12]");
      add("a row of the ring", "[1,3,24,4]", "[4,1,1,16]", attributes("[1,1]", "[0,3]", "[0,12]", "[1,1]", "[1,1]", 4),
          "[1,3,24,4]");
    }
  }
  batch.add("filters that are no constants", R"(graph g(%x: f32[1,3,29,8], %w: f32[8,1,3,7]) {
      %0 = conv(%x, %w) {strides = [1,1], low = [1,3], high = [1,3], dilations = [1,1], lhs_dilations = [1,1], groups = 8, layout = "nhwc"} : f32[1,3,29,8]
      return "y" = %0
    })",
            {.family = "register_ring_window"});
  for (const char* kind : {"max", "sum", "min"}) {
    batch.add(fmt::format("{} of a pool", kind),
              fmt::format(R"(graph g(%x: f16[2,13,35,24]) {{
      %0 = window_reduce(%x) {{kind = "{}", window = [1,5,9,1], strides = [1,2,2,1], low = [0,2,4,0], high = [0,2,4,0], dilations = [1,1,1,1]}} : f16[2,7,18,24]
      return "y" = %0
    }})",
                          kind),
              {.tolerance = 3e-3, .family = "register_ring_window"});
  }
  batch.add("pairs of bytes in a line", R"(graph g(%x: u8[40,2]) {
      %0 = window_reduce(%x) {kind = "max", window = [5,1], strides = [1,1], low = [2,0], high = [2,0], dilations = [1,1]} : u8[40,2]
      return "y" = %0
    })",
            {.family = "register_ring_window"});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaWindow, Pooling) {
  CudaBatch batch;
  batch.add("max", R"(graph g(%x: f32[2,13,15,24]) {
      %0 = window_reduce(%x) {kind = "max", window = [1,3,3,1], strides = [1,2,2,1], low = [0,1,1,0], high = [0,1,1,0], dilations = [1,1,1,1]} : f32[2,7,8,24]
      return "y" = %0
    })");
  batch.add("sum, counts in the epilogue", R"(graph g(%x: f32[2,13,15,3], %c: f32[13,15]) {
      %0 = window_reduce(%x) {kind = "sum", window = [1,3,2,1], strides = [1,1,1,1], low = [0,1,0,0], high = [0,1,1,0], dilations = [1,1,1,1]} : f32[2,13,15,3]
      %1 = broadcast(%c) {shape = [2,13,15,3], dims = [1,2]} : f32[2,13,15,3]
      %2 = mul(%0, %1) : f32[2,13,15,3]
      return "y" = %2
    })");
  batch.add("max of halves", R"(graph g(%x: f16[3,26,29,40]) {
      %0 = window_reduce(%x) {kind = "max", window = [1,3,3,1], strides = [1,2,2,1], low = [0,1,1,0], high = [0,0,1,0], dilations = [1,1,1,1]} : f16[3,13,15,40]
      return "y" = %0
    })");
  batch.add("max of halves, apart", R"(graph g(%x: f16[2,28,30,64]) {
      %0 = window_reduce(%x) {kind = "max", window = [1,2,2,1], strides = [1,2,2,1], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,1,1]} : f16[2,14,15,64]
      return "y" = %0
    })");
  batch.add("min of halves, channels first", R"(graph g(%x: f16[2,3,13,15]) {
      %0 = window_reduce(%x) {kind = "min", window = [1,1,3,3], strides = [1,1,2,2], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,2,1]} : f16[2,3,5,7]
      return "y" = %0
    })");
  batch.add("prod of halves", R"(graph g(%x: f16[2,5,4,16]) {
      %0 = window_reduce(%x) {kind = "prod", window = [1,2,2,1], strides = [1,1,1,1], low = [0,0,0,0], high = [0,0,0,0], dilations = [1,1,1,1]} : f16[2,4,3,16]
      return "y" = %0
    })",
            {.tolerance = 1e-3});
  batch.add("bytes in a line", R"(graph g(%x: u8[40]) {
      %0 = window_reduce(%x) {kind = "max", window = [5], strides = [1], low = [2], high = [2], dilations = [1]} : u8[40]
      return "y" = %0
    })");
  batch.add("sums of bytes wrap", R"(graph g(%x: i8[3,20,8]) {
      %0 = window_reduce(%x) {kind = "sum", window = [1,5,1], strides = [1,1,1], low = [0,2,0], high = [0,2,0], dilations = [1,1,1]} : i8[3,20,8]
      return "y" = %0
    })");
  batch.add("volume of doubles", R"(graph g(%x: f64[1,4,5,6,6]) {
      %0 = window_reduce(%x) {kind = "max", window = [1,2,3,2,1], strides = [1,2,1,2,1], low = [0,0,1,0,0], high = [0,0,1,0,0], dilations = [1,1,1,1,1]} : f64[1,2,5,3,6]
      return "y" = %0
    })");
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

}  // namespace
}  // namespace heddle
