// Programs that wait for others on the emulator.
#include <gmock/gmock.h>

#include "../../emulator/fixture.h"
#include "../waiting_kernels.h"
#include "jit/cuda/emulated.h"
#include "lang/cuda/kernel.h"

namespace heddle::lang::cuda {
namespace {

using testing::chain_kernel;
using testing::Handover;
using ::testing::HasSubstr;

class Waits : public emulator::EmulatorTest {
 protected:
  CudaKernel compiled(const std::string& text) {
    return CudaKernel(parse_and_verify(text), target_name(context->device().target));
  }
  // Runs a chain of programs of `width` elements each: "", what went wrong, or how many elements are wrong.
  std::string run(const CudaKernel& kernel, unsigned programs, unsigned width = 1) {
    auto flags = buffer(programs * width * 8), out = buffer(programs * width * 4);
    const std::vector<uint8_t> zero(flags.size(), 0);
    flags.write(zero.data(), zero.size());
    const uint64_t slots[] = {flags.address(), out.address()};
    try {
      kernel.launch({programs, 1, 1}, slots, context->stream());
      // Not by the context, which does not come back from a failure.
      const CudaDriver& driver = context->driver();
      driver.check(driver.stream_synchronize(context->stream()), "chain");
    } catch (const Error& error) {
      return error.what();
    }
    int wrong = 0;
    const auto got = read<int32_t>(out);
    for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != 3 * (static_cast<int32_t>(i / width) + 1);
    return wrong == 0 ? "" : std::to_string(wrong) + " are wrong";
  }
};

TEST_F(Waits, ProgramsSeeWhatEarlierOnesHandOver) {
  const emulator::Variable sms("HEDDLE_EMULATED_SMS", "1");  // 32 programs run together
  for (const Handover& h : testing::kHandovers) {
    if (h.name != "volatile" && h.name != "cv_u8" && h.name != "add_zero" && h.name != "swap") continue;
    const CudaKernel kernel = compiled(chain_kernel(h));
    for (int seed = 1; seed <= 5; ++seed) {
      const emulator::Variable seeds("HEDDLE_EMULATOR_SEED", std::to_string(seed));
      EXPECT_EQ(run(kernel, 50), "") << h.name << ", seed " << seed;
    }
  }
}

TEST_F(Waits, TilesOfFlags) {
  const CudaKernel kernel = compiled(testing::tile_chain_kernel());
  for (int seed = 1; seed <= 5; ++seed) {
    const emulator::Variable seeds("HEDDLE_EMULATOR_SEED", std::to_string(seed));
    EXPECT_EQ(run(kernel, 20, 16), "") << "seed " << seed;
  }
}

TEST_F(Waits, AWaitForALaterProgramIsNamed) {
  if (!jit::is_emulated(context->device().target.architecture())) GTEST_SKIP() << "a GPU names no deadlock";
  const emulator::Variable sms("HEDDLE_EMULATED_SMS", "1");
  for (const Handover& h : {testing::kHandovers[0], testing::kHandovers[6]}) {
    const std::string text = run(compiled(chain_kernel(h, 1)), 40);
    EXPECT_THAT(text, HasSubstr("chain: deadlock in 32 block(s), 8 not started")) << h.name;
    EXPECT_THAT(text, HasSubstr("wait for a value in memory")) << h.name;
  }
}

}  // namespace
}  // namespace heddle::lang::cuda
