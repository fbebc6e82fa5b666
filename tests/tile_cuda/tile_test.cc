// GEMM and convolution by the kernels over views: every element against sums in double, odd shapes, guards around D.
#include "../emulator/fixture.h"
#include "tile_case.h"

namespace heddle::testing_cuda {
namespace {

constexpr DType kF64 = DType::kF64, kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16, kI8 = DType::kI8,
                kU8 = DType::kU8, kI32 = DType::kI32, kI64 = DType::kI64;

class Tile : public emulator::EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    runner = std::make_unique<Runner>(*context);
  }
  // The same instance for several problems: their sizes are arguments.
  void matrices(const Config& config, std::initializer_list<MatrixCase> cases) {
    for (const MatrixCase& c : cases) check_matrices(*runner, c, config);
  }
  std::unique_ptr<Runner> runner;
};

TEST_F(Tile, TensorCoresAlongK) {
  matrices(mma(64, 64, 32, 2, 2), {{.m = 100, .n = 72, .k = 96, .batch = 2}, {.m = 1, .n = 1, .k = 8}});
  matrices(mma(32, 64, 64, 1, 2, 2), {{.in = kBF16, .a = kBF16, .b = kBF16, .out = kBF16, .m = 33, .n = 130, .k = 72}});
}
TEST_F(Tile, TensorCoresAlongRows) {
  matrices(mma(64, 64, 32, 2, 2), {{.m = 104, .n = 72, .k = 95, .pad = 8, .a_along_k = false, .b_along_k = false}});
  matrices(mma(64, 32, 64, 2, 1, 2), {{.out = kF16, .m = 66, .n = 40, .k = 35, .a_along_k = false, .b_along_k = true}});
}
TEST_F(Tile, TensorCoresOfAnyAlignment) {
  matrices(mma(64, 64, 32, 2, 2), {{.m = 65, .n = 33, .k = 37, .b_along_k = false},
                                   {.m = 13, .n = 97, .k = 131, .pad = 2, .b_along_k = false}});
  matrices(mma(64, 64, 32, 2, 2), {{.m = 67, .n = 34, .k = 38}});
}
TEST_F(Tile, TensorCoresOfTf32) {
  matrices(mma(64, 64, 16, 2, 2),
           {{.in = kF32, .a = kF32, .b = kF32, .m = 70, .n = 68, .k = 40, .b_along_k = false, .tf32 = true}});
}
TEST_F(Tile, TensorCoresOfF32InTwoParts) {
  constexpr MatrixCase kF32Case = {.in = kF32, .a = kF32, .b = kF32, .m = 70, .n = 68, .k = 40};
  const auto with = [&](bool a_along_k, bool b_along_k, int64_t k, int64_t batch) {
    MatrixCase c = kF32Case;
    c.a_along_k = a_along_k, c.b_along_k = b_along_k, c.k = k, c.batch = batch;
    return c;
  };
  matrices(mma(64, 64, 16, 2, 2), {with(true, false, 40, 1), with(true, false, 37, 2)});
  matrices(mma(64, 64, 32, 2, 2), {with(true, true, 40, 2), with(true, true, 35, 1)});
  matrices(mma(32, 64, 16, 1, 2, 2, 3), {with(false, false, 95, 1), with(false, true, 56, 1)});
}
TEST_F(Tile, TensorCoresOfIntegers) {
  matrices(mma(64, 64, 64, 2, 2),
           {{.in = kI8, .a = kI8, .b = kI8, .out = kI32, .m = 70, .n = 80, .k = 144, .b_along_k = false}});
  matrices(mma(32, 32, 64, 2, 1), {{.in = kI8, .a = kU8, .b = kI8, .out = kI32, .m = 30, .n = 35, .k = 144}});
}
TEST_F(Tile, TensorCoresWithConversion) {
  matrices(mma(64, 64, 32, 2, 2), {{.a = kF32, .b = kI8, .m = 70, .n = 68, .k = 48}});
}
TEST_F(Tile, PartsOfKAreSummed) {
  matrices(mma(64, 64, 32, 2, 2, 3, 3), {{.m = 65, .n = 70, .k = 264, .batch = 2}});
  matrices(simt(64, 64, 8, 2, 2, 2, 5), {{.in = kF32, .a = kF32, .b = kF32, .m = 65, .n = 70, .k = 264}});
}
TEST_F(Tile, NothingToSumIsZero) {
  matrices(mma(64, 64, 32, 2, 2), {{.m = 5, .n = 7, .k = 0}, {.m = 0, .n = 7, .k = 3}});
}
TEST_F(Tile, OrdinaryArithmetic) {
  matrices(simt(128, 128, 8, 4, 2), {{.in = kF32, .a = kF32, .b = kF32, .m = 130, .n = 70, .k = 36}});
  matrices(simt(64, 64, 16, 2, 2, 3),
           {{.in = kF32, .a = kF32, .b = kF32, .m = 68, .n = 72, .k = 35, .a_along_k = false, .b_along_k = false}});
  matrices(simt(64, 64, 8, 2, 2),
           {{.in = kF64, .a = kF64, .b = kF64, .out = kF64, .m = 34, .n = 70, .k = 36, .b_along_k = false}});
  matrices(simt(32, 64, 8, 1, 2), {{.in = kI64, .a = kI64, .b = kI64, .out = kI64, .m = 33, .n = 65, .k = 17}});
  matrices(simt(32, 64, 8, 1, 2), {{.in = kI32, .a = kU8, .b = kI8, .out = kI32, .m = 36, .n = 40, .k = 37}});
}

TEST_F(Tile, FewRowsOrColumns) {
  schedule::SkinnyConfig c;
  c.few = 4, c.tile_n = 32, c.tile_k = 256, c.rows = 4;
  matrices({c}, {{.out = kF16, .m = 3, .n = 70, .k = 520}, {.out = kF16, .m = 4, .n = 1, .k = 8}});
  c.splits = 2;
  matrices({c}, {{.m = 3, .n = 70, .k = 520, .batch = 2}});
  c.few = 8, c.tile_n = 256, c.tile_k = 64, c.swapped = true;
  matrices({c}, {{.m = 264, .n = 5, .k = 131, .a_along_k = false, .b_along_k = false}});
}

// A with a prologue, 2 a + row - k where A has an element, and B from no memory at all.
TEST_F(Tile, GeneratedOperands) {
  ViewCase p;
  p.m = 40, p.n = 50, p.k = 44, p.out_bytes = 4;
  Matrix m;
  m.rows = p.m, m.k = p.k, m.leading = p.k;
  p.set_operands(m.view(0), m.view(1));
  p.texts.a.text += "struct Changed : " + p.texts.a.type +
                    " {\n"
                    "  template <typename V, int W>\n"
                    "  __device__ void apply(V (&v)[W], int, int row, int k) const {\n"
                    "    for (int i = 0; i < W; ++i) v[i] = 2 * v[i] + V((row - k - i) % 4);\n"
                    "  }\n"
                    "};\n";
  p.texts.a.type = "Changed";
  p.b.view = false;
  p.b.width = 4;
  p.texts.b = {};
  p.texts.b.text =
      "struct Computed {\n"
      "  int n, deep;\n"
      "  static constexpr int kWidth = 4;\n"
      "  __device__ int rows() const { return n; }\n"
      "  __device__ int depth() const { return deep; }\n"
      "  template <typename V, int W>\n"
      "  __device__ void load(V (&v)[W], int, int row, int k, int n) const {\n"
      "    for (int i = 0; i < n; ++i) v[i] = V((3 * row + k + i) % 5 - 2);\n"
      "  }\n"
      "};\n";
  p.texts.b.type = "Computed";
  const int32_t sizes[] = {static_cast<int32_t>(p.n), static_cast<int32_t>(p.k)};
  p.texts.b.block.resize(sizeof(sizes));
  std::memcpy(p.texts.b.block.data(), sizes, sizeof(sizes));
  const Elements a(kF16, p.m * p.k, 7), none(kF16, 1, 8);
  const auto expected = [&](int64_t, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      sum += (2 * a.values[static_cast<size_t>(i * p.k + k)] + static_cast<double>((i - k) % 4)) *
             static_cast<double>((3 * j + k) % 5 - 2);
    }
    return sum;
  };
  runner->check(p, mma(32, 64, 32, 1, 2), {kF32}, a, none, expected);
  runner->check(p, simt(32, 64, 8, 1, 2), {kF32}, a, none, expected);
}

Image image(int64_t images, int64_t channels, std::array<int64_t, 3> size, std::array<int64_t, 3> window) {
  Image i;
  i.images = images;
  i.channels = channels;
  i.size = size;
  i.window = window;
  return i;
}

TEST_F(Tile, ImagesWithPadding) {
  Image i = image(2, 16, {1, 9, 7}, {1, 3, 3});
  i.stride = {1, 2, 1};
  i.before = {0, 1, 1};
  i.after = {0, 1, 2};
  check_images(*runner, i, 40, mma(64, 64, 32, 2, 2));
  i.groups = 2;
  i.dilation = {1, 2, 3};
  i.before = {0, 2, 3};
  check_images(*runner, i, 24, mma(64, 64, 32, 2, 2));
}
TEST_F(Tile, ImagesOfFewChannels) {
  Image i = image(1, 3, {1, 19, 17}, {1, 7, 7});
  i.stride = {1, 2, 2};
  i.before = i.after = {0, 3, 3};
  check_images(*runner, i, 20, mma(64, 32, 32, 2, 1));
}
TEST_F(Tile, ImagesOfOtherRanks) {
  Image i = image(3, 12, {1, 1, 30}, {1, 1, 5});
  i.stride = {1, 1, 2};
  check_images(*runner, i, 20, mma(32, 32, 32, 2, 1));
  Image volume = image(1, 8, {5, 6, 7}, {3, 3, 2});
  volume.stride = {2, 1, 1};
  volume.before = {1, 1, 0};
  volume.after = {1, 0, 1};
  volume.element = kF32;
  check_images(*runner, volume, 24, simt(64, 64, 8, 2, 2));
}
TEST_F(Tile, PointwiseImagesWithStride) {
  Image i = image(2, 40, {1, 9, 7}, {1, 1, 1});
  i.stride = {1, 2, 2};
  check_images(*runner, i, 24, mma(32, 32, 32, 2, 1));
}

}  // namespace
}  // namespace heddle::testing_cuda
