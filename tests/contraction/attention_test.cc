// Attention as one kernel on a CPU: sizes that fill no tile, layouts, masks.
#include "schedule/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "testing.h"
#include "tests/codegen/harness.h"
#include "tests/schedule/attention_chains.h"

namespace heddle {
namespace {

using Chain = testing::AttentionChain;

double tolerance(DType type) {
  return type == DType::kF32 ? 2e-5 : type == DType::kF16 ? 4e-3 : 2e-2;
}

// Runs the attention of a chain by a configuration.
void check(const Chain& chain, unsigned choice = 0, CpuIsa isa = CpuIsa::kAvx512, int threads = 2) {
  SCOPED_TRACE(chain.text());
  const Target target = Target::host_cpu(threads);
  const ir::Graph graph = testing::optimized(chain.graph(), passes::Precision::kF32, target);
  testing::RunOptions options{.threads = threads, .isa = isa, .kind = ir::GroupKind::kAttention, .choice = choice};
  int count = 0;
  for (const ir::Group& group : testing::grouped(graph, target, true).groups) {
    if (group.kind != ir::GroupKind::kAttention) continue;
    testing::check_graph(testing::graph_of(graph, group), tolerance(chain.type), options);
    ++count;
  }
  EXPECT_EQ(count, 1);
}

TEST(CpuAttention, Sizes) {
  unsigned choice = 0;
  for (const auto& [m, n] : {std::pair(1, 2), {1, 211}, {7, 13}, {61, 64}, {61, 2}, {197, 13}, {197, 211}}) {
    check({.type = DType::kF32,
           .batch = 1,
           .heads = 2,
           .groups = 2,
           .m = m,
           .n = n,
           .depth = 1 + m % 37,
           .width = 1 + n % 41},
          choice++);
  }
}

TEST(CpuAttention, HeadSizes) {
  for (const int64_t depth : {1, 5, 16, 40, 72, 128, 257}) {
    check({.type = DType::kF32, .batch = 1, .heads = 3, .groups = 3, .m = 29, .n = 70, .depth = depth, .width = depth});
  }
}

// Keys in several blocks, rows in several tasks.
TEST(CpuAttention, Blocks) {
  for (const unsigned choice : {0U, 1U, 3U}) {
    check({.type = DType::kF32, .heads = 2, .groups = 2, .m = 300, .n = 1201, .depth = 64, .width = 64}, choice);
    check({.type = DType::kF32,
           .heads = 2,
           .groups = 1,
           .m = 700,
           .n = 700,
           .depth = 24,
           .width = 40,
           .mask = Chain::Mask::kCausal,
           .cap = true},
          choice);
  }
}

TEST(CpuAttention, Masks) {
  for (int mask = 0; mask <= static_cast<int>(Chain::Mask::kRows); ++mask) {
    check({.type = mask % 2 == 0 ? DType::kF32 : DType::kF16,
           .heads = 4,
           .groups = 2,
           .m = 75,
           .n = 131,
           .depth = 20,
           .width = 24,
           .mask = static_cast<Chain::Mask>(mask)});
  }
}

// Keys behind a mask that is added are left out, be it minus infinity or the least value.
TEST(CpuAttention, AddedMasks) {
  const Target target = Target::host_cpu(2);
  for (const auto mask : {Chain::Mask::kCausal, Chain::Mask::kAddCausal, Chain::Mask::kAddCausalMin}) {
    const Chain chain{.type = DType::kF32, .heads = 2, .groups = 2, .m = 200, .n = 200, .mask = mask};
    const ir::Graph graph = testing::optimized(chain.graph(), passes::Precision::kF32, target);
    std::vector<schedule::KeyRange> ranges;
    for (const ir::Group& group : testing::grouped(graph, target, true).groups) {
      if (group.kind != ir::GroupKind::kAttention) continue;
      const schedule::KernelDesc desc = schedule::schedule_attention(graph, group, target).kernels.at(0).desc;
      ranges = std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body)->ranges;
    }
    const std::vector<schedule::KeyRange> causal = {{0, 0, 0, 64}, {0, 0, 64, 128}, {0, 0, 128, 192}, {0, 0, 192, 200}};
    EXPECT_EQ(ranges, causal) << chain.text();
    check(chain);
  }
}

TEST(CpuAttention, InstructionSets) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2}) {
    for (unsigned choice = 0; choice < 2; ++choice) {
      check({.type = DType::kF32, .m = 67, .n = 93, .depth = 33, .width = 19, .mask = Chain::Mask::kCausal}, choice,
            isa);
      check({.type = DType::kBF16, .m = 9, .n = 33, .bias = true, .sink = true}, choice, isa, 1);
    }
  }
}

TEST(CpuAttention, AsModelsWriteIt) {
  check({.scale = Chain::Scale::kBoth, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan});
  check({.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kAllHidden});
  check({.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf});
  check({.m = 16, .n = 3, .mask = Chain::Mask::kSelectMin});
  check({.type = DType::kF32, .m = 70, .n = 70, .mask = Chain::Mask::kRows, .softmax = Chain::Softmax::kLog});
  check({.heads = 8, .groups = 2, .shared = Chain::Groups::kExpand, .mask = Chain::Mask::kCausalMin});
  check({.type = DType::kBF16, .heads = 8, .groups = 2, .shared = Chain::Groups::kFreeDims, .cap = true});
  check({.heads = 8, .groups = 1, .m = 1, .n = 80, .mask = Chain::Mask::kAddPadding});
  check({.type = DType::kF32, .mask = Chain::Mask::kSelectInf, .sink = true});
  check({.softmax = Chain::Softmax::kBehind, .slopes = true});
  check({.type = DType::kBF16, .softmax = Chain::Softmax::kBehindFactor, .bias = true, .windows = true});
  check({.n = 12, .mask = Chain::Mask::kTriangle, .packed = true, .norm = true});
  check({.swapped = true});
}

// Lengths below the number of rows leave rows without a key: zeros where the model guards them, else NaN.
TEST(CpuAttention, LengthsAlignCausality) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    check({.type = type,
           .groups = 2,
           .m = 9,
           .n = 40,
           .mask = Chain::Mask::kLengths,
           .softmax = Chain::Softmax::kMaxHidden});
  }
  check({.type = DType::kF32, .m = 9, .n = 40, .mask = Chain::Mask::kLengths});
  check({.type = DType::kF32,
         .batch = 3,
         .m = 75,
         .n = 131,
         .mask = Chain::Mask::kLengths,
         .softmax = Chain::Softmax::kMaxHidden,
         .cap = true});
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on; all of them run with HEDDLE_ALL_INSTANCES.
TEST(CpuAttention, RandomChains) {
  const int first = testing::setting("HEDDLE_SEED", 1), count = testing::setting("HEDDLE_CHAINS", 12);
  for (int seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const Chain chain = testing::random_chain(random);
    SCOPED_TRACE(seed);
    check(chain, random() % 4, random() % 2 != 0 ? CpuIsa::kAvx512 : CpuIsa::kPortable,
          1 + static_cast<int>(random() % 3));
  }
}

TEST(CpuAttention, TakesWhatIsFaster) {
  Target target = Target::host_cpu(1);
  std::string reason;
  const auto in_one_kernel = [&](Chain chain) {
    const ir::Graph graph = testing::optimized(chain.graph(), passes::Precision::kF32, target);
    for (const ir::Decision& d : testing::grouped(graph, target).decisions) {
      if (d.rule == "attention") reason = d.reason;
    }
    const auto groups = testing::grouped(graph, target).groups;
    return std::any_of(groups.begin(), groups.end(),
                       [](const ir::Group& g) { return g.kind == ir::GroupKind::kAttention; });
  };
  EXPECT_TRUE(
      in_one_kernel({.type = DType::kF32, .heads = 12, .groups = 12, .m = 384, .n = 384, .depth = 64, .width = 64}))
      << reason;
  EXPECT_NE(reason.find("scores stay in the first-level cache"), std::string::npos) << reason;
  EXPECT_FALSE(in_one_kernel({.type = DType::kF64, .heads = 12, .groups = 12, .m = 384, .n = 384}));
  EXPECT_NE(reason.find("f64"), std::string::npos) << reason;
}

}  // namespace
}  // namespace heddle
