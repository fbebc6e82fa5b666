#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lang/analysis/polynomial.h"
#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

// Symbolic form of indices: scalars as sums of products, tiles as affine functions of element positions. Signed index
// arithmetic is assumed not to overflow, since an overflowed index would point nowhere.
namespace heddle::lang {

// An index along a dimension that wraps around: (start + i) % size.
struct Wrap {
  Polynomial start, size;
  bool operator==(const Wrap&) const = default;
};

// Elements of a tile of integers: base + the sum of strides[d] * i[d]. With a wrap, the term is strides[d] * ((start +
// i[d]) % size) in place of strides[d] * (start + i[d]), whose part strides[d] * start is in the base.
struct AffineTile {
  Polynomial base;
  std::vector<Polynomial> strides;
  std::vector<std::optional<Wrap>> wraps;  // one per stride

  explicit AffineTile(Polynomial base, size_t rank = 0) : base(std::move(base)), strides(rank), wraps(rank) {}
};

class IndexAnalysis {
 public:
  explicit IndexAnalysis(const Kernel& kernel);

  // A scalar integer as a sum of products of other scalars. A value that a `for` carries and advances by the same
  // amount in each iteration is its initial value plus the iteration count times that amount.
  Polynomial polynomial(ValueId scalar) const;
  // nullopt if the elements do not have this form.
  std::optional<AffineTile> affine(ValueId tile) const;
  const Uses& uses() const { return uses_; }

 protected:
  // The affine form of the result of an expand_dims, broadcast, permute or slice, from that of its operand.
  static std::optional<AffineTile> reshaped(const Op& op, AffineTile tile, const std::vector<int64_t>& from);
  static bool is_shape_op(OpCode code);
  // Adds `b` times `sign`. If both have the same wrap in a dimension, the sum keeps it. Returns false if two wraps
  // differ.
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

  std::unordered_map<ValueId, std::pair<const Op*, size_t>> carried_;  // argument: its `for`, and its position there
  mutable std::set<ValueId> open_;                                     // arguments that represent themselves
  struct Known {
    std::unordered_map<ValueId, Polynomial> scalars;
    std::unordered_map<ValueId, std::optional<AffineTile>> tiles;
  };
  mutable Known known_;  // each value is analysed once, however many paths lead to it
};

}  // namespace heddle::lang
