// Which configurations a problem may take.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/divide.h"
#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/reduce.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {
namespace {

using tile::GemmStore;

constexpr int64_t kMostStreamed = 6, kLeastShare = 8;  // stream-K: tiles and k-tiles of a block
constexpr int64_t kMostSharers = 8;                    // blocks of a tile

// Of the sums of one part of k.
int64_t partial_bytes(const WgmmaProblem& p) {
  return 4 * p.m * round_up(p.n, 4) * p.batch;
}

// Sums of a thread: more leave few of a consumer's 240 registers to what comes after.
constexpr int kManySums = 128, kManySumsForRows = 160;

struct WgmmaTile {
  int m, n, consumers;
  bool ping_pong;
};
// Two warpgroups that each have a tile of their own (true) hide the store of one under the multiplication of the other.
// At most 192 accumulator registers a thread. Widths between the powers of two fill the last wave of tiles.
constexpr WgmmaTile kTiles[] = {
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
bool too_wide(const WgmmaTile& tile, int64_t m, int64_t n) {
  return tile.n >= 2 * round_up(std::max<int64_t>(n, 1), 16) || (tile.m > 64 && tile.m >= 2 * std::max<int64_t>(m, 1));
}

// Where the epilogue reduces neighbours. The limits are what ptxas compiles without spilling; of more than kManySums
// reject() keeps all epilogues that hold many values.
std::string reject_reductions(const WgmmaConfig& c, const WgmmaProblem& p) {
  if (!p.reduces) return {};
  if (c.splits > 1 || c.swapped || c.tile_n % tile::kGemmPartialColumns != 0) {
    return "neighbours are reduced in fragments of whole sums, 32 columns and more";
  }
  constexpr int kMostBesideOthers = 96;  // rows at any address; addresses of views
  const bool rows = store_of(p, c) == GemmStore::kRows, cluster = c.cluster_m * c.cluster_n > 1;
  const int sums = c.tile_m / (c.ping_pong ? 1 : c.consumers) * c.tile_n / 128;
  if (((rows || p.views) && sums > kMostBesideOthers) || (cluster && (rows || p.split))) {
    return "sums and what is reduced exceed the registers";
  }
  return {};
}

// Where pairs of columns make one: fragments that are rows of D have both sums in one thread.
std::string reject_gate(const WgmmaConfig& c, const WgmmaProblem& p) {
  if (!p.gated || store_of(p, c) == GemmStore::kPartial) return {};
  if (c.swapped) return "pairs of columns are rows of swapped operands";
  return c.tile_n % (2 * tile::kGemmGateColumns) == 0 ? "" : "a tile has parts of pairs of columns";
}

// Parts of k worth trying: as many as fill the device or as a long sum needs, each of at least 4 k-tiles.
std::vector<int> splits_of(const WgmmaProblem& p, const WgmmaTile& tile, int64_t m, int64_t n,
                           const GpuTarget& target) {
  const int64_t k_tiles = ceil_div(p.k * static_cast<int64_t>(size_of(p.in)), tile::kGemmRowBytes);
  const int64_t tiles = ceil_div(m, tile.m) * ceil_div(n, tile.n) * p.batch;
  std::vector<int> splits = {1};
  if (tiles == 0) return splits;
  const int64_t full = target.sms / tiles, part = std::max<int64_t>(partial_bytes(p), 1);
  const int64_t exact =
      std::min(fewest_parts(p.k, joined_of(p), static_cast<int64_t>(size_of(p.out))), kMostWorkspace / part);
  for (const int64_t wanted : {int64_t{2}, int64_t{3}, int64_t{4}, full / 2, full, exact}) {
    if (tiles > target.sms && wanted != exact) continue;
    const int64_t some = std::min(wanted, k_tiles / 4);
    if (some > 1 && std::find(splits.begin(), splits.end(), some) == splits.end()) {
      splits.push_back(static_cast<int>(some));
    }
  }
  return splits;
}

}  // namespace

// The kernel for f32 in two parts adds up a k-tile before it joins the sums.
int64_t joined_of(const WgmmaProblem& p) {
  return p.split ? tile::kGemmRowBytes / static_cast<int64_t>(size_of(p.in)) : joined_by_tensor_cores(p.in);
}

int64_t padded_bytes(const WgmmaProblem& p, bool a) {
  const int64_t side = a ? p.m : p.n, batch = p.batches_of(a ? p.step_a : p.step_b);
  const bool k_major = a ? p.a_k_major : p.b_k_major;
  const int64_t row = k_major ? p.k : side, lines = k_major ? side : p.k;
  return round_up(round_up(row * static_cast<int64_t>(size_of(p.in)), 16) * lines * batch, 256);
}

// Copies count their pieces in 32 bits.
std::string reject_copies(const WgmmaProblem& p) {
  constexpr int64_t kMostCopied = int64_t{1} << 30;
  const bool fits = (!repacks_a(p) || padded_bytes(p, true) <= kMostCopied) &&
                    (!repacks_b(p) || padded_bytes(p, false) <= kMostCopied);
  return fits ? std::string() : "a padded copy of an operand takes more than 1 GiB";
}

GemmStore store_of(const WgmmaProblem& p, const WgmmaConfig& c) {
  if (c.splits > 1 || p.k == 0) return GemmStore::kPartial;
  if (p.epilogue_stores || (c.swapped && size_of(p.out) != 2)) return GemmStore::kEpilogue;
  // TMA writes rows in whole pieces of 16 bytes, the last one too, over what lies behind it.
  const auto element = static_cast<int64_t>(size_of(p.out));
  const bool whole = p.columns() * element % 16 == 0 && p.offset_d * element % 16 == 0;
  if (whole && !needs_repack(p.out, p.ldd, p.stride_d, p.batch)) return GemmStore::kTma;
  return element == 1 ? GemmStore::kEpilogue : GemmStore::kRows;
}

std::string reject(const WgmmaConfig& c, const WgmmaProblem& p, const GpuTarget& target) {
  if (std::string why = reject_reductions(c, p); !why.empty()) return why;
  if (std::string why = reject_copies(p); !why.empty()) return why;
  if (c.stages < 3) return "fewer than 3 stages fit in shared memory";
  if (p.by_rows && (c.stream_k || c.tile_n % 32 != 0))
    return "the epilogue accesses rows in pieces of 32 columns or more";
  constexpr int kMostStreamed = 112;
  if (p.split && c.stream_k && c.tile_n > kMostStreamed) return "sums of other blocks exceed the registers";
  if (p.split && (c.ping_pong || c.tile_m != 64 * c.consumers || c.tile_n > 128 || c.tile_n % 16 != 0)) {
    return "a warpgroup that takes f32 apart has 64 rows and at most 128 columns";
  }
  if (std::string why = reject_gate(c, p); !why.empty()) return why;
  if (c.cluster_m * c.cluster_n > target.sms) return "the device is smaller than the cluster";
  if (p.windows && c.swapped) return "windows are rows of A";
  if (p.in == DType::kU8 && c.swapped) return "the second operand has signed bytes";
  const bool pieces = store_of(p, c) == GemmStore::kTma && !c.swapped;
  if (c.tile_n % 16 != 0 && !(pieces && size_of(p.in) == 2 && size_of(p.out) == 2)) {
    return "odd multiples of 8 columns are for 16-bit types that TMA stores";
  }
  const int sums = c.tile_m / (c.ping_pong ? 1 : c.consumers) * c.tile_n / 128;  // of one thread
  constexpr int kSkinnySums = 80;
  const bool heavy = p.heavy_epilogue || is_int(p.in) || (p.residual && !loads_residual(p, c));
  if (heavy && pieces && sums > kSkinnySums &&
      tile::gemm_piece(stored_n(p, c), static_cast<int>(size_of(p.out))).bytes % 64 != 0) {
    return "the epilogue of so wide pieces of rows exceeds the registers";
  }
  const bool rows = store_of(p, c) == GemmStore::kRows && !c.swapped && sums <= kManySumsForRows;
  const bool slow = !p.a_k_major || !p.b_k_major || c.stream_k || p.windows;  // whose loads keep more registers
  if (c.stream_k && heavy && sums >= kManySums) return "sums of other blocks exceed the registers";
  if (sums > kManySums && (p.views || heavy || slow || !(pieces || rows))) {
    return "sums and what is computed from them exceed the registers";
  }
  constexpr int kManyForHeavyRows = 112;
  if (store_of(p, c) == GemmStore::kRows &&
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
  if (c.stream_k) {
    const int64_t k_tiles = ceil_div(p.k * static_cast<int64_t>(size_of(p.in)), tile::kGemmRowBytes);
    if (units % target.sms == 0) return "the tiles fill the device evenly";
    if (units > kMostStreamed * int64_t{target.sms}) return "so many tiles leave little to even out";
    if (units * kMostSharers < target.sms) return "one block would add up the sums of too many";
    if (units * k_tiles < kLeastShare * int64_t{target.sms}) return "too few k-tiles for each block";
    if (int64_t{4} * c.tile_m * c.tile_n * target.sms > kMostWorkspace) return "the partial sums exceed the workspace";
  }
  return reject_partial_sums(p, c.splits);
}

std::string reject_partial_sums(const WgmmaProblem& p, int splits) {
  const bool fits = splits == 1 || partial_bytes(p) * splits <= kMostWorkspace;
  return fits ? "" : "the partial sums exceed the workspace";
}

std::vector<WgmmaConfig> wgmma_configs(const WgmmaProblem& p, const GpuTarget& target) {
  constexpr int64_t kNarrow = 256;
  std::vector<WgmmaConfig> found;
  for (const bool swapped : {false, true}) {
    const int64_t m = swapped ? p.n : p.m, n = swapped ? p.m : p.n;
    if (swapped && n > kNarrow) continue;
    for (const WgmmaTile& tile : kTiles) {
      if (too_wide(tile, m, n)) continue;
      for (const auto& [cluster_m, cluster_n] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}}) {
        for (const int splits : splits_of(p, tile, m, n, target)) {
          WgmmaConfig c;
          c.tile_m = tile.m, c.tile_n = tile.n;
          c.consumers = tile.consumers, c.ping_pong = tile.ping_pong;
          c.cluster_m = cluster_m, c.cluster_n = cluster_n;
          c.swapped = swapped;
          c.splits = splits;
          c.stages = most_stages(c, p, target.shared_bytes_per_block);
          found.push_back(c);
          if (p.views || splits > 1 || cluster_m * cluster_n > 1 || tile.ping_pong || p.k == 0) continue;
          c.stream_k = true;
          found.push_back(c);
        }
      }
    }
  }
  return found;
}

}  // namespace heddle::schedule
