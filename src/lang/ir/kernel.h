#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/ir/op_table.h"
#include "lang/ir/type.h"

// The tile IR: a kernel in static single assignment form, with regions for loops and branches.
// docs/design/tile-language.md describes the textual form and the meaning of every operation.
namespace heddle::lang {

// An index into Kernel::values.
using ValueId = int32_t;

struct Value {
  Type type;
  std::string name;  // without the leading %; "": the value is printed as a number
};

// The value of an attribute. In the text, attributes are in braces after the operands.
struct Attribute {
  enum class Kind : uint8_t { kInteger, kNumber, kWord, kString, kList };
  Kind kind = Kind::kInteger;
  int64_t integer = 0;         // the low 64 bits
  bool beyond_signed = false;  // the integer is a u64 above the maximum of int64_t; `integer` has its bits
  double number = 0;           // the value as a double; set for integers, too
  std::string text;
  std::vector<int64_t> list;

  static Attribute of(int64_t value) { return {Kind::kInteger, value, false, static_cast<double>(value), {}, {}}; }
  static Attribute of_number(double value) { return {Kind::kNumber, 0, false, value, {}, {}}; }
  static Attribute word(std::string value) { return {Kind::kWord, 0, false, 0, std::move(value), {}}; }
  static Attribute string(std::string value) { return {Kind::kString, 0, false, 0, std::move(value), {}}; }
  static Attribute of(std::vector<int64_t> value) { return {Kind::kList, 0, false, 0, {}, std::move(value)}; }
};

class Attributes {
 public:
  const Attribute* find(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  std::string_view word(std::string_view name, std::string_view otherwise = "") const;
  std::vector<int64_t> list(std::string_view name) const;  // empty if absent
  void set(std::string name, Attribute value);
  const std::vector<std::pair<std::string, Attribute>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, Attribute>> all_;
};

// A location in the user's source files. The location of inlined code has the location of the call as its caller.
struct Frame {
  int file = 0, line = 0, column = 0;
  int caller = -1;  // index into Kernel::frames; -1: not inlined
};

struct Op;

struct Region {
  std::vector<ValueId> arguments;
  std::vector<Op> ops;  // the last one is a terminator: yield or condition
};

struct Op {
  OpCode code = OpCode::kBarrier;
  std::vector<ValueId> operands, results;
  Attributes attributes;
  std::vector<Region> regions;
  int frame = -1;                      // index into Kernel::frames; -1: unknown
  int text_line = 0, text_column = 0;  // position in the text from which the op was parsed
};

// A comparison by `lt`, `le`, `gt` or `ge` as an order of its operands: smaller < larger if strict, else smaller <=
// larger. order_of() returns nullopt for other ops.
struct Order {
  ValueId smaller, larger;
  bool strict;
};
std::optional<Order> order_of(const Op& op);

// A kernel. A text contains exactly one kernel.
struct Kernel {
  struct Parameter {
    ValueId value = 0;
    Attributes attributes;  // for example divisible = 16
  };

  std::string name;
  std::vector<std::string> files;
  std::vector<Frame> frames;
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  Attributes attributes;  // for example num_warps, num_stages
  Region body;            // no arguments; ends without a terminator

  const Type& type(ValueId value) const { return values[static_cast<size_t>(value)].type; }
  ValueId add_value(Type type, std::string name = {});
  std::string value_name(ValueId value) const;  // "%acc"
  // The source location of a frame: "softmax.py:7", followed by " called from softmax.py:20" if the code was inlined.
  // "" if unknown.
  std::string place(int frame) const;
  // The source location of a frame without its callers, "softmax.py:7". For comments in generated text.
  std::string short_place(int frame) const;
};

// Calls f(op) for each op, including the ops of nested regions. An op precedes the ops of its regions.
template <typename F>
void for_each_op(const Region& region, const F& f) {
  for (const Op& op : region.ops) {
    f(op);
    for (const Region& inner : op.regions) for_each_op(inner, f);
  }
}

}  // namespace heddle::lang
