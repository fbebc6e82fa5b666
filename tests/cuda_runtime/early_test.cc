#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cuda_plans.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"

namespace heddle::runtime {
namespace {

constexpr int kOld = 1, kNew = 7, kThreads = 32;

// Three kernels of which two begin early. `read_late` reads `memory` when `take` is there already, `change` writes it
// from another multiprocessor, then `take` reads it by `load`.
std::string unit(const std::string& load) {
  return fmt::format(R"(
#include "tile/arch/sm80/stream.h"
#include "tile/arch/sm90/dependent.h"
using namespace heddle::tile;
struct alignas(16) Words {{ unsigned x[4]; }};
extern "C" __global__ void __launch_bounds__({0}) read_late(const Words* memory, unsigned* out) {{
  sm90::let_next_begin();
  const long long start = clock64();
  while (clock64() - start < 200000) {{}}
  out[blockIdx.x * {0} + threadIdx.x] = memory[threadIdx.x].x[0];
}}
extern "C" __global__ void __launch_bounds__({0}) change(Words* memory) {{
  sm90::let_next_begin();
  sm90::wait_for_previous();
  if (blockIdx.x == 0) memory[threadIdx.x] = {{{{{1}, {1}, {1}, {1}}}}};
}}
__device__ __forceinline__ unsigned plain(const Words* __restrict__ memory) {{ return memory[threadIdx.x].x[0]; }}
extern "C" __global__ void __launch_bounds__({0}) take(const Words* memory, unsigned* out) {{
  sm90::let_next_begin();
  sm90::wait_for_previous();
  out[blockIdx.x * {0} + threadIdx.x] = {2};
}}
)",
                     kThreads, kNew, load);
}

class EarlyLoadTest : public testing::TestWithParam<const char*> {};

// What lay in memory before is in the L1 of every multiprocessor, and no load of an early kernel may find it there.
TEST_P(EarlyLoadTest, SeesWhatTheKernelInFrontWrote) {
  if (!has_gpu() || is_emulated()) GTEST_SKIP() << "there is no GPU";
  const auto context = CudaContext::of_device(0);
  if (!may_overlap(*context)) GTEST_SKIP() << "kernels do not begin early";
  const CudaTarget& target = context->device().target;
  const auto blocks = static_cast<uint32_t>(target.sms);
  const CudaModule module(*context, jit::compile_cubin(unit(GetParam()), target.architecture(), false).bytes);
  CudaBuffer memory(*context, kThreads * 16), seen(*context, blocks * kThreads * sizeof(int));
  CudaBuffer out(*context, seen.size());
  std::vector<CudaLaunch> launches = {launch_of("read_late", 2, kThreads), launch_of("change", 1, kThreads),
                                      launch_of("take", 2, kThreads)};
  for (CudaLaunch& launch : launches) launch.grid[0] = blocks;
  launches[0].pointers[1].operand = 1;
  launches[2].pointers[1].operand = 2;
  launches[1].early = launches[2].early = true;
  const CudaSequence sequence(*context, module, launches, {memory.address(), seen.address(), out.address()});
  const CudaGraph graph(*context, [&] { sequence.enqueue(); });
  const std::vector<int> old(kThreads * 4, kOld);
  for (int round = 0; round < 20; ++round) {
    memory.write(old.data(), old.size() * sizeof(int));
    graph.launch();
    std::vector<int> result(seen.size() / sizeof(int));
    seen.read(result.data(), seen.size());
    ASSERT_EQ(std::count(result.begin(), result.end(), kOld), result.size()) << "not what was there first";
    out.read(result.data(), out.size());
    ASSERT_EQ(std::count(result.begin(), result.end(), kNew), result.size()) << "of round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, EarlyLoadTest,
                         testing::Values("sm80::load_here(memory + threadIdx.x).x[0]",
                                         "sm80::load_stream(memory + threadIdx.x).x[0]",
                                         "plain(sm90::behind_previous(memory))"));

}  // namespace
}  // namespace heddle::runtime
