#include <fmt/format.h>

#include "lang/ir/rules.h"

namespace heddle::lang::rules {
namespace {

std::vector<Type> operand_types(const RuleContext& c, size_t first = 0) {
  std::vector<Type> types;
  for (size_t i = first; i < c.operands(); ++i) types.push_back(c.operand(i));
  return types;
}

std::vector<Type> result_types(const RuleContext& c) {
  std::vector<Type> types;
  for (size_t i = 0; i < c.results(); ++i) types.push_back(c.result(i));
  return types;
}

// The operands are tiles of one shape; scalars of them, twice, are the arguments of the region.
void check_combination(RuleContext& c) {
  std::vector<Type> arguments, yields;
  for (size_t i = 0; i < c.operands(); ++i) {
    check_types(c, c.operand(i), kNumbers);
    if (!c.operand(i).is_tile() || c.operand(i).shape != c.operand(0).shape) {
      c.fail("its operands are tiles of one shape");
    }
    yields.push_back(c.operand(i).scalar_type());
  }
  arguments = yields;
  arguments.insert(arguments.end(), yields.begin(), yields.end());
  c.expect_region(0, arguments, yields);
  c.expect_results(c.operands());
}

// Regions that are applied to elements hold nothing that touches memory.
void expect_pure(const RuleContext& c, const Region& region) {
  for_each_op(region, [&](const Op& op) {
    const OpInfo& info = info_of(op.code);
    if (!info.has(kPure) && !info.has(kControl) && !info.has(kTerminator) && op.code != OpCode::kAssert) {
      c.fail(fmt::format("its region holds `{}`, which does more than compute", info.name));
    }
  });
}

}  // namespace

void reduce(RuleContext& c) {
  check_combination(c);
  expect_pure(c, c.op().regions[0]);
  std::vector<int64_t> shape = c.operand(0).shape;
  shape.erase(shape.begin() + c.axis(c.operand(0).rank()));
  for (size_t i = 0; i < c.results(); ++i) c.expect_result(c.operand(i).with_shape(shape), i);
}

void scan(RuleContext& c) {
  check_combination(c);
  expect_pure(c, c.op().regions[0]);
  c.axis(c.operand(0).rank());
  for (size_t i = 0; i < c.results(); ++i) c.expect_result(c.operand(i), i);
}

void map(RuleContext& c) {
  const int64_t pack = c.integer("pack", 1);
  const Type& first = c.operand(0);
  if (pack < 1 || pack > 64 || (pack > 1 && (!first.is_tile() || first.elements() % pack != 0))) {
    c.fail(fmt::format("pack = {} does not divide the elements of {}", pack, to_string(first)));
  }
  const auto repeated = [&](size_t count, const auto& type_of) {
    std::vector<Type> types;
    for (size_t i = 0; i < count; ++i) {
      const Type& type = type_of(i);
      check_types(c, type, kNumbers | ir::kPointers);
      if (type.shape != first.shape) c.fail("its operands and results have one shape");
      for (int64_t p = 0; p < pack; ++p) types.push_back(type.scalar_type());
    }
    return types;
  };
  const auto arguments = repeated(c.operands(), [&](size_t i) -> const Type& { return c.operand(i); });
  const auto yields = repeated(c.results(), [&](size_t i) -> const Type& { return c.result(i); });
  c.expect_region(0, arguments, yields);
  expect_pure(c, c.op().regions[0]);
}

void for_loop(RuleContext& c) {
  const Type& index = c.operand(0);
  if (!index.is_scalar()) c.fail("its bounds are scalars");
  check_types(c, index, ir::kInts);
  c.expect_operand(1, index);
  c.expect_operand(2, index);
  const std::vector<Type> carried = operand_types(c, 3);
  std::vector<Type> arguments = carried;
  arguments.insert(arguments.begin(), index);
  c.expect_region(0, arguments, carried);
  c.expect_results(carried.size());
  for (size_t i = 0; i < carried.size(); ++i) c.expect_result(carried[i], i);
}

void while_loop(RuleContext& c) {
  const std::vector<Type> inits = operand_types(c), carried = result_types(c);
  const Region& before = c.op().regions[0];
  if (before.arguments.size() != inits.size()) c.fail("its first region has another number of arguments");
  for (size_t i = 0; i < inits.size(); ++i) {
    if (c.type_of(before.arguments[i]) != inits[i]) c.fail("its first region has other types than its operands");
  }
  const Op& condition = c.terminator(0, OpCode::kCondition);
  if (condition.operands.size() != 1 + carried.size() ||
      c.type_of(condition.operands[0]) != Type::scalar(Element::kI1)) {
    c.fail("`condition` takes an i1 and a value for each result");
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    if (c.type_of(condition.operands[i + 1]) != carried[i]) {
      c.fail(fmt::format("`condition` hands on {}, result {} is {}", to_string(c.type_of(condition.operands[i + 1])), i,
                         to_string(carried[i])));
    }
  }
  c.expect_region(1, carried, inits);
}

void branch(RuleContext& c) {
  c.expect_operand(0, Type::scalar(Element::kI1));
  const std::vector<Type> types = result_types(c);
  c.expect_region(0, {}, types);
  c.expect_region(1, {}, types);
}

void terminator(RuleContext& c) {
  c.expect_results(0);
}

}  // namespace heddle::lang::rules
