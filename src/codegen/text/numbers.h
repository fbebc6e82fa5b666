#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// Kernels that differ only in extents can be one kernel that takes its extents as arguments. For that, a text is
// first written with marks around every number that the compiler need not know. The text without these numbers is its
// pattern; a pattern and its numbers make a kernel. Kernels of one pattern may share a text in which some numbers are
// arguments, provided that they agree in all others.

// Which numbers have marks. kPlaces: where the kernel's part of each operand begins. kAll: all numbers that may.
enum class Marks : uint8_t { kNone, kPlaces, kAll };

// A number between marks. 0 and 1 get none, since the compiler folds them. `type`: the type of the argument.
std::string marked(int64_t value, std::string_view type = "int64_t");
// The same for a number that may be 0 or 1 in one shape only: it always gets marks.
std::string marked_always(int64_t value);
// A constant of the C++ type `type`, written as `literal`. For float and double, `bits` are those of a double.
std::string marked(std::string_view type, int64_t bits, std::string_view literal);
// A number that selects an expression: `literal` is the expression for this value. If the number is an argument, the
// text is `chosen`, which selects at run time; "{}" in it is the argument.
std::string choice(int64_t value, std::string_view literal, std::string_view chosen);
// A line that later declares the arguments used up to the next such line, as elements of the array `from`.
std::string argument_line(std::string_view from);
// The array of arguments as an operand, on a CPU.
std::string argument_array(size_t operand);
// The array as a member of a functor.
inline constexpr std::string_view kArgumentMember = "this->arguments";
// The parameter for the array of a kernel on a GPU, after its operands.
inline constexpr std::string_view kArgumentParameter = "all_arguments";

struct NumberedText {
  std::string pattern;
  std::vector<int64_t> numbers;  // in the order of the text
  // True for numbers that the kernel itself takes, before its loops; false for those of a functor in the loops.
  std::vector<bool> outer;
};
// Removes the marks. Comments are not part of a pattern.
NumberedText numbers_of(std::string_view text);

// The text in which `arguments` (one flag per number) are variables and all others literals.
std::string with_arguments(std::string_view text, const std::vector<bool>& arguments);

// Decides which numbers of a kernel are arguments.
class NumberChoice {
 public:
  virtual ~NumberChoice() = default;
  // `outer_is_free`: with the numbers of NumberedText::outer as arguments, the kernel is not measurably slower.
  virtual std::vector<bool> arguments(const NumberedText& kernel, bool outer_is_free) = 0;
};

// Removes comments. They name nodes of the model, and layers of different names share kernels.
std::string without_comments(std::string_view text);

}  // namespace heddle::codegen
