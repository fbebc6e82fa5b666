// Attention whose values have more columns than a block holds, which are cut into panels, on the emulated GPU.
#include <gmock/gmock.h>

#include "attention_graphs.h"
#include "heddle/error.h"
#include "ir/text/text.h"
#include "schedule/attention/attention.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "schedule/backend.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"

namespace heddle {
namespace {

using schedule::CudaAttentionConfig;
using testing::CudaBatch;
using Problem = testing::AttentionProblem;

Target h200() {
  return Target::cuda_h200(1);
}
Target a100() {
  Target target = h200();
  target.cuda.sm = 80, target.cuda.shared_bytes_per_block = 163 << 10, target.cuda.sms = 108;
  return target;
}

schedule::ScheduledGroup scheduled(const Problem& p, const Target& target = h200()) {
  const ir::Graph graph = ir::parse(testing::attention_text(p));
  return schedule::schedule_attention(graph, testing::whole_graph(graph, ir::GroupKind::kAttention), target);
}
CudaAttentionConfig config_of(const Problem& p, const Target& target = h200()) {
  return scheduled(p, target).kernels.at(0).config.as<CudaAttentionConfig>();
}

// By warpgroups and by warps.
void add_wide(CudaBatch& batch, const Problem& p, CudaBatch::Options options = {}) {
  for (const int sm : {90, 80}) {
    options.sm = sm;
    testing::add_attention(batch, p, options);
  }
}

// Panels that are full and that are not, of whole pieces of 64 columns and of others; queries and keys that are wide
// and values that are not, and the other way round.
TEST(CudaWideAttention, HeadSizes) {
  CudaBatch batch;
  for (const int64_t width : {264, 320, 384, 512}) {
    add_wide(batch, {.type = width % 3 == 0 ? "bf16" : "f16", .m = 70, .n = 150, .depth = width, .width = width});
  }
  add_wide(batch, {.heads = 3, .m = 33, .n = 77, .depth = 40, .width = 400, .layout = "dense"});
  add_wide(batch, {.m = 130, .n = 90, .depth = 512, .width = 24});
  add_wide(batch, {.m = 20, .n = 100, .depth = 576, .width = 512, .scores = "causal", .layout = "shared"});
  // Rows that begin at multiples of 8 bytes.
  add_wide(batch, {.heads = 2, .m = 50, .n = 77, .depth = 300, .width = 260, .layout = "dense"});
  testing::compile_and_run(batch);
}

TEST(CudaWideAttention, ScoresAndMasks) {
  CudaBatch batch;
  for (const char* scores : {"plain", "mask", "rows", "causal", "finite", "window", "biased", "few"}) {
    add_wide(batch, {.batch = 2, .m = 77, .n = 140, .depth = 288, .width = 272, .scores = scores, .layout = "dense"});
  }
  for (const char* scores : {"length", "past"}) {
    add_wide(batch, {.batch = 7, .heads = 2, .m = 70, .n = 201, .depth = 264, .width = 320, .scores = scores});
  }
  // Units of different lengths, more than a wave: sections of batches and panels.
  add_wide(batch, {.batch = 4, .heads = 12, .m = 150, .n = 150, .depth = 16, .width = 264, .scores = "causal"});
  testing::compile_and_run(batch);
}

TEST(CudaWideAttention, Layouts) {
  CudaBatch batch;
  add_wide(batch, {.batch = 3, .m = 77, .n = 77, .depth = 320, .width = 320, .layout = "sliced"});
  add_wide(batch, {.type = "bf16", .batch = 2, .m = 9, .n = 136, .depth = 512, .width = 384, .layout = "keys"});
  add_wide(batch, {.batch = 2, .m = 100, .n = 72, .depth = 336, .width = 264, .layout = "keys"});
  add_wide(batch, {.batch = 2, .heads = 6, .m = 77, .n = 130, .depth = 272, .width = 288, .layout = "shared"});
  add_wide(batch, {.batch = 3, .heads = 4, .m = 1, .n = 500, .depth = 512, .width = 512, .layout = "shared"});
  testing::compile_and_run(batch);
}

// Tiles, blocks of an SM.
TEST(CudaWideAttention, Candidates) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(8));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.skip = i * 24 / count, options.family = "attention";
    add_wide(batch, {.heads = 3, .m = 150, .n = 300, .depth = 384, .width = 328, .scores = "causal", .layout = "dense"},
        options);
  }
  testing::compile_and_run(batch);
}

// Parts of the keys that the last block or a launch of its own adds.
TEST(CudaWideAttention, PartsOfTheKeys) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(4));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.skip = i * 24 / count, options.family = "attention", options.split = true;
    add_wide(batch, {.type = "bf16", .m = 70, .n = 600, .depth = 512, .width = 512, .layout = "dense"}, options);
    add_wide(batch, {.m = 40, .n = 400, .depth = 264, .width = 392, .scores = "mask", .layout = "dense"}, options);
  }
  testing::compile_and_run(batch);
}

// Warps that have the same rows and different keys: on sm_80 two, where shared memory holds no more rings.
TEST(CudaWideAttention, FewRows) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(4));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.skip = i * 24 / count, options.named = "key_warps";
    add_wide(batch, {.heads = 3, .m = 1, .n = 321, .depth = 512, .width = 512}, options);
    add_wide(batch, {.type = "bf16", .m = 16, .n = 200, .depth = 320, .width = 264, .scores = "mask", .layout = "dense"},
        options);
    options.split = true;
    add_wide(batch, {.m = 7, .n = 700, .depth = 264, .width = 400, .scores = "causal"}, options);
    add_wide(batch,
        {.batch = 7, .heads = 2, .m = 1, .n = 600, .depth = 288, .width = 288, .scores = "length", .layout = "shared"},
        options);
  }
  EXPECT_EQ(config_of({.m = 1, .n = 4096, .depth = 512, .width = 512}, a100()).key_warps, 2);
  testing::compile_and_run(batch);
}

// f32 in two parts has fewer columns in registers.
TEST(CudaWideAttention, F32) {
  CudaBatch batch;
  testing::add_attention(batch, {.type = "f32", .m = 70, .n = 90, .depth = 256, .width = 256});
  testing::add_attention(batch, {.type = "f32", .m = 33, .n = 77, .depth = 40, .width = 512, .scores = "causal"});
  testing::add_attention(batch, {.type = "f32", .m = 70, .n = 50, .depth = 384, .width = 300, .layout = "keys"});
  testing::add_attention(batch, {.type = "tf32", .m = 70, .n = 90, .depth = 512, .width = 512});
  testing::add_attention(batch, {.type = "tf32", .m = 40, .n = 60, .depth = 264, .width = 320, .scores = "mask"});
  testing::compile_and_run(batch);
}

// The one head of an autoencoder for images.
TEST(CudaWideAttention, IsTakenWhereItIsFaster) {
  const ir::Graph graph =
      ir::parse(testing::attention_text({.heads = 1, .m = 4096, .n = 4096, .depth = 512, .width = 512}));
  const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
  std::string reason;
  EXPECT_TRUE(schedule::can_attend(graph, group, h200(), &reason)) << reason;
}

// As few panels as hold the columns: each computes the scores anew.
TEST(CudaWideAttention, FewestPanels) {
  const auto panels = [](int64_t depth, int64_t width, const Target& target) {
    const Problem p = {.m = 256, .n = 1024, .depth = depth, .width = width, .layout = "dense"};
    return config_of(p, target).panels;
  };
  for (const Target& target : {h200(), a100()}) {
    EXPECT_EQ(panels(512, 256, target), 1);
    EXPECT_EQ(panels(64, 264, target), 2);
    EXPECT_EQ(panels(512, 512, target), 2);
    EXPECT_EQ(panels(64, 520, target), 3);
  }
  EXPECT_FALSE(schedule::is_by_warps(config_of({.m = 4096, .n = 4096, .depth = 512, .width = 512})));
  // More panels cost more: the model says so.
  const auto us = [](int64_t width) {
    return scheduled({.batch = 16, .m = 1024, .n = 1024, .depth = 256, .width = width})
        .kernels.at(0)
        .config.predicted_us;
  };
  EXPECT_GT(us(512), 1.9 * us(256));
}

TEST(CudaWideAttention, LargeOnesDoNotSpill) {
  CudaBatch batch;
  for (const auto& [depth, width] : {std::pair{512, 512}, {576, 512}, {320, 320}, {264, 384}, {512, 64}}) {
    const Problem p = {.batch = 8, .heads = 4, .m = 2048, .n = 2048, .depth = depth, .width = width, .layout = "dense"};
    add_wide(batch, p);
    Problem other = p;
    other.scores = "causal";
    add_wide(batch, other);
    other.m = other.n = 384, other.scores = "mask", other.layout = "heads";
    add_wide(batch, other);
    other = p, other.batch = 4, other.heads = 1, other.m = 1, other.n = 8192;
    add_wide(batch, other);
  }
  batch.compile();
}

TEST(CudaWideAttention, RefusesWhatDoesNotFit) {
  const auto why = [](const Problem& p) -> std::string {
    try {
      scheduled(p);
    } catch (const Error& error) {
      return error.why();
    }
    return "";
  };
  EXPECT_THAT(why({.depth = 584, .width = 64}), ::testing::HasSubstr("more than 576 elements"));
  EXPECT_THAT(why({.depth = 64, .width = 584}), ::testing::HasSubstr("more than 576 elements"));
  EXPECT_THAT(why({.depth = 302, .width = 302}), ::testing::HasSubstr("do not fit"));  // rows at multiples of 4 bytes
}

}  // namespace
}  // namespace heddle
