// Configurations and launches of the kernels over views: none is refused for its sizes, all keep the device's limits.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "../tile_cuda/view_case.h"
#include "codegen/product/cuda/gemm.h"
#include "heddle/error.h"

namespace heddle::schedule {
namespace {

using testing_cuda::Image;
using testing_cuda::Matrix;
using testing_cuda::ViewCase;

Matrix matrix(DType element, int64_t rows, int64_t k, bool along_k, int64_t batch) {
  Matrix m;
  m.element = element;
  m.rows = rows, m.k = k, m.batch = batch;
  m.along_k = along_k;
  m.leading = std::max<int64_t>(along_k ? k : rows, 1);
  m.stride = m.leading * (along_k ? rows : k);
  return m;
}

ViewCase view_problem(int64_t m, int64_t n, int64_t k, DType in = DType::kF16, int64_t batch = 1, bool a = true,
                      bool b = true) {
  ViewCase p;
  p.a_in = p.b_in = in;
  p.m = m, p.n = n, p.k = k, p.batch = batch;
  p.out_bytes = static_cast<int>(size_of(in));
  p.set_operands(matrix(in, m, k, a, batch).view(0), matrix(in, n, k, b, batch).view(1));
  return p;
}

std::vector<ViewCase> view_problems() {
  constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64,    DType::kI8,
                              DType::kU8,  DType::kI32,  DType::kI64, DType::kF8E4M3, DType::kI16};
  std::vector<ViewCase> list = {view_problem(1, 1, 1), view_problem(1, 4096, 4096), view_problem(4096, 3, 64),
                                view_problem(5, 5, 100000)};
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(0, 13);
  const auto size = [&] { return static_cast<int64_t>(std::exp2(exponent(random))); };
  for (int i = 0; i < 60; ++i) {
    list.push_back(view_problem(size(), size(), size(), kTypes[i % 10], i % 4 == 0 ? 3 : 1, i % 2 == 0, i % 3 == 0));
    list.back().tf32 = i % 20 == 2;
  }
  return list;
}

CudaTarget device(int sm) {
  CudaTarget target;
  target.sm = sm;
  if (sm == 80) target.sms = 108, target.shared_bytes_per_block = 166912;
  return target;
}

TEST(CudaTile, EveryProblemHasConfigurationsInOrder) {
  for (const int sm : {80, 90}) {
    const CudaTarget target = device(sm);
    for (const ViewCase& p : view_problems()) {
      const auto candidates = enumerate(p, target);
      ASSERT_FALSE(candidates.empty());
      ASSERT_EQ(candidates[0].rejected, "") << p.m << " " << p.n << " " << p.k << " " << to_string(p.a_in);
      double before = 0;
      for (const CudaCandidate& c : candidates) {
        if (!c.rejected.empty()) continue;
        EXPECT_GE(c.config.predicted_us, before);
        EXPECT_GE(c.config.predicted_us, floor_us(p, target));
        before = c.config.predicted_us;
      }
    }
  }
}

TEST(CudaTile, LaunchesKeepTheDevicesLimits) {
  const CudaTarget target = device(80);
  for (const ViewCase& p : view_problems()) {
    for (const CudaCandidate& c : enumerate(p, target)) {
      if (!c.rejected.empty()) continue;
      const ViewFamily& family = view_family_of(c.config);
      const CudaInstance instance = family.instance_of(p, c.config);
      KernelLaunches made = family.launches_of(p, c.config, target, 3);
      codegen::add_operands(made.launches, instance, p.texts);
      EXPECT_EQ(made.workspace_bytes > 0, made.launches.size() == 2) << "parts of k";
      EXPECT_LE(made.workspace_bytes, 64 << 20);
      const CudaLaunch& launch = made.launches[0];
      EXPECT_LE(launch.block, 1024u);
      EXPECT_EQ(launch.block % 32, 0u);
      EXPECT_LE(launch.shared_bytes, target.shared_bytes_per_block);
      EXPECT_GE(launch.grid[0], 1u);
      ASSERT_EQ(launch.arguments.size(), 3u);
      tile::GemmArgs args;
      ASSERT_EQ(launch.arguments[0].size(), sizeof(args));
      std::memcpy(&args, launch.arguments[0].data(), sizeof(args));
      EXPECT_EQ(launch.grid[0], static_cast<uint32_t>(args.tiles_m * args.tiles_n * args.splits * args.batch));
      EXPECT_EQ(args.splits > 1, made.launches.size() == 2);
      EXPECT_LE(args.splits, args.k_tiles);
      // The first operand is the one with args.m rows.
      for (const PointerPatch& patch : launch.pointers) {
        if (patch.argument == 0) continue;
        EXPECT_EQ(patch.operand, instance.swapped ? 2 - patch.argument : patch.argument - 1);
      }
    }
  }
}

TEST(CudaTile, EmptySumsAreReducedAndEmptyResultsLaunchNothing) {
  const CudaTarget target = device(90);
  const ViewCase empty = view_problem(7, 9, 0);
  const Config first = enumerate(empty, target)[0].config;
  const KernelLaunches made = view_family_of(first).launches_of(empty, first, target, 3);
  ASSERT_EQ(made.launches.size(), 1u);
  EXPECT_EQ(made.launches[0].symbol, "gemm_reduce");
  EXPECT_EQ(made.workspace_bytes, 0);
  EXPECT_TRUE(
      view_family_of({MmaConfig{}}).launches_of(view_problem(0, 9, 5), {MmaConfig{}}, target, 3).launches.empty());
}

TEST(CudaTile, TensorCoresWhereTheyMultiplyTheType) {
  const CudaTarget target = device(90), old = device(80);
  const auto best = [](const ViewCase& p, const CudaTarget& t) {
    return std::string(family_of(enumerate(p, t)[0].config));
  };
  EXPECT_EQ(best(view_problem(512, 512, 512), old), "mma");
  EXPECT_EQ(best(view_problem(511, 509, 499), target), "mma");
  EXPECT_EQ(best(view_problem(512, 512, 512, DType::kF32), target), "mma");  // in two parts of tf32
  EXPECT_EQ(best(view_problem(512, 512, 512, DType::kF64), target), "simt");
  EXPECT_EQ(best(view_problem(512, 512, 512, DType::kF8E4M3), target), "mma");
  EXPECT_EQ(best(view_problem(512, 512, 512, DType::kF8E4M3), old), "simt");
  ViewCase rounded = view_problem(512, 512, 512, DType::kF32);
  rounded.tf32 = true;
  EXPECT_EQ(best(rounded, target), "mma");
  EXPECT_EQ(best(view_problem(2, 4096, 4096), target), "skinny");
  EXPECT_EQ(best(view_problem(4096, 1, 4096, DType::kF32), target), "skinny");
}

// Lanes of a warp share k, so a short one leaves most of them idle.
TEST(CudaTile, ManyRowsOfAShortKAreNotReducedByWarps) {
  for (const DType type : {DType::kU8, DType::kF16}) {
    for (const int64_t k : {32, 64}) {
      EXPECT_EQ(family_of(enumerate(view_problem(401408, 8, k, type), device(90))[0].config), "mma") << k;
    }
  }
}

TEST(CudaTile, FewResultsOfALongKAreSumsInRegisters) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kI8}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{3, 3, 100000}, {1, 1, 1 << 20}, {8, 8, 65536}, {5, 2, 100000}}) {
      for (const bool along_k : {true, false}) {
        const ViewCase p = view_problem(m, n, k, type, 1, along_k, !along_k);
        const CudaCandidate best = enumerate(p, device(90))[0];
        EXPECT_EQ(family_of(best.config), "k_reduction") << m << "x" << n << "x" << k;
        // Both operands once and the two launches, not the rounds of a loop.
        EXPECT_LT(best.config.predicted_us, floor_us(p, device(90)) * 1.3 + 7);
      }
    }
  }
}

TEST(CudaTile, RefusalsHaveReasons) {
  for (const CudaCandidate& c : enumerate(view_problem(64, 64, 64, DType::kF64), device(90))) {
    EXPECT_TRUE(family_of(c.config) == "simt" || !c.rejected.empty()) << name_of(c.config);
  }
  EXPECT_THROW(enumerate(view_problem(64, 64, 64, DType::kI4), device(90)), Error);
}

TEST(OperandView, WidthFollowsWhatIsAMultiple) {
  const auto width = [](DType type, int64_t k, bool along_k, int64_t batch) {
    return traits_of(matrix(type, 64, k, along_k, batch).view(0), 64, batch, type).width;
  };
  EXPECT_EQ(width(DType::kF16, 64, true, 1), 8);
  EXPECT_EQ(width(DType::kF16, 100, true, 1), 4);
  EXPECT_EQ(width(DType::kF16, 99, true, 2), 1);
  EXPECT_EQ(width(DType::kF32, 100, false, 1), 4);
  EXPECT_EQ(width(DType::kI8, 48, true, 1), 16);
  Image image;
  image.channels = 12, image.groups = 2;
  EXPECT_EQ(traits_of(image.view(0), image.rows(), image.groups, DType::kF16).width, 4);
}

}  // namespace
}  // namespace heddle::schedule
