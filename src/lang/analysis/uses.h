#pragma once

#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The definition and the users of each value of a kernel, and a numbering of its ops. Ops are numbered in pre-order: an
// op, then the ops of its regions, then the next op.
class Uses {
 public:
  explicit Uses(const Kernel& kernel);

  const Op* definer(ValueId value) const { return at(definers_, value); }  // null: an argument or a parameter
  const std::vector<const Op*>& users(ValueId value) const { return at(users_, value); }
  int order(const Op& op) const;
  int ops() const { return count_; }                                         // the number of ops in all regions
  const Region* region(ValueId value) const { return at(regions_, value); }  // the region that defines the value

 private:
  template <typename T>
  static const T& at(const std::vector<T>& list, ValueId value) {
    return list[static_cast<size_t>(value)];
  }
  void visit(const Region& region);

  std::vector<const Op*> definers_;
  std::vector<std::vector<const Op*>> users_;
  std::vector<const Region*> regions_;
  std::vector<std::pair<const Op*, int>> orders_;  // sorted by address
  int count_ = 0;
};

// True if the value is known to be zero or a tile of zeros.
bool is_zero(const Uses& uses, ValueId value);

// True if any op in the region, at any nesting depth, has one of these traits.
bool has_trait(const Region& region, unsigned traits);

}  // namespace heddle::lang
