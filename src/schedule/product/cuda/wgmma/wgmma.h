#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// Operand A as the windows of a convolution over channels-last images. Arrays are in the order (width, height).
struct WgmmaWindows {
  int64_t images = 0, channels = 0, pixel = 0;  // pixel: elements from a pixel to the next; pixels may overlap
  int64_t line = 0;                             // elements from a line of pixels to the next
  int64_t offset = 0;                           // of the first element in its buffer, in elements
  std::array<int64_t, 2> size{}, out{}, window{}, stride{}, dilation{}, before{};
};

// A matrix of 16-bit elements that the epilogue reads at the positions of D. `row` is the row stride in elements.
struct WgmmaResidual {
  uint32_t operand = 0;  // index of the operand in the kernel
  int64_t offset = 0, row = 0, batch = 0;
};

// D[b] = epilogue(A[b] B[b]) with A of m x k, B of k x n, D row-major m x n. Strides are in elements.
struct WgmmaProblem {
  // kF16, kBF16; kF32 (multiplied as tf32), kF8E4M3, kF8E5M2, kI8; kU8: A is unsigned, B is signed.
  DType in = DType::kF16;
  bool split = false;  // kF32 is multiplied as two tf32 parts (tile/kernel/cuda/operand/split_tf32.h)
  DType out = DType::kF16;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_k_major = true;                             // A is stored m x k; else k x m
  bool b_k_major = true;                             // B is stored n x k; else k x n
  int64_t lda = 0, ldb = 0, ldd = 0;                 // stride of rows in memory; 0: dense
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;  // stride of batches; 0: dense
  // Offset of the operand's first element in its buffer. The buffer is aligned to 16 bytes.
  int64_t offset_a = 0, offset_b = 0, offset_d = 0;
  // Batches have two dimensions; the inner one has `heads` entries. If step_a (or step_b) is not 0, the heads of A (or
  // B) are inside the rows of the operand, and the step is the stride between heads in elements. stride_a (or stride_b)
  // is then the stride of the outer dimension. A step of tile::kGemmOneForAll means that all batches share the operand.
  int64_t heads = 1, step_a = 0, step_b = 0;
  bool epilogue_stores = false;  // only the epilogue writes D
  bool quantises = false;        // D has bytes
  bool by_rows = false;          // although TMA could: the epilogue accesses rows of several matrices
  bool reduces = false;          // the epilogue reduces neighbouring elements
  bool gated = false;            // each pair of columns of B gives one column of D (Epilogue::Gate)
  bool heavy_epilogue = false;   // the epilogue holds many values at a time, not counting `residual`
  std::optional<WgmmaResidual> residual{};
  int read_bytes = 0;    // bytes per element of D that the epilogue reads from matrices, including `residual`
  bool classed = false;  // rows of the longer operand are read by alignment class (misaligned.h)
  bool views = false;    // threads load both operands through views (tile/kernel/cuda/gemm/sm90_gather.h); the strides
                         // above are then unused
  // TMA gathers A (tile/kernel/cuda/gemm/sm90_im2col.h). `k` then counts the elements of the k-tiles of all taps, `lda`
  // is unused, and `ldb` is the number of elements of a filter.
  std::optional<WgmmaWindows> windows{};
  // With `windows`: they are k, and rows of A are (tap, channel padded to whole boxes)
  // (tile/kernel/cuda/gemm/sm90_wgrad.h).
  bool sums_windows = false;

  bool shifted_a = false, shifted_b = false;  // with `views`: threads assemble 16-byte pieces from aligned words
  // True if no launch writes the operand during a run (weights). It may then be read before the previous launch ends.
  bool constant_a = false, constant_b = false;

  // Replaces every 0 that means "dense" above by the actual stride.
  WgmmaProblem resolved() const;
  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double bytes() const;                                  // reading each operand once and writing D once
  int64_t columns() const { return gated ? n / 2 : n; }  // of D
  // The number of different batches of an operand with this step.
  int64_t batches_of(int64_t step) const { return step == tile::kGemmOneForAll ? 1 : batch; }
};

// The predicted time of one launch, including the reduction, without the fixed cost of a graph launch.
double predict_us(const WgmmaProblem& problem, const WgmmaConfig& config, const GpuTarget& target);
// The time to copy operands to padded rows.
double repack_us(const WgmmaProblem& problem, const CudaModel& model);
// The rate that the tensor cores sustain for the problem's types, in operations per second.
double sustained_operations(const WgmmaProblem& problem, const GpuTarget& target);
// wgmma_configs() returns the configurations of a resolved problem. reject() returns the reason why a configuration
// cannot run; empty if it can.
std::vector<WgmmaConfig> wgmma_configs(const WgmmaProblem& problem, const GpuTarget& target);
std::string reject(const WgmmaConfig& config, const WgmmaProblem& problem, const GpuTarget& target);

int shared_bytes(const WgmmaProblem& problem, const WgmmaConfig& config);

// The largest number of stages, up to `most`, with which a configuration needs at most `limit` bytes of shared memory.
template <typename C>
int most_stages(C config, const WgmmaProblem& problem, int64_t limit, int most = 12) {
  config.stages = most;
  while (config.stages > 0 && shared_bytes(problem, config) > limit) --config.stages;
  return config.stages;
}

// True if TMA cannot read an operand or write D in place because the row or batch stride is not a multiple of 16 bytes.
// The base is assumed to be aligned. Such operands are first copied to padded rows. `leading` is the row stride.
bool needs_repack(DType type, int64_t leading, int64_t batch_stride, int64_t batch);

// True if only one or two blocks read each tile of A (with `is_a`, else of B), and the operand is so large that the L2
// should keep other data instead. A and B are the operands of the kernel. If the configuration is swapped, the kernel's
// A is the problem's B, and the kernel's B is the problem's A.
bool streams_operand(const WgmmaProblem& problem, const WgmmaConfig& config, bool is_a);
bool streams_operand(const WgmmaProblem& problem, const ClusterSplitKConfig& config, bool is_a);

// True if TMA loads the tiles of the problem's `residual`.
bool loads_residual(const WgmmaProblem& problem, const WgmmaConfig& config);

// The number of columns of D in a tile. The configuration must not be swapped.
inline int stored_n(const WgmmaProblem& problem, const WgmmaConfig& config) {
  return problem.gated ? config.tile_n / 2 : config.tile_n;
}

// The way in which a configuration stores its accumulators.
tile::GemmStore store_of(const WgmmaProblem& problem, const WgmmaConfig& config);

// True if A, B, or at least one of them is first copied to padded rows.
bool repacks_a(const WgmmaProblem& problem);
bool repacks_b(const WgmmaProblem& problem);
bool needs_repack(const WgmmaProblem& problem);

// The size of a copy of A (or of B if `a` is false) in bytes, with rows padded to 16 bytes.
int64_t padded_bytes(const WgmmaProblem& problem, bool a);

// The number of elements of k that the tensor cores combine before each addition to an accumulator.
int64_t joined_of(const WgmmaProblem& problem);

// The reasons why copies of operands, or partial sums, are too large; empty if they fit.
std::string reject_copies(const WgmmaProblem& problem);
std::string reject_partial_sums(const WgmmaProblem& problem, int splits);

// The indices of the operands in the kernels of one problem.
struct WgmmaOperands {
  static constexpr int kA = 0, kB = 1, kD = 2, kWorkspace = 3, kCounters = 4, kResidual = 5;
};
KernelLaunches make_launches(const WgmmaProblem& problem, const WgmmaConfig& config, const GpuTarget& target);
KernelLaunches make_launches(const WgmmaProblem& problem, const ClusterSplitKConfig& config, const GpuTarget& target);

// These functions describe a product as a problem for wgmma. They return nullopt, and set `why` to the reason, if the
// kernels cannot compute the product.
//   - wgmma_problem(): TMA loads the operands. D is the epilogue's first result if TMA can write that matrix. Otherwise
//     only the epilogue stores (epilogue_stores).
//   - wgmma_gather_problem(): threads load the operands. Requires types that wgmma multiplies.
//   - wgmma_im2col_problem(): TMA gathers the windows of a convolution.
//   - wgmma_wgrad_problem(): the same for windows that are summed.
std::optional<WgmmaProblem> wgmma_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_gather_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_im2col_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_wgrad_problem(const ProductTask& task, std::string* why);

std::span<const Family* const> wgmma_families();

// The data from which the kernel text of a configuration is generated.
CudaInstance instance_of(const WgmmaProblem& problem, const WgmmaConfig& config);
CudaInstance instance_of(const WgmmaProblem& problem, const ClusterSplitKConfig& config);

}  // namespace heddle::schedule
