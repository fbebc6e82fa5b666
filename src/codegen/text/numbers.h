#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// Kernels that differ in extents alone can be one kernel that is told its extents. To that end a text is first written
// with marks around every number that need not be known to the compiler. What is left of it without them is its
// pattern; the text and its numbers together are the kernel, so kernels of one pattern may share a text in which some
// numbers are arguments, as long as they agree in all others.

// Which numbers have marks: where the kernel's part of each operand begins, or all that may have some.
enum class Marks : uint8_t { kNone, kPlaces, kAll };

// A number between marks: 0 and 1 stay as they are, since they fold. `type` is what an argument is declared as.
std::string marked(int64_t value, std::string_view type = "int64_t");
// The same for numbers that may well be 0 or 1 in one shape only.
std::string marked_always(int64_t value);
// A constant of the C++ type `type` that is written as `literal`; `bits` are those of a double for float and double.
std::string marked(std::string_view type, int64_t bits, std::string_view literal);
// A number that chooses between expressions: `literal` is what it stands for here; an argument chooses at run time, as
// `chosen` says, in which "{}" is the argument.
std::string choice(int64_t value, std::string_view literal, std::string_view chosen);
// A line that later declares the arguments up to the next such line, as elements of the array `from`.
std::string argument_line(std::string_view from);
// The array as an operand, on a CPU.
std::string argument_array(size_t operand);
// The array as a member of a functor.
inline constexpr std::string_view kArgumentMember = "this->arguments";
// The parameter that a kernel on a GPU has for the array, behind its operands.
inline constexpr std::string_view kArgumentParameter = "all_arguments";

struct NumberedText {
  std::string pattern;
  std::vector<int64_t> numbers;  // in the order of the text
  // Those that the kernel itself takes, before its loops, and not a functor within them.
  std::vector<bool> outer;
};
// Takes the marks out. Comments are no part of a pattern.
NumberedText numbers_of(std::string_view text);

// The text in which `arguments` (one flag per number) are variables and all others literals.
std::string with_arguments(std::string_view text, const std::vector<bool>& arguments);

// Which numbers of a kernel are to be arguments.
class NumberChoice {
 public:
  virtual ~NumberChoice() = default;
  // `outer_is_free`: NumberedText::outer as arguments cost the kernel nothing that can be measured.
  virtual std::vector<bool> arguments(const NumberedText& kernel, bool outer_is_free) = 0;
};

// Comments say which nodes of the model a line is for, and layers of different names share kernels.
std::string without_comments(std::string_view text);

}  // namespace heddle::codegen
