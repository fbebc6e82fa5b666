#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {

// The template behind a configuration, as code generation writes it: `kernel`<Config>(arguments, A, B, epilogue) with
// the values below as members of Config.
struct CudaInstance {
  std::string_view header;                                      // "tile/kernel/cuda/gemm/simt.h"
  std::string_view kernel;                                      // "tile::cuda::gemm_simt"
  std::string_view arguments;                                   // its first argument: "GemmArgs"; empty: it has none
  std::vector<std::pair<const char*, std::string_view>> types;  // {"In", "tile::half"}
  std::vector<std::pair<const char*, int>> sizes;               // {"kTileM", 128}
  std::vector<std::pair<const char*, bool>> flags;              // {"kSwapped", false}
  bool stream = false;                                          // B passes once, and is not to stay in the cache
  int resident = 1;                                             // blocks of a SM that the compiler is to allow
};

// A family of kernels over views: all that the scheduler and code generation ask of it. A new one is a file that
// defines its object, and its name here, in CudaTileConfig::Engine and in the list of cuda_tile.cc.
struct CudaEngine {
  std::string_view name;         // Config::algorithm
  bool tensor_cores = false;     // they multiply; else threads do, in the type of the sums
  bool lines = false;            // operands tell where their lines lie (MatrixLines)
  bool parts_are_warps = false;  // CudaTileConfig::parts: of a block; else blocks of a cluster

  // Those worth trying for a problem. reject() says why one cannot run; empty: it can. What holds for every family
  // (types, shared memory, workspace) is checked outside.
  std::vector<CudaTileConfig> (*configs)(const CudaTileProblem& problem, const CudaTarget& target) = nullptr;
  std::string (*reject)(const CudaTileConfig& config, const CudaTileProblem& problem,
                        const CudaTarget& target) = nullptr;
  // Without the reduction of the parts of k.
  double (*predict_us)(const CudaTileProblem& problem, const CudaTileConfig& config,
                       const CudaTarget& target) = nullptr;
  int (*shared_bytes)(const CudaTileProblem& problem, const CudaTileConfig& config) = nullptr;
  // Without operands, which follow its arguments. Partial sums lie in the kernel's operand `workspace`.
  CudaLaunch (*launch)(const CudaTileProblem& problem, const CudaTileConfig& config, int workspace) = nullptr;
  CudaInstance (*instance)(const CudaTileProblem& problem, const CudaTileConfig& config) = nullptr;
};

extern const CudaEngine kMmaEngine, kSimtEngine;  // schedule/product/cuda/mma.cc
extern const CudaEngine kSkinnyEngine, kUnalignedEngine, kDirectEngine;

// In the order of CudaTileConfig::Engine.
std::span<const CudaEngine* const> cuda_engines();
const CudaEngine& engine_of(const CudaTileConfig& config);

// The problem as the kernel sees it: transposed where the configuration is swapped.
struct CudaTileView {
  int64_t m, n;
  const CudaOperand *a, *b;
};
CudaTileView view_of(const CudaTileProblem& problem, bool swapped);

// Tiles of D, over all batches.
int64_t tiles_of(const CudaTileProblem& problem, const CudaTileConfig& config);

// Adds the configuration in as many parts of k as may fill the device, each of at least `least` k-tiles.
void add_splits(std::vector<CudaTileConfig>& found, const CudaTileProblem& problem, CudaTileConfig config, int least,
                const CudaTarget& target);

// The launch of kernels that take GemmArgs: a block for each tile and part of k.
CudaLaunch tiles_launch(const CudaTileProblem& problem, const CudaTileConfig& config, int workspace);

// Of one of the problem's operands: what all of its lines are multiples of, in bytes, at most 16.
int line_alignment(const CudaOperand& operand);

// For predictions. Multiplications and additions of one SM in a cycle; blocks of one SM, by shared memory, threads and
// `registers` of a thread.
double multiply_rate(const CudaTileProblem& problem, bool tensor_cores, const CudaTarget& target);
int blocks_of_sm(const CudaTileProblem& problem, const CudaTileConfig& config, int registers, const CudaTarget& target);

}  // namespace heddle::schedule
