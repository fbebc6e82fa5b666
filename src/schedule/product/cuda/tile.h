#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/product/cuda/gemm.h"
#include "schedule/product/cuda/operand.h"

namespace heddle::schedule {

// D[b] = epilogue(A[b] B[b]) by the kernels over views, which run on every device from sm_80 on and take any element
// type, layout, alignment and size: tile/kernel/cuda/gemm/sm80.h, tile/kernel/cuda/gemm/simt.h,
// tile/kernel/cuda/gemm/skinny.h. From sm_90 on, for small sides, tile/kernel/cuda/gemm/unaligned.h: any alignment,
// contiguous along k. Where all is small, tile/kernel/cuda/gemm/direct.h.
struct CudaTileProblem {
  // What is multiplied: kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, or integers, all of A and B, but kI8 and kU8 mix.
  DType a_in = DType::kF16, b_in = DType::kF16;
  bool tf32 = false;  // kF32 may be rounded to tf32; else tensor cores multiply it in two parts
                      // (tile/kernel/cuda/operand/split_tf32.h)
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int out_bytes = 2;       // of what the epilogue stores for each element
  bool reduces = false;    // the epilogue reduces neighbours
  bool scattered = false;  // rows of D begin at addresses that no piece of 8 bytes allows: stored by elements
  CudaOperand a, b;        // as [m][k] and [n][k]

  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double bytes() const;  // each operand read once, D written once
  // Whether tensor cores of a device multiply these types.
  bool on_tensor_cores(const CudaTarget& target) const;
  bool splits_f32() const { return a_in == DType::kF32 && !tf32; }
  // In what sums are kept, and what an epilogue sees: kF32, kF64, kI32 or kI64.
  DType accumulator() const;
  int sum_bytes() const;  // of one of them
};

struct CudaTileConfig {
  enum class Engine : uint8_t {  // schedule/product/cuda/engine.h has what belongs to each
    kMma,                        // tensor cores: sm80::gemm
    kSimt,                       // cuda::gemm_simt
    kFew,                        // cuda::gemm_skinny: D has at most 8 rows or columns
    kLines,                      // cuda::gemm_unaligned
    kDirect,                     // cuda::gemm_direct
  };
  Engine engine = Engine::kMma;
  int tile_m = 128, tile_n = 128, tile_k = 32;  // in elements; kFew: tile_m is the few, tile_n those of a block
  int warps_m = 2, warps_n = 2, stages = 3;     // kFew: warps_m along its rows or k
  int rows = 0;                                 // kFew: wide rows of a warp
  int parts = 0;  // kLines: of k, the blocks of a cluster; warps_n are along k. kDirect: warps along k; stages: chunks
  bool swapped = false;  // kFew: the few are columns of D; kLines: the kernel computes its transpose
  int splits = 1;        // parts of k, summed in order by a second kernel
  int raster_group = 8;

  int threads() const;
  int shared_bytes(const CudaTileProblem& problem) const;
  // "mma 128x128x32 w2x2 s4 k/1"
  std::string name() const;
  bool operator==(const CudaTileConfig&) const = default;
};

struct CudaTileCandidate {
  CudaTileConfig config;
  double predicted_us = 0;
  std::string rejected;  // why it cannot run; empty: it can
};

// As for the sm_90 family: prediction of one launch with its reduction, and max(operations, bytes) at the device's
// best.
double predict_us(const CudaTileProblem& problem, const CudaTileConfig& config, const CudaTarget& target);
double floor_us(const CudaTileProblem& problem, const CudaTarget& target);

// Every configuration, best prediction first; those that cannot run come last, each with its reason. Every problem has
// one that can. Throws kUnsupportedType on types that have no arithmetic.
std::vector<CudaTileCandidate> enumerate(const CudaTileProblem& problem, const CudaTarget& target);

// The kernels of one problem: multiply and, where k is split or empty, reduce. Arguments of "gemm": GemmArgs, A, B (or
// the few operand, the wide one), then the epilogue's block, which the caller adds to `epilogue_launch`. The workspace
// is the kernel's operand `workspace`. Nothing is launched where D is empty.
CudaGemmLaunches make_launches(const CudaTileProblem& problem, const CudaTileConfig& config, const CudaTarget& target,
                               int workspace);

// The type that the kernels multiply, in the unit's text: "tile::half"; for an engine without tensor cores that of the
// sums.
std::string_view multiplied_type(const CudaTileProblem& problem, const CudaTileConfig& config, bool is_a);

}  // namespace heddle::schedule
