#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Returns the difference between a value's elements in adjacent lanes, in bytes for pointers. Returns 0 if all lanes
// have the same element, and nullopt if the difference is unknown. At most one of the coordinates may count lanes.
// Signed index arithmetic is assumed not to overflow within a tile.
std::optional<int64_t> lane_stride(const State& state, ValueId value, const Coords& coords);

// A mask that is set for a prefix of the lanes. Lane l is set if both conditions hold:
// - All masks of `uniform`, each equal in all lanes, are set.
// - For each of `bounds`, l < limit - index (<= if `inclusive`), where `index` is taken at lane 0 of `coords`.
struct PrefixMask {
  struct Uniform {
    ValueId mask;
    Coords coords;
  };
  struct Bound {
    ValueId index, limit;
    bool inclusive;
    Coords coords;
  };
  std::vector<Uniform> uniform;
  std::vector<Bound> bounds;
};
std::optional<PrefixMask> prefix_mask(const State& state, ValueId mask, const Coords& coords);

// Returns the number of elements, as text, by which pointers advance per iteration of their loop; nullopt if it is
// unknown. It is known if uniform_induction() turned the pointers into `first + offset` and the offset's increment is
// defined before the loop's body.
std::optional<std::string> step_of(const State& state, ValueId pointers);

// True if an op only rearranges elements: an element of its result is its operand's element at operand_coords().
bool is_shape_op(OpCode code);

// first_lane() returns the coordinates of lane 0 alone. without_lanes() returns the coordinates with index 0 in place
// of the lanes.
Coords first_lane(Coords coords);
Coords without_lanes(Coords coords);
bool has_lanes(const Coords& coords);
// Returns a text that is equal for equal coordinates.
std::string key_of(const Coords& coords);
// True if coordinates are known only inside the loop over vectors.
bool is_inner(const Coords& coords);

}  // namespace heddle::lang::cpu
