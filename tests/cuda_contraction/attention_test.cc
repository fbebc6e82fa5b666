// Attention as one kernel on the emulated GPU: sizes that fill no tile, layouts, masks.
#include "schedule/attention/attention.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "attention_graphs.h"
#include "ir/text/text.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"
#include "tests/schedule/attention_chains.h"

namespace heddle {
namespace {

using testing::CudaBatch;

using testing::attention_text;
using Problem = testing::AttentionProblem;

void add(CudaBatch& batch, const Problem& p, const CudaBatch::Options& options = {}) {
  testing::add_attention(batch, p, options);
}

TEST(CudaAttention, Sizes) {
  CudaBatch batch;
  for (const Problem& problem : testing::attention_sizes()) add(batch, problem);
  testing::compile_and_run(batch);
}

TEST(CudaAttention, HeadSizes) {
  CudaBatch batch;
  for (const int64_t depth : {8, 40, 80, 128, 160, 256}) {
    add(batch, {.type = depth % 16 == 0 ? "bf16" : "f16", .m = 70, .n = 150, .depth = depth, .width = depth});
  }
  add(batch, {.m = 33, .n = 77, .depth = 128, .width = 40, .layout = "dense"});
  testing::compile_and_run(batch);
}

TEST(CudaAttention, Scores) {
  CudaBatch batch;
  for (const char* scores : {"plain", "mask", "rows"}) {
    add(batch, {.batch = 2, .m = 77, .n = 77, .depth = 40, .width = 40, .scores = scores});
    add(batch, {.type = "bf16", .m = 20, .n = 300, .scores = scores, .quotient = true});
  }
  testing::compile_and_run(batch);
}

TEST(CudaAttention, Masks) {
  CudaBatch batch;
  for (const char* scores : {"causal", "finite", "window", "triangle", "biased", "few"}) {
    add(batch, {.batch = 2, .m = 20, .n = 301, .scores = scores, .layout = "dense"});
    add(batch, {.m = 200, .n = 333, .depth = 32, .width = 32, .scores = scores, .layout = "dense"});
    // More tiles than SMs.
    if (std::string(scores) != "causal" && std::string(scores) != "window") continue;
    add(batch, {.type = "bf16",
                .batch = 6,
                .heads = 16,
                .m = 300,
                .n = 300,
                .depth = 16,
                .width = 16,
                .scores = scores,
                .layout = "dense"});
  }
  // The last tile of rows begins behind the first tile of keys and has no plain tile.
  add(batch, {.m = 260, .n = 260, .depth = 32, .width = 32, .scores = "own", .layout = "dense"});
  testing::compile_and_run(batch);
}

// What masks leave of the keys, by 64 rows.
TEST(CudaAttention, Ranges) {
  const Target target = Target::cuda_h200(1);
  const auto ranges = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(attention_text(p));
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const schedule::KernelDesc desc = schedule::schedule_attention(graph, group, target).kernels.at(0).desc;
    return std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body)->ranges;
  };
  using Ranges = std::vector<schedule::KeyRange>;
  const Ranges causal = {{0, 0, 0, 64}, {0, 0, 64, 128}, {0, 0, 128, 192}, {0, 0, 192, 200}};
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "causal"}), causal);
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "triangle"}), causal);
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "finite"}), causal);
  EXPECT_EQ(ranges({.type = "bf16", .m = 200, .n = 200, .scores = "finite"}), causal);
  EXPECT_EQ(ranges({.type = "bf16", .m = 200, .n = 200, .scores = "triangle"}), causal);
  EXPECT_EQ(ranges({.m = 100, .n = 200, .scores = "window"}), (Ranges{{48, 48, 48, 176}, {112, 112, 112, 200}}));
  EXPECT_EQ(ranges({.m = 100, .n = 200, .scores = "biased"}), (Ranges{{0, 0, 0, 176}, {0, 0, 0, 200}}));
  EXPECT_EQ(ranges({.m = 64, .n = 200, .scores = "mask"}), (Ranges{{0, 0, 0, 200}}));
  EXPECT_EQ(ranges({.batch = 2, .heads = 3, .m = 64, .n = 200, .scores = "few"}), (Ranges{{0, 0, 32, 80}}));
  EXPECT_EQ(ranges({.m = 64, .n = 200}), Ranges{});
}

// Which keys a batch has is known when the kernel runs.
TEST(CudaAttention, Lengths) {
  CudaBatch batch;
  for (const char* scores : {"length", "past"}) {
    for (unsigned skip = 0; skip < 2; ++skip) {
      CudaBatch::Options options;
      options.family = "attention", options.skip = skip;
      add(batch,
          {.batch = 7, .heads = 1, .m = 130, .n = 301, .depth = 32, .width = 32, .scores = scores, .layout = "dense"},
          options);
      add(batch, {.type = "bf16", .batch = 7, .heads = 4, .m = 1, .n = 900, .scores = scores, .layout = "shared"},
          options);
      options.split = true;
      add(batch,
          {.batch = 7, .heads = 1, .m = 5, .n = 700, .depth = 16, .width = 16, .scores = scores, .layout = "dense"},
          options);
    }
    add(batch,
        {.batch = 12, .heads = 8, .m = 66, .n = 100, .depth = 16, .width = 16, .scores = scores, .layout = "dense"});
  }
  testing::compile_and_run(batch);
}

// What a length leaves of the keys, by 64 rows.
// Keys in pages of a pool: tiles of several pages, of one, of a part of one.
TEST(CudaAttention, Pages) {
  CudaBatch batch;
  unsigned skip = 0;
  for (const int64_t page : {16, 48, 64, 256}) {
    CudaBatch::Options options;
    options.named = "q_stages=", options.skip = skip++ * 3;
    add(batch, {.batch = 2, .m = 150, .n = 301, .scores = "causal", .layout = "pages", .page = page}, options);
    add(batch,
        {.type = "bf16",
         .batch = 3,
         .heads = 4,
         .m = 70,
         .n = 400,
         .depth = 40,
         .width = 72,
         .scores = "length",
         .layout = "pages",
         .page = page,
         .kv_heads = 2},
        options);
    options.split = true;
    add(batch, {.m = 40, .n = 900, .scores = "mask", .layout = "pages", .page = page}, options);
  }
  testing::compile_and_run(batch);
}

TEST(CudaAttention, RangesOfLengths) {
  const Target target = Target::cuda_h200(1);
  const auto length_of = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(attention_text(p));
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const schedule::KernelDesc desc = schedule::schedule_attention(graph, group, target).kernels.at(0).desc;
    return std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body)->length;
  };
  const auto boxes = length_of({.batch = 3, .m = 1, .n = 100, .scores = "length"}).value().boxes;
  ASSERT_EQ(boxes.size(), 8u);  // none, 1 to 15, 16 to 31 ... 96 to 100
  EXPECT_EQ(boxes[1].first, 1);
  EXPECT_EQ(boxes[1].last, 15);
  EXPECT_EQ(boxes[1].ranges, (std::vector<schedule::KeyRange>{{0, 0, 0, 16}}));
  EXPECT_EQ(boxes[3].ranges, (std::vector<schedule::KeyRange>{{0, 0, 32, 48}}));
  EXPECT_EQ(boxes[7].last, 100);
  EXPECT_EQ(boxes[7].ranges, (std::vector<schedule::KeyRange>{{0, 0, 96, 100}}));
  const auto past = length_of({.batch = 3, .m = 100, .n = 200, .scores = "past"}).value().boxes;
  ASSERT_EQ(past.at(2).first, 16);
  EXPECT_EQ(past[2].ranges, (std::vector<schedule::KeyRange>{{0, 0, 16, 96}, {0, 0, 80, 144}}));
  EXPECT_FALSE(length_of({.m = 100, .n = 200, .scores = "causal"}).has_value());
  EXPECT_FALSE(length_of({.m = 100, .n = 200, .scores = "mask"}).has_value());
}

// Tiles, blocks of an SM, parts of the keys, turns.
TEST(CudaAttention, Candidates) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(12));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.family = "attention", options.skip = i * 12 / count;
    add(batch, {.heads = 4, .m = 150, .n = 520, .depth = 64, .scores = "causal", .layout = "dense"}, options);
    add(batch, {.type = "bf16", .m = 1, .n = 1111, .depth = 128, .width = 72, .layout = "dense"}, options);
    options.split = true;
    add(batch, {.m = 70, .n = 600, .depth = 32, .width = 48, .scores = "mask", .layout = "dense"}, options);
  }
  testing::compile_and_run(batch);
}

// The last block to arrive adds parts of few rows; those of many rows would wait for it.
TEST(CudaAttention, ALaunchAddsThePartsOfManyRows) {
  const Target target = Target::cuda_h200(1);
  const auto config = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(attention_text(p));
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    return schedule::schedule_attention(graph, group, target).kernels.at(0).config.as<schedule::CudaAttentionConfig>();
  };
  const auto many =
      config({.batch = 4, .heads = 32, .m = 1, .n = 16384, .depth = 128, .width = 128, .layout = "shared"});
  EXPECT_GT(many.splits, 1);
  EXPECT_TRUE(many.combines);
  const auto few = config({.batch = 4, .heads = 4, .m = 1, .n = 16384, .depth = 128, .width = 128, .layout = "shared"});
  EXPECT_GT(few.splits, 1);
  EXPECT_FALSE(few.combines);
}

TEST(CudaAttention, HeadsThatShareKeys) {
  CudaBatch batch;
  add(batch, {.batch = 2, .heads = 6, .m = 77, .n = 130, .layout = "shared"});
  add(batch, {.batch = 3, .heads = 4, .m = 1, .n = 700, .depth = 128, .width = 128, .layout = "shared"});
  add(batch, {.batch = 2, .heads = 8, .m = 5, .n = 300, .scores = "causal", .layout = "shared"});
  add(batch,
      {.batch = 40, .heads = 8, .m = 200, .n = 200, .depth = 16, .width = 16, .scores = "causal", .layout = "shared"});
  testing::compile_and_run(batch);
}

TEST(CudaAttention, Layouts) {
  CudaBatch batch;
  for (const char* type : {"f16", "bf16"}) {
    add(batch, {.type = type, .batch = 3, .m = 77, .n = 77, .layout = "sliced"});
    add(batch, {.type = type, .batch = 3, .m = 130, .n = 130, .depth = 40, .width = 40, .layout = "sliced"});
    add(batch, {.type = type, .batch = 2, .m = 9, .n = 136, .depth = 40, .width = 80, .layout = "keys"});
    add(batch, {.type = type, .batch = 2, .m = 9, .n = 24, .layout = "keys"});
    add(batch, {.type = type, .batch = 2, .m = 100, .n = 264, .depth = 72, .width = 72, .layout = "dense"});
  }
  testing::compile_and_run(batch);
}

// The attention of a model as its passes leave it.
void add(CudaBatch& batch, const testing::AttentionChain& chain, CudaBatch::Options options = {}) {
  const bool wide = chain.type == DType::kF32;
  const ir::Graph graph = testing::optimized(chain.graph(), wide ? passes::Precision::kF16 : passes::Precision::kF32);
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

TEST(CudaAttention, AsModelsWriteIt) {
  using Chain = testing::AttentionChain;
  CudaBatch batch;
  add(batch, {.scale = Chain::Scale::kBoth, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kAllHidden});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf});
  add(batch, {.m = 16, .n = 3, .mask = Chain::Mask::kSelectMin});
  add(batch, {.type = DType::kF32, .m = 70, .n = 70, .mask = Chain::Mask::kRows, .softmax = Chain::Softmax::kLog});
  add(batch, {.heads = 8, .groups = 2, .shared = Chain::Groups::kExpand, .mask = Chain::Mask::kCausalMin});
  add(batch, {.type = DType::kBF16, .heads = 8, .groups = 2, .shared = Chain::Groups::kFreeDims, .cap = true});
  add(batch, {.heads = 8, .groups = 1, .m = 1, .n = 80, .mask = Chain::Mask::kAddPadding});
  add(batch, {.softmax = Chain::Softmax::kBehind, .slopes = true});
  add(batch, {.type = DType::kBF16, .softmax = Chain::Softmax::kBehindFactor, .bias = true, .windows = true});
  add(batch, {.n = 12, .mask = Chain::Mask::kTriangle, .packed = true, .norm = true});
  add(batch, {.m = 9, .n = 40, .mask = Chain::Mask::kLengths, .softmax = Chain::Softmax::kMaxHidden});
  add(batch, {.type = DType::kBF16,
              .batch = 3,
              .m = 75,
              .n = 131,
              .mask = Chain::Mask::kLengths,
              .softmax = Chain::Softmax::kMaxHidden,
              .cap = true});
  add(batch, {.swapped = true});
  testing::compile_and_run(batch);
}

// The score that is no key's comes last, when the sums of all parts are there.
TEST(CudaAttention, Sinks) {
  using Chain = testing::AttentionChain;
  CudaBatch batch;
  for (unsigned skip = 0; skip < test::instances(12); ++skip) {
    CudaBatch::Options options;
    options.family = "attention", options.skip = skip;
    add(batch, {.m = 70, .n = 300, .sink = true}, options);
    add(batch,
        {.type = DType::kBF16, .heads = 8, .groups = 2, .m = 1, .n = 900, .depth = 64, .width = 64, .sink = true},
        options);
    options.split = true;
    add(batch, {.m = 70, .n = 600, .mask = Chain::Mask::kCausal, .sink = true}, options);
    add(batch, {.m = 3, .n = 500, .mask = Chain::Mask::kAddPadding, .sink = true}, options);
  }
  // Rows with no key: all is the sink's.
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .sink = true});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan, .sink = true});
  testing::compile_and_run(batch);
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on.
TEST(CudaAttention, RandomChains) {
  const auto setting = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  CudaBatch batch;
  const int first = setting("HEDDLE_SEED", 1), count = setting("HEDDLE_CHAINS", 4);
  for (int seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    add(batch, testing::random_chain(random));
  }
  testing::compile_and_run(batch);
}

TEST(CudaAttention, LargeOnesDoNotSpill) {
  CudaBatch batch;
  for (const int64_t depth : {256, 128, 64, 40, 96, 192}) {
    add(batch, {.batch = 8, .heads = 16, .m = 2048, .n = 2048, .depth = depth, .width = depth, .layout = "dense"});
    add(batch, {.batch = 8, .heads = 16, .m = 384, .n = 384, .depth = depth, .width = depth, .scores = "mask"});
    add(batch, {.batch = 8, .heads = 16, .m = 1024, .n = 1024, .depth = depth, .width = depth, .scores = "causal"});
    add(batch, {.batch = 4, .m = 1, .n = 8192, .depth = depth, .width = depth, .layout = "dense"});
  }
  batch.compile();
}

TEST(CudaAttention, RefusesWhatItCannotRead) {
  const Target target = Target::cuda_h200(1);
  std::string reason;
  const auto in_attention = [&](const Problem& p) {
    const ir::Graph graph = testing::parse_with_random_weights(attention_text(p), 5);
    return schedule::can_attend(graph, testing::whole_graph(graph, ir::GroupKind::kAttention), target, &reason);
  };
  EXPECT_TRUE(in_attention({.batch = 32, .heads = 12, .m = 128, .n = 128})) << reason;
  EXPECT_FALSE(in_attention({.m = 64, .n = 64, .depth = 584, .width = 64}));
  EXPECT_TRUE(in_attention({.type = "f32"})) << reason;
}

}  // namespace
}  // namespace heddle
