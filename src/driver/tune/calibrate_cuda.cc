#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <memory>

#include "base/check.h"
#include "driver/tune/calibrate.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"

namespace heddle::driver {
namespace {

constexpr int kThreads = 256;

// Sums go where a condition that never holds would store them, so that no compiler drops their making.
constexpr const char* kKernels = R"(
using namespace heddle::tile;

extern "C" __global__ void __launch_bounds__(256) copy(uint4* __restrict__ to, const uint4* __restrict__ from, long long n) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(256) read(uint4* to, const uint4* from, long long n, int turns) {
  unsigned sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) {
      uint4 v;
      asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from + i));
      sum += v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (sum == 0x12345678u) to[threadIdx.x].x = sum;
}

// Cycles and nanoseconds of the first block.
extern "C" __global__ void __launch_bounds__(256) clocks(long long* out, int turns) {
  float x = threadIdx.x, y = 1.0f;
  long long cycles = clock64(), time, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  for (int i = 0; i < turns; ++i) {
#pragma unroll
    for (int k = 0; k < 64; ++k) x = fmaf(x, y, y);
  }
  cycles = clock64() - cycles;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    out[0] = cycles;
    out[1] = end - time;
  }
  if (x == 12345.0f) out[2] = 1;
}

extern "C" __global__ void __launch_bounds__(256) multiply(float* out, int turns) {
  float d[8][4] = {};
  uint32_t a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = 0x3c003800u + threadIdx.x * 0x01010101u * (i + 1) % 0x03ff03ffu;
  for (int i = 0; i < 2; ++i) b[i] = 0x38003c00u + threadIdx.x * 0x01030307u * (i + 3) % 0x03ff03ffu;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int k = 0; k < 8; ++k) sm80::Mma<half>::issue(d[k], a, b);
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
  if (sum == 12345.0f) out[threadIdx.x] = sum;
}

extern "C" __global__ void empty() {}
)";

// Two warpgroups a block, each 64 x 256 of sums; operands that are no zeros, which would draw less power.
constexpr const char* kWgmma = R"(
extern "C" __global__ void __launch_bounds__(256, 1) wide_multiply(float* out, int turns) {
  extern __shared__ __align__(1024) uint32_t shared[];
  for (int i = threadIdx.x; i < 48 * 1024 / 4; i += 256) shared[i] = 0x3c003800u + i * 0x9e3779b9u % 0x03ff03ffu;
  __syncthreads();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  const uint32_t base = uint32_t(__cvta_generic_to_shared(shared)) + threadIdx.x / 128 * 8192;
  const uint64_t a = sm90::make_smem_descriptor(base, true, 0);
  const uint64_t b = sm90::make_smem_descriptor(uint32_t(__cvta_generic_to_shared(shared)) + 16384, true, 0);
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < 128; ++i) sm90::fence_operand(d[i]);
    sm90::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) sm90::Wgmma<half, 256>::issue<false, false>(d, a + 2 * k, b + 2 * k, 1);
    sm90::wgmma_commit();
    sm90::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 128; ++i) sm90::fence_operand(d[i]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) sum += d[i];
  if (sum == 12345.0f) out[threadIdx.x] = sum;
}
)";
constexpr uint32_t kWgmmaShared = 48 << 10;

class Bench {
 public:
  explicit Bench(int ordinal)
      : context_(ordinal), cuda_(context_.device().target), watch_(context_), wide_(cuda_.has_wgmma()) {
    module_ = std::make_unique<runtime::CudaModule>(
        context_, jit::compile_cubin(cuda_calibration_unit(cuda_), cuda_.architecture(), true).bytes);
  }

  CudaRates run() {
    // A quarter of a second of products first: clocks and temperatures as in long runs.
    seconds_of_products(200000);
    return {clock_ghz(), memory_tbps(), l2_tbps(), tensor_tflops(), boundary_us()};
  }

 private:
  void launch(const char* symbol, unsigned blocks, std::initializer_list<const void*> arguments, uint32_t shared = 0) {
    CudaLaunchConfig config;
    config.grid[0] = blocks;
    config.block[0] = kThreads;
    config.shared_bytes = shared;
    config.stream = context_.stream();
    std::array<void*, 4> pointers{};  // the most of any kernel
    std::transform(arguments.begin(), arguments.end(), pointers.begin(),
                   [](const void* p) { return const_cast<void*>(p); });
    runtime::launch_kernel(context_, config, module_->function(symbol, shared), pointers.data(), symbol);
  }

  // Device time of `work`, the shortest of several.
  double shortest(int runs, const std::function<void()>& work) {
    double best = 1e30;
    for (int run = 0; run < runs; ++run) {
      watch_.start(context_.stream());
      work();
      watch_.stop(context_.stream());
      best = std::min(best, watch_.seconds());
    }
    return best;
  }

  double clock_ghz() {
    runtime::CudaBuffer out(context_, 64);
    const uint64_t address = out.address();
    const int turns = 100000;
    launch("clocks", static_cast<unsigned>(4 * cuda_.sms), {&address, &turns});
    std::array<int64_t, 2> times{};
    out.read(times.data(), sizeof times);
    return static_cast<double>(times[0]) / static_cast<double>(times[1]);
  }

  double memory_tbps() {
    // Eight times what the L2 holds, in each direction.
    const int64_t bytes = std::min<int64_t>(8 * std::max<int64_t>(cuda_.l2_bytes, 32 << 20), cuda_.memory_bytes / 8);
    const size_t size = static_cast<size_t>(bytes);
    runtime::CudaBuffer from(context_, size), to(context_, size);
    const uint64_t source = from.address(), target = to.address();
    const long long count = bytes / 16;
    const double seconds = shortest(20, [&] {
      launch("copy", static_cast<unsigned>(8 * cuda_.sms), {&target, &source, &count});
    });
    return 2 * static_cast<double>(bytes) / seconds * 1e-12;
  }

  double l2_tbps() {
    const int64_t bytes = cuda_.l2_bytes / 4;
    runtime::CudaBuffer from(context_, static_cast<size_t>(bytes)), to(context_, 4096 + 16 * kThreads);
    const uint64_t source = from.address(), target = to.address();
    const long long count = bytes / 16;
    const int turns = 20;
    const double seconds = shortest(10, [&] {
      launch("read", static_cast<unsigned>(8 * cuda_.sms), {&target, &source, &count, &turns});
    });
    return turns * static_cast<double>(bytes) / seconds * 1e-12;
  }

  double seconds_of_products(int turns) {
    runtime::CudaBuffer out(context_, 4 * kThreads);
    const uint64_t address = out.address();
    return shortest(1, [&] {
      launch(wide_ ? "wide_multiply" : "multiply", static_cast<unsigned>(wide_ ? cuda_.sms : 4 * cuda_.sms),
             {&address, &turns}, wide_ ? kWgmmaShared : 0);
    });
  }

  double tensor_tflops() {
    const int turns = wide_ ? 100000 : 200000;
    // Of a block in a turn: two warpgroups with four products of 64 x 256 x 16, or eight warps with eight of 16 x 8
    // x 16.
    const double products = wide_ ? 2.0 * 4 * 64 * 256 * 16 : 4 * 8.0 * 8 * 16 * 8 * 16;
    return 2 * products * turns * cuda_.sms / seconds_of_products(turns) * 1e-12;
  }

  double boundary_us() {
    const auto time_of = [this](int kernels) {
      const runtime::CudaGraph graph(context_, [&] {
        for (int i = 0; i < kernels; ++i) launch("empty", 1, {});
      });
      return shortest(20, [&] { graph.launch(); });
    };
    constexpr int kFew = 100, kMany = 1100;
    return (time_of(kMany) - time_of(kFew)) / (kMany - kFew) * 1e6;
  }

  runtime::CudaContext context_;
  const CudaTarget& cuda_;
  runtime::CudaStopwatch watch_;
  bool wide_;
  std::unique_ptr<runtime::CudaModule> module_;
};

}  // namespace

std::string cuda_calibration_unit(const CudaTarget& target) {
  const bool wide = target.has_wgmma();
  return fmt::format("#include \"tile/arch/sm80/mma.h\"\n{}{}{}", wide ? "#include \"tile/arch/sm90/wgmma.h\"\n" : "",
                     kKernels, wide ? kWgmma : "");
}

CudaRates measure_cuda(int ordinal) {
  const Target target = Target::cuda_device(ordinal);
  if (target.cuda.emulated) {
    fail(ErrorCode::kDevice, fmt::format("cuda:{}", ordinal), "an emulated GPU has no speed to measure",
         "Unset HEDDLE_CUDA_DRIVER");
  }
  return Bench(ordinal).run();
}

}  // namespace heddle::driver
