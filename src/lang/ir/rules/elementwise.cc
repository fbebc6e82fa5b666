#include <fmt/format.h>

#include <cmath>

#include "lang/ir/rules.h"

namespace heddle::lang::rules {

namespace {

void check_same(RuleContext& c, unsigned types) {
  check_types(c, c.operand(0), types);
  for (size_t i = 1; i < c.operands(); ++i) c.expect_operand(i, c.operand(0));
  c.expect_results(1);
  c.expect_result(c.operand(0));
}

}  // namespace

void same_types(RuleContext& c) {
  check_same(c, ir::types_of(c.op().code));
}

void same_math(RuleContext& c) {
  check_same(c, ir::kMath);
}

void constant(RuleContext& c) {
  c.expect_results(1);
  const Type& type = c.result();
  check_types(c, type, kNumbers | ir::kPointers);
  const Attribute& value = *c.op().attributes.find("value");
  if (value.kind != Attribute::Kind::kInteger && value.kind != Attribute::Kind::kNumber) {
    c.fail("its value has to be a number");
  }
  if (is_float(type.element) && !type.pointer) return;
  if (value.kind != Attribute::Kind::kInteger) {
    c.fail(fmt::format("its value {} is no integer, its type is {}", value.number, to_string(type)));
  }
  if (type.pointer) {
    if (value.integer != 0) c.fail("a constant pointer is 0");
    return;
  }
  const int bits = bits_of(type.element);
  const bool is_signed = is_signed_int(type.element);
  bool fits = !value.beyond_signed;
  if (bits == 64) {
    fits = is_signed ? !value.beyond_signed : value.beyond_signed || value.integer >= 0;
  } else if (fits) {
    const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
    fits = value.integer >= low && value.integer <= high;
  }
  if (!fits) c.fail(fmt::format("its value {} is out of the range of {}", value.number, to_string(type.element)));
}

void program_index(RuleContext& c) {
  c.axis(3);
  c.expect_results(1);
  c.expect_result(Type::scalar(Element::kI32));
}

void compare(RuleContext& c) {
  check_types(c, c.operand(0), kNumbers | ir::kPointers);
  c.expect_operand(1, c.operand(0));
  c.expect_results(1);
  c.expect_result(c.operand(0).with_element(Element::kI1));
}

void select(RuleContext& c) {
  check_types(c, c.operand(1), kNumbers | ir::kPointers);
  c.expect_operand(0, c.operand(1).with_element(Element::kI1));
  c.expect_operand(2, c.operand(1));
  c.expect_results(1);
  c.expect_result(c.operand(1));
}

void cast(RuleContext& c) {
  c.expect_results(1);
  check_types(c, c.operand(0), kNumbers);
  check_types(c, c.result(), kNumbers);
  c.expect_result(c.operand(0).with_element(c.result().element));
}

void bitcast(RuleContext& c) {
  c.expect_results(1);
  const Type &from = c.operand(0), &to = c.result();
  check_types(c, from, kNumbers | ir::kPointers);
  check_types(c, to, kNumbers | ir::kPointers);
  const int from_bits = from.pointer ? 64 : bits_of(from.element), to_bits = to.pointer ? 64 : bits_of(to.element);
  if (from_bits != to_bits || from.shape != to.shape) {
    c.fail(fmt::format("{} has not the bits of {}", to_string(to), to_string(from)));
  }
  if (from.pointer != to.pointer && !is_int(from.pointer ? to.element : from.element)) {
    c.fail("a pointer is cast to and from integers of 64 bits");
  }
}

void addptr(RuleContext& c) {
  check_types(c, c.operand(0), ir::kPointers);
  check_types(c, c.operand(1), ir::kInts);
  c.expect_operand(1, c.operand(0).with_element(c.operand(1).element));
  c.expect_results(1);
  c.expect_result(c.operand(0));
}

void float_test(RuleContext& c) {
  check_types(c, c.operand(0), ir::kMath);
  c.expect_results(1);
  c.expect_result(c.operand(0).with_element(Element::kI1));
}

void with_integer(RuleContext& c) {
  check_types(c, c.operand(0), ir::kMath);
  c.expect_operand(1, c.operand(0).with_element(Element::kI32));
  c.expect_results(1);
  c.expect_result(c.operand(0));
}

void rounded(RuleContext& c) {
  const std::string_view function = c.op().attributes.word("function");
  const size_t wanted = function == "fma" ? 3 : function == "sqrt" || function == "rcp" || function == "cast" ? 1 : 2;
  if (c.operands() != wanted) c.fail(fmt::format("{} has {} operands, not {}", function, wanted, c.operands()));
  if (function != "cast") return same_math(c);
  c.expect_results(1);
  const Element from = c.operand(0).element, to = c.result().element;
  const bool narrows = from == Element::kF64 && to == Element::kF32;
  const bool counts = is_int(from) && bits_of(from) >= 32 && (to == Element::kF32 || to == Element::kF64);
  if (c.operand(0).pointer || (!narrows && !counts)) {
    c.fail("a cast is rounded from f64 to f32, or from integers of 32 or 64 bits to f32 or f64");
  }
  c.expect_result(c.operand(0).with_element(to));
}

void bit_count(RuleContext& c) {
  check_types(c, c.operand(0), ir::kInts);
  c.expect_results(1);
  c.expect_result(c.operand(0).with_element(Element::kI32));
}

void hint(RuleContext& c) {
  check_types(c, c.operand(0), kNumbers | ir::kPointers);
  c.expect_results(1);
  c.expect_result(c.operand(0));
  for (const char* name : {"multiple_of", "contiguous", "constancy"}) {
    const std::vector<int64_t> values = c.op().attributes.list(name);
    if (values.empty()) continue;
    if (values.size() != static_cast<size_t>(std::max(c.operand(0).rank(), 1))) {
      c.fail(fmt::format("{} has {} values, its operand has rank {}", name, values.size(), c.operand(0).rank()));
    }
    for (const int64_t value : values) {
      if (value < 1) c.fail(fmt::format("{} = {}: it has to be positive", name, value));
    }
  }
}

void no_results(RuleContext& c) {
  c.expect_results(0);
}

void assume(RuleContext& c) {
  check_types(c, c.operand(0), ir::kBooleans);
  c.expect_results(0);
}

void assertion(RuleContext& c) {
  check_types(c, c.operand(0), ir::kBooleans);
  if (c.operands() == 2) c.expect_operand(1, c.operand(0));
  c.expect_results(0);
}

void print(RuleContext& c) {
  for (size_t i = 0; i < c.operands(); ++i) check_types(c, c.operand(i), kNumbers | ir::kPointers);
  c.expect_results(0);
}

void inline_asm(RuleContext& c) {
  if (c.results() == 0) c.fail("it has a result at least");
  for (size_t i = 0; i < c.operands(); ++i) {
    check_types(c, c.operand(i), kNumbers | ir::kPointers);
    if (c.operand(i).shape != c.result().shape) c.fail("its operands and results have one shape");
  }
  for (size_t i = 1; i < c.results(); ++i) {
    if (c.result(i).shape != c.result().shape) c.fail("its operands and results have one shape");
  }
  if (c.integer("pack", 1) < 1) c.fail("pack has to be positive");
}

}  // namespace heddle::lang::rules
