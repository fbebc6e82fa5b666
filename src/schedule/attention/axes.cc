#include "schedule/attention/axes.h"

#include <numeric>

#include "base/check.h"

namespace heddle::schedule {

size_t ChainAxes::add_dim(int64_t extent) {
  dims_.emplace_back();
  if (extent != 1) {
    dims_.back().push_back(extents_.size());
    extents_.push_back(extent);
  }
  return dims_.size() - 1;
}

std::vector<Index> ChainAxes::variables(IndexPool& pool) const {
  HEDDLE_CHECK(pool.var_count() == 0);
  std::vector<Index> result;
  for (const int64_t extent : extents_) result.push_back(pool.var(pool.new_var(extent)));
  return result;
}

Index ChainAxes::index(IndexPool& pool, size_t d, const std::vector<Index>& axes) const {
  Index result;
  for (const Id axis : dims_[d]) result = pool.add(pool.scale(result, extents_[axis]), axes[axis]);
  return result;
}

bool ChainAxes::split_for(const IndexPool& pool, const Index& index) {
  constexpr size_t kMost = 24;  // axes; tensors have fewer dimensions
  for (const auto& [id, coefficient] : index.terms) {
    const Atom& atom = pool.atom(id);
    if (atom.kind != Atom::Kind::kDiv && atom.kind != Atom::Kind::kMod) continue;
    if (split_for(pool, atom.arg)) return true;
    for (const auto& [inner, times] : atom.arg.terms) {
      const Atom& var = pool.atom(inner);
      if (var.kind != Atom::Kind::kVar || var.id <= kDepth || times <= 0) continue;
      const int64_t block = atom.a / std::gcd(atom.a, times);
      const Id axis = var.id;
      if (block <= 1 || extents_[axis] <= block || extents_[axis] % block != 0 || count() >= kMost) continue;
      const Id rest = extents_.size();
      extents_.push_back(block);
      extents_[axis] /= block;
      for (auto& dim : dims_) {
        for (size_t i = 0; i < dim.size(); ++i) {
          if (dim[i] == axis) dim.insert(dim.begin() + static_cast<int64_t>(++i), rest);
        }
      }
      return true;
    }
  }
  return false;
}

std::optional<std::vector<int64_t>> strides_of(const IndexPool& pool, const Index& index) {
  std::vector<int64_t> strides(pool.var_count(), 0);
  for (const auto& [id, coefficient] : index.terms) {
    const Atom& atom = pool.atom(id);
    if (atom.kind != Atom::Kind::kVar) return std::nullopt;
    strides[atom.id] = coefficient;
  }
  return strides;
}

}  // namespace heddle::schedule
