#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace heddle::codegen {

// `text`, of which a model may have said parts (the operators that a value comes from), as a comment: nothing in it
// ends the comment's line or joins it to the next one.
std::string comment_of(std::string_view text);

// Builds indented program text.
class Writer {
 public:
  template <typename... A>
  void line(fmt::format_string<A...> format, A&&... args) {
    raw(fmt::format(format, std::forward<A>(args)...));
  }
  void raw(const std::string& text) { text_.append(static_cast<size_t>(2 * depth_), ' ').append(text).push_back('\n'); }
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
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace heddle::codegen
