#include "ops/expression.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace heddle::ops {

namespace {

constexpr size_t kMostText = 4096;
constexpr int kMostLevels = 64;

// Not of <cctype>: those depend on the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

[[noreturn]] void refuse_at(const std::string& text, size_t at, const std::string& why, const std::string& remedy) {
  fail(ErrorCode::kInvalidArgument, fmt::format("epilogue \"{}\"", text),
       fmt::format("at character {}: {}", at + 1, why), remedy);
}

}  // namespace

class ExpressionParser {
 public:
  explicit ExpressionParser(Expression& e) : e_(e), text_(e.text_) {}

  void run() {
    if (text_.size() > kMostText) {
      fail(ErrorCode::kInvalidArgument, "epilogue",
           fmt::format("it has {} characters, at most {}", text_.size(), kMostText));
    }
    e_.root_ = comparison();
    skip_space();
    if (at_ < text_.size()) unexpected();
  }

 private:
  using Node = Expression::Node;

  size_t comparison() {
    if (++level_ > kMostLevels) refuse_at(text_, at_, fmt::format("more than {} levels", kMostLevels), "Simplify it");
    const size_t left = sum();
    size_t result = left;
    for (const std::string_view sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (const size_t at = at_; accept(sign)) {
        result = add({Node::Kind::kCall, 0, std::string(sign), {left, sum()}, at});
        break;
      }
    }
    --level_;
    return result;
  }

  size_t sum() { return chain({"+", "-"}, &ExpressionParser::product); }
  size_t product() { return chain({"*", "/"}, &ExpressionParser::factor); }

  size_t chain(std::array<std::string_view, 2> signs, size_t (ExpressionParser::*part)()) {
    size_t left = (this->*part)();
    for (;;) {
      skip_space();
      const size_t at = at_;
      const std::string_view sign = accept(signs[0]) ? signs[0] : accept(signs[1]) ? signs[1] : std::string_view();
      if (sign.empty()) return left;
      const size_t right = (this->*part)();
      left = add({Node::Kind::kCall, 0, std::string(sign), {left, right}, at});
    }
  }

  size_t factor() {
    skip_space();
    const size_t at = at_;
    if (++level_ > kMostLevels) refuse_at(text_, at_, fmt::format("more than {} levels", kMostLevels), "Simplify it");
    size_t result = 0;
    if (accept("-")) {
      result = add({Node::Kind::kCall, 0, "neg", {factor()}, at});
    } else if (accept("(")) {
      result = comparison();
      expect(")");
    } else if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) {
      result = number();
    } else if (at_ < text_.size() && is_letter(text_[at_])) {
      result = name();
    } else {
      unexpected();
    }
    --level_;
    return result;
  }

  size_t number() {
    const size_t at = at_;
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    at_ = static_cast<size_t>(end - text_.data());
    if (error != std::errc() || !std::isfinite(static_cast<float>(value)) ||
        (at_ < text_.size() && is_letter(text_[at_]))) {
      refuse_at(text_, at, "that is no number in the range of f32", "Write for example 0.5 or 1e-6");
    }
    return add({Node::Kind::kNumber, value, {}, {}, at});
  }

  size_t name() {
    const size_t at = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    Node node{Node::Kind::kName, 0, text_.substr(at, at_ - at), {}, at};
    if (accept("(")) {
      node.kind = Node::Kind::kCall;
      do node.args.push_back(comparison());
      while (accept(","));
      expect(")");
    }
    return add(std::move(node));
  }

  size_t add(Node node) {
    e_.nodes_.push_back(std::move(node));
    return e_.nodes_.size() - 1;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view sign) {
    skip_space();
    if (text_.compare(at_, sign.size(), sign) != 0) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) refuse_at(text_, at_, fmt::format("\"{}\" is missing", sign), "Close what was opened");
  }
  [[noreturn]] void unexpected() const {
    if (at_ == text_.size()) refuse_at(text_, at_, "the text ends where a value should stand", "Complete it");
    refuse_at(text_, at_, fmt::format("\"{}\" is not expected", text_.substr(at_, 1)),
              "Write for example gelu(x + bias) * 0.5 + residual, x being the accumulator");
  }

  Expression& e_;
  const std::string& text_;
  size_t at_ = 0;
  int level_ = 0;
};

Expression Expression::parse(std::string_view text) {
  Expression e;
  e.text_ = text;
  ExpressionParser(e).run();
  return e;
}

void Expression::refuse(size_t node, const std::string& why, const std::string& remedy) const {
  refuse_at(text_, nodes_[node].at, why, remedy);
}

}  // namespace heddle::ops
