#include "target/target.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace heddle {
namespace {

int64_t cache_bytes(int name, int64_t fallback) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

double CpuTarget::peak_gflops() const {
  return ghz * lanes_f32() * 2 * 2;
}  // two FMA pipes

Target Target::host_cpu(int threads) {
  Target target;
  CpuTarget& cpu = target.cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    cpu.isa = CpuIsa::kAvx512;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    cpu.isa = CpuIsa::kAvx2;
  }
  cpu.f16c = cpu.isa != CpuIsa::kPortable;  // every AVX2 machine with FMA has it
  cpu.avx512_bf16 = __builtin_cpu_supports("avx512bf16");
  cpu.avx512_vnni = __builtin_cpu_supports("avx512vnni");
#endif
  cpu.threads = threads > 0 ? threads : usable_cores();
  cpu.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, cpu.l1_bytes);
  cpu.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, cpu.l2_bytes);
  cpu.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, cpu.l3_bytes);
  return target;
}

std::string Target::fingerprint() const {
  if (kind == TargetKind::kCuda) return fmt::format("cuda-sm{}-sms{}", cuda.sm, cuda.sms);
  return fmt::format("cpu-{}-f16c{}-bf16{}-vnni{}-t{}-l1.{}-l2.{}-l3.{}", to_string(cpu.isa), cpu.f16c, cpu.avx512_bf16,
                     cpu.avx512_vnni, cpu.threads, cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes);
}

std::string_view to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return "portable";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
  }
  return "portable";
}

}  // namespace heddle
