#include "schedule/attention/masks/constant_mask.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"

namespace heddle::schedule {

ConstantMask::ConstantMask(const Tensor& tensor, Places places)
    : values_(ir::to_array(tensor)), at_(std::move(places)) {
  const auto count_rows = static_cast<int64_t>(at_.rows.size()), count_keys = static_cast<int64_t>(at_.keys.size());
  columns_ = ceil_div(count_keys, kCellKeys);
  const int64_t rows = ceil_div(count_rows, kCellRows);
  for (int64_t i = 0; i < rows; ++i) {
    const Range of_rows{i * kCellRows, std::min((i + 1) * kCellRows, count_rows) - 1};
    for (int64_t j = 0; j < columns_; ++j) {
      cells_.push_back(scan({of_rows, {j * kCellKeys, std::min((j + 1) * kCellKeys, count_keys) - 1}}));
    }
  }
}

Bounds ConstantMask::at(const Box& box) const {
  const Range rows = box.rows, keys = box.keys;
  Bounds all{};
  bool is_first = true;
  for (int64_t row = rows.lo; row <= rows.hi; row = (row / kCellRows + 1) * kCellRows) {
    for (int64_t key = keys.lo; key <= keys.hi; key = (key / kCellKeys + 1) * kCellKeys) {
      const int64_t last_row = (row / kCellRows + 1) * kCellRows - 1, last_key = (key / kCellKeys + 1) * kCellKeys - 1;
      const Bounds& of_cell = cells_[cell(row, key)];
      const bool is_whole = row % kCellRows == 0 && key % kCellKeys == 0 && last_row <= rows.hi && last_key <= keys.hi;
      const Bounds part = is_whole || of_cell.is_point()
                              ? of_cell
                              : scan({{row, std::min(last_row, rows.hi)}, {key, std::min(last_key, keys.hi)}});
      all = is_first ? part : either(all, part);
      is_first = false;
    }
  }
  return all;
}

Bounds ConstantMask::scan(const Box& box) const {
  double lo = kInfinity, hi = -kInfinity;
  for (const int64_t batch : at_.batches) {
    for (int64_t row = box.rows.lo; row <= box.rows.hi; ++row) {
      // Many rows have the elements of the one before.
      if (row > box.rows.lo && at_.rows[static_cast<size_t>(row)] == at_.rows[static_cast<size_t>(row) - 1]) continue;
      const int64_t line = batch + at_.rows[static_cast<size_t>(row)];
      for (int64_t key = box.keys.lo; key <= box.keys.hi; ++key) {
        const auto i = static_cast<size_t>(line + at_.keys[static_cast<size_t>(key)]);
        const double x = values_.real() ? values_.f()[i] : static_cast<double>(values_.i()[i]);
        if (std::isnan(x)) return {};
        lo = std::min(lo, x), hi = std::max(hi, x);
      }
    }
  }
  return bounds(lo, hi);
}

namespace {

// What an atom is where its one variable has this value; nullopt where it is no function of it alone.
std::optional<int64_t> value_of(const IndexPool& pool, const Atom& atom, int64_t x) {
  if (atom.kind == Atom::Kind::kVar) return x;
  int64_t arg = atom.arg.constant;
  for (const auto& [id, step] : atom.arg.terms) {
    const std::optional<int64_t> inner = value_of(pool, pool.atom(id), x);
    if (!inner) return std::nullopt;
    arg += step * *inner;
  }
  const int64_t turn = arg >= 0 ? arg / atom.a : -ceil_div(-arg, atom.a);
  switch (atom.kind) {
    case Atom::Kind::kDiv:
      return turn;
    case Atom::Kind::kMod:
      return arg - turn * atom.a;
    case Atom::Kind::kClamp:
      return std::clamp(arg, atom.a, atom.b);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<ConstantMask::Places> places_of(const Epilogue& e, const Index& index) {
  const IndexPool& pool = e.pool.indices;
  const auto zeros = [&](VarId var) { return std::vector<int64_t>(static_cast<size_t>(pool.extent(var))); };
  ConstantMask::Places places{zeros(e.batch), zeros(e.row), zeros(e.col)};
  for (const auto& [id, step] : index.terms) {
    const Atom& atom = pool.atom(id);
    const uint64_t vars = e.pool.vars(atom);
    std::vector<int64_t>* to = vars == uint64_t{1} << e.batch ? &places.batches
                               : vars == uint64_t{1} << e.row ? &places.rows
                               : vars == uint64_t{1} << e.col ? &places.keys
                                                              : nullptr;
    if (to == nullptr) return std::nullopt;
    for (size_t i = 0; i < to->size(); ++i) {
      const std::optional<int64_t> x = value_of(pool, atom, static_cast<int64_t>(i));
      if (!x) return std::nullopt;
      (*to)[i] += step * *x;
    }
  }
  std::sort(places.batches.begin(), places.batches.end());
  places.batches.erase(std::unique(places.batches.begin(), places.batches.end()), places.batches.end());
  for (int64_t& batch : places.batches) batch += index.constant;
  return places;
}

}  // namespace heddle::schedule
