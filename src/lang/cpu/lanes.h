#pragma once

#include <map>
#include <string>
#include <vector>

#include "lang/cpu/bounds.h"
#include "lang/cpu/state.h"
#include "lang/cpu/strides.h"

namespace heddle::lang::cpu {

// The body of a loop over the vectors of rows: computes values at coordinates, each once. In the text, W is the number
// of lanes, `c` the index of the first lane along the last dimension, `n` the number of active lanes.
class Lanes {
 public:
  explicit Lanes(State& state) : bounds(state), state_(state) {}

  struct Value {
    std::string name;
    bool wide = false;  // one value per lane; else all lanes share it
  };
  Value at(ValueId value, const Coords& coords);
  std::string wide(ValueId value, const Coords& coords) { return widened(at(value, coords)); }
  std::string widened(const Value& value);

  // Texts of a load: the address of lane 0 if lanes are adjacent; the lanes that a prefix mask enables; any mask.
  bool is_adjacent(ValueId pointers, const Coords& coords) const;
  std::string first_address(ValueId pointers, const Coords& coords) { return at(pointers, first_lane(coords)).name; }
  std::optional<std::string> lane_count(ValueId mask, const Coords& coords);
  std::string active_mask(ValueId mask, bool masked, const Coords& coords);
  // Index of the element of a row-major tile at these coordinates (of lane 0), and the distance between lanes.
  struct Place {
    std::string offset;
    int64_t stride = 0;
  };
  static Place place(const std::vector<int64_t>& shape, const Coords& coords);
  // The values computed at these coordinates.
  std::vector<ValueId> computed_at(const Coords& coords) const;

  Writer row, inner;  // code shared by all vectors of a row, and the rest
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
  std::map<std::string, std::string> widened_;  // by name: the name of its widened copy, "" at first
};

// A view at coordinates of its box: the arguments of load_window (all but the last ones) or of store_window. `offsets`
// are texts of integers.
std::string window_text(const State& state, const Op& op, const Coords& coords, const std::vector<std::string>& offsets,
                        const std::vector<int64_t>& checked);

// Coordinates with 0 for dimensions of extent 1.
Coords without_units(const std::vector<int64_t>& shape, Coords coords);

}  // namespace heddle::lang::cpu
