#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// A as the windows of a convolution over images, channels last: (width, height) each.
struct WgmmaWindows {
  int64_t images = 0, channels = 0, pixel = 0;  // pixel: elements from one to the next, which may overlap
  int64_t line = 0;                             // elements from a line of pixels to the next
  int64_t offset = 0;                           // of the first element in its buffer
  std::array<int64_t, 2> size{}, out{}, window{}, stride{}, dilation{}, before{};
};

// A matrix of 16-bit elements that the epilogue reads beside D, at the same places of rows `row` elements apart.
struct WgmmaResidual {
  uint32_t operand = 0;  // of the kernel
  int64_t offset = 0, row = 0, batch = 0;
};

// D[b] = epilogue(A[b] B[b]) with A of m x k, B of k x n, D row-major m x n. Strides are in elements.
struct WgmmaProblem {
  DType in = DType::kF16;  // kF16, kBF16; kF32 (multiplied as tf32), kF8E4M3, kF8E5M2, kI8
  bool split = false;      // kF32 is multiplied in two parts of tf32 (tile/kernel/cuda/operand/split_tf32.h)
  DType out = DType::kF16;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_k_major = true;                             // A is stored m x k; else k x m
  bool b_k_major = true;                             // B is stored n x k; else k x n
  int64_t lda = 0, ldb = 0, ldd = 0;                 // of a row in memory; 0: dense
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;  // of a batch; 0: dense
  // Of the first element in its buffer, which is aligned to 16 bytes.
  int64_t offset_a = 0, offset_b = 0, offset_d = 0;
  // Batches in two dimensions, the inner of `heads`: operands with a step have it within their rows, so many elements
  // apart, and stride_* is that of the outer one. tile::kGemmOneForAll: the operand is the same for all batches.
  int64_t heads = 1, step_a = 0, step_b = 0;
  bool epilogue_stores = false;  // D is not written by the kernel but by its epilogue alone
  bool reduces = false;          // the epilogue reduces neighbours
  bool gated = false;            // pairs of B's columns make one of D (Epilogue::Gate)
  bool heavy_epilogue = false;   // it holds many values at once, besides `residual`
  std::optional<WgmmaResidual> residual{};
  int read_bytes = 0;    // of matrices that the epilogue reads, `residual` among them, for each element
  bool classed = false;  // rows of the long operand are read class by class (gemm_misaligned.h)
  bool views = false;  // threads load both operands through views (tile/kernel/cuda/gemm/sm90_gather.h): their strides
                       // above are void
  // A is gathered by TMA (tile/kernel/cuda/gemm/sm90_im2col.h); k counts the k-tiles' elements of all taps,
  // lda is void, ldb the elements of a filter.
  std::optional<WgmmaWindows> windows{};

  bool shifted_a = false, shifted_b = false;  // of views: pieces of 16 bytes are put together from aligned words
  // What no launch writes while others run (weights): it may be read before the launch in front has ended.
  bool constant_a = false, constant_b = false;

  // With every 0 above that means dense replaced.
  WgmmaProblem resolved() const;
  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double bytes() const;                                  // each operand read once, D written once
  int64_t columns() const { return gated ? n / 2 : n; }  // of D
  // How often there is an operand whose step it is.
  int64_t batches_of(int64_t step) const { return step == tile::kGemmOneForAll ? 1 : batch; }
};

// The seconds of work that the model predicts for one launch (with the reduction, without the fixed cost of a graph).
double predict_us(const WgmmaProblem& problem, const WgmmaConfig& config, const CudaTarget& target);
// What copying operands to padded rows costs.
double repack_us(const WgmmaProblem& problem, const CudaModel& model);
// What the tensor cores sustain for a problem's types, in operations a second.
double sustained_operations(const WgmmaProblem& problem, const CudaTarget& target);
// The configurations that a resolved problem may take, and why one cannot run; empty: it can.
std::vector<WgmmaConfig> wgmma_configs(const WgmmaProblem& problem, const CudaTarget& target);
std::string reject(const WgmmaConfig& config, const WgmmaProblem& problem, const CudaTarget& target);

int shared_bytes(const WgmmaProblem& problem, const WgmmaConfig& config);

// The most stages that leave a configuration within `limit` bytes of shared memory.
template <typename C>
int most_stages(C config, const WgmmaProblem& problem, int64_t limit, int most = 12) {
  config.stages = most;
  while (config.stages > 0 && shared_bytes(problem, config) > limit) --config.stages;
  return config.stages;
}

// Whether TMA does not read an operand in place, or write D: base (assumed), row and batch are not all
// aligned to 16 bytes. Such operands are copied to padded rows first.
bool needs_repack(DType type, int64_t leading, int64_t batch_stride, int64_t batch);

// Whether A's tiles (else B's; the kernel's own) are read by one or two blocks and are so many bytes that the L2 had
// better keep others.
bool streams_operand(const WgmmaProblem& problem, const WgmmaConfig& config, bool is_a);
bool streams_operand(const WgmmaProblem& problem, const ClusterSplitKConfig& config, bool is_a);

// Whether TMA brings the problem's `residual`, tile by tile.
bool loads_residual(const WgmmaProblem& problem, const WgmmaConfig& config);

// Columns of D of a tile that is not swapped.
inline int stored_n(const WgmmaProblem& problem, const WgmmaConfig& config) {
  return problem.gated ? config.tile_n / 2 : config.tile_n;
}

// How the accumulators of a configuration leave.
tile::GemmStore store_of(const WgmmaProblem& problem, const WgmmaConfig& config);

// Whether A, B, or one of them is copied to padded rows first.
bool repacks_a(const WgmmaProblem& problem);
bool repacks_b(const WgmmaProblem& problem);
bool needs_repack(const WgmmaProblem& problem);

// Bytes of copies of A, else of B, whose rows are padded to 16 bytes.
int64_t padded_bytes(const WgmmaProblem& problem, bool a);

// Elements of k that an addition to a sum brings.
int64_t joined_of(const WgmmaProblem& problem);

// Why copies of operands, or partial sums, do not fit; empty: they do.
std::string reject_copies(const WgmmaProblem& problem);
std::string reject_partial_sums(const WgmmaProblem& problem, int splits);

// The kernels of one problem. Operands: 0 A, 1 B, 2 D, 3 workspace, 4 counters, 5 what lies near D.
struct WgmmaOperands {
  static constexpr int kA = 0, kB = 1, kD = 2, kWorkspace = 3, kCounters = 4, kResidual = 5;
};
KernelLaunches make_launches(const WgmmaProblem& problem, const WgmmaConfig& config, const CudaTarget& target);
KernelLaunches make_launches(const WgmmaProblem& problem, const ClusterSplitKConfig& config, const CudaTarget& target);

// What TMA and wgmma see of a product; nullopt where they cannot, and `why` says so. Its D is the epilogue's first
// result where that is a matrix that TMA writes, else it has none (epilogue_stores). The same with operands that
// threads load, where wgmma multiplies the types; and with the windows of a convolution, where TMA gathers them.
std::optional<WgmmaProblem> wgmma_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_gather_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_im2col_problem(const ProductTask& task, std::string* why);

std::span<const Family* const> wgmma_families();

// Their texts.
CudaInstance instance_of(const WgmmaProblem& problem, const WgmmaConfig& config);
CudaInstance instance_of(const WgmmaProblem& problem, const ClusterSplitKConfig& config);

}  // namespace heddle::schedule
