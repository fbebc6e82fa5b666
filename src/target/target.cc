#include "target/target.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "base/memory.h"
#include "target/calibration.h"
#include "target/cpu_features.h"
#include "target/cuda_driver.h"
#include "target/hip_driver.h"

namespace heddle {
namespace {

int64_t cache_bytes(int name, int64_t fallback) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

// Read once: a plan's cost model does not change under a process.
const std::optional<CpuRates>& calibration_of_host() {
  static const std::optional<CpuRates> rates = cpu_calibration(cpu_name());
  return rates;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// What HEDDLE_CPU_ISA allows at most.
struct IsaLimit {
  CpuIsa isa = CpuIsa::kAvx512;
  bool amx = false;
};
IsaLimit isa_limit() {
  const char* text = std::getenv("HEDDLE_CPU_ISA");
  if (text == nullptr || *text == '\0') return {};
  if (std::string_view(text) == "amx") return {.amx = true};
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (text == to_string(isa)) return {.isa = isa};
  }
  fail(ErrorCode::kInvalidArgument, "HEDDLE_CPU_ISA", fmt::format("\"{}\" is unknown", text),
       "Use portable, avx2, avx512 or amx, or unset it");
}

}  // namespace

#if defined(__x86_64__)
// Rounded up to a tenth: a chain of dependent additions of registers retires one per cycle
// on every x86 core. Additions of constants would not do: newer cores fold those before they are executed. The fastest
// of several runs of some 50 us, since an interruption only makes a run longer.
double measured_ghz() {
  constexpr int kRuns = 7, kTurns = 20000, kAdditions = 10;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    uint64_t value = 0;
    const uint64_t step = 3;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTurns; ++i) {
      asm volatile(
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          : "+r"(value)
          : "r"(step));
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    best = std::max(best, kTurns * kAdditions / elapsed.count());
  }
  return std::ceil(best * 10) / 10;
}
#else
double measured_ghz() {
  return 0;
}
#endif

double CpuTarget::peak_gflops() const {
  const int bytes = std::min(fma_bytes_per_cycle, 2 * lanes_f32() * 4);  // at most two operations a cycle
  return ghz * bytes / 4 * 2;
}

Target Target::host_cpu(int threads) {
  Target target;
  CpuTarget& cpu = target.cpu;
#if defined(__x86_64__)
  const CpuFeatures& features = cpu_features();
  if (features.avx512) {
    cpu.isa = CpuIsa::kAvx512;
  } else if (features.avx2) {
    cpu.isa = CpuIsa::kAvx2;
  }
  const IsaLimit limit = isa_limit();
  cpu.isa = std::min(cpu.isa, limit.isa);
  cpu.model = model_of(cpu.isa);
  const bool avx512 = cpu.isa == CpuIsa::kAvx512;
  cpu.f16c = cpu.isa != CpuIsa::kPortable;  // every AVX2 machine with FMA has it
  static const double ghz = measured_ghz();
  cpu.ghz = ghz;
  // Zen 1 to Zen 4 have 256-bit pipes; their AVX-512 runs as two halves.
  if (features.zen) cpu.fma_bytes_per_cycle = 64;
  cpu.avx512_bf16 = avx512 && features.avx512_bf16;
  cpu.avx512_vnni = avx512 && features.avx512_vnni;
  cpu.amx = avx512 && features.amx && limit.amx;
#endif
  cpu.threads = threads > 0 ? threads : usable_cores();
  if (const auto& rates = calibration_of_host()) {
    cpu.ghz = rates->ghz;
    cpu.fma_bytes_per_cycle = static_cast<int>(rates->fma_bytes_per_cycle);
    cpu.copy_gbps = rates->copy_gbps;
    cpu.barrier_us = rates->barrier_us;
  }
  cpu.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, cpu.l1_bytes);
  cpu.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, cpu.l2_bytes);
  cpu.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, cpu.l3_bytes);
  return target;
}

std::string CudaTarget::architecture() const {
  // Machine code of "a" architectures holds what only they have (wgmma), and runs nowhere else.
  return fmt::format("{}sm_{}{}", emulated ? "emulated_" : "", sm, sm >= 90 ? "a" : "");
}

CudaTarget CudaTarget::pinned(int sm) {
  CudaTarget target;
  if (sm == target.sm) return target;
  if (sm != a100().architecture) {
    fail(ErrorCode::kInvalidArgument, "compute capability", fmt::format("{} is not 80 or 90", sm));
  }
  target.sm = sm;
  target.sms = static_cast<int>(a100().facts.sms);
  target.memory_bytes = int64_t{80} << 30;
  target.shared_bytes_per_block = 163 << 10;
  target.l2_bytes = 40 << 20;
  target.model = a100().model;
  return target;
}

std::optional<CudaTarget> CudaTarget::of_architecture(std::string_view name) {
  constexpr std::string_view kEmulated = "emulated_", kSm = "sm_";
  std::string_view chip = name;
  if (chip.starts_with(kEmulated)) chip.remove_prefix(kEmulated.size());
  if (!chip.starts_with(kSm)) return std::nullopt;
  int sm = 0;
  std::from_chars(chip.data() + kSm.size(), chip.data() + chip.size(), sm);
  CudaTarget target = sm == CudaTarget().sm ? CudaTarget() : pinned(a100().architecture);
  target.sm = sm;
  target.emulated = chip.size() < name.size();
  if (target.architecture() != name || !target.has_tensor_cores()) return std::nullopt;
  return target;
}

Target Target::cuda_h200(int threads) {
  Target target = host_cpu(threads);
  target.kind = TargetKind::kCuda;
  return target;
}

HipTarget::HipTarget(const HipChip& chip) : gfx(chip.architecture) {
  mfma = chip.mfma;
  lanes = chip.lanes;
  sms = static_cast<int>(chip.facts.sms);
  memory_bytes = chip.memory_bytes;
  shared_bytes_per_block = chip.lds_bytes;
  reserved_shared_bytes = 0;
  l2_bytes = chip.l2_bytes;
  registers_per_sm = chip.registers;
  model = chip.model;
}

std::string HipTarget::architecture() const {
  return (emulated ? "emulated_" : "") + gfx;
}

std::optional<HipTarget> HipTarget::of_architecture(std::string_view name) {
  constexpr std::string_view kEmulated = "emulated_";
  const bool emulated = name.starts_with(kEmulated);
  const HipChip* chip = find_hip_chip(emulated ? name.substr(kEmulated.size()) : name);
  if (chip == nullptr) return std::nullopt;
  HipTarget target(*chip);
  target.emulated = emulated;
  return target;
}

Target Target::of_hip(const HipTarget& hip, int threads) {
  Target target = host_cpu(threads);
  target.kind = TargetKind::kHip;
  target.hip = hip;
  return target;
}

Target Target::of(const CudaTarget& cuda) {
  Target target;
  target.kind = TargetKind::kCuda;
  target.cuda = cuda;
  return target;
}

const TargetTraits& Target::traits() const {
  static constexpr TargetTraits kOfCpu = {.merges_dots = false,
                                          .scales_products = false,
                                          .selects_for_scatters = false,
                                          .reduces_in_epilogues = false,
                                          .gates_products = false,
                                          .runs_regions_side_by_side = true,
                                          .convolves_channels_first = true,
                                          .interleaves_columns = true,
                                          .gathers_rows = true,
                                          .rounds_divisions = true,
                                          .shares_kernels_of_shapes = true};
  static constexpr TargetTraits kOfCuda = {.merges_dots = true,
                                           .scales_products = true,
                                           .selects_for_scatters = true,
                                           .reduces_in_epilogues = true,
                                           .gates_products = true,
                                           .runs_regions_side_by_side = false,
                                           .convolves_channels_first = false,
                                           .interleaves_columns = false,
                                           .gathers_rows = false,
                                           .rounds_divisions = false,
                                           .shares_kernels_of_shapes = false};
  // As on NVIDIA GPUs, but threads of products have no sums of neighbours.
  static constexpr TargetTraits kOfHip = {.merges_dots = true,
                                          .scales_products = true,
                                          .selects_for_scatters = true,
                                          .reduces_in_epilogues = false,
                                          .gates_products = false,
                                          .runs_regions_side_by_side = false,
                                          .convolves_channels_first = false,
                                          .interleaves_columns = false,
                                          .gathers_rows = false,
                                          .rounds_divisions = false,
                                          .shares_kernels_of_shapes = false};
  return of_kind(kind, kOfCpu, kOfCuda, kOfHip);
}

bool Target::multiplies_bytes() const {
  return of_kind(kind, cpu.avx512_vnni, cuda.has_tensor_cores(), false);
}

bool Target::multiplies_signed() const {
  return of_kind(kind, false, true, false);
}

bool Target::multiplies_shorts() const {
  return of_kind(kind, true, false, false);
}

double Target::boundary_seconds() const {
  switch (kind) {
    case TargetKind::kCpu:
      return cpu.barrier_us * 1e-6;
    case TargetKind::kCuda:
    case TargetKind::kHip:
      return gpu().model.chip.graph_boundary_us * 1e-6;
  }
  return 0;
}

double Target::copy_bytes_per_second() const {
  switch (kind) {
    case TargetKind::kCpu:
      return cpu.copy_gbps * 1e9;
    case TargetKind::kCuda:
    case TargetKind::kHip:
      return gpu().model.chip.copy_tbps * 1e12;
  }
  return 0;
}

int64_t Target::memory_bytes() const {
  switch (kind) {
    case TargetKind::kCpu:
      return static_cast<int64_t>(available_memory());
    case TargetKind::kCuda:
    case TargetKind::kHip:
      return gpu().memory_bytes;
  }
  return 0;
}

DeviceIdentity Target::identity() const {
  switch (kind) {
    case TargetKind::kCpu:
      return {cpu_name(), std::nullopt};
    case TargetKind::kCuda:
      for (const CudaDevice& device : cuda_devices()) {
        if (of(device.target).fingerprint() == fingerprint()) return device.identity();
      }
      return {"", "none"};
    case TargetKind::kHip:
      for (const HipDevice& device : hip_devices()) {
        if (of_hip(device.target).fingerprint() == fingerprint()) return device.identity();
      }
      return {"", "none"};
  }
  return {};
}

std::string Target::fingerprint() const {
  switch (kind) {
    case TargetKind::kCpu:
      return fmt::format("cpu-{}-f16c{}-bf16{}-vnni{}-amx{}-t{}-l1.{}-l2.{}-l3.{}", to_string(cpu.isa), cpu.f16c,
                         cpu.avx512_bf16, cpu.avx512_vnni, cpu.amx, cpu.threads, cpu.l1_bytes, cpu.l2_bytes,
                         cpu.l3_bytes);
    case TargetKind::kCuda:
      return fmt::format("cuda-{}-sms{}-shared{}", cuda.architecture(), cuda.sms, cuda.shared_bytes_per_block);
    case TargetKind::kHip:
      return fmt::format("hip-{}-cus{}-lds{}", hip.architecture(), hip.sms, hip.shared_bytes_per_block);
  }
  return {};
}

// Of a CPU's own rates only what was calibrated: its clock is measured anew by every other process.
std::string Target::model_fingerprint() const {
  switch (kind) {
    case TargetKind::kCpu: {
      const std::string model = fmt::format("model.{}", heddle::fingerprint(cpu.model));
      if (!calibration_of_host()) return model;
      return fmt::format("{}-{}-{}-{}-{}", cpu.ghz, cpu.fma_bytes_per_cycle, cpu.copy_gbps, cpu.barrier_us, model);
    }
    case TargetKind::kCuda:
    case TargetKind::kHip:
      return fmt::format("l2.{}-registers{}-model.{}", gpu().l2_bytes, gpu().registers_per_sm,
                         heddle::fingerprint(gpu().model));
  }
  return {};
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
