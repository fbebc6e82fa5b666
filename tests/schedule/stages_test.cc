#include "schedule/region/cuda/stages/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/log.h"
#include "ir/builder.h"
#include "tests/codegen/harness.h"

namespace heddle::schedule {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;
using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Sets $HEDDLE_LOG and collects what is told.
class Told {
 public:
  explicit Told(const char* topics) {
    setenv("HEDDLE_LOG", topics, 1);
    set_log_sink([this](LogLevel, std::string_view message) { lines.emplace_back(message); });
  }
  ~Told() {
    set_log_sink({});
    unsetenv("HEDDLE_LOG");
  }
  std::vector<std::string> lines;
};

ir::Graph rows_minus_their_largest() {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {256, 768}});
  const ValueId most = b.broadcast(b.reduce("max", x, {1}), {256, 768}, {0});
  graph.output("y", b.unary(Op::kExp, b.sub(x, most)));
  return graph;
}

TEST(CudaStages, EachStepIsToldToWhoeverAsks) {
  const ir::Graph graph = rows_minus_their_largest();
  const Told told("info,stages");
  schedule(graph, heddle::testing::whole_graph(graph), Target::cuda_h200(2));
  std::vector<std::string> steps, found;
  for (const StageStep<CudaDrafts>& step : cuda_stage_steps()) steps.emplace_back(step.name);
  for (const std::string& line : told.lines) found.push_back(line.substr(0, line.find(':')));
  EXPECT_THAT(found, ElementsAreArray(steps));
  EXPECT_THAT(told.lines.back(), HasSubstr("max"));
}

// Rows that fit an SM twice in 16 bits, and once beside their exponentials in 32.
TEST(CudaStages, ExponentialsDoNotTakeThePlaceOfAnSmsSecondBlock) {
  ir::Graph graph;
  Builder b(graph);
  const Shape shape = {1024, 50257};
  const ValueId x = b.cast(graph.parameter("x", {DType::kF16, shape}), DType::kF32);
  const ValueId e = b.unary(Op::kExp, b.sub(x, b.broadcast(b.reduce("max", x, {1}), shape, {0})));
  graph.output("y", b.cast(b.div(e, b.broadcast(b.reduce("sum", e, {1}), shape, {0})), DType::kF16));
  const ScheduledGroup scheduled = schedule(graph, heddle::testing::whole_graph(graph), Target::cuda_h200());
  ASSERT_EQ(scheduled.kernels.size(), 1u);
  std::vector<std::string> reasons;
  for (const SchemeChoice& scheme : scheduled.kernels[0].stitch.schemes) reasons.push_back(scheme.reason);
  EXPECT_THAT(reasons, Contains(HasSubstr("shared memory")));
  EXPECT_THAT(reasons, Contains(HasSubstr("second block")));
}

// Rows are stored as [m, k] and as [k, m], with sums over the rows of both. A kernel computes them in one order.
TEST(CudaStages, RowsInTwoOrdersAreReadOnce) {
  constexpr int64_t kM = 197, kK = 64, kN = 768;
  ir::Graph graph;
  Builder b(graph);
  const auto turned = [&](ValueId v) { return b.emit(Op::kTranspose, {v}, {{"perm", ir::Ints{1, 0, 2}}}); };
  const ValueId dy = graph.parameter("dy", {DType::kBF16, {kK * kM, kN}});
  const ValueId rows = turned(b.cast(b.reshape(dy, {kK, kM, kN}), DType::kF32));
  const ValueId x = turned(graph.parameter("x", {DType::kF32, {kK, kM, kN}}));
  const ValueId c = b.broadcast(b.reduce("sum", b.mul(rows, x), {2}), {kM, kK, kN}, {0, 1});
  const ValueId y = b.add(graph.parameter("r", {DType::kF32, {kM, kK, kN}}), b.mul(x, c));
  graph.output("y", y);
  graph.output("turned", b.reshape(turned(y), {kK * kM, kN}));
  graph.output("dg", b.reduce("sum", b.mul(rows, x), {0, 1}));
  graph.output("db", b.reduce("sum", dy, {0}));
  graph.output("bias", b.reduce("sum", b.reshape(y, {kM * kK, kN}), {0}));
  const ScheduledGroup scheduled = schedule(graph, heddle::testing::whole_graph(graph), Target::cuda_h200());
  ASSERT_EQ(scheduled.kernels.size(), 2u);
  const auto body = scheduled.kernels[0].desc.get<CudaStitchDesc>();
  ASSERT_NE(body, nullptr);
  std::map<uint32_t, std::set<ExprId>> loads;  // by operand
  for (const auto* stages : {&body->ahead, &body->stages}) {
    for (const CudaStage& stage : *stages) {
      visit_exprs(body->pool, stage.roots(), [&](ExprId e) {
        const Expr& expr = body->pool[e];
        if (expr.kind == Expr::Kind::kLoad && expr.id < scheduled.kernels[0].desc.operands.size()) {
          loads[expr.id].insert(e);
        }
      });
    }
  }
  EXPECT_EQ(loads.size(), 3u);
  for (const auto& [operand, found] : loads) EXPECT_EQ(found.size(), 1u) << operand;
}

TEST(CudaStages, NothingIsToldUnasked) {
  const ir::Graph graph = rows_minus_their_largest();
  const Told told("warning");
  schedule(graph, heddle::testing::whole_graph(graph), Target::cuda_h200(2));
  EXPECT_TRUE(told.lines.empty());
}

}  // namespace
}  // namespace heddle::schedule
