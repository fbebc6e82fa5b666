// The launches of the kernels of wgmma.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/product/cuda/reduce.h"
#include "schedule/product/cuda/wgmma/cluster_splitk.h"
#include "schedule/product/cuda/wgmma/misaligned.h"
#include "schedule/product/cuda/wgmma/wgmma.h"
#include "target/argument_block.h"
#include "tile/core/cuda_operand.h"

namespace heddle::schedule {
namespace {

using tile::GemmArgs;
using tile::GemmStore;
using Use = WgmmaOperands;

constexpr int kRasterGroup = 8;

TensorMapDesc::Element element_of(const WgmmaProblem& p) {
  const DType type = p.in;
  if (type == DType::kF32) return p.split ? TensorMapDesc::Element::kBits32 : TensorMapDesc::Element::kTf32;
  return size_of(type) == 2 ? TensorMapDesc::Element::kBits16 : TensorMapDesc::Element::kBits8;
}

// One operand as it lies in memory after repacking.
struct RepackedOperand {
  int index;
  int64_t rows, k, leading, stride;  // rows: of m or n
  bool k_major;
  int64_t offset = 0;  // in the buffer, in bytes
  int64_t step = 0;    // as WgmmaProblem has it
};

// The map of an operand whose tile has `tile` rows, of which each block of the cluster loads one of `shares`.
TensorMapDesc operand_map(const RepackedOperand& o, const WgmmaProblem& p, int tile, int shares) {
  const int64_t batch = o.step > 0 ? p.batch / p.heads : p.batches_of(o.step);
  const auto element = static_cast<int64_t>(size_of(p.in));
  const auto depth = static_cast<uint32_t>(tile::kGemmRowBytes / element);
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = o.index;
  map.offset = static_cast<uint64_t>(o.offset);
  const int64_t inner = (o.k_major ? o.k : o.rows) + (p.heads - 1) * std::max<int64_t>(o.step, 0),
                outer = o.k_major ? o.rows : o.k;
  map.extents = {static_cast<uint64_t>(inner), static_cast<uint64_t>(outer), static_cast<uint64_t>(batch)};
  const int64_t row = o.leading * element;
  map.strides = {static_cast<uint64_t>(row),
                 static_cast<uint64_t>(batch > 1 ? o.stride * element : row * std::max<int64_t>(outer, 1))};
  map.box = o.k_major ? std::array<uint32_t, 2>{depth, static_cast<uint32_t>(tile / shares)}
                      : std::array<uint32_t, 2>{64, depth / static_cast<uint32_t>(shares)};
  return map;
}

TensorMapDesc output_map(const WgmmaProblem& p, const WgmmaConfig& c) {
  const auto element = static_cast<int64_t>(size_of(p.out));
  TensorMapDesc map;
  map.element = element == 4   ? TensorMapDesc::Element::kBits32
                : element == 2 ? TensorMapDesc::Element::kBits16
                               : TensorMapDesc::Element::kBits8;
  map.operand = Use::kD;
  map.offset = static_cast<uint64_t>(p.offset_d * element);
  map.extents = {static_cast<uint64_t>(p.columns()), static_cast<uint64_t>(p.m), static_cast<uint64_t>(p.batch)};
  map.strides = {static_cast<uint64_t>(p.ldd * element),
                 static_cast<uint64_t>((p.batch > 1 ? p.stride_d : p.ldd * p.m) * element)};
  if (c.swapped) {
    map.swizzle_bytes = 32;
    map.box = {16, c.tile_n % 64 == 0 ? 64u : c.tile_n % 32 == 0 ? 32u : 16u};
  } else {
    constexpr int kNoSwizzle = 16;
    const tile::GemmPiece piece = tile::gemm_piece(stored_n(p, c), static_cast<int>(element));
    map.swizzle_bytes = piece.swizzled ? piece.bytes : kNoSwizzle;
    map.box = {static_cast<uint32_t>(piece.bytes / element), 16};
  }
  return map;
}

TensorMapDesc residual_map(const WgmmaProblem& p) {
  constexpr int64_t kElement = 2;
  const WgmmaResidual& residual = *p.residual;
  TensorMapDesc map;
  map.element = TensorMapDesc::Element::kBits16;
  map.operand = Use::kResidual;
  map.offset = static_cast<uint64_t>(residual.offset * kElement);
  map.extents = {static_cast<uint64_t>(p.n), static_cast<uint64_t>(p.m), static_cast<uint64_t>(p.batch)};
  map.strides = {static_cast<uint64_t>(residual.row * kElement),
                 static_cast<uint64_t>((p.batch > 1 ? residual.batch : residual.row * p.m) * kElement)};
  map.swizzle_bytes = tile::kGemmRowBytes;
  map.box = {tile::kGemmRowBytes / kElement, 16};
  return map;
}

// Of A: boxes of so many windows.
TensorMapDesc windows_map(const WgmmaProblem& p, int in_box) {
  const WgmmaWindows& w = *p.windows;
  const auto element = static_cast<uint64_t>(size_of(p.in));
  const auto pixel = static_cast<uint64_t>(w.pixel) * element;
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = Use::kA;
  map.offset = static_cast<uint64_t>(w.offset) * element;
  map.extents = {static_cast<uint64_t>(w.channels * p.batch), static_cast<uint64_t>(w.size[0]),
                 static_cast<uint64_t>(w.images)};
  TensorMapWindows windows;
  windows.line = static_cast<uint64_t>(w.line) * element;
  map.strides = {pixel, windows.line * static_cast<uint64_t>(w.size[1])};
  map.box = {static_cast<uint32_t>(tile::kGemmRowBytes / element), static_cast<uint32_t>(in_box)};
  for (size_t d = 0; d < 2; ++d) {
    windows.size[d] = static_cast<uint64_t>(w.size[d]);
    windows.first[d] = static_cast<int32_t>(-w.before[d]);
    windows.last[d] = static_cast<int32_t>((w.out[d] - 1) * w.stride[d] - w.before[d] - (w.size[d] - 1));
    windows.steps[d] = static_cast<uint32_t>(w.stride[d]);
  }
  map.windows = windows;
  return map;
}

// Of B: a batch for each tap.
TensorMapDesc filters_map(const WgmmaProblem& p, int tile, int shares) {
  const WgmmaWindows& w = *p.windows;
  const auto element = static_cast<uint64_t>(size_of(p.in));
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = Use::kB;
  map.extents = {static_cast<uint64_t>(w.channels), static_cast<uint64_t>(p.n * p.batch),
                 static_cast<uint64_t>(w.window[0] * w.window[1])};
  map.strides = {static_cast<uint64_t>(p.ldb) * element, static_cast<uint64_t>(w.channels) * element};
  map.box = {static_cast<uint32_t>(tile::kGemmRowBytes / element), static_cast<uint32_t>(tile / shares)};
  return map;
}

tile::GemmWindowsArgs windows_args(const WgmmaProblem& p) {
  const WgmmaWindows& w = *p.windows;
  const auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
  tile::GemmWindowsArgs args{};
  for (int d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d);
    args.out[d] = narrow(w.out[at]), args.first[d] = narrow(-w.before[at]);
    args.stride[d] = narrow(w.stride[at]), args.dilation[d] = narrow(w.dilation[at]);
  }
  args.taps = narrow(w.window[0]);
  args.channel_tiles = narrow(ceil_div(w.channels * static_cast<int64_t>(size_of(p.in)), tile::kGemmRowBytes));
  return args;
}

// Rows of `leading` elements to rows of a multiple of 16 bytes, at `offset` of the workspace.
tile::GemmRepackPart repack_part(RepackedOperand& o, DType type, int64_t batch, int64_t offset) {
  const auto element = static_cast<int64_t>(size_of(type));
  const int64_t row = o.k_major ? o.k : o.rows, rows = o.k_major ? o.rows : o.k;
  tile::GemmRepackPart part{};
  part.from_offset = o.offset;
  part.from_row = o.leading * element;
  part.from_batch = o.stride * element;
  part.end = o.offset + (batch - 1) * part.from_batch + (rows - 1) * part.from_row + row * element;
  part.to_offset = offset;
  part.rows = static_cast<uint32_t>(rows);
  part.chunks = static_cast<uint32_t>(ceil_div(row * element, 16));
  part.total = static_cast<uint32_t>(batch * rows * part.chunks);
  part.blocks =
      static_cast<uint32_t>(ceil_div(part.total, int64_t{tile::kGemmRepackThreads} * tile::kGemmRepackChunks));
  o.index = Use::kWorkspace;
  o.offset = offset;
  o.leading = int64_t{part.chunks} * 16 / element;
  o.stride = o.leading * rows;
  return part;
}

// One launch for both operands, where they need it; adds to the bytes of the workspace. Arguments: GemmRepackArgs.
void add_repack(KernelLaunches& result, const WgmmaProblem& p, RepackedOperand& a, RepackedOperand& b) {
  tile::GemmRepackArgs args{};
  CudaLaunch launch;
  launch.grid[0] = 0;
  int parts = 0;
  for (RepackedOperand* o : {&a, &b}) {
    if (!(o == &a ? repacks_a(p) : repacks_b(p))) continue;
    const int at = parts * static_cast<int>(sizeof(tile::GemmRepackPart));
    launch.pointers.push_back({0, at + static_cast<int>(offsetof(tile::GemmRepackPart, from)), o->index});
    launch.pointers.push_back({0, at + static_cast<int>(offsetof(tile::GemmRepackPart, to)), Use::kWorkspace});
    args.part[parts] = repack_part(*o, p.in, p.batches_of(o->step), result.workspace_bytes);
    launch.grid[0] += args.part[parts].blocks;
    result.workspace_bytes += padded_bytes(p, o == &a);
    ++parts;
  }
  if (parts == 0) return;
  launch.symbol = "gemm_repack";
  launch.block = tile::kGemmRepackThreads;
  launch.arguments = {argument_bytes(args)};
  result.launches.push_back(std::move(launch));
}

// The product of operands as they lie after repacking. `a` has the kernel's own rows.
CudaLaunch multiply_launch(const WgmmaProblem& p, const WgmmaConfig& c, const GpuTarget& target,
                           const RepackedOperand& a, const RepackedOperand& b) {
  const PartialSums sums{p.m, p.n, p.batch};
  const auto element = static_cast<int64_t>(size_of(p.in));
  const int cluster = c.cluster_m * c.cluster_n;
  GemmArgs args{};
  args.m = static_cast<int32_t>(a.rows);
  args.n = static_cast<int32_t>(b.rows);
  args.k = static_cast<int32_t>(p.k);
  args.batch = static_cast<int32_t>(p.batch);
  args.tiles_m = static_cast<int32_t>(ceil_div(a.rows, int64_t{c.tile_m} * c.cluster_m));
  args.tiles_n = static_cast<int32_t>(ceil_div(b.rows, int64_t{c.tile_n} * c.cluster_n));
  args.k_tiles = static_cast<int32_t>(ceil_div(p.k * element, tile::kGemmRowBytes));
  args.splits = c.splits;
  HEDDLE_CHECK(c.splits <= args.k_tiles);
  args.raster_group = kRasterGroup;
  args.p_row = sums.row();
  args.p_batch = sums.matrix();
  args.p_split = sums.part();
  args.d_row = p.ldd, args.d_batch = p.stride_d;
  args.heads = static_cast<int32_t>(p.heads);
  args.a_step = static_cast<int32_t>(a.step), args.b_step = static_cast<int32_t>(b.step);
  CudaLaunch launch;
  launch.symbol = "gemm";
  const int64_t units = int64_t{args.tiles_m} * args.tiles_n * args.splits * args.batch;
  launch.grid[0] = static_cast<uint32_t>(std::min<int64_t>(units, target.sms / cluster) * cluster);
  if (c.stream_k) {
    launch.grid[0] = static_cast<uint32_t>(target.sms);
    // What is dealt is between one and two tiles for each block.
    args.whole = static_cast<int32_t>(std::max<int64_t>(units / target.sms - 1, 0) * target.sms);
    launch.pointers.push_back({0, offsetof(GemmArgs, flags), Use::kCounters});
  }
  launch.cluster = static_cast<uint32_t>(cluster);
  launch.block = static_cast<uint32_t>(128 * (c.consumers + (p.split ? 2 : 1)));
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes(p, c));
  if (p.sums_windows) {
    const auto depth = static_cast<int>(tile::kGemmRowBytes / element);
    launch.maps = {windows_map(p, depth / c.cluster_n), operand_map(b, p, c.tile_n, c.cluster_m)};
  } else if (p.windows) {
    launch.maps = {windows_map(p, c.tile_m / c.cluster_n), filters_map(p, c.tile_n, c.cluster_m)};
  } else if (!p.views) {
    launch.maps = {operand_map(a, p, c.tile_m, c.cluster_n), operand_map(b, p, c.tile_n, c.cluster_m)};
  }
  // Other stores read no map of D; a copy of A's keeps the argument valid.
  if (store_of(p, c) == GemmStore::kTma) {
    launch.maps.push_back(output_map(p, c));
  } else if (!p.views) {
    launch.maps.push_back(launch.maps[0]);
  }
  if (loads_residual(p, c)) launch.maps.push_back(residual_map(p));
  set_divisors(args);
  if (p.gated && store_of(p, c) != GemmStore::kPartial) args.n /= 2;
  launch.arguments = {argument_bytes(args)};
  if (store_of(p, c) == GemmStore::kRows) {
    launch.pointers.push_back({0, offsetof(GemmArgs, d), Use::kD, p.offset_d * static_cast<int64_t>(size_of(p.out))});
  }
  if (p.windows) launch.arguments.push_back(argument_bytes(windows_args(p)));
  if (store_of(p, c) == GemmStore::kPartial || c.stream_k)
    launch.pointers.push_back({0, offsetof(GemmArgs, partial), Use::kWorkspace});
  return launch;
}

// What comes before the product where operands are copied, and how they lie then.
std::pair<RepackedOperand, RepackedOperand> add_copies(KernelLaunches& result, const WgmmaProblem& p, bool swapped) {
  const auto element = static_cast<int64_t>(size_of(p.in));
  RepackedOperand a{Use::kA, p.m, p.k, p.lda, p.stride_a, p.a_k_major, p.offset_a * element, p.step_a};
  RepackedOperand b{Use::kB, p.n, p.k, p.ldb, p.stride_b, p.b_k_major, p.offset_b * element, p.step_b};
  if (p.k > 0 && !p.views) add_repack(result, p, a, b);
  if (swapped) std::swap(a, b);
  return {a, b};
}

int64_t partial_bytes(const WgmmaProblem& p, int splits) {
  return round_up(4 * PartialSums{p.m, p.n, p.batch}.part() * splits, 256);
}

// The sum of the parts of k, or over nothing.
void add_reduction(KernelLaunches& result, const WgmmaProblem& p, int splits, const GpuTarget& target) {
  if (p.k > 0 && splits == 1) return;
  result.launches.push_back(reduce_launch({p.m, p.n, p.batch}, p.k > 0 ? splits : 0, target, Use::kWorkspace));
}

}  // namespace

// The workspace holds the partial sums, then repacked operands.
KernelLaunches make_launches(const WgmmaProblem& p, const WgmmaConfig& c, const GpuTarget& target) {
  KernelLaunches result;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return result;
  if (c.splits > 1 && p.k > 0) result.workspace_bytes = partial_bytes(p, c.splits);
  if (c.stream_k) {
    result.workspace_bytes = int64_t{4} * c.tile_m * c.tile_n * target.sms;
    result.counter_bytes = int64_t{target.sms} * c.consumers * 4 * static_cast<int64_t>(sizeof(uint32_t));
  }
  const auto [a, b] = add_copies(result, p, c.swapped);
  if (p.k > 0) result.launches.push_back(multiply_launch(p, c, target, a, b));
  add_reduction(result, p, c.splits, target);
  return result;
}

KernelLaunches make_launches(const WgmmaProblem& p, const ClusterSplitKConfig& c, const GpuTarget& target) {
  KernelLaunches result;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return result;
  if (c.splits > 1) result.workspace_bytes = partial_bytes(p, c.splits);
  CudaLaunch product = cluster_launch(p, c, Use::kWorkspace);
  if (p.classed) {
    result.workspace_bytes = misaligned_copies_bytes(p, c.swapped);
    result.launches.push_back(misaligned_copies_launch(p, c.swapped, Use::kWorkspace));
    product.maps = class_maps(p, c, Use::kWorkspace);
  } else {
    const auto [a, b] = add_copies(result, p, c.swapped);
    if (p.windows) {
      product.maps = {windows_map(p, c.tile_m), filters_map(p, c.tile_n, 1)};
      product.arguments.push_back(argument_bytes(windows_args(p)));
    } else if (!p.views) {
      product.maps = {operand_map(a, p, c.tile_m, 1), operand_map(b, p, c.tile_n, 1)};
    }
  }
  result.launches.push_back(std::move(product));
  add_reduction(result, p, c.splits, target);
  return result;
}

}  // namespace heddle::schedule
