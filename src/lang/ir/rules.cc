#include "lang/ir/rules.h"

#include <fmt/format.h>

#include "base/check.h"

namespace heddle::lang {

void fail_at(const Kernel& kernel, const Op& op, std::string why) {
  std::string where = kernel.place(op.frame);
  if (!where.empty()) where += ": ";
  where += fmt::format("`{}`", to_string(op.code));
  if (op.text_line > 0) where += fmt::format(" at line {}, column {} of the tile IR", op.text_line, op.text_column);
  heddle::fail(ErrorCode::kInvalidIr, where, std::move(why), "docs/design/tile-language.md describes the tile IR");
}

void RuleContext::fail(std::string why) const {
  fail_at(kernel_, op_, std::move(why));
}

void RuleContext::expect_results(size_t count) const {
  if (results() != count) fail(fmt::format("it has {} results, {} are declared", count, results()));
}

void RuleContext::expect_operand(size_t i, const Type& type) const {
  if (operand(i) != type) {
    fail(fmt::format("operand {} is {} of type {}, it has to be {}", i, kernel_.value_name(op_.operands[i]),
                     to_string(operand(i)), to_string(type)));
  }
}

void RuleContext::expect_result(const Type& type, size_t i) const {
  if (i >= results() || result(i) != type) {
    fail(fmt::format("result {} is {}, {} is declared", i, to_string(type),
                     i < results() ? to_string(result(i)) : "nothing"));
  }
}

int RuleContext::axis(int rank, std::string_view name) const {
  const int64_t value = integer(name);
  if (value < 0 || value >= rank) fail(fmt::format("{} = {} is no axis of a tile of rank {}", name, value, rank));
  return static_cast<int>(value);
}

const Op& RuleContext::terminator(size_t region, OpCode code) const {
  const Region& r = op_.regions[region];
  if (r.ops.empty() || r.ops.back().code != code) {
    fail(fmt::format("region {} ends without `{}`", region, to_string(code)));
  }
  return r.ops.back();
}

void RuleContext::expect_region(size_t i, const std::vector<Type>& arguments, const std::vector<Type>& yields) const {
  const Region& region = op_.regions[i];
  if (region.arguments.size() != arguments.size()) {
    fail(fmt::format("region {} has {} arguments, it gets {}", i, region.arguments.size(), arguments.size()));
  }
  for (size_t a = 0; a < arguments.size(); ++a) {
    const Type& declared = kernel_.type(region.arguments[a]);
    if (declared != arguments[a]) {
      fail(fmt::format("argument {} of region {} is declared as {}, it gets {}",
                       kernel_.value_name(region.arguments[a]), i, to_string(declared), to_string(arguments[a])));
    }
  }
  const Op& end = terminator(i, OpCode::kYield);
  if (end.operands.size() != yields.size()) {
    fail_at(kernel_, end, fmt::format("it yields {} values, {} are wanted", end.operands.size(), yields.size()));
  }
  for (size_t y = 0; y < yields.size(); ++y) {
    const Type& given = kernel_.type(end.operands[y]);
    if (given != yields[y]) {
      fail_at(kernel_, end,
              fmt::format("value {} is {} of type {}, {} is wanted", y, kernel_.value_name(end.operands[y]),
                          to_string(given), to_string(yields[y])));
    }
  }
}

namespace rules {

void check_types(RuleContext& c, const Type& type, unsigned types) {
  using namespace ir;
  const Element e = type.element;
  bool fits = false;
  if (type.is_view()) {
    fits = false;
  } else if (type.pointer) {
    fits = (types & kPointers) != 0;
  } else if (e == Element::kI1) {
    fits = (types & (kBooleans | kBits)) != 0;
  } else if (is_int(e)) {
    fits = (types & kInts) != 0;
  } else {
    fits = (types & kFloats) != 0 || ((types & kMath) != 0 && (e == Element::kF32 || e == Element::kF64));
  }
  if (!fits) c.fail(fmt::format("{} is a type that it does not take", to_string(type)));
}

}  // namespace rules
}  // namespace heddle::lang
