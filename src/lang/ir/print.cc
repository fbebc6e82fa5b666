#include "lang/ir/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ir/text/lexer.h"

namespace heddle::lang {
namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);  // the shortest text that reads as this number
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string attribute_text(const Attribute& value) {
  switch (value.kind) {
    case Attribute::Kind::kInteger:
      return value.beyond_signed ? fmt::format("{}", static_cast<uint64_t>(value.integer))
                                 : fmt::format("{}", value.integer);
    case Attribute::Kind::kNumber:
      return float_text(value.number);
    case Attribute::Kind::kWord:
      return value.text;
    case Attribute::Kind::kString:
      return ir::quoted(value.text);
    case Attribute::Kind::kList:
      break;
  }
  return fmt::format("[{}]", fmt::join(value.list, ", "));
}

std::string attributes_text(const Attributes& attributes) {
  if (attributes.all().empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [name, value] : attributes.all())
    parts.push_back(fmt::format("{} = {}", name, attribute_text(value)));
  return fmt::format(" {{{}}}", fmt::join(parts, ", "));
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    text_ = "tile_ir 2\n";
    for (size_t i = 0; i < kernel_.files.size(); ++i)
      text_ += fmt::format("file {} {}\n", i, ir::quoted(kernel_.files[i]));
    std::vector<std::string> parameters;
    for (const Kernel::Parameter& p : kernel_.parameters) {
      parameters.push_back(
          fmt::format("{}: {}{}", name(p.value), to_string(kernel_.type(p.value)), attributes_text(p.attributes)));
    }
    text_ += fmt::format("kernel @{}({}){} {{\n", kernel_.name, fmt::join(parameters, ", "),
                         attributes_text(kernel_.attributes));
    ops(kernel_.body, 1);
    return text_ + "}\n";
  }

 private:
  std::string name(ValueId value) const { return kernel_.value_name(value); }

  std::string names(const std::vector<ValueId>& values, size_t first = 0) const {
    std::vector<std::string> parts;
    for (size_t i = first; i < values.size(); ++i) parts.push_back(name(values[i]));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  std::string bindings(const Region& region, size_t first_argument, const Op& op, size_t first_operand) const {
    std::vector<std::string> parts;
    for (size_t i = first_argument; i < region.arguments.size(); ++i) {
      parts.push_back(fmt::format("{} = {}", name(region.arguments[i]), name(op.operands[first_operand++])));
    }
    return fmt::format("({})", fmt::join(parts, ", "));
  }

  std::string operands_text(const Op& op) const {
    switch (op.code) {
      case OpCode::kFor:
        return fmt::format(" {} = {} to {} step {} {}", name(op.regions[0].arguments[0]), name(op.operands[0]),
                           name(op.operands[1]), name(op.operands[2]), bindings(op.regions[0], 1, op, 3));
      case OpCode::kWhile:
        return " " + bindings(op.regions[0], 0, op, 0);
      default:
        return op.operands.empty() ? "" : " " + names(op.operands);
    }
  }

  std::string place(int frame) const {
    std::string text;
    for (bool first = true; frame >= 0; first = false) {
      const Frame& at = kernel_.frames[static_cast<size_t>(frame)];
      text += fmt::format("{}{}:{}:{}", first ? "  @" : " < ", at.file, at.line, at.column);
      frame = at.caller;
    }
    return text;
  }

  void ops(const Region& region, int depth) {
    for (const Op& op : region.ops) print_op(op, depth);
  }

  void print_op(const Op& op, int depth) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    text_ += indent;
    if (!op.results.empty()) text_ += names(op.results) + " = ";
    text_ += to_string(op.code);
    text_ += operands_text(op) + attributes_text(op.attributes);
    std::vector<std::string> types;
    for (const ValueId value : op.results) types.push_back(to_string(kernel_.type(value)));
    if (!types.empty()) text_ += fmt::format(" : {}", fmt::join(types, ", "));
    text_ += place(op.frame);
    for (size_t i = 0; i < op.regions.size(); ++i) print_region(op, i, depth, indent);
    text_ += "\n";
  }

  void print_region(const Op& op, size_t i, int depth, const std::string& indent) {
    const Region& region = op.regions[i];
    text_ += i == 0 ? " {" : op.code == OpCode::kWhile ? " do {" : " else {";
    const bool bound = op.code == OpCode::kFor || (op.code == OpCode::kWhile && i == 0);
    if (!bound && !region.arguments.empty()) {
      std::vector<std::string> parts;
      for (const ValueId value : region.arguments) {
        parts.push_back(fmt::format("{}: {}", name(value), to_string(kernel_.type(value))));
      }
      text_ += fmt::format(" ({})", fmt::join(parts, ", "));
    }
    text_ += "\n";
    ops(region, depth + 1);
    text_ += indent + "}";
  }

  const Kernel& kernel_;
  std::string text_;
};

}  // namespace

std::string print(const Kernel& kernel) {
  return Printer(kernel).run();
}

}  // namespace heddle::lang
