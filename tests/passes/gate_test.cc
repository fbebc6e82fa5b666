// Gated products (passes/contraction/gate_dots.h): what the pass makes, and what fusion says of it.
#include <fmt/format.h>

#include <algorithm>

#include "gated_graphs.h"
#include "ir/analysis/gated_product.h"
#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"
#include "schedule/kernel_desc.h"

namespace heddle::passes {
namespace {

using testing::gated_graph;
using testing::gated_text;
using testing::GatedForm;

ir::Graph gated(const ir::Graph& graph, const Target& target = Target::cuda_h200(1)) {
  const std::vector<std::string> names = {"canonicalize", "gate_dots"};
  return run_passes(graph, names, {target});
}

size_t dots(const ir::Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [](const ir::Node& node) { return node.op == ir::Op::kDot; }));
}

ir::Grouping fused(const ir::Graph& graph, const Target& target) {
  FusionOptions options;
  options.can_compile = [&](const ir::Node& node, std::string* reason) {
    return schedule::can_compile(graph, node, target, reason);
  };
  return fuse(graph, target, options);
}

TEST(GateDots, KeepsTheMeaning) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const GatedForm form = GatedForm::random(seed);
    const ir::Graph before = gated_graph(form, seed), after = gated(before);
    EXPECT_EQ(dots(after), 1u) << name_of(form);
    expect_same(before, after, 1e-5, seed);
  }
}

TEST(GateDots, OneKernelHasAllOfIt) {
  const Target gpu = Target::cuda_h200(1);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const GatedForm form = GatedForm::random(seed);
    const ir::Graph after = gated(gated_graph(form, seed));
    const ir::Grouping grouping = fused(after, gpu);
    check_contract(after, grouping);
    EXPECT_EQ(grouping.groups.size(), 1u) << name_of(form);
    EXPECT_TRUE(std::any_of(grouping.decisions.begin(), grouping.decisions.end(), [](const ir::Decision& d) {
      return d.rule == "gate" && d.yes;
    })) << name_of(form);
  }
}

// The reason why products stay two; empty: they do not.
std::string refusal(const std::string& text) {
  const ir::Graph after = gated(ir::parse(text));
  for (const ir::Decision& d : fused(after, Target::cuda_h200(1)).decisions) {
    if (d.rule == "gate" && !d.yes) return d.reason;
  }
  return "";
}

TEST(GateDots, StayTwoForAReason) {
  EXPECT_EQ(refusal(gated_text({})), "");
  EXPECT_NE(refusal(gated_text({.n = 60})).find("groups of 8"), std::string::npos);
  EXPECT_NE(refusal(gated_text({.n = 13, .split = true})).find("groups of 8"), std::string::npos);
  std::string inputs = gated_text({.lead = {64}, .n = 64, .k = 64});
  for (const char* name : {"%w0", "%w1"}) {
    const size_t at = inputs.find(fmt::format("{} = constant", name));
    inputs.erase(at, inputs.find('\n', at) - at);
    inputs.insert(inputs.find(')'), fmt::format(", {}: f16[64,64]", name));
  }
  EXPECT_NE(refusal(inputs).find("constants"), std::string::npos);
}

TEST(GateDots, AreLeftAloneWhereOthersReadThem) {
  std::string text = gated_text({});
  text.replace(text.rfind("return"), std::string::npos, "return \"y\" = %y, \"a\" = %a }");
  EXPECT_EQ(dots(gated(ir::parse(text))), 2u);
  EXPECT_EQ(dots(gated(ir::parse(gated_text({})), test_target())), 2u) << "kernels of a CPU do not gate";
}

}  // namespace
}  // namespace heddle::passes
