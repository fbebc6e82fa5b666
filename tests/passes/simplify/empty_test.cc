#include <algorithm>

#include "tests/passes/empty_graphs.h"
#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::Op;

// Nodes that a kernel would have to run on an extent of 0: all but empty broadcasts of a scalar.
size_t nodes_on_nothing(const ir::Graph& graph) {
  const auto empty = [&](ir::ValueId v) { return element_count(graph.shape(v)) == 0; };
  size_t count = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kParameter || node.op == Op::kConstant) continue;
    const bool filled = node.op == Op::kBroadcast && graph.constant_of(node.inputs[0]) != nullptr;
    count += !filled && (std::any_of(node.inputs.begin(), node.inputs.end(), empty) ||
                         std::any_of(node.outputs.begin(), node.outputs.end(), empty));
    for (const auto& [name, attr] : node.attrs) {
      const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr);
      if (body != nullptr) count += nodes_on_nothing(**body);
    }
  }
  return count;
}

TEST(DropEmpty, NoNodeIsLeftThatWorksOnNothing) {
  for (const EmptyGraph& c : empty_graphs()) {
    SCOPED_TRACE(c.name);
    const ir::Graph before = ir::parse(c.text);
    for (const Target& target : {Target::host_cpu(1), Target::cuda_h200(1)}) {
      const ir::Graph after = run_pipeline(before, {target, Precision::kF32});
      EXPECT_EQ(nodes_on_nothing(after), 0) << ir::print(after);
      expect_same(before, after);
    }
  }
}

TEST(DropEmpty, LoopsThatMayFailStay) {
  const auto has_loop = [](const std::string& node) {
    const ir::Graph graph = run(R"(graph(%x: f32[0,2], %n: i64[], %c: bool[]) {
      %r = loop(%n, %c, %x) {states = 1, scans = 0, body = graph(%i: i64[], %c: bool[], %s: f32[0,2]) {
        %t = )" + node + R"(
        return "c" = %c, "s" = %t
      }}
      return "y" = %r
    })",
                                {"drop_empty"});
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return n.op == Op::kLoop; });
  };
  EXPECT_FALSE(has_loop("exp(%s)"));
  EXPECT_TRUE(has_loop(
      R"(call() {target = "fail", dtype = f32, shape = [0,2], code = 301, where = "a", why = "b", remedy = "c"})"));
}

}  // namespace
}  // namespace heddle::passes
