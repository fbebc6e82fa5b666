#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/attention/attention.h"
#include "schedule/attention/masks/mask.h"

namespace heddle::schedule {

inline constexpr int64_t kHalfBytes = 2;  // size of a 16-bit element, the type that TMA loads

// The size of an element of Q, K and V in bytes.
inline int64_t element_bytes(const AttentionDesc& d) {
  return static_cast<int64_t>(size_of(d.type));
}
// The tensor-core time of a product relative to a product of 16-bit operands.
inline double multiply_cost(const AttentionDesc& d) {
  return d.type != DType::kF32 ? 1 : d.tf32 ? 2 : 6;
}

// Converts a number that kernels store in 32 bits.
inline int32_t number(int64_t x) {
  return static_cast<int32_t>(x);
}

// Costs in SM cycles:
//   plain, masked  for each tile of keys that a block processes, if its scores are plain or masked
//   fixed          additional, for each tile of rows
//   alone          additional, for a tile of rows with only one tile of keys, so that no work overlaps
struct AttentionTileCosts {
  double plain, masked, fixed, alone;
};

// Predicts the time of an attention on a GPU from the costs of its tiles. Independent of the kernel.
class AttentionModel {
 public:
  AttentionModel(const AttentionDesc& attention, const GpuTarget& target) : d_(attention), target_(target) {}

  // Sets the number of rows and keys of a tile.
  void set_tile(int64_t tile_m, int64_t tile_n);
  bool is_even() const { return least_ == most_ && !d_.length; }
  int64_t units(const CudaAttentionConfig& c) const;
  // The number of blocks that run on an SM at the same time.
  double together(const CudaAttentionConfig& c) const;

  // The cycles that an SM needs for its blocks.
  double cycles(const CudaAttentionConfig& c, const AttentionTileCosts& costs) const;
  // The predicted time of a kernel whose SMs need `cycles` before the parts of the keys are combined.
  double predicted_us(const CudaAttentionConfig& c, double cycles) const;

  // Calls f(c) for each number of parts into which the keys can be split, and for each way to combine the parts.
  void for_splits(CudaAttentionConfig c, const std::function<void(const CudaAttentionConfig&)>& f) const;

 private:
  // The cycles that the last block needs to combine the parts of the keys.
  double parts_cycles(const CudaAttentionConfig& c) const;
  // A lower bound of the time for memory accesses. The bandwidth is that of the memory or that of the SMs in use,
  // whichever is lower.
  double memory_us(const CudaAttentionConfig& c) const;
  double loaded_bytes(const CudaAttentionConfig& c, double tiles) const;

  const AttentionDesc& d_;
  const GpuTarget& target_;
  std::vector<KeyTiles> tiles_;
  int64_t least_ = 1, most_ = 1;  // the number of key tiles for the rows with the fewest and with the most keys
  int64_t keys_ = 0;              // the number of keys that at least one row attends to
};

// The size of a head in elements, padded to a multiple of the instruction's size.
int64_t padded_head(int64_t elements);
// The number of columns of V and O that a block computes.
int64_t panel_width(const AttentionDesc& attention, const CudaAttentionConfig& config);

// The most columns of a panel, limited by the registers of a thread and by the size of an instruction.
inline constexpr int64_t kPanelColumns = 256;
int64_t fewest_panels(const AttentionDesc& attention);
// Calls `candidates` with increasing numbers of panels, and returns its first result that is not empty. Tries at most
// twice fewest_panels(), since each panel computes all scores again.
std::vector<Config> with_fewest_panels(const AttentionDesc& attention,
                                       const std::function<std::vector<Config>(int64_t panels)>& candidates);

// The number of query heads that should be processed together, so that the keys and values they use fit the L2.
int64_t section_of(const AttentionDesc& attention);

// The `most` configurations with the lowest predicted times.
std::vector<Config> least_predicted(std::vector<Config> configs, size_t most);
// For example ", columns in 2 panels, keys in 4 parts that a second launch adds"; empty if nothing is split.
std::string parts_text(const CudaAttentionConfig& config);

// The predicted time of three separate kernels: product, softmax, product.
double separate_us(const AttentionDesc& attention, const GpuTarget& target);

}  // namespace heddle::schedule
