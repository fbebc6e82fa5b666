#pragma once

#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Who defines and who uses each value of a kernel, and in which order ops stand: an op has a smaller number than the
// ops of its regions, and these than what follows.
class Uses {
 public:
  explicit Uses(const Kernel& kernel);

  const Op* definer(ValueId value) const { return at(definers_, value); }  // null: an argument or a parameter
  const std::vector<const Op*>& users(ValueId value) const { return at(users_, value); }
  int order(const Op& op) const;
  int ops() const { return count_; }                                         // of all regions
  const Region* region(ValueId value) const { return at(regions_, value); }  // that has its definition

 private:
  template <typename T>
  static const T& at(const std::vector<T>& list, ValueId value) {
    return list[static_cast<size_t>(value)];
  }
  void visit(const Region& region);

  std::vector<const Op*> definers_;
  std::vector<std::vector<const Op*>> users_;
  std::vector<const Region*> regions_;
  std::vector<std::pair<const Op*, int>> orders_;  // by address
  int count_ = 0;
};

// Whether the value is a zero that is known, or a tile of them.
bool is_zero(const Uses& uses, ValueId value);

// Whether an op in the region, however deep, has one of these traits.
bool has_trait(const Region& region, unsigned traits);

}  // namespace heddle::lang
