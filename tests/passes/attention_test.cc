// Which products, softmaxes and products are one group.
#include <gmock/gmock.h>

#include <algorithm>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "schedule/attention/form.h"

namespace heddle::passes {
namespace {

using testing::HasSubstr;

// `scores`: lines between the product %s and the softmax's operand %x; `more`: further outputs.
std::string attention(const std::string& scores = "%x = mul(%s, %c)", const std::string& more = "") {
  return R"(graph(%q: f32[3,4,8], %k: f32[3,6,8], %v: f32[3,6,8], %mask: f32[6]) {
      %c = constant {value = f32[3,4,6]{0.5}}
      %kt = transpose(%k) {perm = [0,2,1]}
      %s = dot(%q, %kt) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
      )" +
         scores +
         R"(
      %m = reduce(%x) {kind = "max", dims = [2]}
      %mb = broadcast(%m) {shape = [3,4,6], dims = [0,1]}
      %u = sub(%x, %mb)
      %e = exp(%u)
      %z = reduce(%e) {kind = "sum", dims = [2]}
      %one = constant {value = f32[3,4]{1}}
      %r = div(%one, %z)
      %rb = broadcast(%r) {shape = [3,4,6], dims = [0,1]}
      %p = mul(%e, %rb)
      %o = dot(%p, %v) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
      %t = transpose(%o) {perm = [1,0,2]}
      %y = reshape(%t) {shape = [4,24]}
      return "y" = %y)" +
         more + " }";
}

struct Result {
  std::vector<ir::Group> attentions;
  std::vector<ir::Decision> decisions;  // of the rule
};
Result fuse_text(const std::string& text, FusionPolicy policy = FusionPolicy::kStitch, bool accept = true,
                 bool accept_gathers = true) {
  const ir::Graph graph = ir::parse(text);
  FusionOptions options;
  options.policy = policy;
  const schedule::AttentionFinder attentions(graph);
  options.find_attention = [&](ir::NodeId product, const FusionOptions::MayView& may_view, std::string* reason) {
    return attentions.find(product, may_view, reason);
  };
  options.can_attend = [&](const ir::Group& group, std::string* reason) {
    EXPECT_EQ(group.outputs.size(), 1u);
    const bool gathers = std::any_of(group.nodes.begin(), group.nodes.end(),
                                     [&](ir::NodeId id) { return graph.node(id).op == ir::Op::kGather; });
    if (gathers && !accept_gathers) {
      *reason = "it reads no pages";
      return false;
    }
    *reason = accept ? "it is faster" : "it is slower";
    return accept;
  };
  const ir::Grouping grouping = fuse(graph, test_target(), options);
  check_contract(graph, grouping);
  Result result;
  for (const ir::Group& group : grouping.groups) {
    if (group.kind == ir::GroupKind::kAttention) result.attentions.push_back(group);
  }
  for (const ir::Decision& decision : grouping.decisions) {
    if (decision.rule == "attention") result.decisions.push_back(decision);
  }
  return result;
}

TEST(Attention, IsOneGroupWithTheLayoutsOfItsOperandsAndResult) {
  const Result result = fuse_text(attention());
  ASSERT_EQ(result.attentions.size(), 1u);
  EXPECT_EQ(result.attentions[0].nodes.size(), 14u);  // all
  ASSERT_EQ(result.decisions.size(), 1u);
  EXPECT_TRUE(result.decisions[0].yes);
  EXPECT_EQ(result.decisions[0].reason, "it is faster");
}

TEST(Attention, TakesMasksThatNothingElseReads) {
  const std::string mask = R"(%sm = mul(%s, %c)
      %mm = broadcast(%mask) {shape = [3,4,6], dims = [2]}
      %x = add(%sm, %mm))";
  const Result result = fuse_text(attention(mask));
  ASSERT_EQ(result.attentions.size(), 1u);
  EXPECT_EQ(result.attentions[0].nodes.size(), 16u);
  EXPECT_EQ(fuse_text(attention(mask, ", \"m\" = %mm")).attentions.at(0).nodes.size(), 15u);
}

TEST(Attention, LooksThroughReshapes) {
  const Result result =
      fuse_text(attention("%s4 = reshape(%s) {shape = [3,1,4,6]}\n%n = neg(%s4)\n"
                          "%x = reshape(%n) {shape = [3,4,6]}"));
  ASSERT_EQ(result.attentions.size(), 1u);
  EXPECT_EQ(fuse_text(attention("%s4 = reshape(%s) {shape = [18,4]}\n%n = neg(%s4)\n"
                                "%x = reshape(%n) {shape = [3,4,6]}"))
                .attentions.size(),
            1u);
  // Another score than the key's own.
  const Result other =
      fuse_text(attention("%s4 = reshape(%s) {shape = [3,6,4]}\n%n = transpose(%s4) {perm = [0,2,1]}\n"
                          "%x = add(%s, %n)"));
  EXPECT_TRUE(other.attentions.empty());
  EXPECT_THAT(other.decisions.at(0).reason, HasSubstr("several products"));
}

TEST(Attention, OfHeadsThatShareKeysStoresNoRepeatedKeys) {
  // 4 heads of queries for 2 heads of keys, repeated as exports do; new keys come after earlier ones.
  const std::string text = R"(graph(%q: f32[1,4,3,8], %past: f32[1,2,5,8], %new: f32[1,2,3,8], %v: f32[1,2,8,6]) {
      %k = concat(%past, %new) {dim = 2}
      %k1 = reshape(%k) {shape = [1,2,1,8,8]}
      %k2 = broadcast(%k1) {shape = [1,2,2,8,8], dims = [0,1,2,3,4]}
      %keys = reshape(%k2) {shape = [1,4,8,8]}
      %v1 = reshape(%v) {shape = [1,2,1,8,6]}
      %v2 = broadcast(%v1) {shape = [1,2,2,8,6], dims = [0,1,2,3,4]}
      %values = reshape(%v2) {shape = [1,4,8,6]}
      %s = dot(%q, %keys) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      %m = reduce(%s) {kind = "max", dims = [3]}
      %mb = broadcast(%m) {shape = [1,4,3,8], dims = [0,1,2]}
      %u = sub(%s, %mb)
      %e = exp(%u)
      %z = reduce(%e) {kind = "sum", dims = [3]}
      %zb = broadcast(%z) {shape = [1,4,3,8], dims = [0,1,2]}
      %p = div(%e, %zb)
      %o = dot(%p, %values) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      return "o" = %o, "k" = %k
    })";
  const ir::Graph canonical = run(text, {"canonicalize", "dce"});
  for (const ir::Node& node : canonical.nodes()) {
    if (node.op == ir::Op::kBroadcast) EXPECT_LE(element_count(canonical.shape(node.outputs[0])), 4 * 3 * 8);
  }
  const Result result = fuse_text(ir::print(canonical));
  ASSERT_EQ(result.attentions.size(), 1u);
}

TEST(Attention, KeepsOtherGroupsWhereItsValuesAreNeeded) {
  for (const char* value : {"%p", "%s", "%e", "%z"}) {
    const Result result = fuse_text(attention("%x = mul(%s, %c)", std::string(", \"more\" = ") + value));
    EXPECT_TRUE(result.attentions.empty()) << value;
    ASSERT_EQ(result.decisions.size(), 1u);
    EXPECT_FALSE(result.decisions[0].yes);
    EXPECT_THAT(result.decisions[0].reason, HasSubstr("needed outside"));
  }
  EXPECT_TRUE(fuse_text(attention(), FusionPolicy::kStitch, false).attentions.empty());
}

// Keys and values that a gather takes from pages of a pool, 16 keys each, by tables of two sequences.
std::string attention_of_pages(const std::string& values_table) {
  std::string text = R"(graph(%q: f32[2,4,8], %k0: f32[7,16,8], %v0: f32[7,16,8], %table: i64[2,3], %other: i64[2,3]) {
      %c = constant {value = f32[2,4,48]{0.5}}
      %k1 = gather(%k0, %table) {dim = 0}
      %k = reshape(%k1) {shape = [2,48,8]}
      %v1 = gather(%v0, TABLE) {dim = 0}
      %v = reshape(%v1) {shape = [2,48,8]}
      %s0 = dot(%q, %k) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
      %x = mul(%s0, %c)
      %m = reduce(%x) {kind = "max", dims = [2]}
      %mb = broadcast(%m) {shape = [2,4,48], dims = [0,1]}
      %u = sub(%x, %mb)
      %e = exp(%u)
      %z = reduce(%e) {kind = "sum", dims = [2]}
      %zb = broadcast(%z) {shape = [2,4,48], dims = [0,1]}
      %p = div(%e, %zb)
      %y = dot(%p, %v) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
      return "y" = %y })";
  return text.replace(text.find("TABLE"), 5, values_table);
}

TEST(Attention, ReadsKeysInPagesThroughTheirTable) {
  const Result result = fuse_text(attention_of_pages("%table"));
  ASSERT_EQ(result.attentions.size(), 1u);
  EXPECT_EQ(result.attentions[0].nodes.size(), 14u);  // all but the constant
  EXPECT_EQ(result.attentions[0].inputs.size(), 5u);  // q, both pools, the table, the constant
}

TEST(Attention, GathersPagesFirstWhereNoKernelReadsThem) {
  const Result refused = fuse_text(attention_of_pages("%table"), FusionPolicy::kStitch, true, false);
  ASSERT_EQ(refused.attentions.size(), 1u);
  EXPECT_EQ(refused.attentions[0].nodes.size(), 12u);  // without the gathers
  ASSERT_EQ(refused.decisions.size(), 1u);
  EXPECT_THAT(refused.decisions[0].reason, HasSubstr("gathered from their pages first: it reads no pages"));
  // Keys and values by different tables.
  const Result apart = fuse_text(attention_of_pages("%other"));
  ASSERT_EQ(apart.attentions.size(), 1u);
  EXPECT_EQ(apart.attentions[0].nodes.size(), 12u);
}

TEST(Attention, IsLeftApartByOtherPolicies) {
  EXPECT_TRUE(fuse_text(attention(), FusionPolicy::kBasic).attentions.empty());
  EXPECT_TRUE(fuse_text(attention(), FusionPolicy::kNone).attentions.empty());
}

TEST(Attention, IsASoftmaxOverTheKeys) {
  std::string text = attention();
  const auto replace = [&](const std::string& from, const std::string& to) {
    text = attention();
    text.replace(text.find(from), from.size(), to);
    return fuse_text(text);
  };
  // Whatever shifts all scores of a row cancels.
  EXPECT_EQ(replace("%u = sub(%x, %mb)", "%u = add(%x, %mb)").attentions.size(), 1u);
  EXPECT_TRUE(replace("kind = \"sum\"", "kind = \"max\"").decisions.empty());
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& why) {
    const Result result = replace(from, to);
    EXPECT_TRUE(result.attentions.empty()) << to;
    ASSERT_EQ(result.decisions.size(), 1u) << to;
    EXPECT_FALSE(result.decisions[0].yes);
    EXPECT_THAT(result.decisions[0].reason, HasSubstr(why));
  };
  refused("%one = constant {value = f32[3,4]{1}}", "%one = constant {value = f32[3,4]{2}}", "multiplied by 2");
  refused("%z = reduce(%e)", "%d = add(%u, %c)\n%f = exp(%d)\n%z = reduce(%f)", "other exponentials are summed");
  refused("%p = mul(%e, %rb)", "%p = mul(%x, %rb)", "no softmax");
  refused("%p = mul(%e, %rb)", "%p0 = mul(%e, %rb)\n%p = tanh(%p0)", "tanh comes after");
}

// Of several heads, of one head without a batch, and not where one side is a weight.
TEST(ScaleScores, FactorsMoveOntoProductsOfTwoValues) {
  const auto text = [](const std::string& batch, const std::string& dims, const std::string& key) {
    return "graph(%q: f32[" + batch + "4,8]" + (key == "input" ? ", %k: f32[" + batch + "6,8]" : "") + ") {" +
           (key == "input" ? "" : "%ks = constant {value = f32[" + batch + "6,8]{2}}") + R"(
      %c = constant {value = f32[]{0.25}}
      %cq = broadcast(%c) {shape = [)" +
           batch + R"(4,8], dims = []}
      %qs = mul(%q, %cq))" +
           (key == "input" ? "\n%ck = broadcast(%c) {shape = [" + batch + "6,8], dims = []}\n%ks = mul(%k, %ck)\n"
                           : "\n") +
           "%s = dot(%qs, %ks) {" + dims + R"(}
      %e = exp(%s)
      return "y" = %e })";
  };
  const std::string heads = "lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]",
                    head = "lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]";
  const auto scaled_product = [](const std::string& model) {
    const std::vector<std::string> passes = {"scale_scores", "dce"};
    const ir::Graph after = run_passes(ir::parse(model), passes, {Target::cuda_h200(1)});
    expect_same(ir::parse(model), after);
    const auto dot = std::find_if(after.nodes().begin(), after.nodes().end(),
                                  [](const ir::Node& node) { return node.op == ir::Op::kDot; });
    return after.producer(dot->inputs[0]).op == ir::Op::kParameter;
  };
  EXPECT_TRUE(scaled_product(text("3,", heads, "input")));
  EXPECT_TRUE(scaled_product(text("", head, "input")));
  EXPECT_FALSE(scaled_product(text("", head, "constant")));
}

}  // namespace
}  // namespace heddle::passes
