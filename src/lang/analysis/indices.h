#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lang/analysis/polynomial.h"
#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

// What indices are: scalars as sums of products, tiles as affine functions of their elements' places. Arithmetic on
// signed indices is taken not to overflow: what overflowed would point nowhere.
namespace heddle::lang {

// An index along a dimension that begins anew: (start + i) % size.
struct Wrap {
  Polynomial start, size;
  bool operator==(const Wrap&) const = default;
};

// Elements of a tile of integers: base + the sum of strides[d] * i[d]; with a wrap strides[d] * ((start + i[d]) % size)
// in place of strides[d] * (start + i[d]), the start's part of which is in the base.
struct AffineTile {
  Polynomial base;
  std::vector<Polynomial> strides;
  std::vector<std::optional<Wrap>> wraps;  // as many

  explicit AffineTile(Polynomial base, size_t rank = 0) : base(std::move(base)), strides(rank), wraps(rank) {}
};

class IndexAnalysis {
 public:
  explicit IndexAnalysis(const Kernel& kernel);

  // A scalar integer as a sum of products of others. What a `for` carries and moves by the same amount in each trip is
  // seen as what it begins with and so many times the amount.
  Polynomial polynomial(ValueId scalar) const;
  // Nothing where the elements are of another form.
  std::optional<AffineTile> affine(ValueId tile) const;
  const Uses& uses() const { return uses_; }

 protected:
  // The operand of an expand_dims, broadcast, permute or slice as its result.
  static std::optional<AffineTile> reshaped(const Op& op, AffineTile tile, const std::vector<int64_t>& from);
  static bool is_shape_op(OpCode code);
  // `b` times `sign` is added; a wrap that both have in one dimension moves as one. False: two wraps differ.
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

  std::unordered_map<ValueId, std::pair<const Op*, size_t>> carried_;  // argument: its `for`, and which it is there
  mutable std::set<ValueId> open_;                                     // arguments that stand for themselves
  struct Known {
    std::unordered_map<ValueId, Polynomial> scalars;
    std::unordered_map<ValueId, std::optional<AffineTile>> tiles;
  };
  mutable Known known_;  // each value is looked at once, however many ways lead to it
};

}  // namespace heddle::lang
