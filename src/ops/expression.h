#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::ops {

// The syntax tree of an epilogue that is given as text, such as "gelu(x + bias) * 0.5 + residual".
//
//   comparison := sum (('<' | '<=' | '>' | '>=' | '==' | '!=') sum)?
//   sum        := product (('+' | '-') product)*
//   product    := factor (('*' | '/') factor)*
//   factor     := '-' factor | number | name | name '(' comparison (',' comparison)* ')' | '(' comparison ')'
//
// The lowering (ops/epilogue.h) defines the meaning of names and functions.
class Expression {
 public:
  struct Node {
    enum class Kind : unsigned char { kNumber, kName, kCall };
    Kind kind;
    double number = 0;
    std::string name;          // the name of an operand or function; operators are the functions "+", "neg", "<", ...
    std::vector<size_t> args;  // the node indices of the arguments
    size_t at = 0;             // position in the text
  };

  // Throws kInvalidArgument, with the position of the error, for a syntax error and for texts of more than 4096
  // characters or 64 levels.
  static Expression parse(std::string_view text);

  const std::string& text() const { return text_; }
  const Node& operator[](size_t node) const { return nodes_[node]; }
  size_t root() const { return root_; }

  // Throws an error that points to the text position of a node.
  [[noreturn]] void refuse(size_t node, const std::string& why, const std::string& remedy) const;

 private:
  friend class ExpressionParser;
  std::string text_;
  std::vector<Node> nodes_;
  size_t root_ = 0;
};

}  // namespace heddle::ops
