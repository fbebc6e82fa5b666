#include "schedule/product/cuda/reduce.h"

#include <algorithm>
#include <cstddef>

#include "target/argument_block.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

CudaLaunch reduce_launch(const PartialSums& sums, int parts, const CudaTarget& target, int workspace) {
  tile::GemmReduceArgs args{};
  args.rows = static_cast<int32_t>(sums.m);
  args.columns = static_cast<int32_t>(sums.n);
  args.batch = static_cast<int32_t>(sums.batch);
  args.splits = parts;
  args.p_row = sums.row();
  args.p_batch = sums.matrix();
  args.p_split = sums.part();
  CudaLaunch launch;
  launch.symbol = "gemm_reduce";
  launch.block = 128;
  const int64_t blocks = (sums.part() / 4 + launch.block - 1) / launch.block;
  launch.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, int64_t{target.sms} * 16));
  launch.arguments = {argument_bytes(args)};
  if (parts > 0) launch.pointers = {{0, offsetof(tile::GemmReduceArgs, partial), workspace}};
  return launch;
}

}  // namespace heddle::schedule
