#include "schedule/attention/cuda/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/divide.h"
#include "schedule/attention/cuda/model.h"
#include "schedule/attention/masks/mask.h"

namespace heddle::schedule {
namespace {

// A bound of all tiles of rows while the length is one of [first, last].
struct Row {
  int64_t first, last;
  std::vector<int64_t> tiles;
};

// Whether more tiles than there are to be are right: the end of what is computed, the begin of what is plain.
enum class Side : uint8_t { kUpper, kLower };

class BoundFit {
 public:
  BoundFit(std::vector<Row> rows, Side side, int64_t tile_m, int64_t tile_n)
      : rows_(std::move(rows)), side_(side), tile_m_(tile_m), tile_n_(tile_n) {
    for (const Row& row : rows_) {
      for (const int64_t t : row.tiles) low_ = std::min(low_, t), high_ = std::max(high_, t);
    }
  }

  // The bound of the kernel's form that is right for all tiles and lengths and closest to theirs.
  tile::AttentionBound run() const {
    if (low_ == high_) return {0, 0, 0, number(low_), number(high_)};
    tile::AttentionBound best{};
    std::optional<int64_t> least;
    for (const int64_t slope : {0, 1, -1, 2, -2, 3, -3, 4, -4}) {
      for (const int64_t by_length : {0, 1, -1}) {
        if (by_length != 0 && rows_.size() == 1) continue;
        const tile::AttentionBound bound = fit(slope * tile_m_, by_length);
        const int64_t more = tiles_more(bound);
        if (!least || more < *least) least = more, best = bound;
      }
    }
    return best;
  }

 private:
  tile::AttentionBound fit(int64_t step, int64_t by_length) const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
    int64_t offset = side_ == Side::kUpper ? -kMost : kMost;
    for (const Row& row : rows_) {
      const int64_t of_length = std::min(by_length * row.first, by_length * row.last);
      const int64_t of_most = std::max(by_length * row.first, by_length * row.last);
      for (size_t i = 0; i < row.tiles.size(); ++i) {
        const int64_t t = row.tiles[i], of_tile = step * static_cast<int64_t>(i);
        if (side_ == Side::kUpper && t > low_) offset = std::max(offset, t * tile_n_ - of_tile - of_length);
        if (side_ == Side::kLower && t < high_) offset = std::min(offset, (t + 1) * tile_n_ - 1 - of_tile - of_most);
      }
    }
    return {number(step), number(by_length), number(offset), number(low_), number(high_)};
  }
  int64_t tiles_more(const tile::AttentionBound& bound) const {
    int64_t more = 0;
    for (const Row& row : rows_) {
      for (size_t i = 0; i < row.tiles.size(); ++i) {
        const int64_t t = bound.at(number(static_cast<int64_t>(i)), number(row.first), number(tile_n_));
        more += std::abs(t - row.tiles[i]);
      }
    }
    return more;
  }

  const std::vector<Row> rows_;
  const Side side_;
  const int64_t tile_m_, tile_n_;
  int64_t low_ = std::numeric_limits<int64_t>::max(), high_ = 0;
};

}  // namespace

void set_bounds(tile::AttentionArgs& args, const AttentionDesc& a, int64_t tile_m, int64_t tile_n) {
  struct Bound {
    tile::AttentionBound* to;
    Side side;
    int64_t KeyTiles::*of;
    std::vector<Row> rows = {};
  };
  Bound bounds[] = {{&args.first, Side::kLower, &KeyTiles::first},
                    {&args.plain_first, Side::kUpper, &KeyTiles::plain_first},
                    {&args.plain_last, Side::kLower, &KeyTiles::plain_last},
                    {&args.last, Side::kUpper, &KeyTiles::last}};
  const auto add = [&](int64_t first, int64_t last, const std::vector<KeyRange>& ranges) {
    for (Bound& b : bounds) b.rows.push_back({first, last, {}});
    for (const KeyTiles& t : key_tiles(a, ranges, tile_m, tile_n)) {
      for (Bound& b : bounds) b.rows.back().tiles.push_back(t.*b.of);
    }
  };
  if (a.length) {
    for (const KeyLength::Box& box : a.length->boxes) add(box.first, box.last, box.ranges);
    args.least_length = number(a.length->boxes.front().first), args.most_length = number(a.length->boxes.back().last);
  } else {
    add(0, 0, a.ranges);
  }
  for (Bound& b : bounds) *b.to = BoundFit(std::move(b.rows), b.side, tile_m, tile_n).run();
}

std::string tiles_text(const AttentionDesc& a, int64_t tile_m, int64_t tile_n) {
  if (a.scaled || a.length) return "";
  tile::AttentionArgs args{};
  set_bounds(args, a, tile_m, tile_n);
  const int64_t rows = ceil_div(a.m, tile_m), all = rows * ceil_div(a.n, tile_n);
  int64_t computed = 0, plain = 0;
  for (int32_t i = 0; i < rows; ++i) {
    const auto at = [&](const tile::AttentionBound& bound) { return bound.at(i, 0, number(tile_n)); };
    const int64_t first = at(args.first), last = at(args.last);
    const int64_t plain_first = std::clamp<int64_t>(at(args.plain_first), first, last);
    const int64_t plain_last = std::clamp<int64_t>(at(args.plain_last), first, last);
    computed += last - first, plain += std::max<int64_t>(0, plain_last - plain_first);
  }
  return fmt::format(", {} of {} tiles of keys left out, {} masked", all - computed, all, computed - plain);
}

}  // namespace heddle::schedule
