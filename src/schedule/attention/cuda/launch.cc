#include "schedule/attention/cuda/launch.h"

#include <algorithm>
#include <cstddef>
#include <numbers>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/attention/cuda/bounds.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "schedule/attention/cuda/model.h"
#include "target/argument_block.h"

namespace heddle {

// Pointers come first, all other members have four bytes; some are floats.
template <>
inline constexpr bool kNamesPadding<tile::AttentionArgs> = sizeof(tile::AttentionArgs) == 304;

}  // namespace heddle

namespace heddle::schedule {
namespace {

// How TMA sees an operand of `lines` rows (of Q: m, of K: n, of V: width) by `depth`, contiguous along one
// of them, in boxes of 64 elements along that one and of the tile's `lines_of_tile`, rounded up to multiples of 16,
// along the other; where batches lie in its map. `in_pages`: batches are pages, the map's outer dimension, and in each
// others.
struct AttentionMap {
  TensorMapDesc map;
  tile::AttentionPlace place;
};
AttentionMap attention_map(const OperandView& o, int64_t lines, int64_t depth, bool along_k, int64_t lines_of_tile,
                           bool in_pages) {
  const int64_t leading = along_k ? o.row : o.k, count = along_k ? lines : depth;
  AttentionMap result;
  TensorMapDesc& map = result.map;
  const auto extent = [](int64_t x) { return static_cast<uint64_t>(x); };
  // A dimension of one element has no stride that matters.
  const auto bytes = [](int64_t n, int64_t stride) {
    return static_cast<uint64_t>(n == 1 || stride == 0 ? kCopyBytes : stride * kHalfBytes);
  };
  map.element = TensorMapDesc::Element::kBits16;
  map.operand = static_cast<int>(o.operand);
  map.offset = static_cast<uint64_t>(o.offset * kHalfBytes);
  map.extents = {extent(along_k ? depth : lines), extent(count), 1};
  map.strides = {bytes(count, leading), kCopyBytes};
  map.outer = {1, kCopyBytes};
  map.box = {tile::kGemmRowBytes / kHalfBytes, static_cast<uint32_t>(tile::attention_box_lines(number(lines_of_tile)))};
  map.swizzle_bytes = tile::kGemmRowBytes;
  // Two of the dimensions of batches, at most, are not the same place again.
  struct Coordinate {
    int64_t divisor, extent, stride;
  };
  std::vector<Coordinate> coordinates;
  int64_t divisor = 1;
  const size_t first = in_pages ? 1 : 0;
  for (size_t d = o.batch.size(); d-- > first; divisor *= o.batch[d].first) {
    if (o.batch[d].second != 0) coordinates.push_back({divisor, o.batch[d].first, o.batch[d].second});
  }
  HEDDLE_CHECK(coordinates.size() + first <= 2, "{} strides of batches", coordinates.size());
  coordinates.resize(2, {1, 1, 0});
  if (in_pages) coordinates[1] = {1, o.batch[0].first, o.batch[0].second};
  const auto& [inner, outer] = std::pair(coordinates[0], coordinates[1]);
  map.extents[2] = extent(inner.extent), map.strides[1] = bytes(inner.extent, inner.stride);
  map.outer = {extent(outer.extent), bytes(outer.extent, outer.stride)};
  const auto place = [](const Coordinate& c) {
    return tile::AttentionCoordinate::of(static_cast<int32_t>(c.divisor), static_cast<int32_t>(c.extent));
  };
  result.place = {place(inner), place(outer)};
  return result;
}

}  // namespace

AttentionVariant variant_of(const AttentionDesc& a, const CudaAttentionConfig& c) {
  using Scores = tile::AttentionScores;
  AttentionVariant variant{a.scaled ? Scores::kPlain : Scores::kComputed, a.n % c.tile_n != 0, true};
  const auto add = [&](const std::vector<KeyRange>& ranges) {
    for (const KeyTiles& t : key_tiles(a, ranges, c.tile_m(), c.tile_n)) {
      if (!a.scaled && t.plain_first < t.plain_last) variant.scores = Scores::kMixed;
      variant.one_tile = variant.one_tile && t.last - t.first == 1;
    }
  };
  add(a.ranges);
  if (a.length) variant.one_tile = a.n <= c.tile_n;
  for (size_t i = 0; a.length && i < a.length->boxes.size(); ++i) add(a.length->boxes[i].ranges);
  return variant;
}

namespace {

// Of either kernel, without what TMA takes.
tile::AttentionArgs arguments_of(const AttentionDesc& a, const CudaAttentionConfig& c) {
  const std::vector<KeyTiles> tiles = key_tiles(a, c.tile_m(), c.tile_n);
  tile::AttentionArgs args{};
  args.m = number(a.m), args.n = number(a.n), args.width = number(a.width);
  args.tiles_m = number(ceil_div(a.m, c.tile_m()));
  args.units = number(a.batch * c.panels * args.tiles_m * c.splits);
  args.splits = number(c.splits);
  args.sections = number(ceil_div(a.batch, c.section));
  args.section = number(c.section * c.panels);
  args.last_section = number((a.batch - (args.sections - 1) * c.section) * c.panels);
  const auto length = [](const KeyTiles& t) { return t.last - t.first; };
  args.descending = length(tiles.back()) > length(tiles.front()) ? 1 : 0;
  args.factor = static_cast<float>(a.scale), args.scale = static_cast<float>(a.scale * std::numbers::log2e);
  set_bounds(args, a, c.tile_m(), c.tile_n);
  args.by_splits = tile::GemmDivisor::of(args.splits);
  args.by_section = tile::GemmDivisor::of(args.section * args.tiles_m);
  args.by_batches = tile::GemmDivisor::of(args.section), args.by_last = tile::GemmDivisor::of(args.last_section);
  return args;
}

// A block walks over units, which TMA loads.
CudaLaunch warpgroups_launch(const AttentionDesc& a, const CudaAttentionConfig& c, const GpuTarget& target,
                             tile::AttentionArgs& args) {
  const int64_t depth = padded_head(a.depth), width = panel_width(a, c);
  const bool k_along = a.k_along_depth(), v_along = !a.v_along_width();
  const bool in_pages = a.pages.has_value();
  const int64_t keys = a.keys_in_line(), part = in_pages ? std::min(c.tile_n, keys) : c.tile_n;
  const AttentionMap q = attention_map(a.q, a.m, a.depth, true, c.tile_m(), false);
  const AttentionMap k = attention_map(a.k, keys, a.depth, k_along, k_along ? part : depth, in_pages);
  const AttentionMap v = attention_map(a.v, a.width, keys, v_along, v_along ? width : part, in_pages);
  args.q = q.place, args.k = k.place, args.v = v.place;
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(std::min<int64_t>(args.units, target.sms * c.blocks));
  launch.block = static_cast<uint32_t>(128 * (c.consumers + 1));
  launch.shared_bytes = static_cast<uint32_t>(
      tile::attention_shared_bytes(number(c.tile_m()), number(c.tile_n), number(depth), number(width),
                                   a.k_along_depth(), a.v_along_width(), number(c.q_stages), number(c.stages)));
  launch.maps = {q.map, k.map, v.map};
  return launch;
}

// A block has one unit.
CudaLaunch warps_launch(const AttentionDesc& a, const CudaAttentionConfig& c, const tile::AttentionArgs& args) {
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(args.units);
  launch.block = static_cast<uint32_t>(mma_threads(a, c));
  launch.shared_bytes = static_cast<uint32_t>(mma_shared_bytes(a, c));
  return launch;
}

}  // namespace

KernelLaunches plan_launches(const AttentionDesc& a, const CudaAttentionConfig& c, const GpuTarget& target,
                             size_t operands) {
  tile::AttentionArgs args = arguments_of(a, c);
  KernelLaunches result;
  CudaLaunch& launch =
      result.launches.emplace_back(is_by_warps(c) ? warps_launch(a, c, args) : warpgroups_launch(a, c, target, args));
  launch.arguments = {argument_bytes(args)};
  const int64_t groups = c.splits > 1 ? a.batch * c.panels * args.tiles_m * c.consumers : 0;  // of 64 rows
  const int64_t width = panel_width(a, c);
  if (groups > 0) {
    const int64_t floats = tile::attention_partial_floats(number(width)) * int64_t{128};
    result.workspace_bytes = groups * c.splits * floats * int64_t{sizeof(float)};
    launch.pointers.push_back({0, offsetof(tile::AttentionArgs, partial), static_cast<int>(operands)});
  }
  const int64_t counted = c.combines ? 0 : groups;
  if (counted > 0 || (c.dynamic && !is_by_warps(c))) {
    result.counter_bytes = (tile::kAttentionWalkCounters + counted) * int64_t{sizeof(uint32_t)};
    launch.pointers.push_back({0, offsetof(tile::AttentionArgs, counters), static_cast<int>(operands) + 1});
  }
  if (c.combines) {
    CudaLaunch combine;
    combine.grid = {static_cast<uint32_t>(groups), static_cast<uint32_t>(width / 8), 1};
    combine.block = 128;
    combine.arguments = {argument_bytes(args)};
    combine.pointers = {{0, offsetof(tile::AttentionArgs, partial), static_cast<int>(operands)}};
    result.launches.push_back(std::move(combine));
  }
  return result;
}

}  // namespace heddle::schedule
