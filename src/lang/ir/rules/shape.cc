#include <fmt/format.h>

#include "lang/ir/rules.h"

namespace heddle::lang::rules {
namespace {

void expect_tile(RuleContext& c, size_t i) {
  check_types(c, c.operand(i), kNumbers | ir::kPointers);
  if (!c.operand(i).is_tile()) c.fail(fmt::format("operand {} is {}, a tile is wanted", i, to_string(c.operand(i))));
}

void expect_one_shape(RuleContext& c, const std::vector<int64_t>& shape) {
  c.expect_results(1);
  c.expect_result(c.operand(0).with_shape(shape));
}

}  // namespace

void iota(RuleContext& c) {
  c.expect_results(1);
  const Type& type = c.result();
  check_types(c, type, ir::kInts);
  if (!type.is_tile() || type.rank() != 1) c.fail("its result is a tile of rank 1");
  const int bits = bits_of(type.element) - (is_signed_int(type.element) ? 1 : 0);
  const int64_t last = c.integer("start") + type.shape[0] - 1;
  if (bits < 63 && last >= (int64_t{1} << bits)) {
    c.fail(fmt::format("its last element {} is out of the range of {}", last, to_string(type.element)));
  }
}

void splat(RuleContext& c) {
  check_types(c, c.operand(0), kNumbers | ir::kPointers);
  if (!c.operand(0).is_scalar()) c.fail("its operand is a scalar");
  c.expect_results(1);
  if (!c.result().is_tile()) c.fail("its result is a tile");
  c.expect_result(c.operand(0).with_shape(c.result().shape));
}

void expand_dims(RuleContext& c) {
  expect_tile(c, 0);
  std::vector<int64_t> shape = c.operand(0).shape;
  shape.insert(shape.begin() + c.axis(c.operand(0).rank() + 1), 1);
  expect_one_shape(c, shape);
}

void broadcast(RuleContext& c) {
  expect_tile(c, 0);
  c.expect_results(1);
  const Type &from = c.operand(0), &to = c.result();
  bool fits = to.is_tile() && to.rank() == from.rank();
  for (size_t d = 0; fits && d < from.shape.size(); ++d) fits = from.shape[d] == to.shape[d] || from.shape[d] == 1;
  if (!fits) c.fail(fmt::format("{} does not become {}: extents of 1 become others", to_string(from), to_string(to)));
  expect_one_shape(c, to.shape);
}

void reshape(RuleContext& c) {
  check_types(c, c.operand(0), kNumbers | ir::kPointers);
  c.expect_results(1);
  if (c.result().is_view() || c.result().elements() != c.operand(0).elements()) {
    c.fail(fmt::format("{} has not the elements of {}", to_string(c.result()), to_string(c.operand(0))));
  }
  expect_one_shape(c, c.result().shape);
}

void permute(RuleContext& c) {
  expect_tile(c, 0);
  const std::vector<int64_t> order = c.op().attributes.list("order");
  const std::vector<int64_t>& from = c.operand(0).shape;
  std::vector<bool> seen(from.size());
  std::vector<int64_t> shape;
  for (const int64_t d : order) {
    if (d < 0 || d >= c.operand(0).rank() || seen[static_cast<size_t>(d)]) {
      c.fail("its order does not name each axis once");
    }
    seen[static_cast<size_t>(d)] = true;
    shape.push_back(from[static_cast<size_t>(d)]);
  }
  if (shape.size() != from.size()) c.fail("its order does not name each axis once");
  expect_one_shape(c, shape);
}

void join(RuleContext& c) {
  check_types(c, c.operand(0), kNumbers | ir::kPointers);
  c.expect_operand(1, c.operand(0));
  std::vector<int64_t> shape = c.operand(0).shape;
  shape.push_back(2);
  expect_one_shape(c, shape);
}

void split(RuleContext& c) {
  expect_tile(c, 0);
  std::vector<int64_t> shape = c.operand(0).shape;
  if (shape.back() != 2) c.fail(fmt::format("the last extent of {} is not 2", to_string(c.operand(0))));
  shape.pop_back();
  c.expect_results(2);
  c.expect_result(c.operand(0).with_shape(shape), 0);
  c.expect_result(c.operand(0).with_shape(shape), 1);
}

void cat(RuleContext& c) {
  expect_tile(c, 0);
  expect_tile(c, 1);
  std::vector<int64_t> shape = c.operand(0).shape;
  shape[0] = c.operand(1).shape[0];
  c.expect_operand(1, c.operand(0).with_shape(shape));
  shape[0] += c.operand(0).shape[0];
  expect_one_shape(c, shape);
}

void gather(RuleContext& c) {
  expect_tile(c, 0);
  expect_tile(c, 1);
  check_types(c, c.operand(1), ir::kInts);
  const int axis = c.axis(c.operand(0).rank());
  const Type &from = c.operand(0), &index = c.operand(1);
  bool fits = from.rank() == index.rank();
  for (int d = 0; fits && d < from.rank(); ++d) {
    fits = d == axis || from.shape[static_cast<size_t>(d)] == index.shape[static_cast<size_t>(d)];
  }
  if (!fits) {
    c.fail(fmt::format("{} and {} differ in another extent than that of axis {}", to_string(from), to_string(index),
                       axis));
  }
  expect_one_shape(c, index.shape);
}

void flip(RuleContext& c) {
  expect_tile(c, 0);
  c.axis(c.operand(0).rank());
  expect_one_shape(c, c.operand(0).shape);
}

void slice(RuleContext& c) {
  expect_tile(c, 0);
  const auto axis = static_cast<size_t>(c.axis(c.operand(0).rank()));
  std::vector<int64_t> shape = c.operand(0).shape;
  const int64_t start = c.integer("start"), size = c.integer("size");
  if (start < 0 || size < 1 || start > shape[axis] || size > shape[axis] - start) {
    c.fail(fmt::format("elements {} to {} are not within the extent {}", start, start + size, shape[axis]));
  }
  shape[axis] = size;
  expect_one_shape(c, shape);
}

void histogram(RuleContext& c) {
  expect_tile(c, 0);
  check_types(c, c.operand(0), ir::kInts);
  if (c.operand(0).rank() != 1) c.fail("its operand has rank 1");
  if (c.operands() == 2) c.expect_operand(1, c.operand(0).with_element(Element::kI1));
  c.expect_results(1);
  if (c.result().rank() != 1 || c.result() != Type::tile(c.result().shape, Element::kI32)) {
    c.fail("its result is a tile of rank 1 of i32, an element for each bin");
  }
}

void sort(RuleContext& c) {
  expect_tile(c, 0);
  check_types(c, c.operand(0), kNumbers);
  c.axis(c.operand(0).rank());
  expect_one_shape(c, c.operand(0).shape);
}

}  // namespace heddle::lang::rules
