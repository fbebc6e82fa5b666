#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The op whose types are being checked.
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

  // Throws kInvalidIr at the op.
  [[noreturn]] void fail(std::string why) const;
  void expect_results(size_t count) const;
  void expect_operand(size_t i, const Type& type) const;
  void expect_result(const Type& type, size_t i = 0) const;
  // The axis in attribute `name`, which must be below `rank`.
  int axis(int rank, std::string_view name = "axis") const;
  // Region i must take values of the types `arguments` and yield values of the types `yields`.
  void expect_region(size_t i, const std::vector<Type>& arguments, const std::vector<Type>& yields) const;
  const Op& terminator(size_t region, OpCode code) const;

 private:
  const Kernel& kernel_;
  const Op& op_;
};

[[noreturn]] void fail_at(const Kernel& kernel, const Op& op, std::string why);

namespace rules {

// Classes of elements.
inline constexpr unsigned kBooleans = 1, kInts = 2, kFloats = 4, kMath = 8 /* f32, f64 */, kPointers = 16;
inline constexpr unsigned kNumbers = kBooleans | kInts | kFloats;
void check_class(RuleContext& c, const Type& type, unsigned classes);

// All operands and the result must have the same type, of one of these classes.
void same_types(RuleContext& c, unsigned classes);
template <unsigned kClasses>
void same(RuleContext& c) {
  same_types(c, kClasses);
}

#define HEDDLE_TILE_RULES(RULE)                                                                                        \
  RULE(constant)                                                                                                       \
  RULE(program_index)                                                                                                  \
  RULE(compare)                                                                                                        \
  RULE(select)                                                                                                         \
  RULE(cast) RULE(bitcast) RULE(addptr) RULE(float_test) RULE(with_integer) RULE(rounded) RULE(bit_count) RULE(iota)   \
      RULE(splat) RULE(expand_dims) RULE(broadcast) RULE(reshape) RULE(permute) RULE(join) RULE(split) RULE(cat)       \
          RULE(gather) RULE(flip) RULE(slice) RULE(load) RULE(store) RULE(atomic_rmw) RULE(atomic_cas) RULE(make_view) \
              RULE(load_view) RULE(store_view) RULE(atomic_view) RULE(gather_view) RULE(scatter_view) RULE(dot)        \
                  RULE(dot_scaled) RULE(reduce) RULE(scan) RULE(sort) RULE(histogram) RULE(map) RULE(for_loop)         \
                      RULE(while_loop) RULE(branch) RULE(terminator) RULE(assertion) RULE(print) RULE(no_results)      \
                          RULE(assume) RULE(hint) RULE(inline_asm)
#define HEDDLE_TILE_RULE(name) void name(RuleContext& c);
HEDDLE_TILE_RULES(HEDDLE_TILE_RULE)
#undef HEDDLE_TILE_RULE
#undef HEDDLE_TILE_RULES

}  // namespace rules
}  // namespace heddle::lang
