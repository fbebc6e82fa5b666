// Attention by mma.sync on the emulated GPU, for a device without wgmma and for what its kernel does not read.
#include <cstdlib>
#include <random>

#include "attention_graphs.h"
#include "ir/text/text.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"
#include "tests/schedule/attention_chains.h"

namespace heddle {
namespace {

using testing::CudaBatch;
using Problem = testing::AttentionProblem;

const CudaBatch::Options kSm80 = {.sm = 80};

void add_mma(CudaBatch& batch, const Problem& p, const CudaBatch::Options& options = kSm80) {
  testing::add_attention(batch, p, options);
}

TEST(CudaMmaAttention, Sizes) {
  CudaBatch batch;
  for (const Problem& problem : testing::attention_sizes()) add_mma(batch, problem);
  testing::compile_and_run(batch);
}

// Rows that begin at multiples of 16, 8, 4 and 2 bytes.
TEST(CudaMmaAttention, HeadSizes) {
  CudaBatch batch;
  for (const int64_t depth : {8, 96, 256}) {
    add_mma(batch, {.type = depth % 16 == 0 ? "bf16" : "f16", .m = 70, .n = 150, .depth = depth, .width = depth});
  }
  for (const int64_t depth : {20, 34, 33}) {
    add_mma(batch, {.heads = 3, .m = 50, .n = 77, .depth = depth, .width = depth, .layout = "dense"});
    add_mma(batch, {.type = "bf16", .m = 9, .n = 100, .depth = depth, .width = 2 * depth - 25, .scores = "causal"});
  }
  testing::compile_and_run(batch);
}

TEST(CudaMmaAttention, ScoresAndMasks) {
  CudaBatch batch;
  for (const char* scores : {"plain", "mask", "rows", "causal", "finite", "window", "triangle", "biased"}) {
    if (scores[0] % 2 == 0) {
      add_mma(batch, {.batch = 2, .m = 77, .n = 77, .depth = 40, .width = 40, .scores = scores});
    } else {
      add_mma(batch,
              {.type = "bf16", .m = 70, .n = 301, .depth = 32, .width = 32, .scores = scores, .layout = "dense"});
    }
  }
  // Units of different lengths, more than a wave.
  add_mma(
      batch,
      {.batch = 9, .heads = 18, .m = 150, .n = 150, .depth = 16, .width = 16, .scores = "causal", .layout = "dense"});
  testing::compile_and_run(batch);
}

TEST(CudaMmaAttention, Lengths) {
  CudaBatch batch;
  CudaBatch::Options split = kSm80;
  split.split = true;
  for (const char* scores : {"length", "past"}) {
    add_mma(
        batch,
        {.batch = 7, .heads = 1, .m = 130, .n = 301, .depth = 32, .width = 32, .scores = scores, .layout = "dense"});
    add_mma(batch, {.type = "bf16", .batch = 7, .heads = 4, .m = 1, .n = 900, .scores = scores, .layout = "shared"});
    add_mma(batch,
            {.batch = 7, .heads = 1, .m = 5, .n = 700, .depth = 16, .width = 16, .scores = scores, .layout = "dense"},
            split);
  }
  testing::compile_and_run(batch);
}

// Keys in pages of a pool, smaller and larger than tiles of keys; f32, whose tiles are read again.
TEST(CudaMmaAttention, Pages) {
  CudaBatch batch;
  unsigned skip = 0;
  for (const int64_t page : {16, 64, 128}) {
    CudaBatch::Options options = kSm80;
    options.family = "attention", options.skip = skip++ * 5;
    add_mma(batch, {.batch = 2, .m = 70, .n = 200, .scores = "causal", .layout = "pages", .page = page}, options);
    add_mma(batch,
            {.type = "f32", .batch = 2, .m = 20, .n = 150, .depth = 32, .width = 40, .layout = "pages", .page = page});
    options.named = "key_warps";
    add_mma(batch,
            {.type = "bf16",
             .batch = 7,
             .heads = 4,
             .m = 1,
             .n = 500,
             .scores = "length",
             .layout = "pages",
             .page = page,
             .kv_heads = 2},
            options);
  }
  add_mma(batch, {.type = "tf32", .m = 9, .n = 100, .depth = 20, .width = 33, .layout = "pages", .page = 32});
  testing::compile_and_run(batch, CudaBatch::Compiled::kKinds);
}

// Tiles, rows of a warp, stages, parts of the keys.
TEST(CudaMmaAttention, Candidates) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(12));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options = kSm80;
    options.skip = i * 24 / count, options.family = "attention";
    add_mma(batch, {.heads = 4, .m = 150, .n = 520, .scores = "causal", .layout = "dense"}, options);
    add_mma(batch, {.type = "bf16", .heads = 16, .m = 200, .n = 111, .depth = 128, .width = 72}, options);
    options.split = true;
    add_mma(batch, {.m = 70, .n = 600, .depth = 32, .width = 48, .scores = "mask", .layout = "dense"}, options);
  }
  testing::compile_and_run(batch);
}

// Warps that have the same rows and different keys: fewer tiles than warps, one to sixteen rows, a tile that is not
// full.
TEST(CudaMmaAttention, FewRows) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(6));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.sm = i % 2 == 0 ? 90 : 80, options.skip = i * 24 / count, options.named = "key_warps";
    add_mma(batch, {.batch = 2, .heads = 3, .m = 1, .n = 521, .depth = 128, .width = 128}, options);
    add_mma(batch, {.type = "bf16", .heads = 2, .m = 16, .n = 300, .depth = 64, .width = 40, .scores = "mask"},
            options);
    add_mma(batch, {.heads = 5, .m = 7, .n = 30, .scores = "causal", .layout = "dense"}, options);
    add_mma(batch, {.m = 9, .n = 700, .depth = 256, .width = 256, .scores = "biased", .layout = "dense"}, options);
  }
  testing::compile_and_run(batch);
}

// Parts of the keys of few rows.
TEST(CudaMmaAttention, PartsOfFewRows) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(6));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.sm = i % 2 == 0 ? 90 : 80, options.skip = i * 24 / count, options.named = "key_warps", options.split = true;
    add_mma(batch, {.m = 5, .n = 1500, .scores = "rows", .layout = "dense"}, options);
    add_mma(batch, {.type = "bf16", .batch = 7, .heads = 4, .m = 1, .n = 900, .scores = "length", .layout = "shared"},
            options);
    add_mma(batch, {.batch = 7, .heads = 1, .m = 5, .n = 700, .scores = "past", .layout = "dense"}, options);
    add_mma(batch, {.type = "bf16", .m = 12, .n = 1111, .depth = 80, .width = 48, .scores = "finite"}, options);
  }
  testing::compile_and_run(batch);
}

TEST(CudaMmaAttention, Layouts) {
  CudaBatch batch;
  for (const char* type : {"f16", "bf16"}) {
    add_mma(batch, {.type = type, .batch = 3, .m = 130, .n = 130, .depth = 40, .width = 40, .layout = "sliced"});
    add_mma(batch, {.type = type, .batch = 2, .m = 9, .n = 136, .depth = 40, .width = 80, .layout = "keys"});
    add_mma(batch, {.type = type, .batch = 2, .m = 100, .n = 77, .depth = 80, .width = 40, .layout = "keys"});
    add_mma(batch, {.type = type, .batch = 2, .heads = 6, .m = 77, .n = 130, .layout = "shared"});
    add_mma(batch,
            {.type = type, .batch = 3, .heads = 4, .m = 1, .n = 700, .depth = 128, .width = 128, .layout = "shared"});
  }
  testing::compile_and_run(batch);
}

// The attention of a model as its passes leave it.
void add_mma(CudaBatch& batch, const testing::AttentionChain& chain) {
  const bool wide = chain.type == DType::kF32;
  const ir::Graph graph = testing::optimized(chain.graph(), wide ? passes::Precision::kF16 : passes::Precision::kF32);
  CudaBatch::Options options = kSm80;
  options.kind = ir::GroupKind::kAttention;
  options.tolerance = chain.type == DType::kBF16 ? 2e-2 : 4e-3;
  int count = 0;
  for (const ir::Group& group : testing::grouped(graph, Target::cuda_h200(1)).groups) {
    if (group.kind != ir::GroupKind::kAttention) continue;
    batch.add_graph(chain.text(), testing::graph_of(graph, group), options);
    ++count;
  }
  EXPECT_EQ(count, 1) << chain.text();
}

TEST(CudaMmaAttention, AsModelsWriteIt) {
  using Chain = testing::AttentionChain;
  CudaBatch batch;
  add_mma(batch,
          Chain{.scale = Chain::Scale::kBoth, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan});
  add_mma(batch, Chain{.heads = 8, .groups = 2, .shared = Chain::Groups::kExpand, .mask = Chain::Mask::kCausalMin});
  add_mma(batch, Chain{.type = DType::kBF16, .heads = 8, .groups = 2, .shared = Chain::Groups::kFreeDims, .cap = true});
  add_mma(batch, Chain{.type = DType::kBF16, .softmax = Chain::Softmax::kBehindFactor, .bias = true, .windows = true});
  add_mma(batch, Chain{.n = 12, .mask = Chain::Mask::kTriangle, .packed = true, .norm = true});
  add_mma(batch, Chain{.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .sink = true});
  add_mma(batch, Chain{.type = DType::kBF16, .m = 70, .n = 300, .sink = true});
  testing::compile_and_run(batch);
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on.
TEST(CudaMmaAttention, RandomChains) {
  const auto setting = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  CudaBatch batch;
  const int first = setting("HEDDLE_SEED", 1), count = setting("HEDDLE_CHAINS", 3);
  for (int seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    add_mma(batch, testing::random_chain(random));
  }
  testing::compile_and_run(batch);
}

// What TMA does not read: rows at odd addresses, keys at odd addresses.
TEST(CudaMmaAttention, BesideWarpgroups) {
  const Target target = Target::cuda_h200(1);
  const auto by_warps = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(testing::attention_text(p));
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const auto scheduled = schedule::schedule_attention(graph, group, target);
    return schedule::is_by_warps(scheduled.kernels.at(0).config.as<schedule::CudaAttentionConfig>());
  };
  EXPECT_FALSE(by_warps({.batch = 32, .heads = 12, .m = 128, .n = 128}));
  EXPECT_TRUE(by_warps({.m = 64, .n = 64, .depth = 20, .width = 20}));
  EXPECT_TRUE(by_warps({.m = 64, .n = 77, .layout = "keys"}));
  CudaBatch batch;
  testing::add_attention(batch, {.m = 64, .n = 64, .depth = 20, .width = 20});
  testing::add_attention(batch, {.m = 64, .n = 77, .layout = "keys"});
  testing::compile_and_run(batch);
}

TEST(CudaMmaAttention, LargeOnesDoNotSpill) {
  CudaBatch batch;
  for (const int64_t depth : {256, 128, 64, 40, 96, 192}) {
    add_mma(batch, {.batch = 8, .heads = 16, .m = 2048, .n = 2048, .depth = depth, .width = depth, .layout = "dense"});
    add_mma(batch, {.batch = 8, .heads = 16, .m = 1024, .n = 1024, .depth = depth, .width = depth, .scores = "causal"});
    add_mma(batch, {.batch = 4, .m = 1, .n = 8192, .depth = depth, .width = depth, .layout = "dense"});
  }
  batch.compile();
}

}  // namespace
}  // namespace heddle
