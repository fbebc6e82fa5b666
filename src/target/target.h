#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "target/cpu_model.h"
#include "target/cuda_model.h"

namespace heddle {

// Compared here and in the backends only, each with an answer for every kind: schedule/backend.cc, codegen/backend.cc,
// driver/backend.cc. Everything else asks a backend, or Target for what it does and has.
enum class TargetKind : uint8_t { kCpu, kCuda };

// The answer for a kind, of one for each. A new kind does not compile until it has a case here, and then a parameter,
// without which no caller compiles.
template <typename T>
const T& of_kind(TargetKind kind, const T& cpu, const T& cuda) {
  switch (kind) {
    case TargetKind::kCpu:
      return cpu;
    case TargetKind::kCuda:
      return cuda;
  }
  return cpu;
}

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
  CpuModel model = avx512_cpu().model;

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

  // What the chip has: products of matrices by warps, of fp8, and by warpgroups; copies of tiles between memory and
  // shared memory; clusters of blocks; launches that begin before the one in front has ended.
  bool has_tensor_cores() const { return sm >= 80; }
  bool has_fp8_mma() const { return sm >= 89; }
  bool has_wgmma() const { return sm == 90; }
  bool has_tma() const { return sm >= 90; }
  bool has_clusters() const { return sm >= 90; }
  bool has_dependent_launch() const { return sm >= 90; }

  // What jit::compile_cubin() compiles for: "sm_90a", "sm_80", "emulated_sm_90a".
  std::string architecture() const;

  // The chip of a compute capability (times ten) for which kernels are made where there is no GPU: the H200 for 90, the
  // A100 for 80. Throws kInvalidArgument for another one.
  static CudaTarget pinned(int sm);
};

// What one kind of target does and another does not. Each kind answers all of it (target.cc).
struct TargetTraits {
  // A product of several matrices side by side is better than a product with each: a small one costs its latency.
  bool merges_dots;
  // Constant factors of both operands are better on their product: each is a kernel in front of it, or keeps attention
  // from being one.
  bool scales_products;
  // Scatters whose indices are known are better as selections among loads, which other nodes' kernels compute.
  bool selects_for_scatters;
  // The epilogue of a product can reduce neighbours of a row or of a column (ir/analysis/partial_reduction.h).
  bool reduces_in_epilogues;
  // The epilogue of a product can combine the sums of pairs of columns (ir/analysis/gated_product.h).
  bool gates_products;
  // Threads take the tasks of small regions side by side, whatever these are. Else kernels are launches, and small ones
  // of one shape share theirs.
  bool runs_regions_side_by_side;
  // There are kernels of all convolutions whose images have the channels first, not of depthwise ones alone.
  bool convolves_channels_first;
  // The epilogue of a convolution can store neighbouring columns as neighbouring pixels.
  bool interleaves_columns;
  // Plans for other shapes share kernels whose numbers are arguments.
  bool shares_kernels_of_shapes;
};

// Who a device is, for what holds on it alone.
struct DeviceIdentity {
  std::string name;                   // empty: it is not here
  std::optional<std::string> driver;  // "cuda 13000", "none"; nullopt: it runs the code of the host's compiler as it is
};

struct Target {
  TargetKind kind = TargetKind::kCpu;
  CpuTarget cpu;
  CudaTarget cuda;

  const TargetTraits& traits() const;
  // As in CudaTarget; no other kind of target has either.
  bool has_tensor_cores() const { return kind == TargetKind::kCuda && cuda.has_tensor_cores(); }
  bool has_wgmma() const { return kind == TargetKind::kCuda && cuda.has_wgmma(); }
  // Of what a kernel moves, read and written together: by one thread of a CPU, by all of a GPU.
  double copy_bytes_per_second() const;
  // What one more kernel of a model costs.
  double boundary_seconds() const;
  // What values may take on it now.
  int64_t memory_bytes() const;
  // The device that this describes, where this machine has it.
  DeviceIdentity identity() const;

  // The machine that this process runs on, with `threads` workers (0: as many as cores this process may use). The
  // variable HEDDLE_CPU_ISA (portable, avx2, avx512) lowers the instruction set, to test code for other machines;
  // throws kInvalidArgument where it says something else.
  static Target host_cpu(int threads = 0);
  // A GPU, with the host's `threads` beside it. Throws kDevice where there is no such GPU (target/cuda_driver.h).
  static Target cuda_device(int ordinal, int threads = 0);
  // The H200, for compiling where there is no GPU.
  static Target cuda_h200(int threads = 0);
  // Of kernels for a GPU, when nothing runs on the host.
  static Target of(const CudaTarget& cuda);
  // Stable text of everything that generated code may depend on; part of every cache key, and what a plan is checked
  // against.
  std::string fingerprint() const;
  // What else schedules read of a device; part of every cache key. A plan that was made for another model runs, too.
  std::string model_fingerprint() const;
};

std::string_view to_string(CpuIsa isa);

}  // namespace heddle
