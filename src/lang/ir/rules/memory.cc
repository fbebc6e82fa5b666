#include <fmt/format.h>

#include "lang/ir/rules.h"

namespace heddle::lang::rules {
namespace {

Type pointee(RuleContext& c) {
  check_types(c, c.operand(0), ir::kPointers);
  return c.operand(0).with_element(c.operand(0).element);
}

void expect_offsets(RuleContext& c, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (!c.operand(i).is_scalar() || c.operand(i).pointer ||
        (c.operand(i).element != Element::kI32 && c.operand(i).element != Element::kI64)) {
      c.fail(fmt::format("operand {} is {}, i32 or i64 is wanted", i, to_string(c.operand(i))));
    }
  }
}

// The view of operand 0, with one offset per axis behind it and `more` operands behind these.
const Type& view_with_offsets(RuleContext& c, size_t more) {
  const Type& view = c.operand(0);
  if (!view.is_view()) c.fail(fmt::format("operand 0 is {}, a view is wanted", to_string(view)));
  const size_t rank = view.shape.size();
  if (c.operands() != 1 + rank + more) {
    c.fail(fmt::format("it has {} operands, a view of rank {} wants {}", c.operands(), rank, 1 + rank + more));
  }
  expect_offsets(c, 1, rank);
  for (const int64_t d : c.op().attributes.list("check")) {
    if (d < 0 || d >= view.rank()) c.fail(fmt::format("check names {}, which is no axis of the view", d));
  }
  return view;
}

const Type& row_view(RuleContext& c) {
  const Type& view = c.operand(0);
  if (!view.is_view() || view.rank() != 2 || view.shape[0] != 1) {
    c.fail(fmt::format("operand 0 is {}, a view of one row is wanted", to_string(view)));
  }
  const Type& rows = c.operand(1);
  if (rows != Type::tile(rows.shape, Element::kI32) || rows.rank() != 1) {
    c.fail("operand 1 holds the rows: a tile of rank 1 of i32");
  }
  expect_offsets(c, 2, 1);
  return view;
}

void check_atomic_kind(RuleContext& c, const Type& value) {
  const std::string_view kind = c.op().attributes.word("kind");
  const bool bitwise = kind == "and" || kind == "or" || kind == "xor";
  const bool ordering = kind == "min" || kind == "max";
  if (value.element == Element::kI1 || is_float8(value.element) || (bitwise && !is_int(value.element)) ||
      (ordering && is_float(value.element) && value.element != Element::kF32 && value.element != Element::kF64)) {
    c.fail(fmt::format("{} of {} is not atomic", kind, to_string(value.element)));
  }
}

}  // namespace

void load(RuleContext& c) {
  const Type value = pointee(c);
  if (c.operands() > 1) c.expect_operand(1, value.with_element(Element::kI1));
  if (c.operands() > 2) c.expect_operand(2, value);
  c.expect_results(1);
  c.expect_result(value);
}

void store(RuleContext& c) {
  const Type value = pointee(c);
  c.expect_operand(1, value);
  if (c.operands() > 2) c.expect_operand(2, value.with_element(Element::kI1));
  c.expect_results(0);
}

void atomic_rmw(RuleContext& c) {
  const Type value = pointee(c);
  c.expect_operand(1, value);
  if (c.operands() > 2) c.expect_operand(2, value.with_element(Element::kI1));
  check_atomic_kind(c, value);
  c.expect_results(1);
  c.expect_result(value);
}

void atomic_cas(RuleContext& c) {
  const Type value = pointee(c);
  c.expect_operand(1, value);
  c.expect_operand(2, value);
  if (bits_of(value.element) < 16) c.fail("compare and swap wants 16, 32 or 64 bits");
  c.expect_results(1);
  c.expect_result(value);
}

void make_view(RuleContext& c) {
  c.expect_results(1);
  const Type& view = c.result();
  if (!view.is_view()) c.fail("its result is a view");
  c.expect_operand(0, Type::pointer_to(view.element));
  const size_t rank = view.shape.size();
  if (c.operands() != 1 + 2 * rank) {
    c.fail(fmt::format("it has {} operands, a view of rank {} wants {}: base, sizes, strides", c.operands(), rank,
                       1 + 2 * rank));
  }
  expect_offsets(c, 1, 2 * rank);
}

void load_view(RuleContext& c) {
  const Type& view = view_with_offsets(c, 0);
  c.expect_results(1);
  c.expect_result(Type::tile(view.shape, view.element));
}

void store_view(RuleContext& c) {
  const Type& view = view_with_offsets(c, 1);
  c.expect_operand(c.operands() - 1, Type::tile(view.shape, view.element));
  c.expect_results(0);
}

void atomic_view(RuleContext& c) {
  store_view(c);
  check_atomic_kind(c, c.operand(c.operands() - 1));
}

void gather_view(RuleContext& c) {
  const Type& view = row_view(c);
  c.expect_results(1);
  c.expect_result(Type::tile({c.operand(1).shape[0], view.shape[1]}, view.element));
}

void scatter_view(RuleContext& c) {
  const Type& view = row_view(c);
  c.expect_operand(3, Type::tile({c.operand(1).shape[0], view.shape[1]}, view.element));
  c.expect_results(0);
}

}  // namespace heddle::lang::rules
