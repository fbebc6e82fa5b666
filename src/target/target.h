#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "target/cpu_model.h"
#include "target/cuda_model.h"
#include "target/hip_model.h"

namespace heddle {

// The kind of a target. Only this header and the backends (schedule/backend.cc, codegen/backend.cc, driver/backend.cc)
// compare kinds, and each of them handles every kind. All other code asks a backend, or asks Target for its features.
enum class TargetKind : uint8_t { kCpu, kCuda, kHip };

// Returns the argument that belongs to `kind`. The code does not compile with a new kind until the kind has a case and
// a parameter here. Then no caller compiles until it passes a value for the new kind, too.
template <typename T>
const T& of_kind(TargetKind kind, const T& cpu, const T& cuda, const T& hip) {
  switch (kind) {
    case TargetKind::kCpu:
      return cpu;
    case TargetKind::kCuda:
      return cuda;
    case TargetKind::kHip:
      return hip;
  }
  return cpu;
}

// A CPU as plain data. Schedules and cost models use no other information about the machine. So a plan can be made for
// a device that is not present, and tests can use a fixed device.
struct CpuTarget {
  CpuIsa isa = CpuIsa::kPortable;
  bool f16c = false;  // hardware f16 conversion
  bool avx512_bf16 = false, avx512_vnni = false;
  bool amx = false;                                                      // matrix products of bf16 and of bytes
  int threads = 1;                                                       // worker threads that a plan may use
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;  // l1 and l2 per core
  double ghz = 3.0;                                                      // clock of one core under load
  int fma_bytes_per_cycle = 128;  // FMA throughput: two 64-byte pipes; 64 if 512-bit operations are split in halves
  double copy_gbps = 20;          // copy bandwidth of one thread, read + write
  double barrier_us = 1.5;        // time to fork and join all threads
  CpuModel model = avx512_cpu().model;

  int lanes_f32() const { return isa == CpuIsa::kAvx512 ? 16 : isa == CpuIsa::kAvx2 ? 8 : 4; }
  // f32 FMA peak of one core in GFLOP/s: ghz * lanes per cycle * 2.
  double peak_gflops() const;
};

// A GPU of any vendor: the properties that schedules of memory-bound kernels read. The names are NVIDIA's. On an AMD
// GPU, an SM is a compute unit, a warp is a wave, and shared memory is the LDS.
struct GpuTarget {
  bool emulated = false;  // true for the emulator of src/emulator: kernels are compiled for the host
  int lanes = 32;         // threads of a warp
  int sms = 132;
  int64_t memory_bytes = int64_t{141} << 30;
  int64_t shared_bytes_per_block = 232448, l2_bytes = 60 << 20;
  int64_t reserved_shared_bytes = 1024;  // of each block, beside its own
  int registers_per_sm = 65536;          // of 32 bits
  CudaModel model = h200().model;

  // Features of the chip: warp-level matrix products by mma.sync (for fp8, too), warpgroup-level matrix products
  // (wgmma), TMA copies of tiles between global and shared memory, clusters of blocks, and launches that begin before
  // the preceding launch has ended.
  virtual bool has_tensor_cores() const = 0;
  // True if waves of 64 lanes multiply matrices by MFMA (f16, bf16, bytes, and f32 and f64 without rounding), or waves
  // of 32 lanes by WMMA (f16, bf16).
  virtual bool has_mfma() const = 0;
  virtual bool has_wmma() const = 0;
  virtual bool has_fp8_mma() const = 0;
  virtual bool has_wgmma() const = 0;
  virtual bool has_tma() const = 0;
  virtual bool has_clusters() const = 0;
  virtual bool has_dependent_launch() const = 0;
  // Returns the name of the architecture for the compiler of kernels (jit).
  virtual std::string architecture() const = 0;

 protected:
  GpuTarget() = default;
  GpuTarget(const GpuTarget&) = default;
  GpuTarget& operator=(const GpuTarget&) = default;
  ~GpuTarget() = default;
};

// An NVIDIA GPU as plain data. The defaults describe an H200.
struct CudaTarget final : GpuTarget {
  int sm = 90;  // compute capability times ten

  bool has_tensor_cores() const override { return sm >= 80; }
  bool has_mfma() const override { return false; }
  bool has_wmma() const override { return false; }
  bool has_fp8_mma() const override { return sm >= 89; }
  bool has_wgmma() const override { return sm == 90; }
  bool has_tma() const override { return sm >= 90; }
  bool has_clusters() const override { return sm >= 90; }
  bool has_dependent_launch() const override { return sm >= 90; }

  // Returns the architecture for jit::compile_cubin(): "sm_90a", "sm_80", "emulated_sm_90a".
  std::string architecture() const override;

  // Returns the chip for which kernels are compiled if there is no GPU. `sm` is the compute capability times ten: 90
  // gives the H200 and 80 the A100. Throws kInvalidArgument for any other value.
  static CudaTarget pinned(int sm);
  // Returns the chip for an architecture, named as by architecture(): a pinned chip if there is one, else a chip with
  // the A100's numbers. Returns nullopt if `name` is no architecture, or one without tensor cores.
  static std::optional<CudaTarget> of_architecture(std::string_view name);
};

// An AMD GPU as plain data. The defaults describe an MI300X.
struct HipTarget final : GpuTarget {
  std::string gfx{mi300x().architecture};  // "gfx942"
  bool mfma = true;

  HipTarget() : HipTarget(mi300x()) {}
  explicit HipTarget(const HipChip& chip);

  bool has_tensor_cores() const override { return false; }
  bool has_mfma() const override { return mfma; }
  bool has_wmma() const override { return !mfma; }
  bool has_fp8_mma() const override { return false; }
  bool has_wgmma() const override { return false; }
  bool has_tma() const override { return false; }
  bool has_clusters() const override { return false; }
  bool has_dependent_launch() const override { return false; }
  // Returns the architecture for jit::compile_code_object(): "gfx942", "emulated_gfx942".
  std::string architecture() const override;

  // Returns the chip for an architecture, named as by architecture(). Returns nullopt for an architecture without a
  // file in target/models/hip.
  static std::optional<HipTarget> of_architecture(std::string_view name);
};

// Properties in which kinds of targets differ. Each kind sets all of them (target.cc).
struct TargetTraits {
  // True if one product with several concatenated matrices is faster than a separate product with each matrix, because
  // the latency dominates the time of a small product.
  bool merges_dots;
  // True if constant factors of the operands of a product should be applied to its result instead. A factor on an
  // operand needs a kernel before the product, or prevents attention from being recognised.
  bool scales_products;
  // True if a scatter with known indices is better computed as a selection among loads, which can be fused into kernels
  // of other nodes.
  bool selects_for_scatters;
  // True if the epilogue of a product can reduce neighbouring elements of a row or a column
  // (ir/analysis/partial_reduction.h).
  bool reduces_in_epilogues;
  // True if the epilogue of a product can combine pairs of columns (ir/analysis/gated_product.h).
  bool gates_products;
  // True if threads execute the tasks of several small regions concurrently, whatever the regions compute. If false,
  // each kernel is a launch, and small kernels of the same shape share a launch.
  bool runs_regions_side_by_side;
  // True if all convolutions have kernels for images in channels-first layout. If false, only depthwise convolutions
  // do.
  bool convolves_channels_first;
  // True if the epilogue of a convolution can store neighbouring columns as neighbouring pixels.
  bool interleaves_columns;
  // True if gathers of whole rows use vector loads, whereas other gathers need one load per lane.
  bool gathers_rows;
  // True if kernels round f32 divisions correctly, those by constants too.
  bool rounds_divisions;
  // True if plans for different shapes share kernels, which then take sizes as arguments.
  bool shares_kernels_of_shapes;
};

// Identifies a device, for results that are valid on this device only.
struct DeviceIdentity {
  std::string name;                   // empty: this machine does not have the device
  std::optional<std::string> driver;  // "cuda 13000", "none"; nullopt: the device runs the host compiler's code
};

struct Target {
  TargetKind kind = TargetKind::kCpu;
  CpuTarget cpu;
  CudaTarget cuda;
  HipTarget hip;

  // The GPU of a target that is one.
  const GpuTarget& gpu() const { return of_kind<GpuTarget>(kind, cuda, cuda, hip); }
  bool is_gpu() const { return of_kind(kind, false, true, true); }
  const TargetTraits& traits() const;
  // Features as in CudaTarget. Other kinds of targets have neither feature.
  bool has_tensor_cores() const { return kind == TargetKind::kCuda && cuda.has_tensor_cores(); }
  bool has_wgmma() const { return kind == TargetKind::kCuda && cuda.has_wgmma(); }
  // True if kernels multiply bytes fast, with sums in 32 bits: unsigned by signed bytes, and signed by signed ones only
  // if multiplies_signed().
  bool multiplies_bytes() const;
  bool multiplies_signed() const;
  // True if kernels multiply 16-bit integers with sums in 32 bits, and convolve these and bytes.
  bool multiplies_shorts() const;
  // The rate at which kernels move data, counting reads and writes: for one thread of a CPU, or for a whole GPU.
  double copy_bytes_per_second() const;
  // The time that one additional kernel costs in a model.
  double boundary_seconds() const;
  // The device memory that values may use. On a CPU, the memory that is available now.
  int64_t memory_bytes() const;
  // Returns the identity of the device that this target describes, if this machine has such a device.
  DeviceIdentity identity() const;

  // Returns the machine that this process runs on, with `threads` worker threads (0: one per core that this process may
  // use). The environment variable HEDDLE_CPU_ISA (portable, avx2, avx512) lowers the instruction set, which allows
  // tests of code for other machines. `amx` allows AMX, which is off otherwise, since its kernels have only run in the
  // form that tests use. Throws kInvalidArgument if the variable has any other value.
  static Target host_cpu(int threads = 0);
  // Returns a GPU, with `threads` threads of the host. Throws kDevice if there is no such GPU (target/cuda_driver.h).
  static Target cuda_device(int ordinal, int threads = 0);
  // Returns the H200, for compiling without a GPU.
  static Target cuda_h200(int threads = 0);
  // Returns an AMD GPU, for compiling without one, or for the GPU that hip_device() found.
  static Target of_hip(const HipTarget& hip, int threads = 0);
  // Returns an AMD GPU of this machine. Throws kDevice if there is no such GPU (target/hip_driver.h).
  static Target hip_device(int ordinal, int threads = 0);
  // Returns a target for kernels of this GPU, for plans that run nothing on the host.
  static Target of(const CudaTarget& cuda);
  // Returns stable text of everything that generated code may depend on. The text is part of every cache key, and a
  // plan is checked against it before it runs.
  std::string fingerprint() const;
  // Returns stable text of the other device numbers that schedules use (the cost model). The text is part of every
  // cache key, but a plan made for another cost model still runs.
  std::string model_fingerprint() const;
};

std::string_view to_string(CpuIsa isa);

}  // namespace heddle
