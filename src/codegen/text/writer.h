#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::codegen {

// Returns `text` as a comment. Some of the text may come from a model (names of operators), so it is escaped: nothing
// in it can end the comment's line or join it to the next line.
std::string comment_of(std::string_view text);

// Returns `text` as an operand of `*` and similar operators: in parentheses if it is a sum, a quotient, ...
std::string factor(const std::string& text);
// Return the texts a * b and a + b, simplified for factors of 1 and terms of 0.
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
  // Adds "const TYPE NAME = VALUE;". The line is omitted unless a later line of the block uses the name.
  void declare(std::string_view type, const std::string& name, std::string_view value) {
    lines_.push_back({fmt::format("const {} {} = {};", type, name, value), depth_, name, "", ""});
  }
  // Adds "const auto NAME = VALUE;  // COMMENT". Returns the name. The value must have no side effects. A value that is
  // used exactly once, in the next statement, is inlined there if the statement stays short; the line then has both
  // comments.
  std::string value(std::string name, std::string value, std::string comment) {
    lines_.push_back(
        {fmt::format("const auto {} = {};", name, value), depth_, name, std::move(value), std::move(comment)});
    return name;
  }
  // open() adds a line that ends in an opening brace; close() adds the closing brace.
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
  // Appends the lines of another writer, indented relative to the current depth.
  void append(const Writer& other);
  // Appends "head {", the lines of `body`, and `end`.
  void block(const std::string& head, const Writer& body, const std::string& end = "}");
  // Appends "if (condition) {" and the lines of `then`. If `otherwise` is not empty, appends "} else {" and its lines,
  // too.
  void branch(const std::string& condition, const Writer& then, const Writer& otherwise);
  size_t size() const { return lines_.size(); }
  bool empty() const { return lines_.empty(); }
  // Removes and returns the lines from line `first` on.
  Writer take_from(size_t first);
  std::string text() const;
  // Returns the text. Adds to `includes` the headers of the rarely used functions that the text names (includes.h).
  std::string text(std::vector<std::string>& includes) const;
  static void add_headers(std::string_view line, std::vector<std::string>& includes);

 private:
  struct Line {
    std::string text;
    int depth;
    std::string declares;        // the name, set by declare() and value()
    std::string value, comment;  // set by value()
  };
  static std::vector<bool> used_lines(const std::vector<Line>& lines);
  static std::vector<Line> folded(std::vector<Line> lines);

  std::vector<Line> lines_;
  int depth_;
};

}  // namespace heddle::codegen
