// The kernels over views on a GPU: the best candidates of the model, every element against sums in double.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "../tile_cuda/tile_case.h"

namespace heddle::testing_cuda {
namespace {

constexpr DType kF64 = DType::kF64, kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16, kI8 = DType::kI8,
                kI32 = DType::kI32, kI64 = DType::kI64;

class TileOnGpu : public testing::TestWithParam<MatrixCase> {};

TEST_P(TileOnGpu, BestCandidatesAreRight) {
  constexpr size_t kMost = 12;
  const auto devices = cuda_devices();
  if (devices.empty()) GTEST_SKIP() << "no GPU";
  const runtime::CudaContext context(0);
  Runner runner(context);
  const MatrixCase& c = GetParam();
  size_t tried = 0;
  for (const schedule::CudaCandidate& candidate : enumerate(problem_of(c), devices[0].target)) {
    if (!candidate.rejected.empty() || ++tried > kMost) break;
    check_matrices(runner, c, candidate.config);
  }
  EXPECT_GE(tried, 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TileOnGpu,
    testing::Values(MatrixCase{.m = 512, .n = 384, .k = 640}, MatrixCase{.m = 1, .n = 1, .k = 1},
                    MatrixCase{.out = kF16, .m = 97, .n = 101, .k = 103}, MatrixCase{.m = 3, .n = 1000, .k = 520},
                    MatrixCase{.m = 300, .n = 7, .k = 1024, .a_along_k = false, .b_along_k = false},
                    MatrixCase{.m = 128, .n = 136, .k = 4096, .batch = 2, .pad = 8, .b_along_k = false}));
INSTANTIATE_TEST_SUITE_P(
    Types, TileOnGpu,
    testing::Values(
        MatrixCase{.in = kBF16, .a = kBF16, .b = kBF16, .out = kBF16, .m = 200, .n = 136, .k = 264},
        MatrixCase{.in = kF32, .a = kF32, .b = kF32, .m = 200, .n = 136, .k = 264, .b_along_k = false},
        MatrixCase{.in = kF32, .a = kF32, .b = kF32, .m = 200, .n = 136, .k = 264, .b_along_k = false, .tf32 = true},
        MatrixCase{.in = kF64, .a = kF64, .b = kF64, .out = kF64, .m = 130, .n = 70, .k = 90},
        MatrixCase{.in = kI8, .a = kI8, .b = kI8, .out = kI32, .m = 130, .n = 72, .k = 160},
        MatrixCase{.in = kI8, .a = kI8, .b = kI8, .out = kI32, .m = 128, .n = 80, .k = 99, .b_along_k = false},
        MatrixCase{.in = kI64, .a = kI64, .b = kI64, .out = kI64, .m = 65, .n = 33, .k = 47},
        MatrixCase{.in = kF16, .a = kF32, .b = kI8, .m = 130, .n = 72, .k = 160}));

// Any configuration, not only those that are expected to be fast.
TEST(RandomTilesOnGpu, AnyCandidateIsRight) {
  constexpr int kCases = 24;
  const auto devices = cuda_devices();
  if (devices.empty()) GTEST_SKIP() << "no GPU";
  const runtime::CudaContext context(0);
  Runner runner(context);
  constexpr DType kTypes[] = {kF16, kBF16, kF32, kF64, kI8, kI32, kI64};
  const uint64_t seed = std::getenv("HEDDLE_SEED") != nullptr ? std::stoull(std::getenv("HEDDLE_SEED")) : 1;
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int i = 0; i < kCases; ++i) {
    MatrixCase c;
    c.in = kTypes[random() % std::size(kTypes)];
    c.a = c.b = c.in;
    c.out = c.in == kI8 ? kI32 : c.in == kF16 || c.in == kBF16 ? kF32 : c.in;
    const int64_t unit = random() % 2 == 0 ? 8 : 1;  // half of them aligned
    c.m = random() % 4 == 0 ? pick(8) : pick(300 / unit) * unit;
    c.n = random() % 4 == 0 ? pick(8) : pick(300 / unit) * unit;
    c.k = pick(600 / unit) * unit;
    c.batch = random() % 4 == 0 ? 3 : 1;
    c.pad = random() % 3 == 0 ? unit : 0;
    c.a_along_k = random() % 2 == 0;
    c.b_along_k = random() % 2 == 0;
    c.tf32 = random() % 2 == 0;
    auto candidates = enumerate(problem_of(c), devices[0].target);
    std::erase_if(candidates, [](const auto& candidate) { return !candidate.rejected.empty(); });
    SCOPED_TRACE(testing::PrintToString(c) + " seed " + std::to_string(seed));
    check_matrices(runner, c, candidates[random() % candidates.size()].config);
  }
}

TEST(RandomImagesOnGpu, AnyCandidateIsRight) {
  constexpr int kCases = 16;
  const auto devices = cuda_devices();
  if (devices.empty()) GTEST_SKIP() << "no GPU";
  const runtime::CudaContext context(0);
  Runner runner(context);
  const uint64_t seed = std::getenv("HEDDLE_SEED") != nullptr ? std::stoull(std::getenv("HEDDLE_SEED")) : 1;
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  for (int i = 0; i < kCases; ++i) {
    Image image;
    image.element = random() % 2 == 0 ? kF16 : kF32;
    const auto rank = static_cast<size_t>(pick(1, 3));
    image.images = pick(1, 3);
    image.channels = random() % 2 == 0 ? pick(1, 12) : pick(1, 8) * 8;
    image.groups = random() % 3 == 0 ? pick(2, 3) : 1;
    for (size_t d = 3 - rank; d < 3; ++d) {
      image.window[d] = pick(1, 4);
      image.dilation[d] = pick(1, 2);
      image.stride[d] = pick(1, 3);
      image.before[d] = pick(0, 2);
      image.after[d] = pick(0, 3);
      image.size[d] = (image.window[d] - 1) * image.dilation[d] + pick(1, rank == 3 ? 5 : 14);
    }
    const int64_t outputs = pick(1, 70);
    auto candidates = enumerate(problem_of(image, outputs), devices[0].target);
    std::erase_if(candidates, [](const auto& candidate) { return !candidate.rejected.empty(); });
    SCOPED_TRACE("image " + std::to_string(i) + " of seed " + std::to_string(seed));
    check_images(runner, image, outputs, candidates[random() % candidates.size()].config);
  }
}

TEST(ImagesOnGpu, BestCandidatesAreRight) {
  const auto devices = cuda_devices();
  if (devices.empty()) GTEST_SKIP() << "no GPU";
  const runtime::CudaContext context(0);
  Runner runner(context);
  for (const int64_t channels : {64, 3}) {
    Image image;
    image.images = 2;
    image.channels = channels;
    image.size = {1, 28, 30};
    image.window = {1, 3, 3};
    image.stride = {1, 2, 1};
    image.before = image.after = {0, 1, 1};
    image.groups = channels == 64 ? 2 : 1;
    for (const Config& c : {mma(128, 64, 32, 2, 2), mma(64, 64, 64, 2, 2, 4), simt(64, 64, 8, 2, 2)}) {
      check_images(runner, image, 48, c);
    }
  }
}

}  // namespace
}  // namespace heddle::testing_cuda
