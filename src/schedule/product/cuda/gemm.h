#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "target/cuda_launch.h"
#include "target/target.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

// A as the windows of a convolution over images, channels last: (width, height) each.
struct CudaGemmWindows {
  int64_t images = 0, channels = 0, pixel = 0;  // pixel: elements from one to the next, which may overlap
  int64_t line = 0;                             // elements from a line of pixels to the next
  std::array<int64_t, 2> size{}, out{}, window{}, stride{}, dilation{}, before{};
};

// A matrix of 16-bit elements that the epilogue reads beside D, at the same places of rows `row` elements apart.
struct CudaGemmResidual {
  uint32_t operand = 0;  // of the kernel
  int64_t offset = 0, row = 0, batch = 0;
};

// D[b] = epilogue(A[b] B[b]) with A of m x k, B of k x n, D row-major m x n. Strides are in elements.
struct CudaGemmProblem {
  DType in = DType::kF16;  // kF16, kBF16; kF32 (multiplied as tf32), kF8E4M3, kF8E5M2, kI8
  bool split = false;      // kF32 is multiplied in two parts of tf32 (tile/kernel/cuda/operand/split_tf32.h)
  DType out = DType::kF16;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_k_major = true;                             // A is stored m x k; else k x m
  bool b_k_major = true;                             // B is stored n x k; else k x n
  int64_t lda = 0, ldb = 0, ldd = 0;                 // of a row in memory; 0: dense
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;  // of a batch; 0: dense
  int64_t offset_a = 0, offset_b = 0;                // of the first element in its buffer, which is aligned to 16 bytes
  // Batches in two dimensions, the inner of `heads`: operands with a step have it within their rows, so many elements
  // apart, and stride_* is that of the outer one.
  int64_t heads = 1, step_a = 0, step_b = 0;
  bool epilogue_stores = false;  // D is not written by the kernel but by its epilogue alone
  bool reduces = false;          // the epilogue reduces neighbours
  bool heavy_epilogue = false;   // it holds many values at once, besides `residual`
  std::optional<CudaGemmResidual> residual{};
  bool views = false;  // threads load both operands through views (tile/kernel/cuda/gemm/sm90_gather.h): their strides
                       // above are void
  // A is gathered by TMA (tile/kernel/cuda/gemm/sm90_im2col.h); k counts the k-tiles' elements of all taps,
  // lda is void, ldb the elements of a filter.
  std::optional<CudaGemmWindows> windows{};

  bool shifted_a = false, shifted_b = false;  // of views: pieces of 16 bytes are put together from aligned words
  // What no launch writes while others run (weights): it may be read before the launch in front has ended.
  bool constant_a = false, constant_b = false;

  // With every 0 above replaced. Throws kInvalidArgument on a leading dimension smaller than the row, a negative size
  // or one beyond 2^31 - 1, kUnsupportedType on types or layouts that the tensor cores do not read.
  CudaGemmProblem resolved() const;
  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double bytes() const;  // each operand read once, D written once
};

// What may be chosen for an instance, by name.
struct CudaGemmConfig {
  int tile_m = 128, tile_n = 128, stages = 4;
  int consumers = 2;
  bool ping_pong = false;
  int cluster_m = 1, cluster_n = 1;
  bool swapped = false;  // D^T = B^T A^T: the long side of D goes along the instruction's 64 rows
  int splits = 1;        // parts of k, summed in order by a second kernel
  int parts =
      0;  // not 0: tile/kernel/cuda/gemm/sm90_cluster_splitk.h, whose clusters of so many blocks share a tile's k
  bool classed = false;  // with parts: schedule/product/cuda/gemm_misaligned.h
  bool stream = false;   // stream-K: the last tiles are dealt to all blocks evenly, sums handed on in order
  int raster_group = 8;
  tile::GemmStore store = tile::GemmStore::kTma;

  // "128x256x64 coop s4 c2x1 split1"
  std::string name() const;
  int shared_bytes(const CudaGemmProblem& problem) const;
  bool operator==(const CudaGemmConfig&) const = default;
};

struct CudaGemmCandidate {
  CudaGemmConfig config;
  double predicted_us = 0;
  std::string rejected;  // why it cannot run; empty: it can
};

// The seconds of work that the model predicts for one launch (with the reduction, without the fixed cost of a graph).
double predict_us(const CudaGemmProblem& problem, const CudaGemmConfig& config, const CudaTarget& target);
// What the tensor cores sustain for a problem's types, in operations a second.
double sustained_operations(const CudaGemmProblem& problem, const CudaTarget& target);
// max(operations / what the tensor cores sustain, bytes / bandwidth), in us.
double floor_us(const CudaGemmProblem& problem, const CudaTarget& target);

// Every configuration of the family for a resolved problem, best prediction first; those that cannot run come last,
// each with its reason. `counters`: the caller has an operand for them, which stream-K needs.
std::vector<CudaGemmCandidate> enumerate(const CudaGemmProblem& problem, const CudaTarget& target,
                                         bool counters = false);

// Whether TMA does not read an operand in place, or write D: base (assumed), row and batch are not all
// aligned to 16 bytes. Such operands are copied to padded rows first.
bool needs_repack(DType type, int64_t leading, int64_t batch_stride, int64_t batch);

// Whether TMA brings the problem's `residual`, tile by tile.
bool loads_residual(const CudaGemmProblem& problem, const CudaGemmConfig& config);

// How the accumulators of a configuration leave.
tile::GemmStore store_of(const CudaGemmProblem& problem, int splits, bool swapped);

// Whether A, B, or one of them is copied to padded rows first.
bool repacks_a(const CudaGemmProblem& problem);
bool repacks_b(const CudaGemmProblem& problem);
bool needs_repack(const CudaGemmProblem& problem);

// The kernels of one problem, in order: repack A and B (where needed), multiply, reduce (where k is split or empty).
// Operands: 0 A, 1 B, 2 D, 3 workspace of `workspace_bytes`, 5 what lies residual D; the epilogue's own operands follow
// from 4 on and are patched by the caller, whose block comes last in `arguments` of the launch `epilogue_launch`. With
// `views` the blocks of A and B follow the first argument of the first launch, added by the caller, too; with `windows`
// a block of GemmWindowsArgs follows it.
struct CudaGemmLaunches {
  std::vector<CudaLaunch> launches;
  int epilogue_launch = 0;
  int64_t workspace_bytes = 0;
  int64_t counter_bytes = 0;  // zero before the first launch and behind the last
};
// `counters`: which operand holds them.
CudaGemmLaunches make_launches(const CudaGemmProblem& problem, const CudaGemmConfig& config, const CudaTarget& target,
                               int counters = -1);

std::string_view tile_type(DType type, bool operand);  // "tile::half"; kF32 as an operand is "tile::sm90::tf32"
std::string_view multiplied_type(const CudaGemmProblem& problem);  // the same of the operands

}  // namespace heddle::schedule
