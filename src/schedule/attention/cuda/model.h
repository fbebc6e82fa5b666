#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/attention/attention.h"
#include "schedule/attention/masks/mask.h"

namespace heddle::schedule {

inline constexpr int64_t kHalfBytes = 2;  // of an element that TMA loads

// Bytes of an element of Q, K and V.
inline int64_t element_bytes(const AttentionDesc& d) {
  return static_cast<int64_t>(size_of(d.type));
}
// Tensor-core time of a product relative to one with 16-bit operands.
inline double multiply_cost(const AttentionDesc& d) {
  return d.type != DType::kF32 ? 1 : d.tf32 ? 2 : 6;
}

// For numbers that the kernels count in 32 bits.
inline int32_t number(int64_t x) {
  return static_cast<int32_t>(x);
}

// SM cycles for one tile of keys per block, with plain and with masked scores; the fixed cost of a tile of rows; the
// extra cost of a tile of rows with no second tile of keys to overlap.
struct AttentionTileCosts {
  double plain, masked, fixed, alone;
};

// The costs of an attention's tiles on a GPU, independent of the kernel.
class AttentionModel {
 public:
  AttentionModel(const AttentionDesc& attention, const CudaTarget& target) : d_(attention), target_(target) {}

  // Sets the rows and keys of a tile.
  void set_tile(int64_t tile_m, int64_t tile_n);
  bool is_even() const { return least_ == most_ && !d_.length; }
  int64_t units(const CudaAttentionConfig& c) const;
  // Blocks that run on an SM at a time.
  double together(const CudaAttentionConfig& c) const;

  // Cycles of an SM.
  double cycles(const CudaAttentionConfig& c, const AttentionTileCosts& costs) const;
  // The time of a kernel whose SMs take `cycles` before the parts of the keys are added up.
  double predicted_us(const CudaAttentionConfig& c, double cycles) const;

  // Calls f(c) for every number of parts of the keys and each way to add them.
  void for_splits(CudaAttentionConfig c, const std::function<void(const CudaAttentionConfig&)>& f) const;

 private:
  // Cycles of the last block for adding up the parts of the keys.
  double parts_cycles(const CudaAttentionConfig& c) const;
  // The least memory time: limited by the device's bandwidth, or by what the blocks keep in flight.
  double memory_us(const CudaAttentionConfig& c) const;
  double loaded_bytes(const CudaAttentionConfig& c, double tiles) const;

  const AttentionDesc& d_;
  const CudaTarget& target_;
  std::vector<KeyTiles> tiles_;
  int64_t least_ = 1, most_ = 1;  // tiles of keys: of the rows with the fewest, with the most
  int64_t keys_ = 0;              // keys that any row attends to
};

// Elements of a head, padded as the kernel multiplies them.
int64_t padded_head(int64_t elements);
// Columns of V and O per block.
int64_t panel_width(const AttentionDesc& attention, const CudaAttentionConfig& config);

// The most columns of a panel: the limit of a thread's registers and of an instruction.
inline constexpr int64_t kPanelColumns = 256;
int64_t fewest_panels(const AttentionDesc& attention);
// Candidates with the fewest panels for which `candidates` finds any, up to twice the least number: each panel computes
// all scores again.
std::vector<Config> with_fewest_panels(const AttentionDesc& attention,
                                       const std::function<std::vector<Config>(int64_t panels)>& candidates);

// The number of heads whose keys and values fit the L2 together, with all query heads of each.
int64_t section_of(const AttentionDesc& attention);

// The `most` configurations with the least predicted time.
std::vector<Config> least_predicted(std::vector<Config> configs, size_t most);
// ", columns in 2 panels, keys in 4 parts that a second launch adds"; empty if neither is cut.
std::string parts_text(const CudaAttentionConfig& config);

// The predicted time of separate kernels for the product, the softmax and the product.
double separate_us(const AttentionDesc& attention, const CudaTarget& target);

}  // namespace heddle::schedule
