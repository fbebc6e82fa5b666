#include "schedule/product/cuda/reduce.h"

#include <algorithm>
#include <cstddef>

#include "base/divide.h"
#include "target/argument_block.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

namespace {

constexpr int kBlock = 128;

// The lanes that share the parts of a group of 4 neighbours: as many as have a batch of loads each
// (tile/kernel/cuda/gemm/splitk_reduce.h), unless one lane for each group fills the device already.
int lanes_of(int64_t groups, int parts, const GpuTarget& target) {
  constexpr int kBatch = 8, kMostLanes = 32, kThreads = 1024;  // of an SM
  int lanes = 1;
  while (lanes < kMostLanes && lanes * kBatch < parts && 2 * lanes * groups <= int64_t{target.sms} * kThreads) {
    lanes *= 2;
  }
  return lanes;
}

}  // namespace

CudaLaunch reduce_launch(const PartialSums& sums, int parts, const GpuTarget& target, int workspace) {
  tile::GemmReduceArgs args{};
  args.rows = static_cast<int32_t>(sums.m);
  args.columns = static_cast<int32_t>(sums.n);
  args.batch = static_cast<int32_t>(sums.batch);
  args.splits = parts;
  args.p_row = sums.row();
  args.p_batch = sums.matrix();
  args.p_split = sums.part();
  const int64_t groups = sums.part() / 4;
  args.lanes = lanes_of(groups, parts, target);
  CudaLaunch launch;
  launch.symbol = "gemm_reduce";
  launch.block = kBlock;
  const int64_t blocks = ceil_div(groups * args.lanes, kBlock);
  launch.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, int64_t{target.sms} * 16));
  launch.arguments = {argument_bytes(args)};
  if (parts > 0) launch.pointers = {{0, offsetof(tile::GemmReduceArgs, partial), workspace}};
  return launch;
}

tile::ClusterSplitKArgs cluster_splitk_args(const PartialSums& sums, int64_t m, int64_t n, int64_t steps,
                                            int64_t cluster_k, int splits) {
  tile::ClusterSplitKArgs args{};
  args.m = static_cast<int32_t>(m), args.n = static_cast<int32_t>(n);
  args.k_each = static_cast<int32_t>(steps / (cluster_k * splits));
  args.k_more = static_cast<int32_t>(steps % (cluster_k * splits));
  args.splits = splits;
  args.p_row = sums.row(), args.p_batch = sums.matrix(), args.p_split = sums.part();
  return args;
}

}  // namespace heddle::schedule
