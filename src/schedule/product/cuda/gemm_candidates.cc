// Which configurations a problem may take, and the launches of one.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/product/cuda/gemm.h"
#include "schedule/product/cuda/gemm_cluster_splitk.h"
#include "schedule/product/cuda/gemm_misaligned.h"
#include "schedule/product/cuda/reduce.h"
#include "target/argument_block.h"
#include "tile/core/cuda_operand.h"

namespace heddle::schedule {
namespace {

using tile::GemmArgs;
using tile::GemmStore;

constexpr int kOperandA = 0, kOperandB = 1, kOperandD = 2, kWorkspace = 3, kOperandResidual = 5;
constexpr int64_t kMaxWorkspace = int64_t{64} << 20;
constexpr int64_t kMostStreamed = 6, kLeastShare = 8;  // stream-K: tiles and k-tiles of a block
constexpr int64_t kMostSharers = 8;                    // blocks of a tile

// Sums of a thread: more leave few of a consumer's 240 registers to what comes after.
constexpr int kManySums = 128, kManySumsForRows = 160;

struct Tile {
  int m, n, consumers;
  bool ping_pong;
};
// Two warpgroups that each have a tile of their own (true) hide the store of one under the multiplication of the other.
// At most 192 accumulator registers a thread. Widths between the powers of two fill the last wave of tiles.
constexpr Tile kTiles[] = {
    {128, 256, 2, false}, {128, 240, 2, false}, {128, 224, 2, false}, {128, 208, 2, false}, {128, 192, 2, false},
    {128, 176, 2, false}, {128, 160, 2, false}, {128, 144, 2, false}, {128, 128, 2, false}, {128, 112, 2, false},
    {128, 96, 2, false},  {128, 64, 2, false},  {128, 32, 2, false},  {128, 16, 2, false},  {256, 192, 2, false},
    {256, 176, 2, false}, {256, 168, 2, false}, {256, 160, 2, false}, {256, 152, 2, false}, {256, 144, 2, false},
    {256, 128, 2, false}, {256, 112, 2, false}, {256, 96, 2, false},  {192, 128, 2, true},  {192, 112, 2, true},
    {192, 96, 2, true},   {192, 64, 2, true},   {128, 192, 2, true},  {128, 176, 2, true},  {128, 168, 2, true},
    {128, 160, 2, true},  {128, 144, 2, true},  {128, 128, 2, true},  {128, 112, 2, true},  {128, 96, 2, true},
    {128, 64, 2, true},   {64, 256, 2, true},   {64, 192, 2, true},   {64, 128, 2, true},   {64, 64, 2, true},
    {64, 256, 1, false},  {64, 192, 1, false},  {64, 160, 1, false},  {64, 144, 1, false},  {64, 128, 1, false},
    {64, 112, 1, false},  {64, 96, 1, false},   {64, 64, 1, false},   {64, 32, 1, false},   {64, 16, 1, false}};

// Tiles wider than a narrow side waste the tensor cores, and no other reason needs them.
bool too_wide(const Tile& tile, int64_t m, int64_t n) {
  return tile.n >= 2 * round_up(std::max<int64_t>(n, 1), 16) || (tile.m > 64 && tile.m >= 2 * std::max<int64_t>(m, 1));
}

int most_stages(CudaGemmConfig config, const CudaGemmProblem& problem, int64_t limit, int most = 12) {
  config.stages = most;
  while (config.stages > 0 && config.shared_bytes(problem) > limit) --config.stages;
  return config.stages;
}

// Bytes of a padded copy.
int64_t padded_bytes(int64_t lines, int64_t row, const CudaGemmProblem& p) {
  return round_up(round_up(row * static_cast<int64_t>(size_of(p.in)), 16) * lines * p.batch, 256);
}

// Copies count their pieces in 32 bits.
std::string reject_repack(const CudaGemmProblem& p) {
  constexpr int64_t kMostCopied = int64_t{1} << 30;
  const int64_t a = p.a_k_major ? padded_bytes(p.m, p.k, p) : padded_bytes(p.k, p.m, p);
  const int64_t b = p.b_k_major ? padded_bytes(p.n, p.k, p) : padded_bytes(p.k, p.n, p);
  const bool fits = (!repacks_a(p) || a <= kMostCopied) && (!repacks_b(p) || b <= kMostCopied);
  return fits ? std::string() : "a padded copy of an operand takes more than 1 GiB";
}

// Where the epilogue reduces neighbours. The limits are what ptxas compiles without spilling; of more than kManySums
// reject() keeps all epilogues that hold many values.
std::string reject_reductions(const CudaGemmConfig& c, const CudaGemmProblem& p) {
  if (!p.reduces) return {};
  if (c.parts > 0 || c.splits > 1 || c.swapped || c.tile_n % tile::kGemmPartialColumns != 0) {
    return "neighbours are reduced in fragments of whole sums, 32 columns and more";
  }
  constexpr int kMostBesideOthers = 96;  // rows at any address; addresses of views
  const bool rows = c.store == GemmStore::kRows, cluster = c.cluster_m * c.cluster_n > 1;
  const int sums = c.tile_m / (c.ping_pong ? 1 : c.consumers) * c.tile_n / 128;
  if (((rows || p.views) && sums > kMostBesideOthers) || (cluster && (rows || p.split))) {
    return "sums and what is reduced exceed the registers";
  }
  return {};
}

std::string reject(const CudaGemmConfig& c, const CudaGemmProblem& p, const CudaTarget& target) {
  if (std::string why = reject_reductions(c, p); !why.empty()) return why;
  if (std::string why = reject_repack(p); !why.empty() && !c.classed) return why;
  if (c.parts > 0) {
    if (c.splits > 1 && 4 * p.m * round_up(p.n, 4) * p.batch * c.splits > kMaxWorkspace) {
      return "the partial sums exceed the workspace";
    }
    return reject_parts(c, p, target);
  }
  if (c.stages < 3) return "fewer than 3 stages fit in shared memory";
  constexpr int kMostStreamed = 112;
  if (p.split && c.stream && c.tile_n > kMostStreamed) return "sums of other blocks exceed the registers";
  if (p.split && (c.ping_pong || c.tile_m != 64 * c.consumers || c.tile_n > 128 || c.tile_n % 16 != 0)) {
    return "a warpgroup that takes f32 apart has 64 rows and at most 128 columns";
  }
  if (c.cluster_m * c.cluster_n > target.sms) return "the device is smaller than the cluster";
  if (p.windows && c.swapped) return "windows are rows of A";
  const bool pieces = c.store == GemmStore::kTma && !c.swapped;
  if (c.tile_n % 16 != 0 && !(pieces && size_of(p.in) == 2 && size_of(p.out) == 2)) {
    return "odd multiples of 8 columns are for 16-bit types that TMA stores";
  }
  const int sums = c.tile_m / (c.ping_pong ? 1 : c.consumers) * c.tile_n / 128;  // of one thread
  constexpr int kSkinnySums = 80;
  const bool heavy = p.heavy_epilogue || (p.residual && !loads_residual(p, c));
  if (heavy && pieces && sums > kSkinnySums &&
      tile::gemm_piece(c.tile_n, static_cast<int>(size_of(p.out))).bytes % 64 != 0) {
    return "the epilogue of so wide pieces of rows exceeds the registers";
  }
  const bool rows = c.store == GemmStore::kRows && !c.swapped && sums <= kManySumsForRows;
  const bool slow = !p.a_k_major || !p.b_k_major || c.stream || p.windows;  // whose loads keep more registers
  if (c.stream && heavy && sums >= kManySums) return "sums of other blocks exceed the registers";
  if (sums > kManySums && (p.views || heavy || slow || !(pieces || rows))) {
    return "sums and what is computed from them exceed the registers";
  }
  constexpr int kManyForHeavyRows = 112;
  if (c.store == GemmStore::kRows &&
      ((p.heavy_epilogue && sums > kManyForHeavyRows) || (slow && c.ping_pong && sums >= kManySums))) {
    return "sums and rows at any address exceed the registers";
  }
  if (p.views && (c.cluster_m * c.cluster_n > 1 || c.swapped)) return "threads load for their own block, A first";
  if (p.views && ((!p.a_k_major && c.tile_m % 64 != 0) || (!p.b_k_major && c.tile_n % 64 != 0))) {
    return "rows along memory come in strips of 64";
  }
  const int64_t m = c.swapped ? p.n : p.m, n = c.swapped ? p.m : p.n;
  if (c.cluster_m == 2 && m <= c.tile_m) return "one row of tiles: nothing to share";
  if (c.cluster_n == 2 && n <= c.tile_n) return "one column of tiles: nothing to share";
  const int64_t units =
      ceil_div(m, int64_t{c.tile_m} * c.cluster_m) * ceil_div(n, int64_t{c.tile_n} * c.cluster_n) * p.batch * c.splits;
  if (units > std::numeric_limits<int32_t>::max()) return "more than 2^31 tiles";
  if (c.stream) {
    const int64_t k_tiles = ceil_div(p.k * static_cast<int64_t>(size_of(p.in)), tile::kGemmRowBytes);
    if (units % target.sms == 0) return "the tiles fill the device evenly";
    if (units > kMostStreamed * int64_t{target.sms}) return "so many tiles leave little to even out";
    if (units * kMostSharers < target.sms) return "one block would add up the sums of too many";
    if (units * k_tiles < kLeastShare * int64_t{target.sms}) return "too few k-tiles for each block";
    if (int64_t{4} * c.tile_m * c.tile_n * target.sms > kMaxWorkspace) return "the partial sums exceed the workspace";
  }
  if (c.splits > 1) {
    const int64_t bytes = 4 * p.m * round_up(p.n, 4) * p.batch * c.splits;
    if (bytes > kMaxWorkspace) return "the partial sums exceed the workspace";
  }
  return {};
}

// Parts of k worth trying: as many as fill the device, each of at least 4 k-tiles.
std::vector<int> splits_of(const CudaGemmProblem& p, const Tile& tile, int64_t m, int64_t n, const CudaTarget& target) {
  const int64_t k_tiles = ceil_div(p.k * static_cast<int64_t>(size_of(p.in)), tile::kGemmRowBytes);
  const int64_t tiles = ceil_div(m, tile.m) * ceil_div(n, tile.n) * p.batch;
  std::vector<int> splits = {1};
  if (tiles == 0 || tiles > target.sms) return splits;
  const int64_t full = target.sms / tiles;
  for (const int64_t wanted : {int64_t{2}, int64_t{3}, int64_t{4}, full / 2, full}) {
    const int64_t some = std::min(wanted, k_tiles / 4);
    if (some > 1 && std::find(splits.begin(), splits.end(), some) == splits.end()) {
      splits.push_back(static_cast<int>(some));
    }
  }
  return splits;
}

TensorMapDesc::Element element_of(const CudaGemmProblem& p) {
  const DType type = p.in;
  if (type == DType::kF32) return p.split ? TensorMapDesc::Element::kBits32 : TensorMapDesc::Element::kTf32;
  return size_of(type) == 2 ? TensorMapDesc::Element::kBits16 : TensorMapDesc::Element::kBits8;
}

// One operand as it lies in memory after repacking.
struct Operand {
  int index;
  int64_t rows, k, leading, stride;  // rows: of m or n
  bool k_major;
  int64_t offset = 0;  // in the buffer, in bytes
  int64_t step = 0;    // of heads within rows
};

// The map of an operand whose tile has `tile` rows, of which each block of the cluster loads one of `shares`.
TensorMapDesc operand_map(const Operand& o, const CudaGemmProblem& p, int tile, int shares) {
  const int64_t batch = o.step == 0 ? p.batch : p.batch / p.heads;
  const auto element = static_cast<int64_t>(size_of(p.in));
  const auto depth = static_cast<uint32_t>(tile::kGemmRowBytes / element);
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = o.index;
  map.offset = static_cast<uint64_t>(o.offset);
  const int64_t inner = (o.k_major ? o.k : o.rows) + (p.heads - 1) * o.step, outer = o.k_major ? o.rows : o.k;
  map.extents = {static_cast<uint64_t>(inner), static_cast<uint64_t>(outer), static_cast<uint64_t>(batch)};
  const int64_t row = o.leading * element;
  map.strides = {static_cast<uint64_t>(row),
                 static_cast<uint64_t>(batch > 1 ? o.stride * element : row * std::max<int64_t>(outer, 1))};
  map.box = o.k_major ? std::array<uint32_t, 2>{depth, static_cast<uint32_t>(tile / shares)}
                      : std::array<uint32_t, 2>{64, depth / static_cast<uint32_t>(shares)};
  return map;
}

TensorMapDesc output_map(const CudaGemmProblem& p, const CudaGemmConfig& c) {
  const auto element = static_cast<int64_t>(size_of(p.out));
  TensorMapDesc map;
  map.element = element == 4 ? TensorMapDesc::Element::kBits32 : TensorMapDesc::Element::kBits16;
  map.operand = kOperandD;
  map.extents = {static_cast<uint64_t>(p.n), static_cast<uint64_t>(p.m), static_cast<uint64_t>(p.batch)};
  map.strides = {static_cast<uint64_t>(p.ldd * element),
                 static_cast<uint64_t>((p.batch > 1 ? p.stride_d : p.ldd * p.m) * element)};
  if (c.swapped) {
    map.swizzle_bytes = 32;
    map.box = {16, c.tile_n % 64 == 0 ? 64u : c.tile_n % 32 == 0 ? 32u : 16u};
  } else {
    constexpr int kNoSwizzle = 16;
    const tile::GemmPiece piece = tile::gemm_piece(c.tile_n, static_cast<int>(element));
    map.swizzle_bytes = piece.swizzled ? piece.bytes : kNoSwizzle;
    map.box = {static_cast<uint32_t>(piece.bytes / element), 16};
  }
  return map;
}

TensorMapDesc residual_map(const CudaGemmProblem& p) {
  constexpr int64_t kElement = 2;
  const CudaGemmResidual& residual = *p.residual;
  TensorMapDesc map;
  map.element = TensorMapDesc::Element::kBits16;
  map.operand = kOperandResidual;
  map.offset = static_cast<uint64_t>(residual.offset * kElement);
  map.extents = {static_cast<uint64_t>(p.n), static_cast<uint64_t>(p.m), static_cast<uint64_t>(p.batch)};
  map.strides = {static_cast<uint64_t>(residual.row * kElement),
                 static_cast<uint64_t>((p.batch > 1 ? residual.batch : residual.row * p.m) * kElement)};
  map.swizzle_bytes = tile::kGemmRowBytes;
  map.box = {tile::kGemmRowBytes / kElement, 16};
  return map;
}

// Of A, a box for each block that loads one of `shares` of a tile's windows.
TensorMapDesc windows_map(const CudaGemmProblem& p, int tile, int shares) {
  const CudaGemmWindows& w = *p.windows;
  const auto element = static_cast<uint64_t>(size_of(p.in));
  const auto pixel = static_cast<uint64_t>(w.pixel) * element;
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = kOperandA;
  map.extents = {static_cast<uint64_t>(w.channels), static_cast<uint64_t>(w.size[0]), static_cast<uint64_t>(w.images)};
  TensorMapWindows windows;
  windows.line = static_cast<uint64_t>(w.line) * element;
  map.strides = {pixel, windows.line * static_cast<uint64_t>(w.size[1])};
  map.box = {static_cast<uint32_t>(tile::kGemmRowBytes / element), static_cast<uint32_t>(tile / shares)};
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
TensorMapDesc filters_map(const CudaGemmProblem& p, int tile, int shares) {
  const CudaGemmWindows& w = *p.windows;
  const auto element = static_cast<uint64_t>(size_of(p.in));
  TensorMapDesc map;
  map.element = element_of(p);
  map.operand = kOperandB;
  map.extents = {static_cast<uint64_t>(w.channels), static_cast<uint64_t>(p.n),
                 static_cast<uint64_t>(w.window[0] * w.window[1])};
  map.strides = {static_cast<uint64_t>(p.ldb) * element, static_cast<uint64_t>(w.channels) * element};
  map.box = {static_cast<uint32_t>(tile::kGemmRowBytes / element), static_cast<uint32_t>(tile / shares)};
  return map;
}

tile::GemmWindowsArgs windows_args(const CudaGemmProblem& p) {
  const CudaGemmWindows& w = *p.windows;
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
tile::GemmRepackPart repack_part(Operand& o, DType type, int64_t batch, int64_t offset) {
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
  o.index = kWorkspace;
  o.offset = offset;
  o.leading = int64_t{part.chunks} * 16 / element;
  o.stride = o.leading * rows;
  return part;
}

// One launch for both operands, where they need it; adds to the bytes of the workspace. Arguments: GemmRepackArgs.
void add_repack(CudaGemmLaunches& result, const CudaGemmProblem& p, Operand& a, Operand& b) {
  tile::GemmRepackArgs args{};
  CudaLaunch launch;
  launch.grid[0] = 0;
  int parts = 0;
  for (Operand* o : {&a, &b}) {
    if (!(o == &a ? repacks_a(p) : repacks_b(p))) continue;
    const int at = parts * static_cast<int>(sizeof(tile::GemmRepackPart));
    launch.pointers.push_back({0, at + static_cast<int>(offsetof(tile::GemmRepackPart, from)), o->index});
    launch.pointers.push_back({0, at + static_cast<int>(offsetof(tile::GemmRepackPart, to)), kWorkspace});
    args.part[parts] = repack_part(*o, p.in, p.batch, result.workspace_bytes);
    launch.grid[0] += args.part[parts].blocks;
    result.workspace_bytes += o->k_major ? padded_bytes(o->rows, o->k, p) : padded_bytes(o->k, o->rows, p);
    ++parts;
  }
  if (parts == 0) return;
  launch.symbol = "gemm_repack";
  launch.block = tile::kGemmRepackThreads;
  launch.arguments = {argument_bytes(args)};
  result.launches.push_back(std::move(launch));
}

// The product of operands as they lie after repacking. `a` has the kernel's own rows.
CudaLaunch multiply_launch(const CudaGemmProblem& p, const CudaGemmConfig& c, const CudaTarget& target,
                           const Operand& a, const Operand& b, int counters) {
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
  args.raster_group = c.raster_group;
  args.p_row = sums.row();
  args.p_batch = sums.matrix();
  args.p_split = sums.part();
  args.d_row = p.ldd, args.d_batch = p.stride_d;
  args.heads = static_cast<int32_t>(p.heads);
  args.a_step = static_cast<int32_t>(a.step), args.b_step = static_cast<int32_t>(b.step);
  CudaLaunch launch;
  launch.symbol = "gemm";
  launch.early = true;
  const int64_t units = int64_t{args.tiles_m} * args.tiles_n * args.splits * args.batch;
  launch.grid[0] = static_cast<uint32_t>(std::min<int64_t>(units, target.sms / cluster) * cluster);
  if (c.stream) {
    HEDDLE_CHECK(counters >= 0, "stream-K without an operand for its counters");
    launch.grid[0] = static_cast<uint32_t>(target.sms);
    // What is dealt is between one and two tiles for each block.
    args.whole = static_cast<int32_t>(std::max<int64_t>(units / target.sms - 1, 0) * target.sms);
    launch.pointers.push_back({0, offsetof(GemmArgs, flags), counters});
  }
  launch.cluster = static_cast<uint32_t>(cluster);
  launch.block = static_cast<uint32_t>(128 * (c.consumers + (p.split ? 2 : 1)));
  launch.shared_bytes = static_cast<uint32_t>(c.shared_bytes(p));
  if (p.windows) {
    launch.maps = {windows_map(p, c.tile_m, c.cluster_n), filters_map(p, c.tile_n, c.cluster_m)};
  } else if (!p.views) {
    launch.maps = {operand_map(a, p, c.tile_m, c.cluster_n), operand_map(b, p, c.tile_n, c.cluster_m)};
  }
  // Other stores read no map of D; a copy of A's keeps the argument valid.
  if (c.store == GemmStore::kTma) {
    launch.maps.push_back(output_map(p, c));
  } else if (!p.views) {
    launch.maps.push_back(launch.maps[0]);
  }
  if (loads_residual(p, c)) launch.maps.push_back(residual_map(p));
  set_divisors(args);
  launch.arguments = {argument_bytes(args)};
  if (c.store == GemmStore::kRows) launch.pointers.push_back({0, offsetof(GemmArgs, d), kOperandD});
  if (p.windows) launch.arguments.push_back(argument_bytes(windows_args(p)));
  if (c.store == GemmStore::kPartial || c.stream)
    launch.pointers.push_back({0, offsetof(GemmArgs, partial), kWorkspace});
  return launch;
}

}  // namespace

GemmStore store_of(const CudaGemmProblem& p, int splits, bool swapped) {
  if (splits > 1 || p.k == 0) return GemmStore::kPartial;
  if (p.epilogue_stores || (swapped && size_of(p.out) != 2)) return GemmStore::kEpilogue;
  // TMA writes rows in whole pieces of 16 bytes, the last one too, over what lies behind it.
  const bool whole = p.n * static_cast<int64_t>(size_of(p.out)) % 16 == 0;
  return whole && !needs_repack(p.out, p.ldd, p.stride_d, p.batch) ? GemmStore::kTma : GemmStore::kRows;
}

std::vector<CudaGemmCandidate> enumerate(const CudaGemmProblem& p, const CudaTarget& target, bool counters) {
  constexpr int64_t kNarrow = 256;
  std::vector<CudaGemmCandidate> found;
  const auto add = [&](const CudaGemmConfig& c) {
    CudaGemmCandidate candidate{c, 0, reject(c, p, target)};
    if (candidate.rejected.empty()) candidate.predicted_us = predict_us(p, c, target);
    found.push_back(std::move(candidate));
  };
  for (const bool swapped : {false, true}) {
    const int64_t m = swapped ? p.n : p.m, n = swapped ? p.m : p.n;
    if (swapped && n > kNarrow) continue;
    for (const Tile& tile : kTiles) {
      if (too_wide(tile, m, n)) continue;
      for (const auto& [cluster_m, cluster_n] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}}) {
        for (const int splits : splits_of(p, tile, m, n, target)) {
          CudaGemmConfig c;
          c.tile_m = tile.m;
          c.tile_n = tile.n;
          c.consumers = tile.consumers;
          c.ping_pong = tile.ping_pong;
          c.cluster_m = cluster_m;
          c.cluster_n = cluster_n;
          c.swapped = swapped;
          c.splits = splits;
          c.store = store_of(p, splits, swapped);
          c.stages = most_stages(c, p, target.shared_bytes_per_block);
          add(c);
          if (!counters || p.views || splits > 1 || cluster_m * cluster_n > 1 || tile.ping_pong || p.k == 0) continue;
          c.stream = true;
          add(c);
        }
      }
    }
  }
  for (CudaGemmConfig& c : parts_configs(p, target)) {
    c.store = c.splits > 1 ? GemmStore::kPartial : GemmStore::kEpilogue;
    // Two blocks of a SM where both have enough under way.
    c.stages = most_stages(c, p, tile::kGemmHalfOfShared);
    if (c.stages < 4 || parts_threads(c, p) > tile::gemm_parts_half_of_threads(p.split))
      c.stages = most_stages(c, p, target.shared_bytes_per_block);
    // Where there is a block for a SM at most, it may as well ask for all that it will need. On an H200
    // that helps rows that begin anywhere (6195x21x11253 53 us instead of 90), and costs others 5%.
    if (const auto [blocks, each] = parts_blocks(c, p); c.classed && blocks <= target.sms && c.stages < each) {
      constexpr int64_t kMostStages = 24;
      const auto wanted = static_cast<int>(std::min<int64_t>(each, kMostStages));
      c.stages = most_stages(c, p, target.shared_bytes_per_block, wanted);
    }
    add(c);
  }
  std::stable_sort(found.begin(), found.end(), [](const CudaGemmCandidate& a, const CudaGemmCandidate& b) {
    if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
    return a.predicted_us < b.predicted_us;
  });
  return found;
}

CudaGemmLaunches make_launches(const CudaGemmProblem& p, const CudaGemmConfig& c, const CudaTarget& target,
                               int counters) {
  CudaGemmLaunches result;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return result;
  const auto element = static_cast<int64_t>(size_of(p.in));
  const PartialSums sums{p.m, p.n, p.batch};
  Operand a{kOperandA, p.m, p.k, p.lda, p.stride_a, p.a_k_major, p.offset_a * element, p.step_a};
  Operand b{kOperandB, p.n, p.k, p.ldb, p.stride_b, p.b_k_major, p.offset_b * element, p.step_b};
  // The workspace holds the partial sums, then repacked operands.
  const bool partial = c.store == GemmStore::kPartial;
  if (partial && p.k > 0) result.workspace_bytes = round_up(4 * sums.part() * c.splits, 256);
  if (c.stream) {
    result.workspace_bytes = int64_t{4} * c.tile_m * c.tile_n * target.sms;
    result.counter_bytes = int64_t{target.sms} * c.consumers * 4 * static_cast<int64_t>(sizeof(uint32_t));
  }
  if (c.classed) {
    result.workspace_bytes = misaligned_copies_bytes(p, c.swapped);
    result.launches.push_back(misaligned_copies_launch(p, c.swapped, kWorkspace));
  } else if (p.k > 0 && !p.views) {
    add_repack(result, p, a, b);
  }
  if (p.k > 0) {
    if (c.swapped) std::swap(a, b);
    result.launches.push_back(multiply_launch(p, c, target, a, b, counters));
    if (c.parts > 0) {
      CudaLaunch& launch = result.launches.back();
      if (!p.views) launch.maps.resize(2);
      if (c.classed) launch.maps = class_maps(p, c, kWorkspace);
      set_parts_launch(launch, p, c, kWorkspace);
    }
  }
  if (partial) result.launches.push_back(reduce_launch(sums, p.k > 0 ? c.splits : 0, target, kWorkspace));
  result.epilogue_launch = static_cast<int>(result.launches.size()) - 1;
  return result;
}

}  // namespace heddle::schedule
