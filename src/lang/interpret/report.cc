#include "lang/interpret/report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::lang {
namespace {

std::string number_text(const Type& type, Cell value, bool hex) {
  const auto bits = static_cast<uint64_t>(value.i);
  if (type.pointer) return fmt::format("0x{:x}", bits);
  if (hex) {
    const uint64_t stored = encode(type.element, value) & (~uint64_t{0} >> (64 - std::max(bits_of(type.element), 8)));
    return fmt::format("0x{:0{}x}", stored, size_of(type.element) * 2);
  }
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

}  // namespace

std::string program_place(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& p, int64_t element) {
  std::string text = kernel.place(op.frame);
  if (text.empty()) text = fmt::format("line {} of the tile IR", op.text_line);
  text += fmt::format(": `{}` in program ({}, {}, {})", to_string(op.code), p[0], p[1], p[2]);
  return element < 0 ? text : text + fmt::format(", element {}", element);
}

void print_values(const Kernel& kernel, const Op& op, size_t operand, const std::array<int64_t, 3>& p,
                  const Cells& values, const std::function<void(const std::string&)>& print) {
  const Attribute* prefix = op.attributes.find("prefix");
  const std::string head = prefix == nullptr ? "" : prefix->text;
  const std::string program = fmt::format("pid ({}, {}, {})", p[0], p[1], p[2]);
  if (op.operands.empty()) return print(program + head);
  const bool hex = op.attributes.integer("hex") != 0;
  const Type& type = kernel.type(op.operands[operand]);
  const std::string which = op.operands.size() > 1 ? fmt::format("(operand {}) ", operand) : "";
  for (size_t i = 0; i < values.size(); ++i) {
    print(fmt::format("{} idx ({}){}{}{}", program, coordinates(type.shape, static_cast<int64_t>(i)), head, which,
                      number_text(type.scalar_type(), values[i], hex)));
  }
}

void fail_assertion(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& program, int64_t element) {
  const Attribute* message = op.attributes.find("message");
  fail(ErrorCode::kValueOutOfRange, program_place(kernel, op, program, element),
       message == nullptr || message->text.empty() ? "the assertion does not hold" : message->text);
}

}  // namespace heddle::lang
