#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/scalar/scalar.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/kernel_desc.h"

namespace heddle::codegen {

// The operands and strides that a functor needs, as members of its struct. The text refers to strides by name instead
// of by value, so that problems of different sizes share machine code.
class FunctorMembers {
 public:
  FunctorMembers(const schedule::ExprPool& pool, const std::vector<schedule::Operand>& operands)
      : pool_(pool), operands_(operands) {}

  // Call this before any use(). Makes the text address each operand relative to the smallest constant offset in
  // `stores` and in the loads of `values`, so that functors for other slices of the operands have the same text. The
  // code that fills in the members must add that offset, begin_of(operand), to their pointers.
  void begin_at_slices(const std::vector<schedule::ExprId>& values,
                       const std::vector<std::pair<uint32_t, schedule::Index>>& stores);
  // begin_of() returns the offset, in elements, of the pointer to an operand. from_begin() makes the position `at` in
  // the operand relative to that offset.
  int64_t begin_of(uint32_t operand) const;
  schedule::Index from_begin(uint32_t operand, schedule::Index at) const;

  void use_operand(uint32_t operand) { used_.insert(operand); }
  // Adds the operands that an expression loads, including loads in computed indices, and the strides of these loads.
  void use(schedule::ExprId e);
  void use(const schedule::Index& index);

  // Names of the operands ("p3") and strides ("s0") for a ScalarEmitter.
  Names names() const;
  void declare(Writer& out) const;
  // The values of the members in order: the operands first, then the strides.
  const std::set<uint32_t>& used_operands() const { return used_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  // Writes strides as literals instead of members.
  void drop_numbers() { numbers_.clear(); }
  // Writes strides as marked literals instead of members. The last member is then the array of arguments.
  void mark_numbers() {
    numbers_.clear();
    marked_ = true;
  }
  bool marked() const { return marked_; }

  // Returns the alignment, in elements, of lane 0's position in an operand whose lanes are contiguous along `lane`. The
  // alignment is the largest power of two, at most 16 bytes, that divides the position for all values of `lane` that it
  // divides.
  int alignment(uint32_t operand, const schedule::Index& at, schedule::VarId lane) const;

 private:
  void add_number(int64_t value);

  const schedule::ExprPool& pool_;
  const std::vector<schedule::Operand>& operands_;
  std::set<uint32_t> used_;
  std::map<uint32_t, int64_t> begins_;
  std::vector<int64_t> numbers_;  // in order of first use, so that names do not depend on values
  schedule::ExprWalk walk_{pool_, schedule::Follow::kAll};
  bool marked_ = false;
};

}  // namespace heddle::codegen
