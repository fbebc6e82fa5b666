#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/divide.h"
#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// D[b] = epilogue(A[b] B[b]) by the kernels over views, which run on every device from sm_80 on and take any element
// type, layout, alignment and size: tile/kernel/cuda/gemm/sm80.h, tile/kernel/cuda/gemm/simt.h,
// tile/kernel/cuda/gemm/skinny.h. From sm_90 on, for small sides, tile/kernel/cuda/gemm/unaligned.h: any alignment,
// contiguous along k. Where all is small, tile/kernel/cuda/gemm/direct.h.
struct TileProblem {
  // What is multiplied: kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, or integers, all of A and B, but kI8 and kU8 mix.
  DType a_in = DType::kF16, b_in = DType::kF16;
  bool tf32 = false;  // kF32 may be rounded to tf32; else tensor cores multiply it in two parts
                      // (tile/kernel/cuda/operand/split_tf32.h)
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int out_bytes = 2;       // of what the epilogue stores for each element
  int read_bytes = 0;      // of matrices that it reads, for each element
  bool reduces = false;    // the epilogue reduces neighbours
  bool gated = false;      // pairs of B's columns make one of D (Epilogue::Gate)
  bool scattered = false;  // rows of D begin at addresses that no piece of 8 bytes allows: stored by elements
  OperandTraits a, b;      // as [m][k] and [n][k]

  double operations() const { return 2.0 * static_cast<double>(m) * n * k * batch; }
  double results() const { return static_cast<double>(m) * n * batch / (gated ? 2 : 1); }  // elements of D
  double bytes() const;  // each operand read once, D written once, with what the epilogue reads
  bool is_empty() const { return m == 0 || n == 0 || batch == 0; }
  // Whether tensor cores of a device multiply these types.
  bool on_tensor_cores(const CudaTarget& target) const;
  bool splits_f32() const { return a_in == DType::kF32 && !tf32; }
  // In what sums are kept, and what an epilogue sees: kF32, kF64, kI32 or kI64.
  DType accumulator() const;
  int sum_bytes() const;  // of one of them
};

// Whether there is arithmetic on a type on a GPU.
bool has_arithmetic(DType type);

// The product of a task so.
TileProblem tile_problem(const ProductTask& task);

// The problem as the kernel sees it: transposed where the configuration is swapped.
struct TileView {
  int64_t m, n;
  const OperandTraits *a, *b;
};
TileView view_of(const TileProblem& problem, bool swapped);

// max(operations, bytes) at the device's best.
double floor_us(const TileProblem& problem, const CudaTarget& target);

// The families over views.
class ViewFamily : public Family {
 public:
  std::string refuse(const ProductTask& task, const CudaTarget& target) const override;
  std::vector<CudaCandidate> candidates(const ProductTask& task, const CudaTarget& target) const override;
  KernelLaunches launches(const ProductTask& task, const Config& config, const CudaTarget& target) const override;
  CudaInstance instance(const ProductTask& task, const Config& config) const override;

  // The same of a problem. Partial sums lie in the kernel's operand `workspace`.
  virtual std::vector<CudaCandidate> configurations(const TileProblem& problem, const CudaTarget& target) const = 0;
  virtual KernelLaunches launches_of(const TileProblem& problem, const Config& config, const CudaTarget& target,
                                     int workspace) const = 0;
  virtual CudaInstance instance_of(const TileProblem& problem, const Config& config) const = 0;
};
std::span<const ViewFamily* const> view_families();

// Every configuration of every family over views, best prediction first; those that cannot run come last, each with its
// reason. Every problem has one that can. Throws kUnsupportedType on types that have no arithmetic.
std::vector<CudaCandidate> enumerate(const TileProblem& problem, const CudaTarget& target);
const ViewFamily& view_family_of(const Config& config);

// What a family has in common with the others over views.

// How a configuration cuts D and k.
struct TileCut {
  int tile_m, tile_n, tile_k, splits;
  bool swapped;
  int64_t tiles(const TileProblem& problem) const;  // of D, over all batches
};
// Parts of k worth trying, each of at least `least` k-tiles: one, as many as may fill the device, and as many as a long
// sum needs, an addition of which brings `joined` elements of k (schedule/product/cuda/long_sums.h).
std::vector<int> splits_worth_trying(const TileProblem& problem, const TileCut& cut, int least, int64_t joined,
                                     const CudaTarget& target);

// The launch of kernels that take GemmArgs: a block for each tile and part of k.
CudaLaunch tiles_launch(const TileProblem& problem, const TileCut& cut, int workspace);

// Of one of the problem's operands: what all of its lines are multiples of, in bytes, at most 16.
int line_alignment(const OperandTraits& operand);

// Whether a tile of `rows` x `depth` of an operand is dealt to all threads alike (tile::cuda::Deal); `lines`: of all of
// it.
bool deals(const OperandView& operand, int64_t lines, int64_t rows, int64_t depth, int threads);

// For predictions. Multiplications and additions of one SM in a cycle; blocks of one SM, by shared memory, threads and
// `registers` of a thread.
double multiply_rate(const TileProblem& problem, bool tensor_cores, const CudaTarget& target);
int blocks_of_sm(int threads, int shared_bytes, int registers, const CudaTarget& target);

// For kernels that have the loop of the mma family in them: the share of latencies that so many warps of an SM hide,
// and of memory's rate that so many blocks reach; cycles in which an SM stores so many results of so many bytes;
// registers of a thread; the time of all tiles, without what comes once, while memory does not limit it.
double hidden_share(double warps);
double memory_share(int64_t blocks, const CudaTarget& target);
double store_cycles(double results, double bytes, const CudaTarget& target);
int mma_registers(const TileProblem& problem, const MmaConfig& config);
double mma_compute_us(const TileProblem& problem, const MmaConfig& config, int shared_bytes, int registers,
                      const CudaTarget& target);

// A family whose configurations are of type C.
template <typename C>
class ViewFamilyOf : public ViewFamily {
 public:
  std::string_view name() const override { return C::kName; }
  std::vector<CudaCandidate> configurations(const TileProblem& p, const CudaTarget& target) const override;
  KernelLaunches launches_of(const TileProblem& p, const Config& config, const CudaTarget& target,
                             int workspace) const override;
  CudaInstance instance_of(const TileProblem& p, const Config& config) const override;

 protected:
  virtual bool tensor_cores() const { return true; }  // else threads multiply, in the type of the sums
  virtual TileCut cut(const C& c) const = 0;
  // Elements of k that an addition to a sum brings, over all that share the sum.
  virtual int64_t joined(const TileProblem& p, const C& c) const = 0;
  // Those worth trying for a problem. reject() says why one cannot run; empty: it can. What holds for every family
  // (types, shared memory, workspace) is checked outside.
  virtual std::vector<C> configs(const TileProblem& p, const CudaTarget& target) const = 0;
  virtual std::string reject(const C& c, const TileProblem& p, const CudaTarget& target) const = 0;
  virtual bool reduces_neighbours(const C&) const { return false; }
  virtual bool gates(const C&, const TileProblem&) const { return false; }
  virtual int shared_bytes(const TileProblem& p, const C& c) const = 0;
  // Without the reduction of the parts of k.
  virtual double predict_us(const TileProblem& p, const C& c, const CudaTarget& target) const = 0;
  virtual CudaLaunch launch(const TileProblem& p, const C& c, int workspace) const {
    return tiles_launch(p, cut(c), workspace);
  }
  virtual void describe(CudaInstance& instance, const TileProblem& p, const C& c) const = 0;

  // For configs(): adds the configuration in as many parts of k as may fill the device.
  void add_splits(std::vector<C>& found, const TileProblem& p, C c, int least, const CudaTarget& target) const {
    for (const int splits : splits_worth_trying(p, cut(c), least, joined(p, c), target)) {
      c.splits = splits;
      found.push_back(c);
    }
  }
};

// The parts of it that know no family.
std::string reject_tiles(const TileProblem& problem, const TileCut& cut);
double with_reduction(const TileProblem& problem, double us, int splits, const CudaTarget& target);
KernelLaunches tile_launches(const TileProblem& problem, int splits, const CudaTarget& target, int workspace);
CudaInstance tile_instance(const TileProblem& problem, const TileCut& cut, bool tensor_cores);

template <typename C>
std::vector<CudaCandidate> ViewFamilyOf<C>::configurations(const TileProblem& p, const CudaTarget& target) const {
  std::vector<CudaCandidate> found;
  for (const C& c : configs(p, target)) {
    const auto why = [&]() -> std::string {
      if (tensor_cores() && !p.on_tensor_cores(target)) return "no tensor core multiplies this type";
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
KernelLaunches ViewFamilyOf<C>::launches_of(const TileProblem& p, const Config& config, const CudaTarget& target,
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
