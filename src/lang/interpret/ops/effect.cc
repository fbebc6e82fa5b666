#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "lang/interpret/environment.h"

namespace heddle::lang {
namespace {

std::string number_text(const Type& type, Cell value, bool hex) {
  const auto bits = static_cast<uint64_t>(value.i);
  if (type.pointer) return fmt::format("0x{:x}", bits);
  if (hex)
    return fmt::format("0x{:0{}x}",
                       encode(type.element, value) & (~uint64_t{0} >> (64 - std::max(bits_of(type.element), 8))),
                       size_of(type.element) * 2);
  if (is_float(type.element)) return fmt::format("{:f}", value.f);
  if (type.element == Element::kU64) return fmt::format("{}", bits);
  return fmt::format("{}", value.i);
}

// Coordinates of an element, each as wide as the largest of its axis.
std::string coordinates(const std::vector<int64_t>& shape, int64_t element) {
  std::vector<std::string> parts(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const size_t width = fmt::format("{}", shape[d] - 1).size();
    parts[d] = fmt::format("{:>{}}", element % shape[d], width);
    element /= shape[d];
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print(Environment& env, const Op& op) {
  if (!env.options.print) return;
  const Attribute* prefix = op.attributes.find("prefix");
  const std::string head = prefix == nullptr ? "" : prefix->text;
  const bool hex = op.attributes.integer("hex") != 0;
  const auto& p = env.program;
  const std::string program = fmt::format("pid ({}, {}, {})", p[0], p[1], p[2]);
  if (op.operands.empty()) env.options.print(program + head);
  for (size_t o = 0; o < op.operands.size(); ++o) {
    const Type& type = env.operand_type(op, o);
    const Cells& values = env.operand(op, o);
    const std::string which = op.operands.size() > 1 ? fmt::format("(operand {}) ", o) : "";
    for (size_t i = 0; i < values.size(); ++i) {
      env.options.print(fmt::format("{} idx ({}){}{}{}", program, coordinates(type.shape, static_cast<int64_t>(i)),
                                    head, which, number_text(type.scalar_type(), values[i], hex)));
    }
  }
}

void assertion(Environment& env, const Op& op) {
  const Cells& condition = env.operand(op, 0);
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i].i != 0 || (op.operands.size() > 1 && env.operand(op, 1)[i].i == 0)) continue;
    const Attribute* message = op.attributes.find("message");
    fail(ErrorCode::kValueOutOfRange, env.memory.where(i),
         message == nullptr || message->text.empty() ? "the assertion does not hold" : message->text);
  }
}

}  // namespace

bool run_effect_op(Environment& env, const Op& op) {
  switch (op.code) {
    case OpCode::kPrint:
      print(env, op);
      return true;
    case OpCode::kAssert:
      assertion(env, op);
      return true;
    case OpCode::kBarrier:
      return true;
    case OpCode::kAssume:
      if (env.options.checked && env.operand(op, 0)[0].i == 0) {
        fail(ErrorCode::kValueOutOfRange, env.memory.where(0), "what the kernel assumes does not hold");
      }
      return true;
    case OpCode::kInlineAsm:
      fail(ErrorCode::kUnsupportedOperator, env.memory.where(0), "inline assembly of a GPU runs on a GPU only",
           "Write the operation in the tile language, or choose the target cuda");
    default:
      return false;
  }
}

}  // namespace heddle::lang
