// Laws of the index arithmetic that kernels and scheduler share.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {
namespace {

template <int Width>
void check_swizzle() {
  constexpr uint32_t kBytes = 8192;
  std::set<uint32_t> seen;
  for (uint32_t offset = 0; offset < kBytes; ++offset) {
    const uint32_t to = swizzle<Width>(offset);
    EXPECT_EQ(swizzle<Width>(to), offset);
    EXPECT_EQ(to / Width, offset / Width) << "stays in its row";
    EXPECT_EQ(to % 16, offset % 16) << "pieces of 16 bytes stay whole";
    seen.insert(to);
  }
  EXPECT_EQ(seen.size(), kBytes);
  // Eight rows of one matrix are stored at once: no two pieces may share banks beyond what the row length forces.
  for (uint32_t piece = 0; piece < Width / 16; ++piece) {
    std::set<uint32_t> banks;
    for (uint32_t row = 0; row < 8; ++row) banks.insert(swizzle<Width>(row * Width + piece * 16) % 128 / 16);
    EXPECT_EQ(banks.size(), 8u);
  }
}

TEST(Swizzle, KeepsRowsAndSpreadsColumnsOverBanks) {
  check_swizzle<32>();
  check_swizzle<64>();
  check_swizzle<128>();
}

TEST(Swizzle, WidthDividesTheRow) {
  EXPECT_EQ(swizzle_width(512), 128);
  EXPECT_EQ(swizzle_width(320), 64);
  EXPECT_EQ(swizzle_width(224), 32);
  EXPECT_EQ(swizzle_width(32), 32);
}

GemmArgs walk_of(int32_t m, int32_t n, int32_t group, int32_t k_tiles, int32_t splits, int32_t batch) {
  GemmArgs args{};
  args.tiles_m = m, args.tiles_n = n, args.raster_group = group;
  args.k_tiles = k_tiles, args.splits = splits, args.batch = batch;
  set_divisors(args);
  return args;
}

TEST(Divisor, DividesLikeTheHost) {
  std::mt19937 random(std::random_device{}());
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const auto check = [](int32_t n, int32_t d) { EXPECT_EQ(GemmDivisor::of(d).divide(n), n / d) << n << " / " << d; };
  for (const int32_t d : {1, 2, 3, 7, 8, 127, 128, 65535, 65537, 1 << 30, kMost - 1, kMost}) {
    for (const int32_t n : {0, 1, d - 1, d, d < kMost / 2 ? 2 * d - 1 : d, kMost - 1, kMost}) check(n, d);
  }
  for (int i = 0; i < 100000; ++i) {
    const auto n = static_cast<int32_t>(random() & kMost), d = static_cast<int32_t>(random() % kMost) + 1;
    check(n, d);
    check(n, d >> random() % 31 | 1);
  }
}

TEST(Units, VisitEveryTileOnce) {
  for (const int32_t m : {1, 2, 7, 16, 33}) {
    for (const int32_t n : {1, 3, 8, 31}) {
      for (const int32_t group : {1, 4, 8, 100}) {
        const GemmArgs args = walk_of(m, n, group, 5, 1, 2);
        std::set<std::tuple<int32_t, int32_t, int32_t>> seen;
        for (int32_t i = 0; i < 2 * m * n; ++i) {
          const GemmUnit unit = gemm_unit(args, i, 64, 32);
          EXPECT_TRUE(unit.m % 64 == 0 && unit.m < 64 * m && unit.n % 32 == 0 && unit.n < 32 * n)
              << unit.m << " " << unit.n;
          EXPECT_TRUE(unit.batch == i / (m * n) && unit.split == 0 && unit.k.first == 0 && unit.k.last == 5);
          seen.insert({unit.m, unit.n, unit.batch});
        }
        EXPECT_EQ(seen.size(), static_cast<size_t>(2) * m * n) << m << " " << n << " " << group;
      }
    }
  }
}

TEST(Units, PartsOfKCoverEverythingInOrderAndEvenly) {
  for (const int32_t count : {1, 5, 64, 1021}) {
    for (int32_t parts = 1; parts <= count && parts < 140; ++parts) {
      const GemmArgs args = walk_of(1, 2, 8, count, parts, 1);
      int32_t next = 0;
      for (int32_t part = 0; part < parts; ++part) {
        const GemmUnit unit = gemm_unit(args, 2 * part + 1, 64, 32);
        EXPECT_TRUE(unit.split == part && unit.n == 32 && unit.batch == 0);
        EXPECT_EQ(unit.k.first, next);
        EXPECT_GE(unit.k.last - unit.k.first, count / parts);
        EXPECT_LE(unit.k.last - unit.k.first, count / parts + 1);
        next = unit.k.last;
      }
      EXPECT_EQ(next, count);
    }
  }
}

// Stream-K, as PersistentTileScheduler and load_partials() follow the shares: every k-tile belongs to one block, and
// who begins a tile finds exactly the sums that miss in the blocks behind it.
TEST(StreamK, EveryKTileIsCountedOnce) {
  for (const int64_t k_tiles : {1, 7, 64}) {
    for (const int64_t tiles : {1, 5, 131, 200, 263}) {
      for (const int32_t blocks : {1, 4, 132}) {
        std::vector<int> seen(static_cast<size_t>(tiles * k_tiles));
        int64_t next = 0;
        for (int32_t block = 0; block < blocks; ++block) {
          const StreamRange share = stream_share(tiles * k_tiles, blocks, block);
          EXPECT_EQ(share.first, next);
          next = share.last;
          EXPECT_LE(share.last - share.first, tiles * k_tiles / blocks + 1);
          for (int64_t at = share.first; at < share.last;) {
            const int64_t first = at % k_tiles, end = std::min(k_tiles, first + share.last - at);
            for (int64_t k = first; k < end; ++k) ++seen[static_cast<size_t>(at - first + k)];
            int64_t missing = first == 0 ? k_tiles - end : 0;
            for (int32_t other = block + 1; missing > 0; ++other) {
              ASSERT_LT(other, blocks);
              const StreamRange theirs = stream_share(tiles * k_tiles, blocks, other);
              ASSERT_LT(theirs.first, theirs.last);
              EXPECT_NE(theirs.first % k_tiles, 0) << "it begins the tile itself and hands nothing on";
              missing -= theirs.last - theirs.first;
            }
            at += end - first;
          }
        }
        EXPECT_EQ(next, tiles * k_tiles);
        for (const int count : seen) EXPECT_EQ(count, 1);
      }
    }
  }
}

// The way of an accumulator through shared memory, as tile/kernel/cuda/gemm/store.h computes it: the element that the
// TMA finds at (row, column) of the box is the one that the instruction's layout puts there.
TEST(Staging, StoredMatricesLandWhereTheCopyEngineReads) {
  constexpr int kBytes = 128, kColumns = 64;
  std::vector<int> shared(kGemmStagingBytes / 2, -1);
  const auto id = [](int row, int col) { return row * 1000 + col; };
  for (int jj = 0; jj < kColumns / 8; jj += 2) {
    for (int lane = 0; lane < 32; ++lane) {  // addresses of lane 8i + r: row r of matrix i
      const uint32_t r = lane % 8 + (lane / 8 % 2) * 8, j = jj + lane / 16;
      const uint32_t address = swizzle<kBytes>(r * kBytes + j * 16);
      const int matrix = lane / 8, row = lane % 8;
      for (int c = 0; c < 8; ++c) {
        // Held by lane 4 * row + c / 2 as matrix i: rows 8 * (i % 2), columns 8 * (jj + i / 2).
        shared[address / 2 + c] = id(8 * (matrix % 2) + row, 8 * (jj + matrix / 2) + c);
      }
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int col = 0; col < kColumns; ++col) {
      EXPECT_EQ(shared[swizzle<kBytes>(row * kBytes + col * 2) / 2], id(row, col));
    }
  }
}

TEST(Staging, TransposedMatricesLandWhereTheCopyEngineReads) {
  constexpr int kRows = 64;  // of D; 16 columns of D in 32 bytes
  std::vector<int> shared(kGemmStagingBytes / 2, -1);
  const auto id = [](int m, int n) { return m * 1000 + n; };
  for (int jj = 0; jj < kRows / 8; jj += 2) {
    for (int lane = 0; lane < 32; ++lane) {
      const uint32_t r = 8 * (jj + lane / 16) + lane % 8;
      const uint32_t address = swizzle<32>(r * 32 + (lane / 8 % 2) * 16);
      const int matrix = lane / 8, column = lane % 8;  // transposed: the lane gives the address of a column
      for (int m = 0; m < 8; ++m) {
        shared[address / 2 + m] = id(8 * (matrix % 2) + m, 8 * (jj + matrix / 2) + column);
      }
    }
  }
  for (int n = 0; n < kRows; ++n) {
    for (int m = 0; m < 16; ++m) EXPECT_EQ(shared[swizzle<32>(n * 32 + m * 2) / 2], id(m, n));
  }
}

}  // namespace
}  // namespace heddle::tile
