// Which contractions are one group with the next one.
#include "schedule/back_to_back/back_to_back.h"

#include <gmock/gmock.h>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"

namespace heddle::passes {
namespace {

using ::testing::HasSubstr;

struct Fused {
  std::vector<ir::Group> pairs;
  std::vector<ir::Decision> decisions;  // of the rule
};
// `accept`: what the schedule says to each pair that has a form.
Fused fuse_products(const std::string& text, FusionOptions options = {}, bool accept = true) {
  const ir::Graph graph = ir::parse(text);
  options.can_run_back_to_back = [&](const ir::Group& group, std::string* reason) {
    EXPECT_EQ(group.outputs.size(), 1u);
    try {
      const schedule::BackToBackForm form = schedule::back_to_back_form(graph, group);
      EXPECT_EQ(form.first.outputs, std::vector<ir::ValueId>{form.inner});
      EXPECT_EQ(form.second.outputs, group.outputs);
      EXPECT_EQ(form.first.nodes.size() + form.second.nodes.size(), group.nodes.size());
    } catch (const Error& error) {
      *reason = error.why();
      return false;
    }
    *reason = accept ? "it is faster" : "it is slower";
    return accept;
  };
  const ir::Grouping grouping = fuse(graph, test_target(), options);
  check_contract(graph, grouping);
  Fused result;
  for (const ir::Group& group : grouping.groups) {
    if (group.kind == ir::GroupKind::kBackToBack) result.pairs.push_back(group);
  }
  for (const ir::Decision& decision : grouping.decisions) {
    if (decision.rule == "back_to_back") result.decisions.push_back(decision);
  }
  return result;
}

constexpr const char* kPlainDot = " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}";

// A product of `last` behind one with a bias and an activation. `more`: further outputs.
std::string two_dots(const std::string& between = "", const std::string& last = "%r", const std::string& more = "") {
  return std::string("graph(%x: f32[6,8], %w: f32[8,4], %v: f32[4,5], %b: f32[4], %s: f32[6,5]) {\n") +
         "%d = dot(%x, %w)" + kPlainDot + "\n%bb = broadcast(%b) {shape = [6,4], dims = [1]}\n%a = add(%d, %bb)\n" +
         "%zero = constant {value = f32[6,4]{0}}\n%r = max(%a, %zero)\n" + between + "%e = dot(" + last + ", %v)" +
         kPlainDot + "\n%y = add(%e, %s)\nreturn \"y\" = %y" + more + " }";
}

TEST(BackToBack, IsOneGroupWithWhatLiesBetweenAndBehind) {
  const Fused result = fuse_products(two_dots());
  ASSERT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.pairs[0].nodes.size(), 6u);
  ASSERT_EQ(result.decisions.size(), 1u);
  EXPECT_TRUE(result.decisions[0].yes);
  EXPECT_EQ(result.decisions[0].reason, "it is faster");
}

TEST(BackToBack, LooksThroughViews) {
  const Fused result =
      fuse_products(two_dots("%t = reshape(%r) {shape = [2,3,4]}\n%u = reshape(%t) {shape = [6,4]}\n", "%u"));
  ASSERT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.pairs[0].nodes.size(), 8u);
}

TEST(BackToBack, StaysApartWhereTheScheduleOrTheCallerSaysSo) {
  const Fused refused = fuse_products(two_dots(), {}, false);
  EXPECT_TRUE(refused.pairs.empty());
  ASSERT_EQ(refused.decisions.size(), 1u);
  EXPECT_FALSE(refused.decisions[0].yes);
  EXPECT_EQ(refused.decisions[0].reason, "it is slower");
  FusionOptions options;
  options.rules.back_to_back = false;
  EXPECT_TRUE(fuse_products(two_dots(), options).pairs.empty());
  options = {};
  options.policy = FusionPolicy::kBasic;
  EXPECT_TRUE(fuse_products(two_dots(), options).pairs.empty());
}

TEST(BackToBack, StaysApartWhereTheFirstResultIsNeededElsewhere) {
  for (const std::string value : {"%r", "%a"}) {
    const Fused result = fuse_products(two_dots("", "%r", ", \"more\" = " + value));
    EXPECT_TRUE(result.pairs.empty()) << value;
    ASSERT_EQ(result.decisions.size(), 1u) << value;
    EXPECT_THAT(result.decisions[0].reason, HasSubstr(value == "%r" ? "needed elsewhere" : "other results"));
  }
}

TEST(BackToBack, ChainsOfThreeAreOneGroupWhereTheScheduleTakesThem) {
  const std::string more = std::string("%f = dot(%e, %q)") + kPlainDot + "\nreturn \"y\" = %f }";
  std::string text = two_dots();
  text = text.substr(0, text.find("%y = ")) + more;
  text.replace(text.find("%s: f32[6,5]"), 12, "%q: f32[5,3]");
  const Fused result = fuse_products(text);
  ASSERT_EQ(result.pairs.size(), 1u);
  EXPECT_EQ(result.pairs[0].outputs.size(), 1u);
}

// A convolution of 3x3 and another one.
std::string two_convs(const std::string& window, const std::string& attributes, const std::string& result) {
  return R"(graph(%x: f32[2,6,6,3]) {
      %w = constant {value = f32[4,3,3,3]{1}}
      %v = constant {value = f32[5,4,)" +
         window + R"(]{1}}
      %d = conv(%x, %w) {strides = [1,1], dilations = [1,1], lhs_dilations = [1,1], low = [1,1], high = [1,1], groups = 1, layout = "nhwc"}
      %a = abs(%d)
      %e = conv(%a, %v) {)" +
         attributes + R"(, dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f32)" + result + R"(
      return "y" = %e })";
}

TEST(BackToBack, TakesConvolutionsOfOnePixelOnly) {
  const Fused result = fuse_products(two_convs("1,1", "strides = [1,1], low = [0,0], high = [0,0]", "[2,6,6,5]"));
  ASSERT_EQ(result.pairs.size(), 1u);
  for (const auto& [window, attributes, shape] :
       {std::tuple("3,3", "strides = [1,1], low = [1,1], high = [1,1]", "[2,6,6,5]"),
        std::tuple("1,1", "strides = [2,2], low = [0,0], high = [0,0]", "[2,3,3,5]")}) {
    const Fused other = fuse_products(two_convs(window, attributes, shape));
    EXPECT_TRUE(other.pairs.empty());
    ASSERT_EQ(other.decisions.size(), 1u);
    EXPECT_THAT(other.decisions[0].reason, HasSubstr("neighbours"));
  }
}

}  // namespace
}  // namespace heddle::passes
