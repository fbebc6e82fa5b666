#pragma once

#include <map>
#include <string>
#include <vector>

#include "lang/cpu/bounds.h"
#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

// Generates the body of a loop over the vectors of a row. A value at given coordinates is computed only once. In the
// generated text, W is the number of lanes, `c` the index of the first lane along the last dimension, and `n` the
// number of active lanes.
class Lanes {
 public:
  explicit Lanes(State& state) : bounds(state), state_(state) {}

  struct Value {
    std::string name;
    bool wide = false;  // each lane has its own element; else all lanes share one
  };
  Value at(ValueId value, const Coords& coords);
  std::string wide(ValueId value, const Coords& coords) { return widened(at(value, coords)); }
  std::string widened(const Value& value);

  // Texts of a load. first_address(): the address of lane 0, if lanes are adjacent. lane_count(): the number of lanes
  // that a prefix mask enables; nullopt for other masks. active_mask(): for any mask.
  bool is_adjacent(ValueId pointers, const Coords& coords) const;
  std::string first_address(ValueId pointers, const Coords& coords) { return at(pointers, first_lane(coords)).name; }
  std::optional<std::string> lane_count(ValueId mask, const Coords& coords);
  std::string active_mask(ValueId mask, bool masked, const Coords& coords);
  // Positions of a vector's elements in a row-major tile: the offset of lane 0, as text, and the stride between lanes.
  struct Place {
    std::string offset;
    int64_t stride = 0;
  };
  static Place place(const std::vector<int64_t>& shape, const Coords& coords);
  // Returns the values that have been computed at these coordinates.
  std::vector<ValueId> computed_at(const Coords& coords) const;

  Writer row, inner;  // row: code that all vectors of a row share; inner: the rest of the code
  Bounds bounds;      // bounds of the masks in `inner`

 private:
  std::string declare(ValueId value, const std::string& text, bool to_inner, const std::string& comment = {});
  Value compute(ValueId value, const Op& op, const Coords& coords);
  Value held(ValueId value, const Coords& coords);
  Value elementwise(ValueId value, const Op& op, const Coords& coords);
  Value iota(ValueId value, const Op& op, const Coords& coords);
  Value load(ValueId value, const Op& op, const Coords& coords);
  Value load_scalar(ValueId value, const Op& op, const Coords& coords);
  std::string with_other(const Op& op, const std::string& loaded, const std::string& missing, const Coords& coords);
  Value load_view(ValueId value, const Op& op, const Coords& coords);
  Value gather(ValueId value, const Op& op, const Coords& coords);
  Value split(ValueId value, const Op& op, const Coords& coords);
  Value flip(ValueId value, const Op& op, const Coords& coords);
  Value reshape(const Op& op, const Coords& coords);
  Value read(ValueId value, const std::string& buffer, const Place& place, const Coords& coords);

  State& state_;
  std::map<std::pair<ValueId, std::string>, Value> known_;
  std::map<std::string, std::string> widened_;  // name of a value -> name of its widened copy ("" at first)
};

// Returns the arguments of load_window (all but the last ones) or of store_window for a view at coordinates of its box.
// `offsets` are the texts of the box's offsets, which are integers. `checked` lists the dimensions with bounds checks.
std::string window_text(const State& state, const Op& op, const Coords& coords, const std::vector<std::string>& offsets,
                        const std::vector<int64_t>& checked);

// Returns the coordinates with index 0 in dimensions of extent 1.
Coords without_units(const std::vector<int64_t>& shape, Coords coords);

}  // namespace heddle::lang::cpu
