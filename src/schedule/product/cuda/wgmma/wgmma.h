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
  int64_t images = 0, channels = 0, pixel = 0;  // pixel: elements between neighbouring pixels, which may overlap
  int64_t line = 0;                             // elements between lines of pixels
  int64_t offset = 0;                           // of the first element in its buffer
  std::array<int64_t, 2> size{}, out{}, window{}, stride{}, dilation{}, before{};
};

// A matrix of 16-bit elements that the epilogue reads at the positions of D. `row`: elements between its rows.
struct WgmmaResidual {
  uint32_t operand = 0;  // of the kernel
  int64_t offset = 0, row = 0, batch = 0;
};

// D[b] = epilogue(A[b] B[b]) with A of m x k, B of k x n, D row-major m x n. Strides are in elements.
struct WgmmaProblem {
  DType in = DType::kF16;  // kF16, kBF16; kF32 (multiplied as tf32), kF8E4M3, kF8E5M2, kI8
  bool split = false;      // kF32 is multiplied as two tf32 parts (tile/kernel/cuda/operand/split_tf32.h)
  DType out = DType::kF16;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_k_major = true;                             // A is stored m x k; else k x m
  bool b_k_major = true;                             // B is stored n x k; else k x n
  int64_t lda = 0, ldb = 0, ldd = 0;                 // of a row in memory; 0: dense
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;  // of a batch; 0: dense
  // Offset of the first element in its buffer. The buffer is aligned to 16 bytes.
  int64_t offset_a = 0, offset_b = 0, offset_d = 0;
  // Batches in two dimensions, the inner one of `heads`. An operand with a step has the heads within its rows, `step`
  // elements apart, and stride_* is that of the outer dimension. tile::kGemmOneForAll: all batches share the operand.
  int64_t heads = 1, step_a = 0, step_b = 0;
  bool epilogue_stores = false;  // only the epilogue writes D
  bool reduces = false;          // the epilogue reduces neighbours
  bool gated = false;            // a pair of B's columns makes one column of D (Epilogue::Gate)
  bool heavy_epilogue = false;   // the epilogue holds many values at once, besides `residual`
  std::optional<WgmmaResidual> residual{};
  int read_bytes = 0;    // of matrices that the epilogue reads, including `residual`, per element
  bool classed = false;  // rows of the long operand are read class by class (misaligned.h)
  bool views = false;  // threads load both operands through views (tile/kernel/cuda/gemm/sm90_gather.h): their strides
                       // above are void
  // A is gathered by TMA (tile/kernel/cuda/gemm/sm90_im2col.h); k counts the k-tiles' elements of all taps,
  // lda is void, ldb the elements of a filter.
  std::optional<WgmmaWindows> windows{};

  bool shifted_a = false, shifted_b = false;  // with `views`: 16-byte pieces are assembled from aligned words
  // True if no launch writes the operand during a run (weights): it may be read before the previous launch ends.
  bool constant_a = false, constant_b = false;

  // Replaces every 0 above that means dense by the actual value.
  WgmmaProblem resolved() const;
  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double bytes() const;                                  // each operand read once, D written once
  int64_t columns() const { return gated ? n / 2 : n; }  // of D
  // How many different batches an operand with this step has.
  int64_t batches_of(int64_t step) const { return step == tile::kGemmOneForAll ? 1 : batch; }
};

// The predicted time of one launch, including the reduction, without the fixed cost of a graph.
double predict_us(const WgmmaProblem& problem, const WgmmaConfig& config, const CudaTarget& target);
// The time to copy operands to padded rows.
double repack_us(const WgmmaProblem& problem, const CudaModel& model);
// Operations per second that the tensor cores sustain for a problem's types.
double sustained_operations(const WgmmaProblem& problem, const CudaTarget& target);
// The configurations of a resolved problem; the reason why one cannot run (empty: it can).
std::vector<WgmmaConfig> wgmma_configs(const WgmmaProblem& problem, const CudaTarget& target);
std::string reject(const WgmmaConfig& config, const WgmmaProblem& problem, const CudaTarget& target);

int shared_bytes(const WgmmaProblem& problem, const WgmmaConfig& config);

// The most stages that keep a configuration within `limit` bytes of shared memory.
template <typename C>
int most_stages(C config, const WgmmaProblem& problem, int64_t limit, int most = 12) {
  config.stages = most;
  while (config.stages > 0 && shared_bytes(problem, config) > limit) --config.stages;
  return config.stages;
}

// True if TMA cannot read an operand, or write D, in place, since row or batch stride is not aligned to 16 bytes (the
// base is assumed to be). Such operands are copied to padded rows first.
bool needs_repack(DType type, int64_t leading, int64_t batch_stride, int64_t batch);

// True if the tiles of A (else of B, in the kernel's terms) are read by only one or two blocks and are so large that
// the L2 should rather keep other data.
bool streams_operand(const WgmmaProblem& problem, const WgmmaConfig& config, bool is_a);
bool streams_operand(const WgmmaProblem& problem, const ClusterSplitKConfig& config, bool is_a);

// True if TMA loads the problem's `residual`, tile by tile.
bool loads_residual(const WgmmaProblem& problem, const WgmmaConfig& config);

// Columns of D in a tile of a configuration that is not swapped.
inline int stored_n(const WgmmaProblem& problem, const WgmmaConfig& config) {
  return problem.gated ? config.tile_n / 2 : config.tile_n;
}

// How a configuration stores its accumulators.
tile::GemmStore store_of(const WgmmaProblem& problem, const WgmmaConfig& config);

// True if A, B, or either of them is copied to padded rows first.
bool repacks_a(const WgmmaProblem& problem);
bool repacks_b(const WgmmaProblem& problem);
bool needs_repack(const WgmmaProblem& problem);

// Bytes of the copy of A (else of B) with rows padded to 16 bytes.
int64_t padded_bytes(const WgmmaProblem& problem, bool a);

// Elements of k that one addition to a sum brings.
int64_t joined_of(const WgmmaProblem& problem);

// The reason why copies of operands, or partial sums, do not fit; empty: they do.
std::string reject_copies(const WgmmaProblem& problem);
std::string reject_partial_sums(const WgmmaProblem& problem, int splits);

// The kernels of one problem. Operands: 0 A, 1 B, 2 D, 3 workspace, 4 counters, 5 residual.
struct WgmmaOperands {
  static constexpr int kA = 0, kB = 1, kD = 2, kWorkspace = 3, kCounters = 4, kResidual = 5;
};
KernelLaunches make_launches(const WgmmaProblem& problem, const WgmmaConfig& config, const CudaTarget& target);
KernelLaunches make_launches(const WgmmaProblem& problem, const ClusterSplitKConfig& config, const CudaTarget& target);

// A product as a problem for TMA and wgmma; nullopt, with the reason in `why`, if they cannot compute it. D is the
// epilogue's first result if that is a matrix that TMA can write; otherwise only the epilogue stores (epilogue_stores).
// Then the same with operands loaded by threads, if wgmma multiplies the types, and with the windows of a convolution,
// if TMA can gather them.
std::optional<WgmmaProblem> wgmma_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_gather_problem(const ProductTask& task, std::string* why);
std::optional<WgmmaProblem> wgmma_im2col_problem(const ProductTask& task, std::string* why);

std::span<const Family* const> wgmma_families();

// The kernel text of a configuration, as data.
CudaInstance instance_of(const WgmmaProblem& problem, const WgmmaConfig& config);
CudaInstance instance_of(const WgmmaProblem& problem, const ClusterSplitKConfig& config);

}  // namespace heddle::schedule
