#include "codegen/text/numbers.h"

#include <gtest/gtest.h>

namespace heddle::codegen {
namespace {

std::string kernel(int64_t rows, int64_t columns) {
  return argument_line(argument_array(2)) + "f(x + " + marked(rows) + ", " + marked(columns) + ");  // " +
         std::to_string(rows) + "\n";
}

TEST(Numbers, KernelsOfOneFormHaveOnePattern) {
  const NumberedText small = numbers_of(kernel(12, 7)), large = numbers_of(kernel(800, 7));
  EXPECT_EQ(small.pattern, large.pattern);
  EXPECT_EQ(small.numbers, (std::vector<int64_t>{12, 7}));
  EXPECT_EQ(large.numbers, (std::vector<int64_t>{800, 7}));
}

// What surrounds a factor of 1 is often left out, so it is no kernel of the same form.
TEST(Numbers, OneAndZeroArePartOfThePattern) {
  EXPECT_NE(numbers_of(kernel(1, 7)).pattern, numbers_of(kernel(2, 7)).pattern);
  EXPECT_EQ(numbers_of(marked_always(1)).pattern, numbers_of(marked_always(2)).pattern);
}

TEST(Numbers, WithoutArgumentsTheTextIsThatOfTheLiterals) {
  EXPECT_EQ(with_arguments(kernel(12, 7), {false, false}), "f(x + 12, 7);  // 12\n");
}

TEST(Numbers, ChosenNumbersAreReadFromTheArguments) {
  const std::string text = with_arguments(kernel(12, 7), {false, true});
  EXPECT_NE(text.find("const int64_t* const arguments = static_cast<const int64_t*>(operands[2]);"), std::string::npos);
  EXPECT_NE(text.find("const int64_t n0 = static_cast<int64_t>(arguments[0]);"), std::string::npos) << text;
  EXPECT_NE(text.find("f(x + 12, n0);"), std::string::npos) << text;
}

TEST(Numbers, AChoiceIsMadeAtRunTimeWhereItsNumberIsAnArgument) {
  const std::string text = argument_line("a") + "f(" + choice(8, "eight", "pick({}, four, eight)") + ");\n";
  EXPECT_EQ(with_arguments(text, {false}), "f(eight);\n");
  EXPECT_NE(with_arguments(text, {true}).find("f(pick(n0, four, eight));"), std::string::npos);
  const std::string other = argument_line("a") + "f(" + choice(4, "four", "pick({}, four, eight)") + ");\n";
  EXPECT_EQ(numbers_of(text).pattern, numbers_of(other).pattern);
  EXPECT_NE(numbers_of(text).pattern,
            numbers_of(argument_line("a") + "f(" + choice(8, "eight", "{}") + ");\n").pattern);
}

TEST(Numbers, EachFunctionDeclaresItsOwn) {
  const std::string text = with_arguments(kernel(12, 7) + kernel(5, 6), {true, false, false, true});
  EXPECT_NE(text.find("f(x + n0, 7);"), std::string::npos) << text;
  EXPECT_NE(text.find("f(x + 5, n1);"), std::string::npos) << text;
  EXPECT_LT(text.find("n0 ="), text.find("f(x + n0"));
  EXPECT_LT(text.find("f(x + n0"), text.find("n1 ="));
}

TEST(Numbers, FloatsTravelAsTheBitsOfADouble) {
  const std::string text = argument_line("a") + marked("float", 0x3fb0000000000000, "0.0625f") + "\n";
  EXPECT_EQ(with_arguments(text, {false}), "0.0625f\n");
  EXPECT_NE(with_arguments(text, {true}).find("static_cast<float>(__builtin_bit_cast(double, arguments[0]))"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::codegen
