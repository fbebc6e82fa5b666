#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::codegen {

// `text` as a comment. Parts of it may come from a model (the operators that a value comes from), so nothing in it may
// end the comment's line or join it to the next one.
std::string comment_of(std::string_view text);

// `text` as an operand of * and the like: in parentheses where it is a sum, a quotient, ...
std::string factor(const std::string& text);
// a * b and a + b without factors of 1 and terms of 0.
std::string product(const std::string& a, int64_t b);
std::string sum(const std::string& a, const std::string& b);

// Builds indented program text.
class Writer {
 public:
  explicit Writer(int depth = 0) : depth_(depth) {}

  template <typename... A>
  void line(fmt::format_string<A...> format, A&&... args) {
    raw(fmt::format(format, std::forward<A>(args)...));
  }
  void raw(std::string text) { lines_.push_back({std::move(text), depth_, "", "", ""}); }
  // "const TYPE NAME = VALUE;", which is left out unless a later line of the block uses the name.
  void declare(std::string_view type, const std::string& name, std::string_view value) {
    lines_.push_back({fmt::format("const {} {} = {};", type, name, value), depth_, name, "", ""});
  }
  // "const auto NAME = VALUE;  // COMMENT", a value without side effects. If only the next statement uses it, once, it
  // becomes a part of that statement as long as this stays short. That line then has both comments. Returns the name.
  std::string value(std::string name, std::string value, std::string comment) {
    lines_.push_back(
        {fmt::format("const auto {} = {};", name, value), depth_, name, std::move(value), std::move(comment)});
    return name;
  }
  // A line that ends in an opening brace, and its end.
  void open(const std::string& text) {
    raw(text);
    ++depth_;
  }
  void middle(const std::string& text) {
    close(text);
    ++depth_;
  }
  void close(const std::string& text = "}") {
    --depth_;
    raw(text);
  }
  void comment(std::string_view text) { raw(comment_of(text)); }
  // The lines of another writer, that many steps deeper than they stand there.
  void append(const Writer& other);
  // "head {", the lines of `body`, and `end`.
  void block(const std::string& head, const Writer& body, const std::string& end = "}");
  // "if (condition) {", the lines of `then`, and those of `otherwise` after "} else {" if there are any.
  void branch(const std::string& condition, const Writer& then, const Writer& otherwise);
  size_t size() const { return lines_.size(); }
  bool empty() const { return lines_.empty(); }
  // Removes and returns the lines from line `first` on.
  Writer take_from(size_t first);
  std::string text() const;
  // The headers of rarely used functions that the text names (includes.h) join `includes`.
  std::string text(std::vector<std::string>& includes) const;
  static void add_headers(std::string_view line, std::vector<std::string>& includes);

 private:
  struct Line {
    std::string text;
    int depth;
    std::string declares;        // by declare() and value()
    std::string value, comment;  // by value()
  };
  static std::vector<bool> used_lines(const std::vector<Line>& lines);
  static std::vector<Line> folded(std::vector<Line> lines);

  std::vector<Line> lines_;
  int depth_;
};

}  // namespace heddle::codegen
