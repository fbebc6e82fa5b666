#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/thread/thread_pool.h"
#include "driver/tune/calibrate.h"
#include "target/target.h"

namespace heddle::driver {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The shortest of several runs: others of the machine only make a run longer.
template <typename F>
double shortest(int runs, F&& f) {
  double best = 1e30;
  for (int run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    f();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

#if defined(__x86_64__)
// Twelve chains: more than the four or five cycles of one times two pipes.
#define HEDDLE_FMA_CHAINS(R)                                                        \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "1\n vfmadd231ps %%" R "0, %%" R "0, %%" R \
  "2\n"                                                                             \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "3\n vfmadd231ps %%" R "0, %%" R "0, %%" R \
  "4\n"                                                                             \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "5\n vfmadd231ps %%" R "0, %%" R "0, %%" R \
  "6\n"                                                                             \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "7\n vfmadd231ps %%" R "0, %%" R "0, %%" R \
  "8\n"                                                                             \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "9\n vfmadd231ps %%" R "0, %%" R "0, %%" R \
  "10\n"                                                                            \
  "vfmadd231ps %%" R "0, %%" R "0, %%" R "11\n vfmadd231ps %%" R "0, %%" R "0, %%" R "12\n"
constexpr int kChains = 12;

__attribute__((target("avx512f"))) void multiply_512(int turns) {
  asm volatile("vpxorq %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");
  for (int i = 0; i < turns; ++i) {
    asm volatile(HEDDLE_FMA_CHAINS("zmm")::
                     : "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12");
  }
}

__attribute__((target("avx2,fma"))) void multiply_256(int turns) {
  asm volatile("vpxor %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
  for (int i = 0; i < turns; ++i) {
    asm volatile(HEDDLE_FMA_CHAINS("ymm")::
                     : "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12");
  }
}
#undef HEDDLE_FMA_CHAINS

// Bytes of vectors in a cycle at `ghz`; what the target has by its data sheet where there is no such instruction.
double measured_fma_bytes(const CpuTarget& cpu, double ghz) {
  constexpr int kTurns = 200000;
  if (cpu.isa == CpuIsa::kPortable) return cpu.fma_bytes_per_cycle;
  const bool wide = cpu.isa == CpuIsa::kAvx512;
  const double seconds = shortest(9, [&] { wide ? multiply_512(kTurns) : multiply_256(kTurns); });
  return kTurns * kChains * (wide ? 64.0 : 32.0) / (seconds * ghz * 1e9);
}
#else
double measured_fma_bytes(const CpuTarget& cpu, double) {
  return cpu.fma_bytes_per_cycle;
}
#endif

// One thread copies between buffers that no cache holds; both directions count.
double measured_copy_gbps(const CpuTarget& cpu) {
  const size_t bytes = std::clamp<size_t>(4 * static_cast<size_t>(cpu.l3_bytes), 64 << 20, 512 << 20);
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const double seconds = shortest(7, [&] {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" ::"r"(to.data()) : "memory");
  });
  return 2 * static_cast<double>(bytes) / seconds * 1e-9;
}

// What a job takes beyond its tasks, of which each thread has one. They are long enough that no thread takes two.
double measured_barrier_us(int threads) {
  constexpr int kForks = 500;
  constexpr double kTask = 20e-6;
  if (threads < 2) return CpuTarget().barrier_us;
  ThreadPool pool(threads);
  const auto task = [](int64_t, int64_t, int) {
    const auto start = Clock::now();
    while (seconds_since(start) < kTask) {
    }
  };
  const double seconds = shortest(20, [&] {
    for (int i = 0; i < kForks; ++i) pool.run(threads, task);
  });
  return std::max(seconds / kForks - kTask, 1e-7) * 1e6;
}

}  // namespace

CpuRates measure_cpu(int threads) {
  const CpuTarget cpu = Target::host_cpu(threads).cpu;
  double ghz = 0;
  for (int run = 0; run < 20; ++run) ghz = std::max(ghz, measured_ghz());
  if (ghz == 0) ghz = cpu.ghz;
  // A pipe is 32 or 64 bytes wide, and a core has one or two.
  const double bytes = measured_fma_bytes(cpu, ghz);
  const double fma_bytes = bytes > 96 ? 128 : bytes > 48 ? 64 : 32;
  return {ghz, fma_bytes, measured_copy_gbps(cpu), measured_barrier_us(cpu.threads)};
}

}  // namespace heddle::driver
