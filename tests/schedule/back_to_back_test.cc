// Which pairs of contractions are one kernel, and why.
#include "schedule/back_to_back/back_to_back.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "ir/text/text.h"
#include "product_chains.h"
#include "schedule/back_to_back/cuda.h"
#include "tests/codegen/harness.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
using testing::ProductChain;

// What the schedule says to a chain whose nodes are all one group.
struct Answer {
  bool yes;
  std::string reason;
};
Answer ask(const std::string& text, const Target& target = Target::cuda_h200(1)) {
  const ir::Graph graph = ir::parse(text);
  Answer answer;
  answer.yes = schedule::can_run_back_to_back(graph, testing::whole_graph(graph, ir::GroupKind::kBackToBack), target,
                                              &answer.reason);
  return answer;
}

TEST(BackToBack, IsOneKernelWhereMovingTheFirstResultCosts) {
  for (const ProductChain& chain : {ProductChain{.m = 16384, .k = 256, .n0 = 64, .n1 = 16},
                                    ProductChain{.type = "bf16", .m = 128320, .k = 96, .n0 = 32, .n1 = 96}}) {
    const Answer answer = ask(chain.text());
    EXPECT_TRUE(answer.yes) << answer.reason;
    EXPECT_THAT(answer.reason, HasSubstr("us as two kernels"));
  }
}

TEST(BackToBack, IsTwoWhereProductsTakeLonger) {
  const Answer wide =
      ask(ProductChain{.conv = true, .images = 32, .height = 56, .width = 56, .k = 256, .n0 = 256, .n1 = 64}.text());
  EXPECT_FALSE(wide.yes);
  EXPECT_THAT(wide.reason, HasSubstr("us predicted"));
}

// A refusal whose figures would argue for one kernel names what decided.
TEST(BackToBack, FiguresOfAReasonAgreeWithTheDecision) {
  int small_gains = 0;
  for (const int64_t n1 : {16, 32, 48, 64, 96, 128, 192, 256}) {
    const Answer answer = ask(ProductChain{.m = 16384, .k = 256, .n0 = 64, .n1 = n1}.text());
    double one = 0, two = 0;
    const size_t figures = answer.reason.rfind(": ");
    ASSERT_NE(figures, std::string::npos) << answer.reason;
    ASSERT_EQ(std::sscanf(answer.reason.c_str() + figures, ": %lf us predicted, %lf us", &one, &two), 2)
        << answer.reason;
    const bool little = answer.reason.find("the gain is less than the 5%") != std::string::npos;
    EXPECT_EQ(answer.yes, one < two && !little) << answer.reason;
    small_gains += little ? 1 : 0;
  }
  EXPECT_GT(small_gains, 0);
}

TEST(BackToBack, RefusesWhatNoBlockHoldsOrMultiplies) {
  EXPECT_THAT(ask(ProductChain{.m = 1024, .k = 1024, .n0 = 1024, .n1 = 64}.text()).reason,
              HasSubstr("makes 1024 columns"));
  EXPECT_THAT(ask(ProductChain{.type = "f32"}.text()).reason, HasSubstr("f16"));
  EXPECT_THAT(ask(ProductChain{.conv = true, .groups = 32, .k = 32, .n0 = 32}.text()).reason, HasSubstr("depthwise"));
  EXPECT_THAT(ask(ProductChain{.conv = true, .groups = 4, .k = 32, .n0 = 32}.text()).reason, HasSubstr("sizes"));
}

// Rows of the second product are columns of the first.
TEST(BackToBack, RefusesOtherRowsThanTheFirstOneMakes) {
  const Answer answer = ask(R"(graph(%x: f16[64,32], %w: f16[32,64], %v: f16[64,16]) {
      %d = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %t = transpose(%d) {perm = [1,0]}
      %e = dot(%t, %v) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      return "y" = %e })");
  EXPECT_FALSE(answer.yes);
  EXPECT_THAT(answer.reason, HasSubstr("rows"));
}

TEST(BackToBack, TakesTheGroupApart) {
  const ir::Graph graph = ir::parse(ProductChain{.residual0 = true, .residual1 = true}.text());
  const ir::Group group = testing::whole_graph(graph, ir::GroupKind::kBackToBack);
  const schedule::BackToBackForm form = schedule::back_to_back_form(graph, group);
  EXPECT_EQ(graph.node(form.first.anchor).op, ir::Op::kDot);
  EXPECT_EQ(form.second.anchor, group.anchor);
  EXPECT_LT(form.first.anchor, group.anchor);
  EXPECT_EQ(form.first.outputs, std::vector<ir::ValueId>{form.inner});
  EXPECT_EQ(form.second.outputs, group.outputs);
  EXPECT_EQ(graph.producer(form.inner).op, ir::Op::kMax);
}

// Where D0 is in registers and where in shared memory, every configuration fits the device and has a prediction.
TEST(BackToBack, CandidatesFitTheDevice) {
  for (const Target& target : {Target::cuda_h200(1)}) {
    for (const int64_t n0 : {16, 64, 200}) {
      const ir::Graph graph = ir::parse(ProductChain{.m = 8192, .k = 64, .n0 = n0, .n1 = 64}.text());
      const ir::Group group = testing::whole_graph(graph, ir::GroupKind::kBackToBack);
      const schedule::ScheduledKernel kernel = schedule::schedule_back_to_back(graph, group, target).kernels.at(0);
      const auto& desc = *std::get<std::shared_ptr<const schedule::CudaBackToBackDesc>>(kernel.desc.body);
      const auto candidates =
          schedule::back_to_back_candidates(schedule::tasks_of(desc, kernel.desc.operands), target.cuda);
      int in_registers = 0, in_shared_memory = 0;
      for (const schedule::CudaCandidate& c : candidates) {
        if (!c.rejected.empty()) continue;
        const auto& config = c.config.as<schedule::CudaBackToBackConfig>();
        (config.in_registers ? in_registers : in_shared_memory) += 1;
        EXPECT_GT(c.config.predicted_us, 0);
        const auto launches = schedule::plan_launches(desc, kernel.desc.operands, config);
        EXPECT_LE(launches.launches.at(0).shared_bytes, target.cuda.shared_bytes_per_block);
      }
      EXPECT_GT(in_shared_memory, 0) << n0;
      EXPECT_EQ(in_registers > 0, n0 <= 128) << n0;
      EXPECT_EQ(kernel.config.predicted_us, candidates.front().config.predicted_us);
    }
  }
}

}  // namespace
}  // namespace heddle
