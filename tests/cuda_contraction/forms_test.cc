// Products in other forms than the graph's: views in batches, transposed results, groups of channels joined.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "testing.h"

namespace heddle {
namespace {

using testing::conv_text;
using testing::CudaBatch;

// Rows of %x[batch, k, rows] as tokens are mixed: the operand's rows are not one stride apart.
std::string along_rows_text(const char* type, int64_t batch, int64_t k, int64_t rows, int64_t columns) {
  return fmt::format(R"(graph g(%x: {0}[{1},{2},{3}]) {{
      %w = constant {{value = {0}[{2},{4}]{{1}}}}
      %b = constant {{value = {0}[{4}]{{1}}}}
      %0 = transpose(%x) {{perm = [0,2,1]}} : {0}[{1},{3},{2}]
      %1 = dot(%0, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}} : {0}[{1},{3},{4}]
      %2 = broadcast(%b) {{shape = [{1},{3},{4}], dims = [2]}} : {0}[{1},{3},{4}]
      %3 = add(%1, %2) : {0}[{1},{3},{4}]
      return "y" = %3
    }})",
                     type, batch, k, rows, columns);
}

// And back: a result whose rows lie along the product's columns.
std::string to_columns_text(const char* type, int64_t batch, int64_t rows, int64_t k, int64_t columns) {
  return fmt::format(R"(graph g(%x: {0}[{1},{2},{3}], %r: {0}[{1},{4},{2}]) {{
      %w = constant {{value = {0}[{3},{4}]{{1}}}}
      %b = constant {{value = {0}[{4}]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}} : {0}[{1},{2},{4}]
      %1 = broadcast(%b) {{shape = [{1},{2},{4}], dims = [2]}} : {0}[{1},{2},{4}]
      %2 = add(%0, %1) : {0}[{1},{2},{4}]
      %3 = transpose(%2) {{perm = [0,2,1]}} : {0}[{1},{4},{2}]
      %4 = add(%3, %r) : {0}[{1},{4},{2}]
      return "y" = %4
    }})",
                     type, batch, rows, k, columns);
}

// The projection behind an attention over channels: %x is [batch, heads, channels, tokens].
std::string channels_text(const char* type, int64_t batch, int64_t heads, int64_t channels, int64_t tokens,
                          int64_t columns) {
  return fmt::format(R"(graph g(%x: {0}[{1},{2},{3},{4}]) {{
      %w = constant {{value = {0}[{5},{6}]{{1}}}}
      %0 = transpose(%x) {{perm = [0,3,1,2]}} : {0}[{1},{4},{2},{3}]
      %1 = reshape(%0) {{shape = [{1},{4},{5}]}} : {0}[{1},{4},{5}]
      %2 = dot(%1, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}} : {0}[{1},{4},{6}]
      return "y" = %2
    }})",
                     type, batch, heads, channels, tokens, heads * channels, columns);
}

std::string grouped(int groups) {
  return fmt::format(
      "strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = {}", groups);
}

// A transposed convolution with stride 2 as four phases, which are filters of each group, and a border cut off.
std::string grouped_phases(const char* type, int side, int groups, int channels, int features) {
  const int all = groups * features, wide = side + 1;
  const std::string border = fmt::format("[1,{0},{0},{1}]", 2 * side, all);
  return fmt::format(R"(graph g(%x: {0}[1,{1},{1},{2}]) {{
      %w = constant {{value = {0}[{3},{4},2,2]{{1}}}}
      %b = constant {{value = {0}[{5}]{{1}}}}
      %0 = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = {6}, layout = "nhwc"}} : {0}[1,{7},{7},{3}]
      %1 = reshape(%0) {{shape = [1,{7},{7},{6},2,2,{8}]}} : {0}[1,{7},{7},{6},2,2,{8}]
      %2 = transpose(%1) {{perm = [0,1,4,2,5,3,6]}} : {0}[1,{7},2,{7},2,{6},{8}]
      %3 = reshape(%2) {{shape = [1,{9},{9},{5}]}} : {0}[1,{9},{9},{5}]
      %4 = slice(%3) {{starts = [0,1,1,0], limits = [1,{10},{10},{5}], strides = [1,1,1,1]}} : {0}{11}
      %5 = broadcast(%b) {{shape = {11}, dims = [3]}} : {0}{11}
      %6 = add(%4, %5) : {0}{11}
      return "y" = %6
    }})",
                     type, side, groups * channels, 4 * all, channels, all, groups, wide, features, 2 * wide,
                     2 * side + 1, border);
}

TEST(CudaForms, OperandsInBatches) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 60; skip += 13) {
    const CudaBatch::Options options{.tolerance = 3e-3, .family = "wgmma", .skip = skip, .only_wgmma = true};
    batch.add(fmt::format("tokens {}", skip), along_rows_text("f16", 3, 52, 136, 72), options);
    batch.add(fmt::format("rows of no whole 16 bytes {}", skip), along_rows_text("f16", 3, 40, 131, 72), options);
    batch.add(fmt::format("channels {}", skip), channels_text("f16", 3, 2, 24, 49, 80), options);
  }
  batch.add("bf16", along_rows_text("bf16", 2, 52, 136, 72),
            {.tolerance = 2e-2, .family = "wgmma", .only_wgmma = true});
  for (const char* family : {"mma", "wgmma_gather"}) {
    batch.add(family, along_rows_text("f16", 3, 52, 136, 72), {.tolerance = 3e-3, .family = family});
  }
  batch.add("f32", along_rows_text("f32", 3, 20, 33, 17));
  batch.add("f64", channels_text("f64", 2, 3, 5, 7, 11), {.tolerance = 1e-13});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaForms, ResultsAreTransposed) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 60; skip += 13) {
    const CudaBatch::Options options{.tolerance = 3e-3, .family = "wgmma", .skip = skip, .only_wgmma = true};
    batch.add(fmt::format("tokens {}", skip), to_columns_text("f16", 3, 136, 72, 52), options);
    batch.add(fmt::format("odd rows {}", skip), to_columns_text("f16", 3, 67, 40, 52), options);
  }
  batch.add("mma", to_columns_text("f16", 3, 136, 72, 52), {.tolerance = 3e-3, .family = "mma"});
  batch.add("f32", to_columns_text("f32", 3, 33, 20, 17));
  const std::vector<std::string> all = batch.decisions();
  const auto transposed = [](const auto& label) {
    return label.find("gemm 3x52x136x72") != std::string::npos || label.find("gemm 52x408x72") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), transposed)) << fmt::format("{}", fmt::join(all, "\n"));
  batch.add("converted", R"(graph g(%x: i8[2,40,64]) {
      %w = constant {value = f32[64,24]{1}}
      %0 = cast(%x) {to = f32} : f32[2,40,64]
      %1 = dot(%0, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]} : f32[2,40,24]
      %2 = transpose(%1) {perm = [0,2,1]} : f32[2,24,40]
      return "y" = %2
    })");
  batch.run();
  batch.compile();
}

TEST(CudaForms, GroupsOfChannelsAreJoined) {
  CudaBatch batch;
  const auto add = [&](const char* x, const char* w, int groups, const char* y, const CudaBatch::Options& options) {
    batch.add(fmt::format("{} {} {}", x, groups, options.family), conv_text(x, w, grouped(groups), y), options);
  };
  const CudaBatch::Options windows{.tolerance = 3e-3, .family = "wgmma_im2col", .only_wgmma = true};
  add("f16[1,40,40,128]", "f16[128,4,3,3]", 32, "f16[1,40,40,128]", windows);
  add("f16[1,40,40,128]", "f16[128,4,3,3]", 32, "f16[1,40,40,128]",
      {.tolerance = 3e-3, .family = "wgmma_im2col", .skip = 7, .only_wgmma = true});
  add("bf16[1,32,32,192]", "bf16[384,8,3,3]", 24, "bf16[1,32,32,384]",
      {.tolerance = 2e-2, .family = "wgmma_im2col", .only_wgmma = true});
  add("f16[1,9,9,24]", "f16[48,2,3,3]", 12, "f16[1,9,9,48]", {.tolerance = 3e-3});
  add("f16[1,9,9,24]", "f16[48,2,3,3]", 12, "f16[1,9,9,48]", {.tolerance = 3e-3, .sm = 80});
  add("f32[1,9,9,24]", "f32[48,2,3,3]", 12, "f32[1,9,9,48]", {});
  batch.add("phases of groups", grouped_phases("f16", 32, 32, 4, 4), windows);
  batch.add("phases of groups of three", grouped_phases("f16", 20, 16, 4, 3), {.tolerance = 3e-3});
  batch.add("phases of all groups", grouped_phases("bf16", 12, 4, 8, 8), {.tolerance = 2e-2});
  batch.add("phases of groups of floats", grouped_phases("f32", 9, 8, 2, 4), {});
  batch.run();
  batch.compile();
  bool together = false;
  for (const std::string& decision : batch.decisions()) {
    together = together || decision.find("g32 in 2") != std::string::npos;
  }
  EXPECT_TRUE(together) << "a group of 64 channels is one k-tile of a tap";
}

using Dims = std::vector<int64_t>;

// A dot of random dimensions in random orders: dimensions 0 and 1 are batches, 2 and 3 rows, 4 and 5 columns, 6 and 7
// are summed over. Both operands are transposed inputs (the second one perhaps constant), the result is transposed,
// too.
class RandomDot {
 public:
  RandomDot(std::mt19937& random, const char* type) : random_(random), type_(type) {
    for (size_t i = 0; i < 8; i += 2) {
      extents_[i] = i == 0 ? 1 + pick(5) : pick(2) == 0 ? 8 * (1 + pick(6)) : 1 + pick(45);
      extents_[i + 1] = 1 + pick(4);
    }
    batch_ = some(0, pick(3)), k_ = some(6, 1 + pick(2));
    lhs_ = some(2, 1 + pick(2)), rhs_ = some(4, 1 + pick(2));
    for (Dims* side : {&lhs_, &rhs_}) {
      side->insert(side->end(), batch_.begin(), batch_.end());
      side->insert(side->end(), k_.begin(), k_.end());
      std::shuffle(side->begin(), side->end(), random_);
    }
  }

  std::string text() {
    // Free dimensions of the result follow in the order of their operand.
    Dims result = batch_;
    std::copy_if(lhs_.begin(), lhs_.end(), std::back_inserter(result), [](int64_t d) { return d == 2 || d == 3; });
    std::copy_if(rhs_.begin(), rhs_.end(), std::back_inserter(result), [](int64_t d) { return d == 4 || d == 5; });
    const Dims x = order(lhs_.size()), w = order(rhs_.size()), y = order(result.size());
    Dims turned;
    for (const int64_t d : y) turned.push_back(result[static_cast<size_t>(d)]);
    const std::string stored = typed(before(rhs_, w));
    const bool constant = pick(2) == 0;
    return fmt::format("graph g(%x: {}{}) {{\n{}", typed(before(lhs_, x)), constant ? "" : ", %w: " + stored,
                       constant ? fmt::format("  %w = constant {{value = {}{{1}}}}\n", stored) : "") +
           fmt::format("  %0 = transpose(%x) {{perm = [{}]}} : {}\n", fmt::join(x, ","), typed(lhs_)) +
           fmt::format("  %1 = transpose(%w) {{perm = [{}]}} : {}\n", fmt::join(w, ","), typed(rhs_)) +
           fmt::format(
               "  %2 = dot(%0, %1) {{lhs_batch = [{}], rhs_batch = [{}], lhs_contract = [{}], "
               "rhs_contract = [{}]}} : {}\n",
               places(batch_, lhs_), places(batch_, rhs_), places(k_, lhs_), places(k_, rhs_), typed(result)) +
           fmt::format("  %3 = abs(%2) : {}\n", typed(result)) +
           fmt::format("  %4 = transpose(%3) {{perm = [{}]}} : {}\n  return \"y\" = %4\n}}", fmt::join(y, ","),
                       typed(turned));
  }

 private:
  int64_t pick(unsigned choices) { return static_cast<int64_t>(random_() % choices); }
  Dims some(int64_t first, int64_t count) {
    Dims dims = order(2);
    dims.resize(static_cast<size_t>(count));
    for (int64_t& d : dims) d += first;
    return dims;
  }
  Dims order(size_t rank) {
    Dims dims(rank);
    std::iota(dims.begin(), dims.end(), int64_t{0});
    std::shuffle(dims.begin(), dims.end(), random_);
    return dims;
  }
  // What a transpose() by `perm` makes `dims` of.
  static Dims before(const Dims& dims, const Dims& perm) {
    Dims from(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) from[static_cast<size_t>(perm[i])] = dims[i];
    return from;
  }
  static std::string places(const Dims& dims, const Dims& in) {
    Dims at;
    for (const int64_t d : dims) at.push_back(std::find(in.begin(), in.end(), d) - in.begin());
    return fmt::format("{}", fmt::join(at, ","));
  }
  std::string typed(const Dims& dims) const {
    Dims shape;
    for (const int64_t d : dims) shape.push_back(extents_[static_cast<size_t>(d)]);
    return fmt::format("{}[{}]", type_, fmt::join(shape, ","));
  }

  std::mt19937& random_;
  const char* type_;
  int64_t extents_[8];
  Dims batch_, k_, lhs_, rhs_;
};

double tolerance_of(const std::string& type) {
  return type == "f64" ? 1e-13 : type == "f32" ? 1e-5 : type == "f16" ? 3e-3 : 2e-2;
}

TEST(CudaForms, DimensionsAtRandom) {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 11);
  CudaBatch batch;
  for (const char* type : {"f16", "f16", "f16", "f16", "bf16", "f32"}) {
    for (int i = 0; i < 5; ++i) {
      RandomDot dot(random, type);
      const std::string text = dot.text();
      batch.add(text, text, {.tolerance = tolerance_of(type), .sm = i == 4 ? 80 : 90, .only_wgmma = i < 2});
    }
  }
  batch.run();
}

// Views whose batches lie in another order than the dot has them, next to or within their rows.
TEST(CudaForms, BatchesInAnyOrder) {
  CudaBatch batch;
  for (const char* perm : {"0,2,3,1", "0,2,1,3", "2,0,3,1", "1,0,2,3", "3,0,2,1"}) {
    // As [batch, head, line, k] of an operand that lies otherwise.
    const int64_t shape[4] = {3, 2, 40, 24};
    std::string stored[4];
    for (size_t i = 0; i < 4; ++i) stored[static_cast<size_t>(perm[2 * i] - '0')] = fmt::format("{}", shape[i]);
    for (const char* order : {"[0,1]", "[1,0]"}) {
      const std::string out = order[1] == '0' ? "f16[3,2,40,40]" : "f16[2,3,40,40]";
      batch.add(fmt::format("{} {}", perm, order),
                fmt::format(R"(graph g(%x: f16[{0}], %w: f16[3,2,40,24]) {{
                  %0 = transpose(%x) {{perm = [{1}]}} : f16[3,2,40,24]
                  %1 = dot(%0, %w) {{lhs_batch = {2}, rhs_batch = {2}, lhs_contract = [3], rhs_contract = [3]}} : {3}
                  return "y" = %1
                }})",
                            fmt::join(stored, ","), perm, order, out),
                {.tolerance = 3e-3});
    }
  }
  batch.run();
}

TEST(CudaForms, GroupsAtRandom) {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 12);
  const auto pick = [&](unsigned choices) { return static_cast<int64_t>(random() % choices); };
  CudaBatch batch;
  for (const char* type : {"f16", "f16", "f16", "bf16", "f32"}) {
    for (int i = 0; i < 6; ++i) {
      const int64_t groups = 2 + pick(8), channels = pick(2) == 0 ? 1 << pick(6) : 1 + pick(32), filters = 1 + pick(20);
      Dims size(2), window(2), stride(2), low(2), high(2), dilation(2), out(2);
      for (size_t d = 0; d < 2; ++d) {
        size[d] = 5 + pick(12), window[d] = 1 + pick(3), stride[d] = 1 + pick(2), dilation[d] = 1 + pick(2);
        low[d] = pick(3), high[d] = pick(3);
        out[d] = (size[d] + low[d] + high[d] - (window[d] - 1) * dilation[d] - 1) / stride[d] + 1;
      }
      const std::string attributes = fmt::format(
          "strides = [{}], low = [{}], high = [{}], dilations = [{}], lhs_dilations = [1,1], groups = {}",
          fmt::join(stride, ","), fmt::join(low, ","), fmt::join(high, ","), fmt::join(dilation, ","), groups);
      const std::string text =
          conv_text(fmt::format("{}[2,{},{}]", type, fmt::join(size, ","), groups * channels),
                    fmt::format("{}[{},{},{}]", type, groups * filters, channels, fmt::join(window, ",")), attributes,
                    fmt::format("{}[2,{},{}]", type, fmt::join(out, ","), groups * filters));
      batch.add(text, text, {.tolerance = tolerance_of(type), .sm = i == 5 ? 80 : 90, .only_wgmma = i < 3});
    }
  }
  // Groups that are joined, and filters padded to whole pieces of 16 bytes whose threads end in the middle of one.
  batch.add(
      "joined",
      conv_text("f16[2,12,13,112]", "f16[96,14,2,1]",
                "strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 8",
                "f16[2,11,13,96]"),
      {.tolerance = 3e-3, .only_wgmma = true});
  batch.add(
      "padded",
      conv_text("f32[2,5,9,248]", "f32[16,31,3,3]",
                "strides = [2,1], low = [0,1], high = [2,1], dilations = [2,1], lhs_dilations = [1,1], groups = 8",
                "f32[2,2,9,16]"),
      {.tolerance = 1e-5, .family = "k_reduction"});
  batch.run();
  const std::vector<std::string> all = batch.decisions();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& d) { return d.find(" in ") != std::string::npos; }))
      << "none of them joins groups";
}

}  // namespace
}  // namespace heddle
