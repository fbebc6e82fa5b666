#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/divide.h"
#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// Products D[b] = epilogue(A[b] B[b]) by kernels that read operands through views.
//
// These kernels support all devices from sm_80 on, and any element type, layout, alignment and size:
// tile/kernel/cuda/gemm/sm80.h, tile/kernel/cuda/gemm/simt.h, tile/kernel/cuda/gemm/skinny.h. From sm_90 on,
// tile/kernel/cuda/gemm/unaligned.h supports products with a small m or n whose operands are contiguous along k, with
// any alignment. For products with only a few loads per lane, there is tile/kernel/cuda/gemm/direct.h.
struct TileProblem {
  // The element types of A and B in the multiplication: kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, or integers. The
  // types of A and B are equal, except that kI8 and kU8 may be mixed.
  DType a_in = DType::kF16, b_in = DType::kF16;
  bool tf32 = false;  // kF32 may be rounded to tf32; else tensor cores multiply it in two parts
                      // (tile/kernel/cuda/operand/split_tf32.h)
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int out_bytes = 2;       // bytes that the epilogue stores per element
  int read_bytes = 0;      // bytes of matrices that the epilogue reads per element
  bool reduces = false;    // the epilogue reduces neighbours
  bool gated = false;      // a pair of columns of B gives one column of D (Epilogue::Gate)
  bool scattered = false;  // rows of D are not aligned to 8 bytes, so elements are stored one by one
  OperandTraits a, b;      // A as [m][k], B as [n][k]

  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double results() const { return static_cast<double>(m) * n * batch / (gated ? 2 : 1); }  // elements of D
  double bytes() const;  // operands and matrices of the epilogue are read once, D is written once
  bool is_empty() const { return m == 0 || n == 0 || batch == 0; }
  // True if the device's tensor cores multiply these types.
  bool on_tensor_cores(const GpuTarget& target) const;
  bool splits_f32() const { return a_in == DType::kF32 && !tf32; }
  // The type of the accumulators, which the epilogue reads: kF32, kF64, kI32 or kI64.
  DType accumulator() const;
  int sum_bytes() const;  // bytes of one accumulator
};

// True if a GPU has arithmetic on a type.
bool has_arithmetic(DType type);

// True if waves of an AMD GPU have an instruction that multiplies matrices of a type.
bool multiplies_in_waves(DType type, const GpuTarget& target);

// Converts the product of a task to a TileProblem.
TileProblem tile_problem(const ProductTask& task);

// The problem that the kernel solves: transposed if the configuration is swapped.
struct TileView {
  int64_t m, n;
  const OperandTraits *a, *b;
};
TileView view_of(const TileProblem& problem, bool swapped);

// A lower bound of the time: the larger of the times for the operations and for the bytes, at the device's peak rates.
double floor_us(const TileProblem& problem, const GpuTarget& target);

// A family of kernels that read operands through views.
class ViewFamily : public Family {
 public:
  std::string refuse(const ProductTask& task, const GpuTarget& target) const override;
  std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const override;
  KernelLaunches launches(const ProductTask& task, const Config& config, const GpuTarget& target) const override;
  CudaInstance instance(const ProductTask& task, const Config& config) const override;

  // Do the same as the functions above, for a TileProblem. Partial sums are in the kernel's operand number `workspace`.
  virtual std::vector<CudaCandidate> configurations(const TileProblem& problem, const GpuTarget& target) const = 0;
  virtual KernelLaunches launches_of(const TileProblem& problem, const Config& config, const GpuTarget& target,
                                     int workspace) const = 0;
  virtual CudaInstance instance_of(const TileProblem& problem, const Config& config) const = 0;
};
std::span<const ViewFamily* const> view_families();

// All configurations of all families that read operands through views, best prediction first. Configurations that
// cannot run are last, each with the reason. Every problem has at least one that can run. Throws kUnsupportedType for
// types without arithmetic.
std::vector<CudaCandidate> enumerate(const TileProblem& problem, const GpuTarget& target);
const ViewFamily& view_family_of(const Config& config);

// Helpers for the families that read operands through views.

// The tile size and the number of parts of k that a configuration uses.
struct TileCut {
  int tile_m, tile_n, tile_k, splits;
  bool swapped;
  int64_t tiles(const TileProblem& problem) const;  // the number of tiles of D in all batches
};
// The numbers of parts of k worth trying. Each part has at least `least` k-tiles. The numbers are one, numbers that may
// fill the device, and the number that a long sum needs for its accuracy if one addition adds the products of `joined`
// elements of k (schedule/product/cuda/long_sums.h).
std::vector<int> splits_worth_trying(const TileProblem& problem, const TileCut& cut, int least, int64_t joined,
                                     const GpuTarget& target);

// The launch of a kernel that takes GemmArgs: one block for each tile and part of k.
CudaLaunch tiles_launch(const TileProblem& problem, const TileCut& cut, int workspace);

// The alignment of the lines of an operand, in bytes, at most 16.
int line_alignment(const OperandTraits& operand);

// True if a tile of `rows` x `depth` elements divides evenly among all threads (tile::cuda::Deal). `lines`: the number
// of lines of the whole operand.
bool deals(const OperandView& operand, int64_t lines, int64_t rows, int64_t depth, int threads);

// For predictions. multiply_rate(): multiply-adds of an SM per cycle. blocks_of_sm(): blocks per SM, limited by shared
// memory, threads and `registers` per thread.
double multiply_rate(const TileProblem& problem, bool tensor_cores, const GpuTarget& target);
int blocks_of_sm(int threads, int shared_bytes, int registers, const GpuTarget& target);

// For predictions of kernels with the main loop of the mma family. hidden_share(): the fraction of latencies that
// `warps` warps of an SM hide. memory_share(): the fraction of the memory bandwidth that `blocks` blocks reach.
// store_cycles(): the cycles in which an SM stores `results` results of `bytes` bytes each. mma_registers(): registers
// per thread. mma_compute_us(): the time of all tiles, without one-time costs and without the limit of memory
// bandwidth.
double hidden_share(double warps);
double memory_share(int64_t blocks, const GpuTarget& target);
double store_cycles(double results, double bytes, const GpuTarget& target);
int mma_registers(const TileProblem& problem, const MmaConfig& config);
double mma_compute_us(const TileProblem& problem, const MmaConfig& config, int shared_bytes, int registers,
                      const GpuTarget& target);

// A family whose configurations are of type C.
template <typename C>
class ViewFamilyOf : public ViewFamily {
 public:
  std::string_view name() const override { return C::kName; }
  std::vector<CudaCandidate> configurations(const TileProblem& p, const GpuTarget& target) const override;
  KernelLaunches launches_of(const TileProblem& p, const Config& config, const GpuTarget& target,
                             int workspace) const override;
  CudaInstance instance_of(const TileProblem& p, const Config& config) const override;

 protected:
  // True if the kernel multiplies by mma.sync. False: it needs no tensor cores, and operands are converted to the type
  // of the accumulators, unless describe() says otherwise.
  virtual bool tensor_cores() const { return true; }
  virtual TileCut cut(const C& c) const = 0;
  // The number of elements of k that one addition to an accumulator covers, over all threads that share the
  // accumulator.
  virtual int64_t joined(const TileProblem& p, const C& c) const = 0;
  // configs(): the configurations worth trying for a problem. reject(): the reason why a configuration cannot run; ""
  // if it can. The caller checks the limits that all families have (types, shared memory, workspace).
  virtual std::vector<C> configs(const TileProblem& p, const GpuTarget& target) const = 0;
  virtual std::string reject(const C& c, const TileProblem& p, const GpuTarget& target) const = 0;
  virtual bool reduces_neighbours(const C&) const { return false; }
  virtual bool gates(const C&, const TileProblem&) const { return false; }
  virtual int shared_bytes(const TileProblem& p, const C& c) const = 0;
  // The predicted time in us, without the reduction of the parts of k.
  virtual double predict_us(const TileProblem& p, const C& c, const GpuTarget& target) const = 0;
  virtual CudaLaunch launch(const TileProblem& p, const C& c, int workspace) const {
    return tiles_launch(p, cut(c), workspace);
  }
  virtual void describe(CudaInstance& instance, const TileProblem& p, const C& c) const = 0;

  // For use in configs(): adds the configuration once for each number of parts of k worth trying.
  void add_splits(std::vector<C>& found, const TileProblem& p, C c, int least, const GpuTarget& target) const {
    for (const int splits : splits_worth_trying(p, cut(c), least, joined(p, c), target)) {
      c.splits = splits;
      found.push_back(c);
    }
  }
};

// The parts of ViewFamilyOf that do not depend on the family.
std::string reject_tiles(const TileProblem& problem, const TileCut& cut);
double with_reduction(const TileProblem& problem, double us, int splits, const GpuTarget& target);
KernelLaunches tile_launches(const TileProblem& problem, int splits, const GpuTarget& target, int workspace);
CudaInstance tile_instance(const TileProblem& problem, const TileCut& cut, bool tensor_cores);

template <typename C>
std::vector<CudaCandidate> ViewFamilyOf<C>::configurations(const TileProblem& p, const GpuTarget& target) const {
  std::vector<CudaCandidate> found;
  for (const C& c : configs(p, target)) {
    const auto why = [&]() -> std::string {
      const bool multiplied = target.has_tensor_cores() && p.on_tensor_cores(target);
      if (tensor_cores() && !multiplied) return "no tensor core multiplies this type";
      if (shared_bytes(p, c) > target.shared_bytes_per_block) return "its shared memory exceeds the device's";
      if (std::string own = reject(c, p, target); !own.empty()) return own;
      if (p.reduces && (cut(c).splits > 1 || !reduces_neighbours(c))) {
        return "neighbours are reduced in fragments of whole sums, 32 columns and more";
      }
      if (p.gated && !gates(c, p)) return "its threads do not have the sums of pairs of columns";
      return reject_tiles(p, cut(c));
    };
    CudaCandidate candidate;
    candidate.config.choice = c;
    candidate.rejected = why();
    candidate.additions = ceil_div(p.k, joined(p, c) * cut(c).splits);
    if (candidate.rejected.empty()) {
      candidate.config.predicted_us = with_reduction(p, predict_us(p, c, target), cut(c).splits, target);
    }
    found.push_back(std::move(candidate));
  }
  return found;
}

template <typename C>
KernelLaunches ViewFamilyOf<C>::launches_of(const TileProblem& p, const Config& config, const GpuTarget& target,
                                            int workspace) const {
  const C& c = config.as<C>();
  KernelLaunches result = tile_launches(p, cut(c).splits, target, workspace);
  if (p.is_empty() || p.k == 0) return result;
  CudaLaunch first = launch(p, c, workspace);
  first.symbol = "gemm";
  first.block = static_cast<uint32_t>(c.threads());
  first.shared_bytes = static_cast<uint32_t>(shared_bytes(p, c));
  result.launches.insert(result.launches.begin(), std::move(first));
  return result;
}

template <typename C>
CudaInstance ViewFamilyOf<C>::instance_of(const TileProblem& p, const Config& config) const {
  const C& c = config.as<C>();
  CudaInstance instance = tile_instance(p, cut(c), tensor_cores());
  instance.threads = c.threads();
  describe(instance, p, c);
  return instance;
}

}  // namespace heddle::schedule
