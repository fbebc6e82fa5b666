#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::schedule {

using VarId = uint32_t;   // a loop variable of a kernel
using AtomId = uint32_t;  // an indivisible term of an index, interned in an IndexPool
using ExprId = uint32_t;  // a scalar expression, interned in an ExprPool

// An integer expression over loop variables in canonical form: constant + sum of coefficient * atom. Atoms are in
// ascending order and no coefficient is zero. Two indices of one pool that compare equal denote the same function.
struct Index {
  int64_t constant = 0;
  std::vector<std::pair<AtomId, int64_t>> terms;

  bool is_constant() const { return terms.empty(); }
  auto operator<=>(const Index&) const = default;
};

struct Range {
  int64_t lo, hi;  // inclusive
};

struct Atom {
  enum class Kind : uint8_t {
    kVar,      // loop variable number `id`
    kDiv,      // floor(arg / a)
    kMod,      // arg - a * floor(arg / a)
    kClamp,    // arg limited to [a, b]
    kReflect,  // arg reflected at both ends into [0, a), without repeating the end elements
    kDynamic,  // the integer value of expression `id`, clamped to [0, a); a negative one counts from the end a;
               // b = 1: known to be in range
  };
  Kind kind;
  uint32_t id = 0;
  int64_t a = 0, b = 0;
  Index arg;
  Range range{0, 0};
  uint32_t size = 1;          // number of nodes in its text, without sharing; saturated
  bool reads_values = false;  // true if a dynamic atom is part of it
};

// Index algebra. Every operation simplifies its result by the known ranges of the atoms, so that chains of reshapes,
// slices and transposes become plain strides wherever possible.
class IndexPool {
 public:
  // Creates a variable with values in [0, extent). Requires extent >= 1.
  VarId new_var(int64_t extent);
  int64_t extent(VarId var) const { return extents_[var]; }
  size_t var_count() const { return extents_.size(); }
  // True if each id denotes equal atoms and variables in both pools.
  bool same_as(const IndexPool& other) const { return extents_ == other.extents_ && interned_ == other.interned_; }

  static Index constant(int64_t value) { return {value, {}}; }
  Index var(VarId id);
  // The variable restricted to `range`, for a loop over a subrange.
  Index var(VarId id, Range range);
  Index add(const Index& a, const Index& b);
  Index scale(const Index& a, int64_t factor);
  Index offset(const Index& a, int64_t value);
  Index div(const Index& a, int64_t divisor);  // divisor >= 1
  Index mod(const Index& a, int64_t divisor);
  Index clamp(const Index& a, int64_t lo, int64_t hi);
  Index reflect(const Index& a, int64_t extent);
  // `inside` states that the value is known to be in [0, extent).
  Index dynamic(ExprId value, int64_t extent, bool inside = false);

  // Convert between indices of a tensor of this shape and its row-major linear position.
  Index linear(std::span<const Index> at, const Shape& shape);
  std::vector<Index> delinear(const Index& position, const Shape& shape);

  Range range(const Index& a) const;
  // States that outer * stride + inner is below `end` in every use, although the extents of the variables allow more.
  void limit(VarId outer, int64_t stride, VarId inner, int64_t end);
  // Returns a number that divides the index for all values of its variables. `multiples` gives known divisors of some
  // variables. The result is 0 if the index is always 0.
  int64_t divisor(const Index& a, const std::map<VarId, int64_t>& multiples) const;
  const Atom& atom(AtomId id) const { return atoms_[id]; }
  size_t atom_count() const { return atoms_.size(); }
  bool reads_values(AtomId id) const { return atoms_[id].reads_values; }
  bool reads_values(const Index& a) const;
  // Returns the number of atoms in the text of an index. Repeated atoms are counted each time. The number saturates.
  uint32_t size(const Index& a) const;
  // Replaces variables as in `with`, and replaces the expressions of dynamic atoms by the results of `expr`.
  Index substitute(const Index& a, const std::map<VarId, Index>& with, const std::function<ExprId(ExprId)>& expr);

 private:
  AtomId intern(Atom atom);
  void add_term(Index& to, AtomId atom, int64_t coefficient);
  Index merge_div_mod(Index a);
  std::optional<std::tuple<int64_t, Index, Index>> split_off(const Index& a, int64_t k) const;
  Index of_atom(Atom atom) { return {0, {{intern(std::move(atom)), 1}}}; }

  struct Limit {
    AtomId outer, inner;
    int64_t stride, end;
  };

  using Key = std::tuple<Atom::Kind, uint32_t, int64_t, int64_t, Index, int64_t, int64_t>;
  std::vector<int64_t> extents_;
  std::optional<Limit> limit_;
  std::vector<Atom> atoms_;
  std::map<Key, AtomId> interned_;
};

}  // namespace heddle::schedule
