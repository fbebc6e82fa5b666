#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/attention/attention.h"
#include "schedule/attention/masks/mask.h"

namespace heddle::schedule {

inline constexpr int64_t kHalfBytes = 2;  // of an element that TMA brings

// Of an element of Q, K and V.
inline int64_t element_bytes(const AttentionDesc& d) {
  return static_cast<int64_t>(size_of(d.type));
}
// How many times as long tensor cores take for a product as for one of 16 bits.
inline double multiply_cost(const AttentionDesc& d) {
  return d.type != DType::kF32 ? 1 : d.tf32 ? 2 : 6;
}

// For what the kernels count in 32 bits.
inline int32_t number(int64_t x) {
  return static_cast<int32_t>(x);
}

// Cycles of an SM while its blocks compute a tile of keys each: of plain scores, of others. Those of a tile of rows
// beside its keys, and what more it costs where a tile of keys has no other beside it.
struct AttentionTileCosts {
  double plain, masked, fixed, alone;
};

// What the tiles of an attention cost on a GPU, whichever kernel computes them.
class AttentionModel {
 public:
  AttentionModel(const AttentionDesc& attention, const CudaTarget& target) : d_(attention), target_(target) {}

  // For tiles of so many rows and keys.
  void set_tile(int64_t tile_m, int64_t tile_n);
  bool is_even() const { return least_ == most_ && !d_.length; }
  int64_t units(const AttentionConfig& c) const;
  // Blocks that an SM has at a time.
  double together(const AttentionConfig& c) const;

  // Cycles of an SM.
  double cycles(const AttentionConfig& c, const AttentionTileCosts& costs) const;
  // The time of a kernel whose SMs take so many cycles until parts of the keys are added up.
  double predicted_us(const AttentionConfig& c, double cycles) const;

  // f(c) for every number of parts into which the keys may be cut, and each way to add them.
  void for_splits(AttentionConfig c, const std::function<void(const AttentionConfig&)>& f) const;

 private:
  // What adding up the parts of the keys takes the last block.
  double parts_cycles(const AttentionConfig& c) const;
  // What memory takes at least: all of it, or what a block keeps on its way.
  double memory_us(const AttentionConfig& c) const;
  double loaded_bytes(const AttentionConfig& c, double tiles) const;

  const AttentionDesc& d_;
  const CudaTarget& target_;
  std::vector<KeyTiles> tiles_;
  int64_t least_ = 1, most_ = 1;  // tiles of keys of the rows with the fewest, the most
  int64_t keys_ = 0;              // that any rows see
};

// Elements of a head as a kernel multiplies them.
int64_t padded_head(int64_t elements);
// Columns of V and O that a block has.
int64_t panel_width(const AttentionDesc& attention, const AttentionConfig& config);

// Columns of a panel, at most: a thread's registers hold no more, and an instruction has no more.
inline constexpr int64_t kPanelColumns = 256;
int64_t fewest_panels(const AttentionDesc& attention);
// What `candidates` finds for as few panels as it finds any for, up to twice the fewest: each computes all scores.
std::vector<Config> with_fewest_panels(const AttentionDesc& attention,
                                       const std::function<std::vector<Config>(int64_t panels)>& candidates);

// Heads whose keys and values fit the L2 together, all query heads of each.
int64_t section_of(const AttentionDesc& attention);

// The first so many by predicted time.
std::vector<Config> least_predicted(std::vector<Config> configs, size_t most);
// ", columns in 2 panels, keys in 4 parts that a second launch adds"; empty where they are not cut.
std::string parts_text(const AttentionConfig& config);

// The predicted time of an attention as a product, a softmax and a product.
double separate_us(const AttentionDesc& attention, const CudaTarget& target);

}  // namespace heddle::schedule
