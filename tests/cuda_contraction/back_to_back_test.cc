// Two contractions as one kernel on the emulated GPU.
#include <gmock/gmock.h>

#include "schedule/back_to_back/cuda.h"
#include "testing.h"
#include "tests/codegen/harness.h"
#include "tests/instances.h"
#include "tests/schedule/product_chains.h"

namespace heddle {
namespace {

using testing::CudaBatch;
using ::testing::HasSubstr;
using testing::ProductChain;

void add(CudaBatch& batch, const ProductChain& chain, CudaBatch::Options options = {}) {
  options.kind = ir::GroupKind::kBackToBack;
  options.tolerance = chain.type == "f16" ? 4e-3 : 3e-2;
  batch.add(chain.name(), chain.text(), options);
}

// Every form of candidates: so many are passed by.
CudaBatch::Options skipping(unsigned skip, int sm = 90) {
  CudaBatch::Options options;
  options.family = "back_to_back", options.skip = skip, options.sm = sm;
  return options;
}

TEST(CudaBackToBack, Sizes) {
  CudaBatch batch;
  for (const int64_t m : {1, 17, 130}) {
    for (const int64_t n0 : {1, 16, 40, 64, 96, 200}) add(batch, {.m = m, .k = 8 + 3 * n0 % 50, .n0 = n0, .n1 = 8 + m});
  }
  add(batch, {.m = 77, .k = 4, .n0 = 1, .n1 = 4});
  add(batch, {.m = 50, .k = 70, .n0 = 24, .n1 = 1, .activation = ""});
  testing::compile_and_run(batch);
}

TEST(CudaBackToBack, WhereTheFirstResultIs) {
  CudaBatch batch;
  for (const unsigned skip : {0u, 5u, 11u, 23u, 37u, 60u, 85u}) {
    add(batch, {.type = skip % 2 == 0 ? "f16" : "bf16", .m = 100, .k = 72, .n0 = 64, .n1 = 48, .residual0 = true},
        skipping(skip, skip % 3 == 0 ? 80 : 90));
  }
  testing::compile_and_run(batch, CudaBatch::Compiled::kKinds);
  const std::string text = batch.unit(0);
  EXPECT_THAT(text, HasSubstr("kInRegisters = true"));
  EXPECT_THAT(text, HasSubstr("kInRegisters = false"));
}

TEST(CudaBackToBack, Layouts) {
  CudaBatch batch;
  for (const bool w0 : {false, true}) {
    for (const bool w1 : {false, true}) {
      add(batch, {.m = 40, .k = 40, .n0 = 32, .n1 = 40, .constant = false, .w0_along_k = w0, .w1_along_k = w1});
      add(batch,
          {.batch = 3, .m = 20, .k = 21, .n0 = 33, .n1 = 19, .constant = w0, .w0_along_k = w1, .w1_along_k = w0});
    }
  }
  add(batch, {.m = 40, .residual0 = true, .residual1 = true, .out = "f32"});
  testing::compile_and_run(batch);
}

TEST(CudaBackToBack, Convolutions) {
  CudaBatch batch;
  add(batch, {.conv = true, .images = 2, .k = 16, .n0 = 48, .n1 = 48});
  add(batch, {.conv = true, .k = 3, .n0 = 48, .n1 = 48, .activation = "tanh"});
  add(batch, {.type = "bf16", .conv = true, .images = 2, .stride = 2, .k = 24, .n0 = 64, .n1 = 64, .residual1 = true});
  add(batch, {.conv = true, .window = 1, .k = 40, .n0 = 24, .n1 = 96, .activation = "abs"});
  add(batch, {.conv = true, .height = 4, .width = 5, .k = 8, .n0 = 7, .n1 = 5, .constant = false});
  testing::compile_and_run(batch);
}

TEST(CudaBackToBack, Random) {
  const auto chains = static_cast<uint32_t>(test::instances(72));
  for (uint32_t first = 0; first < chains; first += 12) {
    CudaBatch batch;
    for (uint32_t seed = first; seed < first + 12; ++seed) {
      add(batch, ProductChain::random(seed), seed % 2 == 0 ? CudaBatch::Options{} : skipping(seed * 7, 90));
    }
    batch.run();
  }
}

}  // namespace
}  // namespace heddle
