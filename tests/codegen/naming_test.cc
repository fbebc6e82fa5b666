#include "codegen/naming.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle::codegen {
namespace {

TEST(Naming, TakesTheLastPartOfShortNames) {
  const std::vector<NamedOperand> operands = {{"/encoder/layer.0/Add_1"},
                                              {"encoder.layer.0.weight"},
                                              {"bias"},
                                              {"other.bias"},
                                              {"/Mul", true},
                                              {""},
                                              {"", true}};
  EXPECT_EQ(identifiers_of(operands), (std::vector<std::string>{"add", "weight", "bias", "bias_3", "mul", "x5", "y6"}));
}

// A name from a model is never code, a keyword, or a name that kernels have.
TEST(Naming, NamesAreIdentifiersOfTheirOwn) {
  const std::vector<NamedOperand> operands = {{"int"},
                                              {"lane"},
                                              {"t0"},
                                              {"int64_t"},
                                              {"sum1"},
                                              {"x9"},
                                              {"a b;"},
                                              {"1st"},
                                              {"a\n#error x"},
                                              {"\xff\xfe", true},
                                              {"k"},
                                              {"__x"},
                                              {"a/"},
                                              {"W"},
                                              {"template"},
                                              {"x_13"},
                                              {"x__y"},
                                              {"tile"},
                                              {"name that goes on and on and on"}};
  std::set<std::string> seen;
  for (const std::string& name : identifiers_of(operands)) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos) << name;
    EXPECT_TRUE(name[0] >= 'a' && name[0] <= 'z') << name;
    EXPECT_FALSE(
        std::set<std::string>({"int", "lane", "t0", "int64_t", "sum1", "k", "template", "tile"}).contains(name));
  }
}

}  // namespace
}  // namespace heddle::codegen
