// Values that inputs which decide branches have in runs whose inputs are made up.
#include "driver/shapes/branch_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "driver/verify/random_inputs.h"
#include "ir/text/text.h"

namespace heddle::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

const std::string kFails =
    R"(call() {target = "fail", dtype = f32, shape = [2], code = 103, where = "a", why = "b", remedy = "c"})";

// A branch on a comparison of the input %sr with a number.
std::string branching(const std::string& number, const std::string& then, const std::string& other) {
  return "graph(%sr: i64[], %x: f32[2]) { %k = constant() {value = i64[] {" + number + R"(}}
      %c = eq(%sr, %k)
      %y = if(%c, %sr, %x) {then = graph(%s: i64[], %a: f32[2]) { )" +
         then + R"( return "y" = %b }, else = graph(%s: i64[], %a: f32[2]) { )" + other +
         R"( return "y" = %b }}
      return "y" = %y })";
}

TEST(BranchValues, AreWhatTheModelComparesTheInputWith) {
  EXPECT_THAT(branch_values(ir::parse(branching("16000", "%b = neg(%a)", "%b = exp(%a)"))),
              ElementsAre(Optional(16000), std::nullopt));
}

// Also where the comparison is inside of a branch that does not hold.
TEST(BranchValues, TakeBranchesThatHold) {
  const std::string inner = R"(%k = constant() {value = i64[] {8000}}
      %c = eq(%s, %k)
      %b = if(%c, %a) {then = graph(%p: f32[2]) { %q = exp(%p) return "y" = %q },
                       else = graph(%p: f32[2]) { %q = )" +
                            kFails + R"( return "y" = %q }})";
  EXPECT_THAT(branch_values(ir::parse(branching("16000", "%b = " + kFails, inner))),
              ElementsAre(Optional(8000), std::nullopt));
  EXPECT_THAT(branch_values(ir::parse(branching("16000", "%b = " + kFails, "%b = " + kFails))),
              ElementsAre(Optional(16000), std::nullopt));
}

TEST(BranchValues, OfABoolAreGivenOnlyWhereOneFails) {
  const auto text = [](const std::string& then) {
    return "graph(%c: bool[], %x: f32[2]) { %y = if(%c, %x) {then = graph(%a: f32[2]) { %b = " + then +
           R"( return "y" = %b }, else = graph(%a: f32[2]) { %b = exp(%a) return "y" = %b }}
      return "y" = %y })";
  };
  EXPECT_THAT(branch_values(ir::parse(text(kFails))), ElementsAre(Optional(0), std::nullopt));
  EXPECT_THAT(branch_values(ir::parse(text("neg(%a)"))), ElementsAre(std::nullopt, std::nullopt));
}

TEST(BranchValues, OfOtherInputsAreNone) {
  EXPECT_THAT(branch_values(ir::parse(R"(graph(%m: i64[]) { %k = constant() {value = i64[] {5}}
      %c = eq(%m, %k)
      return "y" = %c })")),
              ElementsAre(std::nullopt));
}

TEST(BranchValues, AreTakenForInputsAndTold) {
  runtime::Plan plan;
  plan.inputs = {{.name = "sr", .dtype = DType::kI64, .shape = {1}, .buffer = 0, .branch_value = 16000}};
  EXPECT_EQ(random_inputs(plan, 7).at("sr").values<int64_t>()[0], 16000);
  EXPECT_THAT(branch_guess(plan, {}), HasSubstr("sr = 16000"));
  EXPECT_EQ(branch_guess(plan, {{"sr", Tensor(DType::kI64, {1})}}), "");
}

}  // namespace
}  // namespace heddle::driver
