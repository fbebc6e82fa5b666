#include "schedule/attention/masks/mask.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/divide.h"
#include "schedule/attention/masks/row_mask.h"
#include "schedule/attention/masks/score_bounds.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

// The integer of a batch, whatever the row and the key, that scores depend on and that memory holds.
std::optional<ExprId> key_length(const Epilogue& scores) {
  const ExprPool& pool = scores.pool;
  const uint64_t positions = uint64_t{1} << scores.row | uint64_t{1} << scores.col_outer | uint64_t{1} << scores.col;
  const auto is_length = [&](ExprId id) {
    const Expr& e = pool[id];
    const bool can_be = e.kind == Expr::Kind::kLoad || e.kind == Expr::Kind::kOp;
    if (!can_be || !is_int(e.dtype) || (pool.vars(id) & positions) != 0) return false;
    bool has_load = false, has_local = false;
    ExprWalk(pool, Follow::kIndices).run(id, [&](ExprId below) {
      has_load = has_load || pool[below].kind == Expr::Kind::kLoad;
      has_local = has_local || pool[below].kind == Expr::Kind::kLocal;
      return true;
    });
    return has_load && !has_local;
  };
  const std::vector<ExprId> found = topmost(pool, {scores.stores.at(0).value}, is_length);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

class Classifier {
 public:
  Classifier(AttentionDesc& d, ScoreClasses& classes) : d_(d), classes_(classes) {}

  void run(std::optional<ExprId> length) {
    d_.ranges = all_ranges();
    if (length) set_boxes(*length);
  }

 private:
  std::vector<KeyRange> all_ranges() {
    std::vector<KeyRange> ranges;
    for (int64_t row = 0; row < d_.m; row += kCellRows) {
      ranges.push_back(range({row, std::min(row + kCellRows, d_.m) - 1}));
    }
    return ranges;
  }

  // Of lengths up to that of all keys. The first boxes are small: the mask of a length of 0 leaves no key, where no
  // statement about a row's plain score holds.
  void set_boxes(ExprId length) {
    constexpr int64_t kMostRanges = 4096, kMostLength = int64_t{1} << 24;  // exact as f32
    if (d_.n > kMostLength) return;
    const int64_t strips = ceil_div(d_.m, kCellRows);
    const int64_t step = std::max(kCellKeys, round_up(ceil_div(d_.n * strips, kMostRanges), kCellKeys));
    KeyLength result;
    for (int64_t first = 0; first <= d_.n;) {
      const int64_t last = std::min(first == 0 ? 0 : round_up(first + 1, step) - 1, d_.n);
      classes_.bounds().set_length(length, {first, last});
      classes_.set_plain(classes_.plain_factor() == d_.scale ? std::optional(d_.scale) : std::nullopt);
      result.boxes.push_back({first, last, all_ranges()});
      first = last + 1;
    }
    classes_.bounds().forget_length();
    drop_irregular(result.boxes);
    const auto all = [](const std::vector<KeyRange>& ranges) {
      int64_t keys = 0;
      for (const KeyRange& r : ranges) keys += r.last - r.first;
      return keys;
    };
    if (result.boxes.empty() || all(result.boxes[result.boxes.size() / 2].ranges) >= all(d_.ranges)) return;
    result.value = d_.scores;
    Expr as_float{Expr::Kind::kOp, DType::kF32, ir::Op::kCast};
    as_float.args = {length};
    result.value.stores = {{0, {}, result.value.pool.add(std::move(as_float))}};
    d_.length = std::move(result);
  }
  // Boxes at either end with more keys than the ones beside them: those of which a row may see no key.
  static void drop_irregular(std::vector<KeyLength::Box>& boxes) {
    const auto last = [](const KeyLength::Box& box) {
      int64_t most = 0;
      for (const KeyRange& r : box.ranges) most = std::max(most, r.last);
      return most;
    };
    const auto first = [](const KeyLength::Box& box) {
      int64_t least = box.ranges[0].first;
      for (const KeyRange& r : box.ranges) least = std::min(least, r.first);
      return least;
    };
    auto begin = boxes.begin(), end = boxes.end();
    while (end - begin > 1 && last(*begin) > last(*(begin + 1))) ++begin;
    while (end - begin > 1 && first(*(end - 1)) < first(*(end - 2))) --end;
    boxes = std::vector<KeyLength::Box>(begin, end);
  }

  // Classes of the cells of keys [first, last).
  void fill(Range rows, int64_t first, int64_t last, std::vector<ScoreClass>& cells) {
    const ScoreClass c = classes_.at({rows, {first * kCellKeys, std::min(last * kCellKeys, d_.n) - 1}});
    if (c != ScoreClass::kMixed || last - first == 1) {
      std::fill(cells.begin() + first, cells.begin() + last, c);
      return;
    }
    const int64_t middle = (first + last) / 2;
    fill(rows, first, middle, cells);
    fill(rows, middle, last, cells);
  }

  // Whether each of the rows has a plain score, as far as the first and last mixed cells tell.
  bool each_sees(Range rows, const std::vector<ScoreClass>& cells) {
    if (std::find(cells.begin(), cells.end(), ScoreClass::kPlain) != cells.end()) return true;
    constexpr size_t kMostCells = 8;  // at either end
    std::vector<int64_t> mixed;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] == ScoreClass::kMixed) mixed.push_back(static_cast<int64_t>(i) * kCellKeys);
    }
    if (mixed.size() > 2 * kMostCells) mixed.erase(mixed.begin() + kMostCells, mixed.end() - kMostCells);
    const auto sees = [&](int64_t row) {
      for (const int64_t first : mixed) {
        for (int64_t key = first; key < std::min(first + kCellKeys, d_.n); ++key) {
          if (classes_.at({{row, row}, {key, key}}) == ScoreClass::kPlain) return true;
        }
      }
      return false;
    };
    for (int64_t row = rows.lo; row <= rows.hi; ++row) {
      if (!sees(row)) return false;
    }
    return true;
  }

  KeyRange range(Range rows) {
    std::vector<ScoreClass> cells(static_cast<size_t>(ceil_div(d_.n, kCellKeys)), ScoreClass::kMixed);
    fill(rows, 0, static_cast<int64_t>(cells.size()), cells);
    const bool negligible = std::find(cells.begin(), cells.end(), ScoreClass::kNegligible) != cells.end();
    const ScoreClass stays = negligible && each_sees(rows, cells) ? ScoreClass::kNone : ScoreClass::kMixed;
    std::replace(cells.begin(), cells.end(), ScoreClass::kNegligible, stays);
    const auto is_computed = [](ScoreClass c) { return c != ScoreClass::kNone; };
    const auto first = std::find_if(cells.begin(), cells.end(), is_computed);
    const auto last = std::find_if(cells.rbegin(), cells.rend(), is_computed).base();
    if (first == cells.end()) return {0, 0, 0, 0};
    // The longest run of plain cells.
    auto plain_first = first, plain_last = first;
    for (auto at = first; at != last;) {
      at = std::find(at, last, ScoreClass::kPlain);
      const auto end = std::find_if(at, last, [](ScoreClass c) { return c != ScoreClass::kPlain; });
      if (end - at > plain_last - plain_first) plain_first = at, plain_last = end;
      at = end;
    }
    const auto key = [&](auto at) { return std::min<int64_t>((at - cells.begin()) * kCellKeys, d_.n); };
    return {key(first), key(plain_first), key(plain_last), key(last)};
  }

  AttentionDesc& d_;
  ScoreClasses& classes_;
};

}  // namespace

void classify_scores(AttentionDesc& d, const std::function<const Tensor*(uint32_t)>& constant, bool with_lengths) {
  const std::optional<ExprId> length = key_length(d.scores);
  ScoreClasses classes(d, constant);
  std::optional<double> factor = classes.plain_factor();
  classes.set_plain(factor);
  if (!factor && length) {
    classes.bounds().set_length(*length, {d.n, d.n});
    factor = classes.plain_factor();
    classes.bounds().forget_length();
  }
  d.scale = factor.value_or(1);
  if (!simplify_mask(d, classes)) {
    Classifier(d, classes).run(with_lengths ? length : std::nullopt);
  } else if (!d.scaled) {
    ScoreClasses simple(d, constant);
    simple.set_plain(factor);
    Classifier(d, simple).run({});
  }
}

std::vector<KeyTiles> key_tiles(const AttentionDesc& d, int64_t tile_m, int64_t tile_n) {
  return key_tiles(d, d.length ? d.length->boxes.back().ranges : d.ranges, tile_m, tile_n);
}

std::vector<KeyTiles> key_tiles(const AttentionDesc& d, const std::vector<KeyRange>& ranges, int64_t tile_m,
                                int64_t tile_n) {
  const int64_t rows = ceil_div(d.m, tile_m), keys = ceil_div(d.n, tile_n), strips = tile_m / kCellRows;
  std::vector<KeyTiles> result(static_cast<size_t>(rows), {0, 0, d.n / tile_n, keys});
  for (size_t i = 0; !ranges.empty() && i < result.size(); ++i) {
    KeyRange all{d.n, 0, d.n, 0};
    const size_t first = i * static_cast<size_t>(strips);
    for (size_t s = first; s < std::min(first + static_cast<size_t>(strips), ranges.size()); ++s) {
      const KeyRange& r = ranges[s];
      if (r.first == r.last) {
        all.plain_last = 0;
        continue;
      }
      all.first = std::min(all.first, r.first), all.last = std::max(all.last, r.last);
      all.plain_first = std::max(all.plain_first, r.plain_first);
      all.plain_last = std::min(all.plain_last, r.plain_last);
    }
    KeyTiles& t = result[i];
    t = {all.first / tile_n, ceil_div(all.plain_first, tile_n), all.plain_last / tile_n, ceil_div(all.last, tile_n)};
    if (t.first >= t.last) t.first = 0, t.last = 1;  // rows that see nothing come out as the model's do
    t.plain_first = std::clamp(t.plain_first, t.first, t.last);
    t.plain_last = std::clamp(t.plain_last, t.first, t.last);
    if (t.plain_first >= t.plain_last) t.plain_first = t.plain_last = t.first;
  }
  return result;
}

}  // namespace heddle::schedule
