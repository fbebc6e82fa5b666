#include "schedule/product/blocking.h"

#include <gtest/gtest.h>

#include "base/divide.h"
#include "tile/core/shape.h"

namespace heddle::schedule {
namespace {

Config of_tiles(int64_t height, int64_t rows) {
  CpuGemmConfig gemm;
  gemm.micro_m = height, gemm.micro_n = 32;
  gemm.tile_m = rows, gemm.tile_n = 64;
  Config config;
  config.choice = gemm;
  return config;
}

// Kernels for any number of rows: B is read once where the kernel of these rows alone would read it once.
TEST(CommonHeights, ABlockThatHasAllRowsKeepsThem) {
  for (const int64_t most : {6, 14, 32}) {
    for (int64_t rows = 2; rows <= 100; ++rows) {
      const tile::RowSplit own = tile::split_rows(rows, most);
      const CpuGemmConfig common =
          with_common_height(of_tiles(own.mr, own.tiles * own.mr), rows, most).as<CpuGemmConfig>();
      ASSERT_GE(common.tile_m, rows) << most;
      ASSERT_EQ(common.tile_m % common.micro_m, 0);
      const int64_t tiles = ceil_div(rows, common.micro_m);
      ASSERT_GE(rows, tiles * (common.micro_m - 1)) << "tiles of two heights cannot cover " << rows << " rows";
    }
  }
}

TEST(CommonHeights, FewRowsAreOneTile) {
  for (const int64_t most : {6, 14}) {
    for (int64_t rows = 2; rows <= most; ++rows) {
      const CpuGemmConfig common = with_common_height(of_tiles(rows, rows), rows, most).as<CpuGemmConfig>();
      EXPECT_EQ(ceil_div(rows, common.micro_m), 1) << rows << " of " << most;
    }
  }
}

}  // namespace
}  // namespace heddle::schedule
