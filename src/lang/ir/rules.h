#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The op that is being checked. The rules below check the types of the op's operands and results.
class RuleContext {
 public:
  RuleContext(const Kernel& kernel, const Op& op) : kernel_(kernel), op_(op) {}

  const Op& op() const { return op_; }
  size_t operands() const { return op_.operands.size(); }
  const Type& operand(size_t i) const { return kernel_.type(op_.operands[i]); }
  size_t results() const { return op_.results.size(); }
  const Type& result(size_t i = 0) const { return kernel_.type(op_.results[i]); }
  int64_t integer(std::string_view name, int64_t otherwise = 0) const {
    return op_.attributes.integer(name, otherwise);
  }
  const Type& type_of(ValueId value) const { return kernel_.type(value); }

  // Throws kInvalidIr with the location of the op.
  [[noreturn]] void fail(std::string why) const;
  void expect_results(size_t count) const;
  void expect_operand(size_t i, const Type& type) const;
  void expect_result(const Type& type, size_t i = 0) const;
  // Returns the axis that attribute `name` contains. Fails unless the axis is at least 0 and below `rank`.
  int axis(int rank, std::string_view name = "axis") const;
  // Checks that region i has arguments of the types `arguments` and yields values of the types `yields`.
  void expect_region(size_t i, const std::vector<Type>& arguments, const std::vector<Type>& yields) const;
  const Op& terminator(size_t region, OpCode code) const;

 private:
  const Kernel& kernel_;
  const Op& op_;
};

[[noreturn]] void fail_at(const Kernel& kernel, const Op& op, std::string why);

namespace rules {

inline constexpr unsigned kNumbers = ir::kBooleans | ir::kInts | ir::kFloats;
// Checks that the type is one of `types` (ir::OpTypes).
void check_types(RuleContext& c, const Type& type, unsigned types);

#define HEDDLE_TILE_OP(enumerator, name, least, most, regions, traits, attributes, rule) void rule(RuleContext& c);
#define HEDDLE_TILE_FORM(enumerator, least, most, regions, traits, attributes, rule) void rule(RuleContext& c);
#include "ir/ops.def"

}  // namespace rules
}  // namespace heddle::lang
