#include "codegen/text/writer.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/printable.h"

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

}  // namespace

std::string factor(const std::string& text) {
  int open = 0;
  for (const char c : text) {
    open += c == '(' || c == '<' || c == '[' ? 1 : c == ')' || c == '>' || c == ']' ? -1 : 0;
    if (open == 0 && c == ' ') return "(" + text + ")";
  }
  return text.starts_with('-') ? "(" + text + ")" : text;
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
std::vector<bool> Writer::used_lines() const {
  std::set<std::string_view> declared;
  for (const Line& line : lines_) {
    if (!line.declares.empty()) declared.insert(line.declares);
  }
  std::vector<bool> used(lines_.size(), true);
  std::map<std::string_view, size_t> next_use;  // the first one behind a line
  std::vector<size_t> shallower;                // behind a line: those that are less deep than all before
  for (size_t i = lines_.size(); i-- > 0;) {
    const Line& line = lines_[i];
    while (!shallower.empty() && lines_[shallower.back()].depth >= line.depth) shallower.pop_back();
    const size_t end = shallower.empty() ? lines_.size() : shallower.back();  // of the block
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

std::string Writer::text() const {
  const std::vector<bool> used = used_lines();
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (used[i]) text.append(static_cast<size_t>(2 * lines_[i].depth), ' ').append(lines_[i].text).push_back('\n');
  }
  return text;
}

}  // namespace heddle::codegen
