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

// The operands and strides that a functor needs, as members of its struct: its text names strides, so that problems of
// different sizes share machine code.
class FunctorMembers {
 public:
  FunctorMembers(const schedule::ExprPool& pool, const std::vector<schedule::Operand>& operands)
      : pool_(pool), operands_(operands) {}

  // Before any use(): the text reads and writes an operand from the first element on that a constant part of `stores`
  // or of a load in `values` names, so that functors of other slices have the same text. Where that is, whoever fills
  // in the members adds to their pointers.
  void begin_at_slices(const std::vector<schedule::ExprId>& values,
                       const std::vector<std::pair<uint32_t, schedule::Index>>& stores);
  // Where the pointer to an operand begins, in elements, and a position in the operand from there.
  int64_t begin_of(uint32_t operand) const;
  schedule::Index from_begin(uint32_t operand, schedule::Index at) const;

  void use_operand(uint32_t operand) { used_.insert(operand); }
  // The operands that an expression loads, through computed indices too, and the strides of those loads.
  void use(schedule::ExprId e);
  void use(const schedule::Index& index);

  // Names of the operands ("p3") and strides ("s0") for a ScalarEmitter.
  Names names() const;
  void declare(Writer& out) const;
  // The values of the members, in order: operands first.
  const std::set<uint32_t>& used_operands() const { return used_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  // Strides are literals instead.
  void drop_numbers() { numbers_.clear(); }
  // Numbers get marks instead; the last member is the array of arguments.
  void mark_numbers() {
    numbers_.clear();
    marked_ = true;
  }
  bool marked() const { return marked_; }

  // The largest power of two, at most 16 bytes long, that divides the position of lane 0 in an operand whose lanes lie
  // side by side along `lane`, as long as that variable is a multiple of it: in elements.
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
