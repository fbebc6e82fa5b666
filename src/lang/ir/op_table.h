#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace heddle::lang {

using OpCode = ir::Op;

enum Trait : unsigned {
  kPure = 1,         // has no effect except its results
  kElementwise = 2,  // element i of the results depends only on element i of the operands
  kReads = 4,        // reads memory
  kWrites = 8,
  kEffect = 16,  // visible outside of the program, or ordered with memory accesses
  kControl = 32,
  kTerminator = 64,
};

// An attribute that an operation may have.
struct AttributeInfo {
  enum class Kind : uint8_t { kInt, kList, kNumber, kValue, kString, kWord };
  std::string_view name;
  Kind kind;
  bool needed;
  std::vector<std::string_view> words;
};

class RuleContext;
using Rule = void (*)(RuleContext&);  // checks the types of one op

// The form of an op in the tile IR. An op that is not in the tile IR has no rule.
struct OpInfo {
  std::string_view name;
  int least_operands = 0, most_operands = 0;  // most_operands = -1: any number
  int regions = 0;
  unsigned traits = 0;
  std::vector<AttributeInfo> attributes;
  Rule rule = nullptr;

  bool has(Trait trait) const { return (traits & trait) != 0; }
};

const OpInfo& info_of(OpCode code);
std::optional<OpCode> parse_op(std::string_view name);
// The names of all ops, for "did you mean" hints.
const std::vector<std::string_view>& op_names();

}  // namespace heddle::lang
