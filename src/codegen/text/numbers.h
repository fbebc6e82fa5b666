#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// Kernels that differ only in extents can share one kernel that takes the extents as arguments. To find such kernels, a
// text is first written with marks around every number that need not be a compile-time constant. The text without these
// numbers is the kernel's pattern; a pattern and its numbers define a kernel. If kernels have the same pattern, some of
// the numbers can become arguments. The kernels then share a text if all other numbers are equal.

// Selects the numbers to mark. kPlaces: the offsets at which the kernel's part of each operand begins. kAll: every
// number that may be an argument.
enum class Marks : uint8_t { kNone, kPlaces, kAll };

// Writes a number between marks. 0 and 1 get no marks, since the compiler folds them. `type` is the argument's type.
std::string marked(int64_t value, std::string_view type = "int64_t");
// Like marked(), but also marks 0 and 1, for a number that has one of these values in some shapes only.
std::string marked_always(int64_t value);
// A constant of the C++ type `type`, written as `literal`. If `type` is float or double, `bits` is the value's bit
// pattern as a double.
std::string marked(std::string_view type, int64_t bits, std::string_view literal);
// A number that selects an expression. `literal` is the expression for this value. If the number becomes an argument,
// the text is instead `chosen`, an expression that selects at run time. In it, "{}" stands for the argument.
std::string choice(int64_t value, std::string_view literal, std::string_view chosen);
// A placeholder line. It is later replaced by declarations of the arguments that are used between this line and the
// next placeholder line. The arguments are elements of the array `from`.
std::string argument_line(std::string_view from);
// The array of arguments as a kernel operand on a CPU.
std::string argument_array(size_t operand);
// The array of arguments as a member of a functor.
inline constexpr std::string_view kArgumentMember = "this->arguments";
// The GPU kernel's parameter for the array of arguments, after its operands.
inline constexpr std::string_view kArgumentParameter = "all_arguments";

struct NumberedText {
  std::string pattern;
  std::vector<int64_t> numbers;  // in the order of the text
  // True for numbers that the kernel uses before its loops; false for numbers of a functor used inside the loops.
  std::vector<bool> outer;
};
// Separates the marked numbers from the text and removes the marks. Comments are not part of a pattern.
NumberedText numbers_of(std::string_view text);

// The text with the numbers flagged in `arguments` (one flag per number) as variables, all others as literals.
std::string with_arguments(std::string_view text, const std::vector<bool>& arguments);

// Decides which numbers of a kernel are arguments.
class NumberChoice {
 public:
  virtual ~NumberChoice() = default;
  // `outer_is_free`: true if the kernel does not become measurably slower when the numbers flagged in
  // NumberedText::outer are passed as arguments.
  virtual std::vector<bool> arguments(const NumberedText& kernel, bool outer_is_free) = 0;
};

// Removes comments. Comments name nodes of the model, but layers with different names should share kernels.
std::string without_comments(std::string_view text);

}  // namespace heddle::codegen
