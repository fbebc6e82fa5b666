#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::ops {

// The text of an epilogue, "gelu(x + bias) * 0.5 + residual", as a tree.
//
//   comparison := sum (('<' | '<=' | '>' | '>=' | '==' | '!=') sum)?
//   sum        := product (('+' | '-') product)*
//   product    := factor (('*' | '/') factor)*
//   factor     := '-' factor | number | name | name '(' comparison (',' comparison)* ')' | '(' comparison ')'
//
// Lowering (ops/epilogue.h) decides what names and functions mean.
class Expression {
 public:
  struct Node {
    enum class Kind : unsigned char { kNumber, kName, kCall };
    Kind kind;
    double number = 0;
    std::string name;          // of an operand or function; operators are functions called "+", "neg", "<", ...
    std::vector<size_t> args;  // indices of nodes
    size_t at = 0;             // position in the text
  };

  // Throws kInvalidArgument with the error and its position, also for more than 4096 characters or 64 levels.
  static Expression parse(std::string_view text);

  const std::string& text() const { return text_; }
  const Node& operator[](size_t node) const { return nodes_[node]; }
  size_t root() const { return root_; }

  // Throws an error about the text at a node.
  [[noreturn]] void refuse(size_t node, const std::string& why, const std::string& remedy) const;

 private:
  friend class ExpressionParser;
  std::string text_;
  std::vector<Node> nodes_;
  size_t root_ = 0;
};

}  // namespace heddle::ops
