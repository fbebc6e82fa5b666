#include "codegen/text/numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::codegen {
namespace {

// Characters that no text of a kernel has. A number is: kBegin type kNext bits kNext literal kNext chosen kEnd; where
// it is an argument the text has `chosen` in its place, with the argument's name for "{}".
constexpr char kBegin = '\x01', kEnd = '\x02', kNext = '\x1f', kArguments = '\x03';

struct Mark {
  std::string_view type, literal, chosen;
  int64_t bits = 0;
};

// What a text consists of, in order.
template <typename OnText, typename OnMark, typename OnArguments>
void walk(std::string_view text, const OnText& on_text, const OnMark& on_mark, const OnArguments& on_arguments) {
  constexpr char kSpecial[] = {kBegin, kArguments};
  const auto until = [&](char end) {
    const size_t at = text.find(end);
    HEDDLE_CHECK(at != std::string_view::npos, "a mark in a text has no end");
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at + 1);
    return part;
  };
  while (!text.empty()) {
    const size_t at = std::min(text.find_first_of(std::string_view(kSpecial, sizeof kSpecial)), text.size());
    on_text(text.substr(0, at));
    text.remove_prefix(at);
    if (text.empty()) return;
    const char kind = text[0];
    text.remove_prefix(1);
    if (kind == kArguments) {
      on_arguments(until(kEnd));
      continue;
    }
    Mark mark;
    mark.type = until(kNext);
    mark.bits = std::stoll(std::string(until(kNext)));
    mark.literal = until(kNext);
    mark.chosen = until(kEnd);
    on_mark(mark);
  }
}

constexpr std::string_view kArgument = "{}";

std::string mark(std::string_view type, int64_t bits, std::string_view literal, std::string_view chosen) {
  return fmt::format("{1}{2}{0}{3}{0}{4}{0}{5}{6}", kNext, kBegin, type, bits, literal, chosen, kEnd);
}

// What stands for a number that is an argument.
std::string in_place(std::string_view chosen, const std::string& name) {
  const size_t at = chosen.find(kArgument);
  std::string text(chosen);
  return at == std::string::npos ? text : text.replace(at, kArgument.size(), name);
}

std::string declaration(std::string_view type, size_t number) {
  const std::string value = fmt::format("arguments[{}]", number);
  const bool is_float = type == "float" || type == "double";
  return fmt::format("const {0} n{1} = static_cast<{0}>({2});\n", type, number,
                     is_float ? fmt::format("__builtin_bit_cast(double, {})", value) : value);
}

}  // namespace

std::string marked(int64_t value, std::string_view type) {
  const std::string literal = fmt::format("{}", value);
  return value == 0 || value == 1 ? literal : marked(type, value, literal);
}
std::string marked_always(int64_t value) {
  return marked("int64_t", value, fmt::format("{}", value));
}

std::string choice(int64_t value, std::string_view literal, std::string_view chosen) {
  return mark("int64_t", value, literal, chosen);
}

std::string marked(std::string_view type, int64_t bits, std::string_view literal) {
  return mark(type, bits, literal, kArgument);
}

std::string argument_line(std::string_view from) {
  return fmt::format("{}{}{}", kArguments, from, kEnd);
}
std::string argument_array(size_t operand) {
  return fmt::format("static_cast<const int64_t*>(operands[{}])", operand);
}

std::string without_comments(std::string_view text) {
  std::string rest;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    rest.append(line.substr(0, line.find("//"))).push_back('\n');
  }
  return rest;
}

NumberedText numbers_of(std::string_view text) {
  NumberedText result;
  std::string pattern;
  bool in_functor = false;
  walk(
      text, [&](std::string_view plain) { pattern += plain; },
      [&](const Mark& mark) {
        pattern.append(1, kBegin).append(mark.type).append(1, kNext).append(mark.chosen).append(1, kEnd);
        result.numbers.push_back(mark.bits);
        result.outer.push_back(!in_functor);
      },
      [&](std::string_view from) {
        pattern.append(1, kArguments).append(from);
        in_functor = from == kArgumentMember;
      });
  result.pattern = without_comments(pattern);
  return result;
}

std::string with_arguments(std::string_view text, const std::vector<bool>& arguments) {
  std::string result, line_from;
  size_t number = 0, argument = 0, line_at = 0;
  std::string declared;
  const auto finish_line = [&] {
    if (declared.empty()) return;
    const std::string first = fmt::format("const int64_t* const arguments = {};\n", line_from);
    result.insert(line_at, first + declared);
    declared.clear();
  };
  walk(
      text, [&](std::string_view plain) { result += plain; },
      [&](const Mark& mark) {
        if (!arguments.at(number++)) {
          result += mark.literal;
          return;
        }
        declared += declaration(mark.type, argument);
        result += in_place(mark.chosen, fmt::format("n{}", argument++));
      },
      [&](std::string_view from) {
        finish_line();
        line_from = from;
        line_at = result.size();
      });
  finish_line();
  return result;
}

}  // namespace heddle::codegen
