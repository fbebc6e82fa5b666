#include <fmt/format.h>

#include <array>

#include "testing.h"

// Products and convolutions of bytes and of 16-bit integers, whose sums are exact: every difference is an error. Those
// of bf16 numbers have sums in f32.
namespace heddle {
namespace {

using testing::check_graph;
using testing::parse_with_random_weights;

using Types = std::pair<const char*, const char*>;

constexpr Types kBfloats = {"bf16", "bf16"};

std::string sums_of(const Types& types) {
  return types == kBfloats ? "f32" : "i32";
}

// Each graph is compiled for one instruction set, in turns: compiling takes most of the time.
void check_next(const std::string& text, double tolerance = 0, unsigned choice = 0) {
  static int turn = 0;
  const CpuIsa sets[] = {CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kPortable};
  SCOPED_TRACE(text);
  check_graph(parse_with_random_weights(text, 5), tolerance, {.threads = 2, .isa = sets[turn++ % 4], .choice = choice});
}

// Of sums of bf16 products, and of results that are rounded to bf16.
double tolerance_of(const Types& types) {
  return types == kBfloats ? 2e-6 : 0;
}
constexpr double kRounded = 0x1p-8;

TEST(Words, ProductsOfWeights) {
  for (const Types& types : {Types{"u8", "i8"}, {"i8", "u8"}, {"i16", "i16"}, kBfloats}) {
    for (const auto& [m, n, k] : {std::array{29, 45, 68}, {17, 33, 7}, {40, 3, 64}}) {
      check_next(fmt::format(R"(graph g(%x: {0}[{2},{4}]) {{
        %w = constant {{value = {1}[{4},{3}]{{1}}}}
        %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = {5}}} : {5}[{2},{3}]
        return "y" = %0
      }})",
                             types.first, types.second, m, n, k, sums_of(types)),
                 tolerance_of(types));
    }
  }
}

TEST(Words, ProductsOfTwoValues) {
  // Heads by strides, keys transposed or not, and an operand that is computed.
  for (const Types& types : {Types{"u8", "i8"}, {"i8", "i8"}, kBfloats}) {
    const auto& [a, b] = types;
    for (const auto& [shape, contract] : {std::pair{"2,3,13,18", 3}, {"2,3,18,13", 2}}) {
      check_next(fmt::format(R"(graph g(%x: {0}[2,11,54], %w: {1}[{2}]) {{
        %0 = reshape(%x) {{shape = [2,11,3,18]}} : {0}[2,11,3,18]
        %1 = transpose(%0) {{perm = [0,2,1,3]}} : {0}[2,3,11,18]
        %2 = dot(%1, %w) {{lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [{3}], out = {4}}} : {4}[2,3,11,13]
        return "y" = %2
      }})",
                             a, b, shape, contract, sums_of(types)),
                 tolerance_of(types));
    }
    check_next(fmt::format(R"(graph g(%x: {0}[6,5,7], %w: {1}[5,7,9]) {{
      %0 = transpose(%x) {{perm = [2,0,1]}} : {0}[7,6,5]
      %1 = dot(%0, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [0,2], rhs_contract = [1,0], out = {2}}} : {2}[6,9]
      return "y" = %1
    }})",
                           a, b, sums_of(types)),
               tolerance_of(types));
  }
}

// Rows and steps of k that fill no register, few columns, and rows of an image.
TEST(Words, MatrixRegisters) {
  const auto check = [](const std::string& text, const Types& types, CpuIsa isa) {
    SCOPED_TRACE(text);
    check_graph(parse_with_random_weights(text, 5), tolerance_of(types), {.threads = 2, .isa = isa, .matrices = true});
  };
  for (const Types& types : {Types{"u8", "i8"}, kBfloats}) {
    for (const auto& [m, n, k] : {std::array{33, 45, 150}, {5, 16, 7}, {70, 9, 64}}) {
      check(fmt::format(R"(graph g(%x: {0}[{2},{4}]) {{
        %w = constant {{value = {1}[{4},{3}]{{1}}}}
        %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = {5}}} : {5}[{2},{3}]
        return "y" = %0
      }})",
                        types.first, types.second, m, n, k, sums_of(types)),
            types, m == 5 ? CpuIsa::kPortable : CpuIsa::kAvx2);
    }
    check(fmt::format(R"(graph g(%x: {0}[1,11,19,38]) {{
      %w = constant {{value = {1}[40,38,3,3]{{1}}}}
      %0 = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc", out = {2}}} : {2}[1,11,19,40]
      return "y" = %0
    }})",
                      types.first, types.second, sums_of(types)),
          types, CpuIsa::kAvx2);
  }
}

TEST(Words, LongSumsOfBfloats) {
  check_next(R"(graph g(%x: bf16[5,33001]) {
    %w = constant {value = bf16[33001,19]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], out = f32} : f32[5,19]
    return "y" = %0
  })",
             1e-6);
}

TEST(Words, EpilogueRoundsToBfloats) {
  for (int i = 0; i < 4; ++i) {
    check_next(R"(graph g(%x: bf16[29,67], %r: bf16[29,45]) {
      %w = constant {value = bf16[67,45]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : bf16[29,45]
      %1 = add(%0, %r) : bf16[29,45]
      %2 = exp(%1) : bf16[29,45]
      return "y" = %1, "z" = %2
    })",
               2 * kRounded);
  }
}

TEST(Words, EpilogueQuantises) {
  for (int i = 0; i < 4; ++i) {
    check_next(R"(graph g(%x: u8[29,68], %r: u8[29,45]) {
    %w = constant {value = i8[68,45]{1}}
    %s = constant {value = f32[]{0.0078125}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : i32[29,45]
    %1 = cast(%0) {to = f32} : f32[29,45]
    %2 = broadcast(%s) {shape = [29,45], dims = []} : f32[29,45]
    %3 = mul(%1, %2) {rounded = 1} : f32[29,45]
    %4 = cast(%r) {to = f32} : f32[29,45]
    %5 = add(%3, %4) : f32[29,45]
    %6 = round(%5) : f32[29,45]
    %7 = cast(%6) {to = i8} : i8[29,45]
    %8 = cast(%6) {to = u8} : u8[29,45]
    %9 = cast(%6) {to = i16} : i16[29,45]
    return "y" = %7, "z" = %8, "w" = %9
  })");
  }
}

struct Conv {
  int channels, features, groups, kernel, stride, dilation, low, size;
};

TEST(Words, Convolutions) {
  const Conv convs[] = {{8, 20, 1, 1, 1, 1, 0, 9},   {5, 33, 1, 3, 1, 1, 1, 11},   {3, 16, 1, 7, 2, 1, 3, 19},
                        {16, 24, 1, 3, 2, 1, 1, 14}, {12, 8, 2, 3, 1, 2, 2, 13},   {10, 15, 5, 3, 1, 1, 1, 8},
                        {24, 24, 24, 3, 1, 1, 1, 9}, {35, 35, 35, 5, 2, 1, 2, 12}, {4, 40, 1, 3, 1, 1, 0, 10}};
  size_t turn = 0;
  for (const Conv& c : convs) {
    const int out = (c.size + 2 * c.low - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
    for (const Types& types : {Types{"u8", "i8"}, {"i16", "i16"}, kBfloats}) {
      check_next(fmt::format(R"(graph g(%x: {0}[2,{2},{2},{3}]) {{
        %w = constant {{value = {1}[{4},{5},{6},{6}]{{1}}}}
        %0 = conv(%x, %w) {{strides = [{7},{7}], low = [{8},{8}], high = [{8},{8}], dilations = [{9},{9}], lhs_dilations = [1,1], groups = {10}, layout = "nhwc", out = {12}}} : {12}[2,{11},{11},{4}]
        return "y" = %0
      }})",
                             types.first, types.second, c.size, c.channels, c.features, c.channels / c.groups, c.kernel,
                             c.stride, c.low, c.dilation, c.groups, out, sums_of(types)),
                 tolerance_of(types), turn++ % 3 == 0 ? 3 : 0);
    }
  }
}

// Rows that are wide enough for neighbouring pixels to share what they load, and channels that do not fill vectors.
TEST(Words, DepthwiseRows) {
  struct Window {
    int height, width, stride, channels;
    Types types;
    CpuIsa isa;
  };
  const Types bytes = {"u8", "i8"}, shorts = {"i16", "i16"};
  const Window windows[] = {
      {3, 3, 1, 43, bytes, CpuIsa::kAvx512},  {5, 5, 1, 43, bytes, CpuIsa::kAvx512},
      {3, 3, 1, 43, shorts, CpuIsa::kAvx2},   {5, 5, 1, 44, shorts, CpuIsa::kAvx2},
      {3, 3, 2, 44, shorts, CpuIsa::kAvx2},   {2, 5, 2, 43, shorts, CpuIsa::kAvx2},
      {3, 4, 1, 72, shorts, CpuIsa::kAvx512}, {1, 3, 1, 22, shorts, CpuIsa::kPortable},
      {3, 3, 1, 44, kBfloats, CpuIsa::kAvx2}, {3, 3, 2, 72, kBfloats, CpuIsa::kAvx512},
  };
  for (const auto& [height, width, stride, channels, types, isa] : windows) {
    const int low_y = height / 2, low_x = width / 2;
    const int out_y = (7 + 2 * low_y - height) / stride + 1, out_x = (23 + 2 * low_x - width) / stride + 1;
    const std::string text = fmt::format(R"(graph g(%x: {0}[1,7,23,{2}]) {{
      %w = constant {{value = {1}[{2},1,{3},{4}]{{1}}}}
      %0 = conv(%x, %w) {{strides = [{5},{5}], low = [{6},{7}], high = [{6},{7}], dilations = [1,1], lhs_dilations = [1,1], groups = {2}, layout = "nhwc", out = {10}}} : {10}[1,{8},{9},{2}]
      return "y" = %0
    }})",
                                         types.first, types.second, channels, height, width, stride, low_y, low_x,
                                         out_y, out_x, sums_of(types));
    SCOPED_TRACE(text);
    check_graph(parse_with_random_weights(text, 5), tolerance_of(types), {.threads = 2, .isa = isa});
  }
}

// Windows of one plane, some of which lie in the padding.
TEST(Words, DepthwisePlanesInThePadding) {
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    for (const Types& types : {Types{"i16", "i16"}, kBfloats}) {
      const std::string text = fmt::format(R"(graph g(%x: {0}[1,3,5,23,64]) {{
      %w = constant {{value = {1}[64,1,1,3,3]{{1}}}}
      %0 = conv(%x, %w) {{strides = [1,1,1], low = [1,1,1], high = [1,1,1], dilations = [1,1,1], lhs_dilations = [1,1,1], groups = 64, layout = "nhwc", out = {2}}} : {2}[1,5,5,23,64]
      return "y" = %0
    }})",
                                           types.first, types.second, sums_of(types));
      SCOPED_TRACE(text);
      check_graph(parse_with_random_weights(text, 5), tolerance_of(types), {.threads = 2, .isa = isa});
    }
  }
}

// The image has the channels first, as a model's input.
TEST(Words, PlanesOfFewChannels) {
  for (const int channels : {1, 2, 3, 4, 5}) {
    for (const Types& types : {Types{"u8", "i8"}, {"i16", "i16"}, kBfloats}) {
      check_next(fmt::format(R"(graph g(%x: {0}[2,{2},9,37]) {{
        %w = constant {{value = {1}[20,{2},3,3]{{1}}}}
        %t = transpose(%x) {{perm = [0,2,3,1]}} : {0}[2,9,37,{2}]
        %0 = conv(%t, %w) {{strides = [2,2], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc", out = {3}}} : {3}[2,5,19,20]
        return "y" = %0
      }})",
                             types.first, types.second, channels, sums_of(types)),
                 tolerance_of(types));
    }
  }
}

}  // namespace
}  // namespace heddle
