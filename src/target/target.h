#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "target/cuda_model.h"

namespace heddle {

enum class TargetKind : uint8_t { kCpu, kCuda };

// Vector instruction sets in ascending order; code for one runs on every later one.
enum class CpuIsa : uint8_t { kPortable, kAvx2, kAvx512 };

// What a device is, as plain data: schedules and cost models read this and nothing else of the machine, so a plan can
// be made for a device that is not present and tests can pin one.
struct CpuTarget {
  CpuIsa isa = CpuIsa::kPortable;
  bool f16c = false;  // hardware f16 conversion
  bool avx512_bf16 = false, avx512_vnni = false;
  int threads = 1;                                                       // worker threads that a plan may use
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;  // l1 and l2 per core
  double ghz = 3.0;                                                      // clock under load of one core
  int fma_bytes_per_cycle = 128;  // two 64-byte pipes; 64 where 512-bit operations are split in halves
  double copy_gbps = 20;          // one thread, read + write
  double barrier_us = 1.5;        // fork and join of all threads

  int lanes_f32() const { return isa == CpuIsa::kAvx512 ? 16 : isa == CpuIsa::kAvx2 ? 8 : 4; }
  // f32 FMA peak of one core in GFLOP/s: ghz * lanes per cycle * 2.
  double peak_gflops() const;
};

// An NVIDIA GPU. The defaults are an H200.
struct CudaTarget {
  int sm = 90;            // compute capability, times ten
  bool emulated = false;  // the emulator of src/emulator: kernels are compiled for the host
  int sms = 132;
  int64_t memory_bytes = int64_t{141} << 30;
  int64_t shared_bytes_per_block = 232448, l2_bytes = 60 << 20;
  int registers_per_sm = 65536;
  CudaModel model = h200().model;

  // What the chip has: instructions on tensor cores by warpgroups, copies of tiles between memory and shared memory,
  // clusters of blocks, products of fp8.
  bool has_wgmma() const { return sm == 90; }
  bool has_tma() const { return sm >= 90; }
  bool has_clusters() const { return sm >= 90; }
  bool has_fp8_mma() const { return sm >= 89; }

  // What jit::compile_cubin() compiles for: "sm_90a", "sm_80", "emulated_sm_90a".
  std::string architecture() const;
};

struct Target {
  TargetKind kind = TargetKind::kCpu;
  CpuTarget cpu;
  CudaTarget cuda;

  // The machine that this process runs on, with `threads` workers (0: as many as cores this process may use). The
  // variable HEDDLE_CPU_ISA (portable, avx2, avx512) lowers the instruction set, to test code for other machines;
  // throws kInvalidArgument where it says something else.
  static Target host_cpu(int threads = 0);
  // A GPU, with the host's `threads` beside it. Throws kDevice where there is no such GPU (target/cuda_driver.h).
  static Target cuda_device(int ordinal, int threads = 0);
  // The H200, for compiling where there is no GPU.
  static Target cuda_h200(int threads = 0);
  // Stable text of everything that generated code may depend on; part of every cache key, and what a plan is checked
  // against.
  std::string fingerprint() const;
  // What else schedules read of a GPU; part of every cache key. A plan that was made for another model runs, too.
  std::string model_fingerprint() const;
};

std::string_view to_string(CpuIsa isa);

}  // namespace heddle
