#include "schedule/attention/mask.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/divide.h"
#include "schedule/attention/constant_mask.h"
#include "schedule/attention/interval.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

class ScoreBounds {
 public:
  ScoreBounds(const Epilogue& scores, const std::function<const Tensor*(uint32_t)>& constant)
      : e_(scores), root_(scores.stores.at(0).value), values_(scores.pool.size()), masks_(scores.pool.size()) {
    ExprWalk(e_.pool, Follow::kIndices)
        .run(
            root_, [](ExprId) { return true; }, [this](ExprId id) { order_.push_back(id); });
    for (const ExprId id : order_) {
      const Expr& e = e_.pool[id];
      const Tensor* tensor = e.kind == Expr::Kind::kLoad ? constant(e.id) : nullptr;
      if (tensor != nullptr) masks_[id] = constant_mask(*tensor, e.index);
    }
  }

  // The number that a length, an expression, is within, until another one is said.
  void set_length(ExprId length, Range range) { length_ = length, lengths_ = range; }
  void forget_length() { length_.reset(); }

  Bounds at(const Box& box) {
    box_ = box;
    for (const ExprId id : order_) {
      const bool is_length = length_ == id;
      values_[id] = is_length ? bounds(static_cast<double>(lengths_.lo), static_cast<double>(lengths_.hi)) : of(id);
      const bool is_open = !values_[id].is_known && e_.pool[id].dtype == DType::kBool;
      if (is_open) values_[id] = truth(false, false);
    }
    return values_[root_];
  }

 private:
  std::unique_ptr<ConstantMask> constant_mask(const Tensor& tensor, const Index& index) const {
    constexpr size_t kMostElements = size_t{1} << 26;
    std::optional<ConstantMask::Places> places = places_of(e_, index);
    if (!places) return nullptr;
    if (places->rows.size() * places->keys.size() * places->batches.size() > kMostElements) return nullptr;
    return std::make_unique<ConstantMask>(tensor, std::move(*places));
  }

  Range range_of(const Index& index) const {
    Range range{index.constant, index.constant};
    for (const auto& [id, factor] : index.terms) {
      const Range atom = range_of(e_.pool.indices.atom(id));
      range.lo += factor * (factor > 0 ? atom.lo : atom.hi), range.hi += factor * (factor > 0 ? atom.hi : atom.lo);
    }
    return range;
  }
  Range range_of(const Atom& atom) const {
    switch (atom.kind) {
      case Atom::Kind::kVar:
        if (atom.id == e_.row) return box_.rows;
        if (atom.id == e_.col) return box_.keys;
        return atom.range;
      case Atom::Kind::kDiv: {
        const Range arg = range_of(atom.arg);
        return {floor_of(arg.lo, atom.a), floor_of(arg.hi, atom.a)};
      }
      case Atom::Kind::kMod: {
        const Range arg = range_of(atom.arg);
        const int64_t turn = floor_of(arg.lo, atom.a);
        if (turn != floor_of(arg.hi, atom.a)) return {0, atom.a - 1};
        return {arg.lo - turn * atom.a, arg.hi - turn * atom.a};
      }
      case Atom::Kind::kClamp: {
        const Range arg = range_of(atom.arg);
        return {std::clamp(arg.lo, atom.a, atom.b), std::clamp(arg.hi, atom.a, atom.b)};
      }
      case Atom::Kind::kReflect:
      case Atom::Kind::kDynamic:
        return atom.range;
    }
    return atom.range;
  }
  static int64_t floor_of(int64_t x, int64_t by) { return x >= 0 ? x / by : -ceil_div(-x, by); }

  Bounds of(ExprId id) const {
    const Expr& e = e_.pool[id];
    switch (e.kind) {
      case Expr::Kind::kConstant: {
        const double x =
            is_float(e.dtype) ? std::bit_cast<double>(e.bits) : static_cast<double>(static_cast<int64_t>(e.bits));
        return bounds(to_type(x, e.dtype), to_type(x, e.dtype));
      }
      case Expr::Kind::kLocal:
        return e.id == 0 ? bounds(0, 0, 1) : Bounds{};
      case Expr::Kind::kLoad:
        return masks_[id] ? masks_[id]->at(box_) : Bounds{};
      case Expr::Kind::kIndex: {
        const Range range = range_of(e.index);
        return bounds(static_cast<double>(range.lo), static_cast<double>(range.hi));
      }
      case Expr::Kind::kGuard: {
        const Range range = range_of(e.index);
        if (range.lo >= e.lo && range.hi < e.hi) return values_[e.args[0]];
        if (range.hi < e.lo || range.lo >= e.hi) return values_[e.args[1]];
        return either(values_[e.args[0]], values_[e.args[1]]);
      }
      case Expr::Kind::kOp:
        return of_op(e);
      case Expr::Kind::kRandom:
        return {};
    }
    return {};
  }

  Bounds of_op(const Expr& e) const {
    const auto arg = [&](size_t i) -> const Bounds& { return values_[e.args[i]]; };
    switch (e.op) {
      case ir::Op::kCast:
        return cast(e);
      case ir::Op::kNeg:
        return arg(0).is_number() ? bounds(-arg(0).hi, -arg(0).lo) : Bounds{};
      case ir::Op::kNot:
        return e.dtype == DType::kBool ? bounds(1 - arg(0).hi, 1 - arg(0).lo) : Bounds{};
      case ir::Op::kAdd: {
        if (!arg(0).is_known || !arg(1).is_known || (arg(0).factor != 0 && arg(1).factor != 0)) return {};
        return bounds(to_type(arg(0).lo + arg(1).lo, e.dtype), to_type(arg(0).hi + arg(1).hi, e.dtype),
                      arg(0).factor + arg(1).factor);
      }
      case ir::Op::kSub: {
        const Expr &a = e_.pool[e.args[0]], &b = e_.pool[e.args[1]];
        if (!arg(0).is_known || !arg(1).is_number()) return {};
        if (a.kind == Expr::Kind::kIndex && b.kind == Expr::Kind::kIndex) return difference(a.index, b.index);
        return bounds(to_type(arg(0).lo - arg(1).hi, e.dtype), to_type(arg(0).hi - arg(1).lo, e.dtype), arg(0).factor);
      }
      case ir::Op::kMul:
        return product(arg(0), arg(1));
      case ir::Op::kDiv: {
        if (!is_float(e.dtype) || !arg(1).is_point() || arg(1).lo == 0) return {};
        return product(arg(0), bounds(1 / arg(1).lo, 1 / arg(1).lo));
      }
      case ir::Op::kMax:
      case ir::Op::kMin: {
        if (!arg(0).is_number() || !arg(1).is_number()) return {};
        if (e.op == ir::Op::kMax) return bounds(std::max(arg(0).lo, arg(1).lo), std::max(arg(0).hi, arg(1).hi));
        return bounds(std::min(arg(0).lo, arg(1).lo), std::min(arg(0).hi, arg(1).hi));
      }
      case ir::Op::kAnd:
      case ir::Op::kOr: {
        if (e.dtype != DType::kBool) return {};
        if (e.op == ir::Op::kOr) return bounds(std::max(arg(0).lo, arg(1).lo), std::max(arg(0).hi, arg(1).hi));
        return bounds(std::min(arg(0).lo, arg(1).lo), std::min(arg(0).hi, arg(1).hi));
      }
      case ir::Op::kEq:
      case ir::Op::kNe:
      case ir::Op::kLt:
      case ir::Op::kLe:
      case ir::Op::kGt:
      case ir::Op::kGe:
        return comparison(e);
      case ir::Op::kSelect:
        if (arg(0).is_point()) return arg(0).lo != 0 ? arg(1) : arg(2);
        return either(arg(1), arg(2));
      default:
        return {};
    }
  }
  // Two positions that depend on the same row or key differ by less than their ranges say.
  Bounds difference(const Index& a, const Index& b) const {
    Index d = a;
    d.constant -= b.constant;
    for (const auto& [id, factor] : b.terms) {
      const auto at = std::find_if(d.terms.begin(), d.terms.end(), [&](const auto& t) { return t.first == id; });
      if (at == d.terms.end()) {
        d.terms.emplace_back(id, -factor);
      } else {
        at->second -= factor;
      }
    }
    const Range range = range_of(d);
    return bounds(static_cast<double>(range.lo), static_cast<double>(range.hi));
  }
  Bounds comparison(const Expr& e) const {
    const Expr &a = e_.pool[e.args[0]], &b = e_.pool[e.args[1]];
    if (a.kind == Expr::Kind::kIndex && b.kind == Expr::Kind::kIndex) {
      return compare(e.op, difference(a.index, b.index), bounds(0, 0));
    }
    return compare(e.op, values_[e.args[0]], values_[e.args[1]]);
  }
  Bounds cast(const Expr& e) const {
    const Bounds& from = values_[e.args[0]];
    if (!from.is_known) return {};
    if (from.factor != 0) return is_float(e.dtype) ? from : Bounds{};
    if (e.dtype == DType::kBool) return truth(from.lo == 0 && from.hi == 0, from.lo > 0 || from.hi < 0);
    if (is_float(e.dtype)) return bounds(to_type(from.lo, e.dtype), to_type(from.hi, e.dtype));
    const DType source = e_.pool[e.args[0]].dtype;
    constexpr double kMost = 1 << 30;  // of positions: what wraps is not looked at
    const bool fits = (size_of(e.dtype) >= 4 || source == DType::kBool) && from.lo >= 0 && from.hi <= kMost;
    return fits && !is_float(source) ? from : Bounds{};
  }

  const Epilogue& e_;
  const ExprId root_;
  Box box_{};
  std::optional<ExprId> length_;
  Range lengths_{};
  std::vector<ExprId> order_;  // operands first
  std::vector<Bounds> values_;
  std::vector<std::unique_ptr<ConstantMask>> masks_;
};

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

enum class ScoreClass : uint8_t { kNone, kNegligible, kPlain, kMixed };

class Classifier {
 public:
  Classifier(AttentionDesc& d, const std::function<const Tensor*(uint32_t)>& constant)
      : d_(d), bounds_(d.scores, constant) {}

  void run(bool with_lengths) {
    const std::optional<ExprId> length = key_length(d_.scores);
    std::optional<double> factor = plain_factor();
    has_plain_ = factor.has_value();
    if (!factor && length) {
      bounds_.set_length(*length, {d_.n, d_.n});
      factor = plain_factor();
      bounds_.forget_length();
    }
    d_.scale = factor.value_or(1);
    d_.ranges = all_ranges();
    if (length && with_lengths) set_boxes(*length);
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
      bounds_.set_length(length, {first, last});
      has_plain_ = plain_factor() == d_.scale;
      result.boxes.push_back({first, last, all_ranges()});
      first = last + 1;
    }
    bounds_.forget_length();
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

  // Of plain scores at some points: every mask leaves one of them.
  std::optional<double> plain_factor() {
    const int64_t row = d_.m - 1, key = d_.n - 1;
    const std::pair<int64_t, int64_t> points[] = {
        {row, 0}, {0, 0}, {row, key}, {row / 2, key / 2}, {row, std::min(row, key)}, {0, key}, {row, key / 2}};
    for (const auto& [r, k] : points) {
      const Bounds b = bounds_.at({{r, r}, {k, k}});
      if (b.is_known && b.factor > 0 && b.lo == 0 && b.hi == 0 && std::isfinite(b.factor)) return b.factor;
    }
    return std::nullopt;
  }

  ScoreClass class_of(const Box& box) {
    const Bounds b = bounds_.at(box);
    if (!b.is_known) return ScoreClass::kMixed;
    if (b.hi == -kInfinity) return ScoreClass::kNone;
    if (has_plain_ && b.factor == d_.scale && b.lo == 0 && b.hi == 0) return ScoreClass::kPlain;
    // exp(-110) is zero in f32.
    constexpr double kZero = 110;
    const bool is_far = b.hi + b.factor * most_product() <= -d_.scale * most_product() - kZero;
    return is_far ? ScoreClass::kNegligible : ScoreClass::kMixed;
  }

  // No product is larger. Those of f16 cannot be; others could, but a softmax of such scores means nothing.
  double most_product() const {
    constexpr double kMostF16 = 65504, kMost = 0x1p120;
    return d_.type == DType::kF16 ? static_cast<double>(d_.depth) * kMostF16 * kMostF16 : kMost;
  }

  // Classes of the cells of keys [first, last).
  void fill(Range rows, int64_t first, int64_t last, std::vector<ScoreClass>& cells) {
    const ScoreClass c = class_of({rows, {first * kCellKeys, std::min(last * kCellKeys, d_.n) - 1}});
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
          if (class_of({{row, row}, {key, key}}) == ScoreClass::kPlain) return true;
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
  ScoreBounds bounds_;
  bool has_plain_ = false;
};

}  // namespace

void classify_scores(AttentionDesc& attention, const std::function<const Tensor*(uint32_t)>& constant,
                     bool with_lengths) {
  Classifier(attention, constant).run(with_lengths);
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
