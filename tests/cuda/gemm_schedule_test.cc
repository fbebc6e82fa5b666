#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "schedule/product/cuda/wgmma/cluster_splitk.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {
namespace {

WgmmaProblem problem(int64_t m, int64_t n, int64_t k, DType in = DType::kF16, DType out = DType::kF16) {
  WgmmaProblem p;
  p.in = in;
  p.out = out;
  p.m = m;
  p.n = n;
  p.k = k;
  return p.resolved();
}

std::vector<WgmmaProblem> problems() {
  std::vector<WgmmaProblem> list = {problem(1, 1, 1),        problem(16, 4096, 4096), problem(128, 128, 65536),
                                    problem(16384, 64, 576), problem(1280, 768, 768), problem(4096, 4096, 4096),
                                    problem(97, 1021, 4093), problem(5, 8192, 64)};
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(4, 14);
  const auto size = [&] { return static_cast<int64_t>(std::exp2(exponent(random))); };
  for (int i = 0; i < 30; ++i) {
    WgmmaProblem p = problem(size(), size(), size());
    p.a_k_major = i % 2 == 0;
    p.b_k_major = i % 3 != 0;
    p.lda = p.ldb = p.stride_a = p.stride_b = 0;
    p.batch = i % 5 == 0 ? 3 : 1;
    p.stride_d = 0;
    list.push_back(p.resolved());
  }
  return list;
}

struct Runnable {
  WgmmaConfig config;
  double predicted_us;
};

std::vector<Runnable> runnable(const WgmmaProblem& p, const CudaTarget& target) {
  std::vector<Runnable> found;
  for (const WgmmaConfig& c : wgmma_configs(p, target)) {
    if (reject(c, p, target).empty()) found.push_back({c, predict_us(p, c, target)});
  }
  return found;
}

struct Launched {
  KernelLaunches made;
  double predicted_us;
};

// Every configuration that runs, of both kernels.
std::vector<Launched> launched(const WgmmaProblem& p, const CudaTarget& target) {
  std::vector<Launched> found;
  for (const Runnable& c : runnable(p, target)) found.push_back({make_launches(p, c.config, target), c.predicted_us});
  WgmmaProblem classed = p;
  classed.classed = true;
  for (const WgmmaProblem& way : {p, classed}) {
    for (const ClusterSplitKConfig& c : cluster_configs(way, target)) {
      if (reject(c, way, target).empty()) found.push_back({make_launches(way, c, target), predict_us(way, c, target)});
    }
  }
  return found;
}

// A block without a k-tile would have no sums, in whichever way rows are read.
TEST(CudaGemm, EveryPartHasAKTile) {
  ClusterSplitKConfig c;
  c.tile_n = 32;
  WgmmaProblem p = problem(1001, 21, 101);  // two k-tiles of 64, and of what lies around rows at any address
  for (const bool classed : {false, true}) {
    p.classed = classed;
    for (const int parts : {1, 2, 3, 4}) {
      c.cluster_k = parts;
      EXPECT_EQ(reject(c, p, CudaTarget{}), parts <= 2 ? "" : "fewer k-tiles than parts") << parts << classed;
    }
  }
}

// Every problem has a candidate: none is refused for its sizes.
TEST(CudaGemm, EveryProblemHasCandidates) {
  const CudaTarget target;
  for (const WgmmaProblem& p : problems()) {
    const auto candidates = runnable(p, target);
    ASSERT_FALSE(candidates.empty()) << p.m << " " << p.n << " " << p.k;
    for (const Runnable& c : candidates) {
      EXPECT_GT(c.predicted_us, 0);
      EXPECT_LE(shared_bytes(p, c.config), target.shared_bytes_per_block);
      EXPECT_GE(c.config.stages, 3);
    }
  }
}

// What the driver demands of tensor maps and launches.
TEST(CudaGemm, LaunchesKeepTheRulesOfTma) {
  const CudaTarget target;
  for (const WgmmaProblem& p : problems()) {
    for (const Launched& c : launched(p, target)) {
      for (const CudaLaunch& launch : c.made.launches) {
        EXPECT_GE(launch.grid[0], 1u);
        for (const TensorMapDesc& map : launch.maps) {
          EXPECT_EQ(map.offset % 16, 0u);
          for (const uint64_t extent : map.extents) EXPECT_TRUE(extent >= 1 && extent <= uint64_t{1} << 32);
          for (const uint64_t stride : map.strides) EXPECT_TRUE(stride % 16 == 0 && stride < uint64_t{1} << 40);
          for (const uint32_t box : map.box) EXPECT_TRUE(box >= 1 && box <= 256);
          const int element = map.element == TensorMapDesc::Element::kBits16  ? 2
                              : map.element == TensorMapDesc::Element::kBits8 ? 1
                                                                              : 4;
          EXPECT_TRUE(map.swizzle_bytes == 16 || static_cast<int>(map.box[0]) * element <= map.swizzle_bytes);
          EXPECT_EQ(static_cast<int>(map.box[0]) * element % 16, 0);
        }
        if (launch.symbol != "gemm") continue;
        EXPECT_EQ(launch.grid[0] % launch.cluster, 0u);
        tile::GemmArgs args;
        if (launch.arguments[0].size() != sizeof(args)) continue;  // of the kernel for small sides
        EXPECT_LE(launch.grid[0], static_cast<uint32_t>(target.sms)) << "blocks stay, one on each SM";
        std::memcpy(&args, launch.arguments[0].data(), sizeof(args));
        EXPECT_LE(args.splits, args.k_tiles) << "each part multiplies at least once";
      }
    }
  }
}

TEST(CudaGemm, UnalignedOperandsAreRepackedAndUnalignedResultsStoredDirectly) {
  const CudaTarget target;
  const WgmmaProblem p = problem(300, 301, 303);
  const auto candidates = runnable(p, target);
  ASSERT_FALSE(candidates.empty());
  const KernelLaunches made = make_launches(p, candidates[0].config, target);
  ASSERT_GE(made.launches.size(), 2u);
  EXPECT_EQ(made.launches[0].symbol, "gemm_repack") << "both in one launch";
  EXPECT_EQ(made.launches[1].symbol, "gemm");
  EXPECT_GE(made.workspace_bytes, (300 + 301) * 304 * 2);
  for (const Runnable& c : candidates) EXPECT_NE(store_of(p, c.config), tile::GemmStore::kTma);
}

TEST(CudaGemm, EmptyProblems) {
  const CudaTarget target;
  EXPECT_TRUE(make_launches(problem(0, 5, 5), WgmmaConfig{}, target).launches.empty());
  const WgmmaProblem p = problem(64, 64, 0);
  const auto candidates = runnable(p, target);
  ASSERT_FALSE(candidates.empty());
  const KernelLaunches made = make_launches(p, candidates[0].config, target);
  ASSERT_EQ(made.launches.size(), 1u) << "only the epilogue of sums over nothing";
  EXPECT_EQ(made.launches[0].symbol, "gemm_reduce");
}

// The first choice keeps most SMs at work, whatever the shape.
TEST(CudaGemm, FirstChoicesFillTheDevice) {
  const CudaTarget target;
  for (const WgmmaProblem& p : {problem(128, 128, 65536), problem(16, 4096, 4096), problem(64, 4096, 14336),
                                problem(16384, 64, 576), problem(1280, 768, 3072), problem(8192, 8192, 8192)}) {
    const auto all = launched(p, target);
    const auto first = std::min_element(
        all.begin(), all.end(), [](const Launched& a, const Launched& b) { return a.predicted_us < b.predicted_us; });
    const auto& grid = first->made.launches[0].grid;
    EXPECT_GE(grid[0] * grid[1] * grid[2], 90u) << p.m << "x" << p.n << "x" << p.k;
  }
}

}  // namespace
}  // namespace heddle::schedule
