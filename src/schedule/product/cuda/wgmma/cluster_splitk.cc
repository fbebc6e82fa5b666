// Which configurations of the kernel for small sides a problem may take, and what they are expected to cost.
#include "schedule/product/cuda/wgmma/cluster_splitk.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/divide.h"
#include "schedule/product/cuda/reduce.h"
#include "schedule/product/cuda/wgmma/misaligned.h"
#include "target/argument_block.h"

namespace heddle::schedule {
namespace {

struct ClusterTile {
  int m, n, consumers;
};
constexpr ClusterTile kClusterTiles[] = {{64, 16, 1},  {64, 32, 1},  {64, 48, 1},  {64, 64, 1},  {64, 96, 1},
                                         {64, 128, 1}, {128, 32, 2}, {128, 64, 2}, {128, 128, 2}};
// Of windows. Wider ones leave no room for the stages that k-tiles from memory are waited for in.
constexpr ClusterTile kWindowTiles[] = {{64, 32, 1},  {64, 64, 1},  {64, 96, 1},  {64, 128, 1},
                                        {64, 160, 1}, {64, 192, 1}, {128, 96, 2}, {128, 128, 2}};
constexpr int kMostClusterParts = 8;  // a portable cluster

// The problem as the kernel sees it.
struct Sides {
  int64_t m, n;
  bool a_k, b_k;
  int64_t k_tiles;
};
Sides sides_of(const WgmmaProblem& p, bool swapped) {
  const auto element = static_cast<int64_t>(size_of(p.in));
  const int64_t k_tiles = ceil_div(p.k * element, tile::kGemmRowBytes);
  return swapped ? Sides{p.n, p.m, p.b_k_major, p.a_k_major, k_tiles}
                 : Sides{p.m, p.n, p.a_k_major, p.b_k_major, k_tiles};
}

int64_t tiles_of(const WgmmaProblem& p, const ClusterSplitKConfig& c) {
  const Sides v = sides_of(p, c.swapped);
  if (p.classed) {
    const int64_t classes = classes_of(p, c.swapped);
    return classes * ceil_div(ceil_div(v.m, classes), c.tile_m) * ceil_div(v.n, c.tile_n);
  }
  return ceil_div(v.m, c.tile_m) * ceil_div(v.n, c.tile_n) * p.batch;
}

// Blocks that run at once.
int64_t capacity(const ClusterSplitKConfig& c, int resident, const GpuTarget& target) {
  return static_cast<int64_t>(target.sms * resident * kClusterShare[c.cluster_k]);
}

int resident(const WgmmaProblem& p, const ClusterSplitKConfig& c) {
  const bool two = shared_bytes(p, c) <= tile::kGemmHalfOfShared &&
                   cluster_threads(c, p) <= tile::cluster_splitk_half_of_threads(p.split);
  return two ? 2 : 1;
}

// With as many stages as let two blocks of an SM have enough under way, else as fit.
void add(std::vector<ClusterSplitKConfig>& found, const WgmmaProblem& p, ClusterSplitKConfig c,
         const GpuTarget& target) {
  c.stages = most_stages(c, p, tile::kGemmHalfOfShared);
  if (c.stages < 4 || cluster_threads(c, p) > tile::cluster_splitk_half_of_threads(p.split)) {
    c.stages = most_stages(c, p, target.shared_bytes_per_block);
  }
  // Where there is a block for an SM at most, it may as well ask for all that it will need: that helps rows
  // that begin anywhere, and costs others a little.
  if (const auto [blocks, each] = cluster_blocks(c, p); p.classed && blocks <= target.sms && c.stages < each) {
    constexpr int64_t kMostStages = 24;
    c.stages = most_stages(c, p, target.shared_bytes_per_block, static_cast<int>(std::min<int64_t>(each, kMostStages)));
  }
  found.push_back(c);
}

}  // namespace

// Tiles that are as wide as the short side.
std::vector<ClusterSplitKConfig> misaligned_configs(const WgmmaProblem& p, const GpuTarget& target) {
  std::vector<ClusterSplitKConfig> found;
  for (const bool swapped : {false, true}) {
    if (classes_of(p, swapped) == 0) continue;
    ClusterSplitKConfig c;
    c.swapped = swapped;
    c.tile_n = static_cast<int>(ceil_div(sides_of(p, swapped).n, 16) * 16);
    for (const int consumers : {1, 2}) {
      c.consumers = consumers, c.tile_m = 64 * consumers;
      for (const int parts : {1, 2, 3, 4}) {
        c.cluster_k = parts;
        if (tiles_of(p, c) * parts <= 4 * int64_t{target.sms} && class_k_tiles(p) >= parts) add(found, p, c, target);
      }
    }
  }
  return found;
}

std::vector<ClusterSplitKConfig> cluster_configs(const WgmmaProblem& p, const GpuTarget& target) {
  if (p.classed) return misaligned_configs(p, target);
  std::vector<ClusterSplitKConfig> found;
  if (p.k == 0 || p.heads > 1 || p.step_a != 0 || p.step_b != 0 || p.shifted_a || p.shifted_b) return found;
  const std::span<const ClusterTile> tiles_to_try =
      p.windows ? std::span<const ClusterTile>(kWindowTiles) : std::span<const ClusterTile>(kClusterTiles);
  for (const bool swapped : {false, true}) {
    if (p.windows && swapped) continue;  // windows are rows of A
    const Sides v = sides_of(p, swapped);
    for (const ClusterTile& tile : tiles_to_try) {
      constexpr int kMostSplit = 96;
      if (p.split && tile.n > kMostSplit) continue;
      if (tile.n >= v.n + 32 || (tile.m > 64 && tile.m >= 2 * v.m)) continue;
      for (const int parts : {1, 2, 3, 4, 6, 8}) {
        ClusterSplitKConfig c;
        c.tile_m = tile.m, c.tile_n = tile.n, c.consumers = tile.consumers;
        c.swapped = swapped;
        c.cluster_k = parts;
        const int64_t tiles = tiles_of(p, c);
        // Two waves at most: more tiles are the other kernel's, whose blocks stay.
        if (tiles * parts > 4 * int64_t{target.sms} || v.k_tiles < parts) continue;
        add(found, p, c, target);
        // Long k: as many clusters as fit at once, a block or two on each SM.
        if (parts < 4) continue;
        for (const int64_t blocks : {target.sms, 2 * target.sms}) {
          const int64_t splits = std::min<int64_t>(blocks * 9 / 10 / (tiles * parts), v.k_tiles / (3 * parts));
          if (splits < 2 || splits == c.splits) continue;
          c.splits = static_cast<int>(splits);
          add(found, p, c, target);
        }
      }
    }
  }
  return found;
}

std::string reject(const ClusterSplitKConfig& c, const WgmmaProblem& p, const GpuTarget& target) {
  if (p.gated && p.classed) return "classes of rows are no pairs of columns";
  if (p.reduces) return "neighbours are reduced in fragments of whole sums, 32 columns and more";
  if (std::string why = reject_copies(p); !why.empty()) return why;
  if (std::string why = reject_partial_sums(p, c.splits); !why.empty()) return why;
  constexpr int64_t kMostGrid = 65535;
  if (p.in == DType::kU8 && c.swapped) return "the second operand has signed bytes";
  const Sides v = sides_of(p, c.swapped);
  if (c.stages < 1) return "not one stage fits in shared memory";
  if (c.cluster_k > kMostClusterParts || c.cluster_k > target.sms) return "more blocks than a cluster has";
  if (p.views && ((!v.a_k && c.tile_m % 64 != 0) || (!v.b_k && c.tile_n % 64 != 0))) {
    return "rows along memory come in strips of 64";
  }
  if (ceil_div(v.n, c.tile_n) > kMostGrid || p.batch * c.splits > kMostGrid) return "more tiles than a grid has";
  const int64_t k_tiles = p.classed ? class_k_tiles(p) : v.k_tiles;
  if (k_tiles < int64_t{c.cluster_k} * c.splits) return "fewer k-tiles than parts";
  if (p.classed && misaligned_copies_bytes(p, c.swapped) > kMostWorkspace) {
    return "copies of an operand exceed the workspace";
  }
  return {};
}

int cluster_threads(const ClusterSplitKConfig& c, const WgmmaProblem& p) {
  return 128 * c.consumers + (p.views ? 128 : 32);
}

ClusterBlocks cluster_blocks(const ClusterSplitKConfig& c, const WgmmaProblem& p) {
  const int64_t k_tiles = p.classed ? class_k_tiles(p) : sides_of(p, c.swapped).k_tiles;
  const int64_t parts = int64_t{c.cluster_k} * c.splits;
  return {tiles_of(p, c) * parts, ceil_div(k_tiles, parts)};
}

int shared_bytes(const WgmmaProblem& p, const ClusterSplitKConfig& c) {
  const Sides v = sides_of(p, c.swapped);
  return tile::cluster_splitk_shared_bytes(c.tile_m, c.tile_n, v.a_k, v.b_k, c.stages, c.cluster_k, c.swapped, p.split);
}

double predict_us(const WgmmaProblem& p, const ClusterSplitKConfig& c, const GpuTarget& target) {
  const auto& s = target.model.cluster_split;
  const double cycles_per_us = s.clock_ghz * 1e3;
  // Operands that leave the L2 first need no write-back of what others left there.
  const bool streams = !p.views && (streams_operand(p, c, true) || streams_operand(p, c, false));
  const double bytes_per_us = p.classed ? s.classed_per_us : streams ? s.streamed_per_us : s.memory_per_us;
  const int at_once = resident(p, c);
  const auto counts = cluster_blocks(c, p);
  const auto blocks = static_cast<double>(counts.blocks), each = static_cast<double>(counts.each);
  // Launch to first tile, as measured: arguments, addresses, a read of memory; TMA's map comes before that.
  double us = p.views ? s.first_view_us : s.first_load_us;
  if (c.cluster_k > 1) us += c.cluster_k == 2 ? s.pair_us : s.cluster_us;
  // A k-tile of a block, as measured: what asking for it takes, or its multiplication.
  const double requests = c.cluster_k == 1 && c.splits == 1 ? s.alone_request_cycles : s.request_cycles;
  const double asking = p.views ? s.view_request_cycles + (c.tile_m + c.tile_n) / 16.0 * s.view_lines_cycles : requests;
  // Its bytes at the rate of one SM; windows come at TMA's, and no faster than stages are asked for again.
  const auto& w = target.model.wgmma;
  const double arriving =
      p.windows ? std::max((c.tile_m * w.windows_share + c.tile_n) * tile::kGemmRowBytes / w.windows_per_cycle,
                           s.windows_wait_cycles / c.stages)
                : (c.tile_m + c.tile_n) * tile::kGemmRowBytes / (target.model.chip.sm_gbps * 1e3 / cycles_per_us);
  const double multiply = c.tile_n * 1.3 * (c.tile_m / 64.0 / c.consumers);
  const double tile_cycles =
      std::max({asking, arriving, p.split ? s.split_tile_cycles + 4.5 * multiply : s.tile_cycles + multiply});
  const double waves = std::ceil(blocks / static_cast<double>(capacity(c, at_once, target)));
  double consume = waves * each * tile_cycles / cycles_per_us;
  if (p.classed) {
    // Rows that begin between lines take 2.5 requests each, of which a SM makes one in two cycles, whatever
    // its blocks are; more where the next k-tile's line is another block's.
    constexpr double kRequests = 2.5;
    const double cycles = c.cluster_k == 1 ? 2.1 : 2.8;
    const double of_sm = std::ceil(blocks / static_cast<double>(capacity(c, 1, target)));
    consume = of_sm * each * (c.tile_m * kRequests + c.tile_n) * cycles / cycles_per_us;
  }
  // One block of a SM whose ring leaves room for another one has too little under way.
  const bool alone = at_once > 1 && blocks <= target.sms && each > c.stages;
  const double memory = p.bytes() / bytes_per_us * (alone ? 1.2 : 1);
  const auto k_tiles = static_cast<double>(tiles_of(p, c) * sides_of(p, c.swapped).k_tiles);
  const double l2 = p.classed ? 0
                              : k_tiles * (c.tile_m + c.tile_n) * tile::kGemmRowBytes /
                                    (p.windows ? s.windows_l2_per_us : s.l2_per_us);
  const double own = std::max({consume, l2, p.operations() / sustained_operations(p, target) * 1e6});
  us += overlapped_us({own, memory});
  us += std::min<double>(each, c.stages) * tile_cycles / cycles_per_us * 0.5;  // what has come at last
  const double area = static_cast<double>(c.tile_m) * c.tile_n;
  us += 0.2 + waves * area / c.cluster_k / (128.0 * c.consumers) * 8 / cycles_per_us;
  // Slices of 48 columns take longer than of 32 or 64.
  if (c.cluster_k > 1 && c.tile_n == 48 && !c.swapped) us += s.odd_columns_us;
  if (c.cluster_k > 1) us += 0.4 + area * 4 / 12 / cycles_per_us;  // 12 bytes a cycle between blocks
  us += (waves - 1) * s.wave_us;
  if (p.classed) us += s.copies_us + static_cast<double>(misaligned_copies_bytes(p, c.swapped)) / s.copied_per_us;
  if (c.splits > 1) {
    const double partial = 4.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch);
    us += s.reduce_us + 2 * partial * c.splits / s.partial_per_us;
  }
  return repack_us(p, target.model) + us;
}

CudaLaunch cluster_launch(const WgmmaProblem& p, const ClusterSplitKConfig& c, int workspace) {
  const Sides v = sides_of(p, c.swapped);
  const int64_t k_tiles = p.classed ? class_k_tiles(p) : v.k_tiles;
  tile::ClusterSplitKArgs args = cluster_splitk_args({p.m, p.n, p.batch}, v.m, v.n, k_tiles, c.cluster_k, c.splits);
  if (p.gated && c.splits == 1) (c.swapped ? args.m : args.n) /= 2;
  if (p.classed) {
    args.skip = static_cast<uint32_t>(class_skip(p, c.swapped));
    args.skip_step = static_cast<uint32_t>(class_skip_step(p, c.swapped));
  }
  CudaLaunch launch;
  launch.symbol = "gemm";
  const int64_t tiles_n = ceil_div(v.n, c.tile_n);
  launch.grid = {static_cast<uint32_t>(tiles_of(p, c) / (tiles_n * p.batch) * c.cluster_k),
                 static_cast<uint32_t>(tiles_n), static_cast<uint32_t>(p.batch * c.splits)};
  launch.cluster = static_cast<uint32_t>(c.cluster_k);
  launch.block = static_cast<uint32_t>(cluster_threads(c, p));
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes(p, c));
  launch.arguments = {argument_bytes(args)};
  if (c.splits > 1) launch.pointers = {{0, offsetof(tile::ClusterSplitKArgs, partial), workspace}};
  return launch;
}

}  // namespace heddle::schedule
