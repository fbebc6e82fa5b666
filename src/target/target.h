#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "target/cpu_model.h"
#include "target/cuda_model.h"

namespace heddle {

// Only this header and the backends (schedule/backend.cc, codegen/backend.cc, driver/backend.cc) compare kinds, each
// with an answer for every kind. All other code asks a backend, or asks Target for its features.
enum class TargetKind : uint8_t { kCpu, kCuda };

// Returns the argument for `kind`. A new kind does not compile until it has a case here; the parameter that this needs
// then makes every caller fail to compile until it has an answer, too.
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

// A device as plain data. Schedules and cost models read nothing else about the machine, so a plan can be made for a
// device that is not present and tests can pin one.
struct CpuTarget {
  CpuIsa isa = CpuIsa::kPortable;
  bool f16c = false;  // hardware f16 conversion
  bool avx512_bf16 = false, avx512_vnni = false;
  int threads = 1;                                                       // worker threads that a plan may use
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;  // l1 and l2 per core
  double ghz = 3.0;                                                      // clock under load of one core
  int fma_bytes_per_cycle = 128;  // two 64-byte pipes; 64 if 512-bit operations are split in halves
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

  // Features of the chip: matrix products by warps, of fp8, and by warpgroups; TMA copies of tiles between global and
  // shared memory; clusters of blocks; launches that begin before the previous one has ended.
  bool has_tensor_cores() const { return sm >= 80; }
  bool has_fp8_mma() const { return sm >= 89; }
  bool has_wgmma() const { return sm == 90; }
  bool has_tma() const { return sm >= 90; }
  bool has_clusters() const { return sm >= 90; }
  bool has_dependent_launch() const { return sm >= 90; }

  // The architecture that jit::compile_cubin() compiles for: "sm_90a", "sm_80", "emulated_sm_90a".
  std::string architecture() const;

  // The chip to compile kernels for if there is no GPU, by compute capability times ten: the H200 for 90, the A100 for
  // 80. Throws kInvalidArgument for any other.
  static CudaTarget pinned(int sm);
  // The chip to compile for by its architecture, as architecture() names it: a pinned one, or one with the A100's
  // numbers. nullopt if it is none, or has no tensor cores.
  static std::optional<CudaTarget> of_architecture(std::string_view name);
};

// Properties in which kinds of targets differ. Each kind sets all of them (target.cc).
struct TargetTraits {
  // One product with several matrices side by side is faster than one product with each, since a small product costs
  // its latency.
  bool merges_dots;
  // Constant factors of both operands are better applied to their product. On an operand, a factor needs a kernel
  // before the product, or it prevents the match of attention.
  bool scales_products;
  // Scatters with known indices are better as selections among loads, which the kernels of other nodes can compute.
  bool selects_for_scatters;
  // The epilogue of a product can reduce neighbours of a row or of a column (ir/analysis/partial_reduction.h).
  bool reduces_in_epilogues;
  // The epilogue of a product can combine the sums of pairs of columns (ir/analysis/gated_product.h).
  bool gates_products;
  // Threads take the tasks of small regions side by side, whatever the regions compute. If false, kernels are launches,
  // and small ones of the same shape share a launch.
  bool runs_regions_side_by_side;
  // All convolutions have kernels for images with the channels first. If false, only depthwise ones do.
  bool convolves_channels_first;
  // The epilogue of a convolution can store neighbouring columns as neighbouring pixels.
  bool interleaves_columns;
  // A gather of whole rows uses vector loads. In other gathers, each lane takes a load.
  bool gathers_rows;
  // Plans for other shapes share kernels whose numbers are arguments.
  bool shares_kernels_of_shapes;
};

// Identifies a device, for results that hold on this device alone.
struct DeviceIdentity {
  std::string name;                   // empty: this machine does not have it
  std::optional<std::string> driver;  // "cuda 13000", "none"; nullopt: it runs the host compiler's code as it is
};

struct Target {
  TargetKind kind = TargetKind::kCpu;
  CpuTarget cpu;
  CudaTarget cuda;

  const TargetTraits& traits() const;
  // As in CudaTarget. Other kinds of targets have neither.
  bool has_tensor_cores() const { return kind == TargetKind::kCuda && cuda.has_tensor_cores(); }
  bool has_wgmma() const { return kind == TargetKind::kCuda && cuda.has_wgmma(); }
  // The rate at which kernels move data, reads plus writes: of one thread of a CPU, of a whole GPU.
  double copy_bytes_per_second() const;
  // The cost of one more kernel in a model.
  double boundary_seconds() const;
  // The memory that values may take on the device now.
  int64_t memory_bytes() const;
  // The device that this describes, if this machine has it.
  DeviceIdentity identity() const;

  // The machine that this process runs on, with `threads` workers (0: one per core that this process may use). The
  // variable HEDDLE_CPU_ISA (portable, avx2, avx512) lowers the instruction set, to test code for other machines.
  // Throws kInvalidArgument if it has any other value.
  static Target host_cpu(int threads = 0);
  // A GPU, and `threads` threads of the host. Throws kDevice if there is no such GPU (target/cuda_driver.h).
  static Target cuda_device(int ordinal, int threads = 0);
  // The H200, for compiling without a GPU.
  static Target cuda_h200(int threads = 0);
  // A target for kernels of this GPU, when nothing runs on the host.
  static Target of(const CudaTarget& cuda);
  // Stable text of everything that generated code may depend on. It is part of every cache key, and a plan is checked
  // against it.
  std::string fingerprint() const;
  // Stable text of the other numbers that schedules read of a device; part of every cache key. A plan that was made for
  // another model still runs.
  std::string model_fingerprint() const;
};

std::string_view to_string(CpuIsa isa);

}  // namespace heddle
