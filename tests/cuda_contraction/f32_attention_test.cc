// Attention of f32 on the emulated GPU: rounded to tf32, and in two parts of it.
#include <random>

#include "attention_graphs.h"
#include "ir/text/text.h"
#include "schedule/attention/attention.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"
#include "tests/schedule/attention_chains.h"

namespace heddle {
namespace {

using testing::CudaBatch;
using Problem = testing::AttentionProblem;

class CudaF32Attention : public ::testing::TestWithParam<const char*> {
 protected:
  void add(Problem p, const CudaBatch::Options& options = {}) {
    p.type = GetParam();
    testing::add_attention(batch_, p, options);
  }
  void run() { testing::compile_and_run(batch_); }
  // In one panel: two parts of tf32 take more registers.
  static int64_t widest() { return std::string(GetParam()) == "tf32" ? 256 : 192; }

  CudaBatch batch_;
};

TEST_P(CudaF32Attention, Sizes) {
  for (const Problem& problem : testing::attention_sizes()) add(problem);
  run();
}

// Lines of 64 bytes and of more; rows that begin at multiples of 16, 8 and 4 bytes.
TEST_P(CudaF32Attention, HeadSizes) {
  for (const int64_t depth : {int64_t{8}, int64_t{96}, widest()})
    add({.m = 70, .n = 150, .depth = depth, .width = depth});
  for (const int64_t depth : {20, 34, 33}) {
    add({.heads = 3, .m = 50, .n = 77, .depth = depth, .width = depth, .layout = "dense"});
    add({.m = 9, .n = 100, .depth = depth, .width = 2 * depth - 25, .scores = "causal"});
  }
  run();
}

TEST_P(CudaF32Attention, ScoresAndMasks) {
  for (const char* scores : {"plain", "mask", "rows", "causal", "finite", "window", "triangle", "biased", "few"}) {
    add({.batch = 2, .m = 77, .n = 77, .depth = 40, .width = 40, .scores = scores});
  }
  add({.batch = 7, .heads = 4, .m = 1, .n = 900, .scores = "length", .layout = "shared"});
  add({.batch = 7, .heads = 1, .m = 130, .n = 301, .depth = 32, .width = 32, .scores = "past", .layout = "dense"});
  run();
}

TEST_P(CudaF32Attention, Layouts) {
  add({.batch = 3, .m = 130, .n = 130, .depth = 40, .width = 40, .layout = "sliced"});
  add({.batch = 2, .m = 9, .n = 136, .depth = 40, .width = 64, .layout = "keys"});
  add({.batch = 2, .m = 100, .n = 77, .depth = 80, .width = 40, .layout = "keys"});
  add({.batch = 2, .heads = 6, .m = 77, .n = 130, .layout = "shared"});
  run();
}

// Tiles, rows of a warp, stages, parts of the keys.
TEST_P(CudaF32Attention, Candidates) {
  const auto count = static_cast<unsigned>(test::instances(12));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.skip = i * 24 / count, options.family = "attention";
    add({.heads = 4, .m = 150, .n = 520, .scores = "causal", .layout = "dense"}, options);
    add({.heads = 16, .m = 200, .n = 111, .depth = 128, .width = 72}, options);
    options.split = true;
    add({.m = 70, .n = 600, .depth = 32, .width = 48, .scores = "mask", .layout = "dense"}, options);
  }
  run();
}

// Numbers that have no two parts in tf32: Q and K as a whole, V, a few of them.
TEST_P(CudaF32Attention, LargeAndSmallNumbers) {
  const float large = 0x1p+123f, small = 0x1p-124f;
  for (const std::vector<float>& factors :
       {std::vector<float>{large, small, 1}, {small, large, 1}, {1, 1, 0x1p+120f}, {1, 1, 0x1p-119f}}) {
    CudaBatch::Options options;
    options.factors = factors;
    add({.m = 70, .n = 150, .depth = 40, .width = 72, .layout = "dense"}, options);
    add({.heads = 3, .m = 200, .n = 77, .depth = 96, .width = 24, .scores = "causal", .layout = "dense"}, options);
    add({.m = 200, .n = 77, .depth = 24, .width = 33, .layout = "keys"}, options);
  }
  run();
}

// The attention of a model as its passes leave it.
TEST_P(CudaF32Attention, AsModelsWriteIt) {
  using Chain = testing::AttentionChain;
  std::vector<Chain> chains = {
      {.scale = Chain::Scale::kBoth, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan},
      {.heads = 8, .groups = 2, .shared = Chain::Groups::kExpand, .mask = Chain::Mask::kCausalMin},
      {.softmax = Chain::Softmax::kBehindFactor, .bias = true, .windows = true},
      {.m = 70, .n = 300, .sink = true},
      {.n = 12, .mask = Chain::Mask::kTriangle, .packed = true, .norm = true}};
  std::mt19937 random(7);
  for (int i = 0; i < 4; ++i) chains.push_back(testing::random_chain(random));
  const bool rounds = std::string(GetParam()) == "tf32";
  for (Chain& chain : chains) {
    chain.type = DType::kF32;
    const ir::Graph graph =
        testing::optimized(chain.graph(), rounds ? passes::Precision::kTf32 : passes::Precision::kF32);
    CudaBatch::Options options;
    options.kind = ir::GroupKind::kAttention, options.tolerance = rounds ? 4e-3 : 1e-5;
    int count = 0;
    for (const ir::Group& group : testing::grouped(graph, Target::cuda_h200(1), true).groups) {
      if (group.kind != ir::GroupKind::kAttention) continue;
      batch_.add_graph(chain.text(), testing::graph_of(graph, group), options);
      ++count;
    }
    EXPECT_EQ(count, 1) << chain.text();
  }
  run();
}

// What the kernel rounds is what the model's products may round.
TEST_P(CudaF32Attention, PrecisionOfTheProducts) {
  Problem problem;
  problem.type = GetParam();
  std::string text = testing::attention_text(problem);
  const auto rounds = [&] {
    const ir::Graph graph = ir::parse(text);
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const auto scheduled = schedule::schedule_attention(graph, group, Target::cuda_h200(1));
    return std::get<std::shared_ptr<const schedule::AttentionDesc>>(scheduled.kernels.at(0).desc.body)->tf32;
  };
  EXPECT_EQ(rounds(), problem.type == "tf32");
  if (const size_t at = text.rfind(", tf32 = 1"); at != std::string::npos) text.erase(at, 10);
  EXPECT_FALSE(rounds());  // one of them is exact
}

TEST_P(CudaF32Attention, LargeOnesDoNotSpill) {
  for (const int64_t depth : {widest(), int64_t{128}, int64_t{64}, int64_t{40}, int64_t{96}, int64_t{80}}) {
    add({.batch = 8, .heads = 16, .m = 2048, .n = 2048, .depth = depth, .width = depth, .layout = "dense"});
    add({.batch = 8, .heads = 16, .m = 1024, .n = 1024, .depth = depth, .width = depth, .scores = "causal"});
    add({.batch = 4, .m = 1, .n = 8192, .depth = depth, .width = depth, .layout = "dense"});
  }
  batch_.compile();
}

INSTANTIATE_TEST_SUITE_P(Precisions, CudaF32Attention, ::testing::Values("f32", "tf32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace heddle
