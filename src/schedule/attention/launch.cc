#include "schedule/attention/launch.h"

#include <algorithm>
#include <numbers>

#include "base/divide.h"
#include "target/argument_block.h"

namespace heddle {

// All members have four bytes, one of them is a float.
template <>
inline constexpr bool kNamesPadding<tile::AttentionArgs> = alignof(tile::AttentionArgs) == 4;

}  // namespace heddle

namespace heddle::schedule {
namespace {

constexpr int64_t kCopyBytes = 16, kElement = 2;

// How TMA sees an operand of `lines` rows (of Q: m, of K: n, of V: width) by `depth`, contiguous along one
// of them, in boxes of 64 elements along that one and of the tile's, rounded up to multiples of 16, along the other;
// where batches lie in its map.
struct AttentionMap {
  TensorMapDesc map;
  tile::AttentionPlace place;
};
AttentionMap attention_map(const OperandView& o, int64_t lines, int64_t depth, bool along_k, int64_t box) {
  const int64_t leading = along_k ? o.row : o.k, count = along_k ? lines : depth;
  AttentionMap result;
  TensorMapDesc& map = result.map;
  const auto extent = [](int64_t x) { return static_cast<uint64_t>(x); };
  // A dimension of one element has no stride that matters.
  const auto bytes = [](int64_t n, int64_t stride) {
    return static_cast<uint64_t>(n == 1 || stride == 0 ? kCopyBytes : stride * kElement);
  };
  map.element = TensorMapDesc::Element::kBits16;
  map.operand = static_cast<int>(o.operand);
  map.offset = static_cast<uint64_t>(o.offset * kElement);
  map.extents = {extent(along_k ? depth : lines), extent(count), 1};
  map.strides = {bytes(count, leading), kCopyBytes};
  map.outer = {1, kCopyBytes};
  map.box = {tile::kGemmRowBytes / kElement, static_cast<uint32_t>(box)};
  map.swizzle_bytes = tile::kGemmRowBytes;
  tile::AttentionPlace& place = result.place;
  place = {tile::GemmDivisor::of(1), tile::GemmDivisor::of(1), 1, 0, 0};
  auto batch = o.batch;
  int64_t shared = 1;
  for (; !batch.empty() && batch.back().second == 0; batch.pop_back()) shared *= batch.back().first;
  place.by_shared = tile::GemmDivisor::of(static_cast<int32_t>(shared));
  if (batch.empty()) return result;
  // One dimension of batches is the inner one, all of which lie before the first of the outer one.
  const auto& [inner, inner_stride] = batch.back();
  place.by_inner = tile::GemmDivisor::of(static_cast<int32_t>(inner)), place.inner = static_cast<int32_t>(inner);
  place.inner_step = 1;
  map.extents[2] = extent(inner), map.strides[1] = bytes(inner, inner_stride);
  if (batch.size() == 2 && batch[0].second != 0) {
    place.outer_step = 1;
    map.outer = {extent(batch[0].first), bytes(batch[0].first, batch[0].second)};
  }
  return result;
}

}  // namespace

CudaLaunch plan_launch(const AttentionDesc& a, const AttentionConfig& c, const CudaTarget& target) {
  const int64_t depth = round_up(a.depth, 16), width = round_up(a.width, 16);
  const bool k_along = a.k_along_depth(), v_along = !a.v_along_width();
  const AttentionMap q = attention_map(a.q, a.m, a.depth, true, c.tile_m());
  const AttentionMap k = attention_map(a.k, a.n, a.depth, k_along, k_along ? c.tile_n : depth);
  const AttentionMap v = attention_map(a.v, a.width, a.n, v_along, v_along ? width : c.tile_n);
  tile::AttentionArgs args{};
  args.m = static_cast<int32_t>(a.m), args.n = static_cast<int32_t>(a.n), args.width = static_cast<int32_t>(a.width);
  args.tiles_m = static_cast<int32_t>((a.m + c.tile_m() - 1) / c.tile_m());
  args.units = static_cast<int32_t>(a.batch) * args.tiles_m;
  args.key_tiles = static_cast<int32_t>((a.n + c.tile_n - 1) / c.tile_n);
  args.scale = static_cast<float>(a.scale * std::numbers::log2e);
  args.q = q.place, args.k = k.place, args.v = v.place;
  args.by_tiles = tile::GemmDivisor::of(args.tiles_m);
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(std::min(args.units, target.sms));
  launch.block = static_cast<uint32_t>(128 * (c.consumers + 1));
  launch.shared_bytes = static_cast<uint32_t>(tile::attention_shared_bytes(
      static_cast<int>(c.tile_m()), static_cast<int>(c.tile_n), static_cast<int>(depth), static_cast<int>(width),
      a.k_along_depth(), a.v_along_width(), static_cast<int>(c.q_stages), static_cast<int>(c.stages)));
  launch.maps = {q.map, k.map, v.map};
  launch.arguments = {argument_bytes(args)};
  return launch;
}

}  // namespace heddle::schedule
