// Gated products: pairs of columns that meet in the epilogue (passes/contraction/gate_dots.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/analysis/gated_product.h"
#include "passes/pass.h"
#include "target/target.h"
#include "testing.h"
#include "tests/passes/gated_graphs.h"

namespace heddle::testing {
namespace {

void add(CudaBatch& batch, const GatedForm& p, const std::string& family, int sm, unsigned skip = 0,
         bool split = false) {
  const std::vector<std::string> passes = {"canonicalize", "gate_dots"};
  const ir::Graph graph = passes::run_passes(gated_graph(p, 7), passes, {Target::cuda_h200(1)});
  size_t dots = 0, gated = 0;
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    dots += graph.node(id).op == ir::Op::kDot;
    gated += ir::match_gated_product(graph, id).has_value();
  }
  EXPECT_EQ(dots, 1u) << name_of(p);
  EXPECT_EQ(gated, 1u) << name_of(p);
  CudaBatch::Options options;
  options.family = family, options.sm = sm, options.skip = skip, options.split = split;
  options.tolerance = p.type == "f32" ? 2e-5 : p.type == "f16" ? 3e-3 : 2e-2;
  batch.add_graph(fmt::format("{} {} {}", family, skip, name_of(p)), graph, options);
}

constexpr int kAmpere = 80, kHopper = 90;

const std::vector<GatedForm> kForms = {
    {},
    {.lead = {3, 37}, .n = 72, .k = 40, .act = "gelu", .bias = true, .up_first = true},
    {.type = "bf16", .lead = {50}, .n = 104, .k = 24, .act = "relu", .split = true, .along_k = true},
    {.type = "f32", .lead = {33}, .n = 40, .k = 36, .bias = true, .up_first = true, .split = true},
    {.lead = {2, 19}, .n = 48, .k = 56, .act = "", .residual = true},
    {.lead = {17}, .n = 8, .k = 8, .along_k = true},
};

TEST(CudaGate, Mma) {
  CudaBatch batch;
  for (const int sm : {kAmpere, kHopper}) {
    for (unsigned skip = 0; skip < 3; ++skip) {
      for (const GatedForm& p : kForms) add(batch, p, "mma", sm, skip);
    }
  }
  for (const GatedForm& p : kForms) {
    if (p.k >= 40) add(batch, {p.type, {16}, p.n, 1024, p.act, p.bias, p.up_first, p.split}, "mma", kHopper, 0, true);
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// What TMA stores, what threads store at any address, and what the epilogue stores; tiles by one warpgroup, by two, in
// turns, in parts of k.
TEST(CudaGate, Wgmma) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 40; skip += 5) {
    add(batch, {.lead = {200}, .n = 136, .k = 72, .bias = true}, "wgmma", kHopper, skip);
    add(batch, {.type = "bf16", .lead = {147}, .n = 104, .k = 64, .act = "gelu", .split = true, .along_k = true},
        "wgmma", kHopper, skip);
    add(batch, {.type = "f32", .lead = {80}, .n = 64, .k = 48, .along_k = true}, "wgmma", kHopper, skip);
    add(batch, {.lead = {2, 70}, .n = 96, .k = 64, .residual = true}, "wgmma", kHopper, skip);
  }
  add(batch, {.lead = {70}, .n = 64, .k = 1024}, "wgmma", kHopper, 0, true);
  batch.run();
  batch.compile();
}

TEST(CudaGate, FewRows) {
  CudaBatch batch;
  for (const int64_t m : {1, 3, 8}) {
    for (unsigned skip = 0; skip < 4; ++skip) {
      for (const bool along_k : {false, true}) {
        for (const char* type : {"f16", "f32"}) {
          const GatedForm p = {.type = type, .lead = {m}, .n = 136, .k = 264, .bias = m == 3, .along_k = along_k};
          add(batch, p, "skinny", kHopper, skip);
        }
      }
    }
    add(batch, {.lead = {m}, .n = 72, .k = 2048, .along_k = true}, "skinny", kHopper, 0, true);
  }
  batch.run();
  batch.compile();
}

TEST(CudaGate, ClustersThatShareK) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 48; skip += 6) {
    add(batch, {.lead = {5}, .n = 136, .k = 512, .bias = true, .along_k = true}, "cluster_splitk", kHopper, skip);
    add(batch, {.type = "bf16", .lead = {33}, .n = 72, .k = 256, .act = "gelu"}, "cluster_splitk", kHopper, skip);
  }
  add(batch, {.lead = {16}, .n = 72, .k = 4096, .along_k = true}, "cluster_splitk", kHopper, 0, true);
  batch.run();
  batch.compile();
}

TEST(CudaGate, RandomForms) {
  CudaBatch batch;
  for (unsigned i = 0; i < 24; ++i) {
    add(batch, GatedForm::random(i), "", i % 3 == 0 ? kAmpere : kHopper);
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
