#include "codegen/text/writer.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "base/printable.h"
#include "codegen/text/includes.h"

namespace heddle::codegen {

std::string comment_of(std::string_view text) {
  constexpr size_t kMost = 400;
  std::string shown = clipped(printable(text), kMost);
  // A line that ends in a backslash, with spaces behind it or not, goes on in the next one.
  if (const size_t last = shown.find_last_not_of(' '); last != std::string::npos && shown[last] == '\\') shown += '.';
  return "// " + shown;
}

namespace {

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Calls f with each identifier of a text, comments left out.
template <typename F>
void each_identifier(std::string_view text, const F& f) {
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && is_letter(text[i])) ++i;
    if (i == begin) {
      ++i;
    } else if (std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      f(text.substr(begin, i - begin));
    }
  }
}

// Calls f(position) for the spaces of an expression that are in no parentheses, brackets or template arguments.
template <typename F>
void each_outer_space(const std::string& text, const F& f) {
  std::string open;  // what closes the brackets around, innermost last
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // A comparison has a space in front of it.
    const bool begins_arguments = c == '<' && i > 0 && is_letter(text[i - 1]);
    if (c == '(' || c == '[' || begins_arguments) {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '>');
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
    } else if (c == ' ' && open.empty()) {
      f(i);
    }
  }
}

}  // namespace

std::string factor(const std::string& text) {
  bool whole = !text.starts_with('-');
  each_outer_space(text, [&](size_t) { whole = false; });
  return whole ? text : "(" + text + ")";
}

std::string product(const std::string& a, int64_t b) {
  if (a == "0" || b == 0) return "0";
  return b == 1 ? a : fmt::format("{} * {}", factor(a), b);
}

std::string sum(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  return b == "0" ? a : fmt::format("{} + {}", a, b);
}

// From the last line to the first, so that what only a line needs that is left out is left out, too.
std::vector<bool> Writer::used_lines(const std::vector<Line>& lines) {
  std::set<std::string_view> declared;
  for (const Line& line : lines) {
    if (!line.declares.empty()) declared.insert(line.declares);
  }
  std::vector<bool> used(lines.size(), true);
  std::map<std::string_view, size_t> next_use;  // the first one behind a line
  std::vector<size_t> shallower;                // behind a line: those that are less deep than all before
  for (size_t i = lines.size(); i-- > 0;) {
    const Line& line = lines[i];
    while (!shallower.empty() && lines[shallower.back()].depth >= line.depth) shallower.pop_back();
    const size_t end = shallower.empty() ? lines.size() : shallower.back();  // of the block
    shallower.push_back(i);
    if (!line.declares.empty()) {
      const auto use = next_use.find(line.declares);
      used[i] = use != next_use.end() && use->second < end;
      if (!used[i]) continue;
    }
    each_identifier(line.text, [&](std::string_view name) {
      if (name != line.declares && declared.contains(name)) next_use[name] = i;
    });
  }
  return used;
}

namespace {

// Whether all that joins the operands of `text` at its top is multiplication.
bool is_product(const std::string& text) {
  bool product = !text.starts_with('-');
  each_outer_space(text, [&](size_t i) { product = product && (text[i + 1] == '*' || text[i - 1] == '*'); });
  return product;
}

// `text` with `value` in the place of the identifier `name`, which it has once.
std::string with_value(const std::string& text, std::string_view name, const std::string& value) {
  size_t at = 0;
  each_identifier(text, [&](std::string_view found) {
    if (found == name) at = static_cast<size_t>(found.data() - text.data());
  });
  const size_t end = at + name.size();
  // What stands on either side; nothing does where `text` is a value itself.
  const auto skip = [&](char c) { return c == ' '; };
  const auto left = std::find_if_not(text.rbegin() + static_cast<ptrdiff_t>(text.size() - at), text.rend(), skip);
  const auto right = std::find_if_not(text.begin() + static_cast<ptrdiff_t>(end), text.end(), skip);
  const bool compares = left != text.rend() && *left == '=' && left[1] != ' ';
  const char before = left == text.rend() ? '(' : compares ? '<' : *left, after = right == text.end() ? ')' : *right;
  const auto is_one_of = [](std::string_view set, char c) { return set.find(c) != std::string_view::npos; };
  // An argument or a whole right side; a product as a term of a sum, or as what is multiplied first.
  const bool alone = is_one_of("(,=", before) && is_one_of("),;", after);
  const bool term = is_product(value) && is_one_of("(,=+-", before) && is_one_of("),;+-*/", after);
  return text.substr(0, at) + (alone || term ? value : factor(value)) + text.substr(end);
}

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + ", " + second;
}

}  // namespace

std::vector<Writer::Line> Writer::folded(std::vector<Line> lines) {
  // Only in identifiers, since the length of numbers differs between kernels of one pattern (numbers.h). Expressions of
  // numbers alone end as well.
  constexpr size_t kMost = 24, kMostCharacters = 4000;
  std::map<std::string, std::vector<size_t>, std::less<>> uses;  // of values: the lines, ascending
  for (const Line& line : lines) {
    if (!line.value.empty()) uses[line.declares];
  }
  const auto names_of = [](const Line& line) {
    std::vector<std::string_view> names;
    each_identifier(line.text, [&](std::string_view name) { names.push_back(name); });
    return names;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string_view name : names_of(lines[i])) {
      if (const auto found = uses.find(name); found != uses.end() && name != lines[i].declares)
        found->second.push_back(i);
    }
  }
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    Line& from = lines[i];
    Line& to = lines[i + 1];
    if (from.value.empty() || to.depth != from.depth || to.text.ends_with('{') ||
        (to.value.empty() && to.text.find("//") != std::string::npos)) {
      continue;
    }
    const std::vector<size_t>& at = uses.at(from.declares);
    const auto first = std::upper_bound(at.begin(), at.end(), i);
    if (first == at.end() || *first != i + 1) continue;
    if (first + 1 != at.end()) {
      size_t end = i + 1;
      while (end < lines.size() && lines[end].depth >= from.depth) ++end;
      if (*(first + 1) < end) continue;
    }
    if (names_of(to).size() + names_of(from).size() > kMost) continue;
    if (to.text.size() + from.value.size() > kMostCharacters) continue;
    to.text = with_value(to.text, from.declares, from.value);
    if (!to.value.empty()) to.value = with_value(to.value, from.declares, from.value);
    to.comment = joined(from.comment, to.comment);
    from.text.clear();
  }
  std::erase_if(lines, [](const Line& line) { return line.text.empty() && !line.value.empty(); });
  return lines;
}

void Writer::append(const Writer& other) {
  for (Line line : other.lines_) {
    line.depth += depth_;
    lines_.push_back(std::move(line));
  }
}

void Writer::block(const std::string& head, const Writer& body, const std::string& end) {
  open(head.empty() ? "{" : head + " {");
  append(body);
  close(end);
}

void Writer::branch(const std::string& condition, const Writer& then, const Writer& otherwise) {
  block("if (" + condition + ")", then, otherwise.empty() ? "}" : "} else {");
  if (otherwise.empty()) return;
  ++depth_;
  append(otherwise);
  close();
}

Writer Writer::take_from(size_t first) {
  Writer taken;
  const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(first);
  taken.lines_.assign(std::make_move_iterator(begin), std::make_move_iterator(lines_.end()));
  lines_.erase(begin, lines_.end());
  return taken;
}

void Writer::add_headers(std::string_view line, std::vector<std::string>& includes) {
  each_identifier(line, [&](std::string_view name) {
    const std::string_view header = header_of(name);
    if (!header.empty() && std::find(includes.begin(), includes.end(), header) == includes.end())
      includes.emplace_back(header);
  });
}

std::string Writer::text(std::vector<std::string>& includes) const {
  const std::vector<bool> used = used_lines(lines_);
  std::vector<Line> lines;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (used[i]) lines.push_back(lines_[i]);
  }
  std::string text;
  for (const Line& line : folded(std::move(lines))) {
    add_headers(line.text, includes);
    text.append(static_cast<size_t>(2 * line.depth), ' ').append(line.text);
    if (!line.comment.empty()) text.append("  ").append(comment_of(line.comment));
    text.push_back('\n');
  }
  return text;
}

std::string Writer::text() const {
  std::vector<std::string> includes;
  return text(includes);
}

}  // namespace heddle::codegen
