#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lang/analysis/polynomial.h"
#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

// The symbolic form of indices: a scalar is a sum of products, a tile is an affine function of its element positions.
// Signed index arithmetic is assumed not to overflow, since an overflowed index would be out of range anyway.
namespace heddle::lang {

// An index that wraps around along a dimension: (start + i) % size.
struct Wrap {
  Polynomial start, size;
  bool operator==(const Wrap&) const = default;
};

// The elements of a tile of integers: base + the sum of strides[d] * i[d]. In a dimension with a wrap, the base
// contains strides[d] * start. The term strides[d] * (start + i[d]) is then replaced by strides[d] * ((start + i[d]) %
// size).
struct AffineTile {
  Polynomial base;
  std::vector<Polynomial> strides;
  std::vector<std::optional<Wrap>> wraps;  // one per stride

  explicit AffineTile(Polynomial base, size_t rank = 0) : base(std::move(base)), strides(rank), wraps(rank) {}
};

class IndexAnalysis {
 public:
  explicit IndexAnalysis(const Kernel& kernel);

  // A scalar integer as a sum of products of other scalars. If a `for` advances a loop-carried value by the same amount
  // in each iteration, the value becomes its initial value plus the iteration number times the amount.
  Polynomial polynomial(ValueId scalar) const;
  // The affine form of a tile of integers. nullopt if the tile has no such form.
  std::optional<AffineTile> affine(ValueId tile) const;
  const Uses& uses() const { return uses_; }

 protected:
  // The affine form of the result of `op` (an expand_dims, broadcast, permute or slice). `tile` and `from` are the form
  // and the shape of the operand.
  static std::optional<AffineTile> reshaped(const Op& op, AffineTile tile, const std::vector<int64_t>& from);
  static bool is_shape_op(OpCode code);
  // Adds sign * b to `to`. If only one of the two tiles varies along a dimension, the sum has the wrap of that tile in
  // this dimension. Returns false if both tiles vary along a dimension in which their wraps differ.
  static bool add(AffineTile& to, const AffineTile& b, const Polynomial& sign);

  const Kernel& kernel_;
  const Uses uses_;

 private:
  template <typename Made, typename Make>
  void operands_first(ValueId value, const Made& known, const Make& make) const;
  Polynomial make_polynomial(ValueId scalar) const;
  std::optional<AffineTile> make_affine(ValueId tile) const;
  std::optional<AffineTile> elementwise(const Op& op) const;
  std::optional<AffineTile> remainder(const Op& op) const;
  std::optional<Polynomial> carried(ValueId argument) const;

  std::unordered_map<ValueId, std::pair<const Op*, size_t>> carried_;  // by argument: its `for` and its position there
  mutable std::set<ValueId> open_;                                     // values under analysis; each stands for itself
  struct Known {
    std::unordered_map<ValueId, Polynomial> scalars;
    std::unordered_map<ValueId, std::optional<AffineTile>> tiles;
  };
  mutable Known known_;  // so that each value is analysed only once
};

}  // namespace heddle::lang
