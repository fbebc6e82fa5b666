// Stream-K of the sm_90 family, its work shared out as on a device of few SMs: on the emulator, which has
// no more, and on any GPU, which has room for all of them at once.
#include "../emulator/fixture.h"
#include "schedule/product/cuda/wgmma/wgmma.h"
#include "tile_case.h"

namespace heddle::testing_cuda {
namespace {

class StreamK : public emulator::EmulatorTest {
 protected:
  void SetUp() override {
    multiprocessors_ = std::make_unique<emulator::Variable>("HEDDLE_EMULATED_SMS", std::to_string(kMultiprocessors));
    EmulatorTest::SetUp();
  }
  void TearDown() override {
    EmulatorTest::TearDown();
    multiprocessors_.reset();
  }

  // D = 2 A B twice with one workspace and one set of counters; both results are those of sums in double.
  void check(const schedule::WgmmaProblem& p, const schedule::WgmmaConfig& c) {
    SCOPED_TRACE(schedule::name_of({c}));
    CudaTarget target = context->device().target;
    ASSERT_GE(target.sms, kMultiprocessors);
    target.sms = kMultiprocessors;
    ops::GemmProblem call;
    call.m = p.m, call.n = p.n, call.k = p.k, call.batch = p.batch;
    call.in = p.in, call.out = p.out, call.ldd = p.ldd, call.stride_d = p.stride_d;
    call.epilogue = "x * 2";
    const ops::LoweredEpilogue e = ops::lower_epilogue(call, DType::kF32);
    const codegen::CudaGemmUnit unit = codegen::gemm_unit(instance_of(p, c), {}, e.epilogue, e.operands);
    schedule::KernelLaunches work = make_launches(p, c, target);
    ASSERT_GT(work.counter_bytes, 0);
    codegen::add_argument(work.launches.back(), unit.epilogue.block, unit.epilogue.pointers);
    load(unit.source());

    const Elements a(p.in, p.stride_a * p.batch, 5), b(p.in, p.stride_b * p.batch, 6);
    auto device_a = buffer(a.bytes.size()), device_b = buffer(b.bytes.size());
    auto d = buffer(static_cast<size_t>(p.stride_d * p.batch) * size_of(p.out));
    auto workspace = buffer(static_cast<size_t>(work.workspace_bytes));
    auto counters = buffer(static_cast<size_t>(work.counter_bytes));
    device_a.write(a.bytes.data(), a.bytes.size());
    device_b.write(b.bytes.data(), b.bytes.size());
    const std::vector<uint8_t> zeros(counters.size());
    counters.write(zeros.data(), zeros.size());
    const runtime::CudaSequence sequence(
        *context, *module, work.launches,
        {device_a.address(), device_b.address(), d.address(), workspace.address(), counters.address()});
    for (int turn = 0; turn < 2; ++turn) {
      const std::vector<uint8_t> poison(d.size(), 0x5a);
      d.write(poison.data(), poison.size());
      sequence.enqueue();
      context->synchronize();
      EXPECT_EQ(read<uint8_t>(counters), zeros);
      const auto got = read<float>(d);
      int wrong = 0;
      for (int64_t z = 0; z < p.batch; ++z) {
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t j = 0; j < p.n; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < p.k; ++k) {
              sum += a.values[static_cast<size_t>(z * p.stride_a + i * p.lda + k)] *
                     b.values[static_cast<size_t>(z * p.stride_b + j * p.ldb + k)];
            }
            wrong += got[static_cast<size_t>(z * p.stride_d + i * p.ldd + j)] != static_cast<float>(2 * sum) ? 1 : 0;
          }
        }
      }
      EXPECT_EQ(wrong, 0);
    }
  }

 private:
  static constexpr int kMultiprocessors = 6;
  std::unique_ptr<emulator::Variable> multiprocessors_;
};

// `tma`: it stores D, else the epilogue does.
schedule::WgmmaProblem problem(bool tma, int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  schedule::WgmmaProblem p;
  p.out = DType::kF32;
  p.m = m, p.n = n, p.k = k, p.batch = batch;
  p.epilogue_stores = !tma;
  return p.resolved();
}

schedule::WgmmaConfig streaming(int m, int n, int consumers) {
  schedule::WgmmaConfig c;
  c.tile_m = m, c.tile_n = n, c.consumers = consumers, c.stages = 3;
  c.stream_k = true;
  return c;
}

TEST_F(StreamK, FewerTilesThanMultiprocessors) {
  check(problem(true, 120, 64, 64 * 13), streaming(64, 64, 1));
}
TEST_F(StreamK, WholeTilesThenSharedOnes) {
  check(problem(true, 200, 300, 64 * 5), streaming(64, 64, 1));
}
TEST_F(StreamK, TwoWarpgroupsAndBatches) {
  check(problem(false, 130, 32, 64 * 7, 2), streaming(128, 32, 2));
}
TEST_F(StreamK, OneTileForAll) {
  check(problem(false, 64, 64, 64 * 40), streaming(64, 64, 1));
}

}  // namespace
}  // namespace heddle::testing_cuda
