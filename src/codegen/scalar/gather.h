#pragma once

#include <optional>
#include <string>

#include "codegen/scalar/address.h"

namespace heddle::codegen {

// Writes CPU loads whose indices are not affine in the vector lane.
class GatherEmitter : public AddressEmitter {
 protected:
  using AddressEmitter::AddressEmitter;
  ~GatherEmitter() = default;

  // Returns the variable that holds `e`, if the code that computes `e` is already written.
  virtual const TextValue* find(schedule::ExprId e) const = 0;

  // lane_index() returns the index of each lane as a vector of 32-bit integers; gather() returns a load at such an
  // index. Both return nullopt if the index cannot be computed as such a vector.
  std::optional<std::string> lane_index(const schedule::Index& at);
  std::optional<std::string> gather(schedule::ExprId load);

 private:
  // An index of lane_index() as a sum: `shared` is the same for all lanes, `lanes` differs by lane.
  struct LanePositions {
    schedule::Index shared;
    std::string lanes;
    std::optional<schedule::ExprId> loaded;  // if set, `lanes` is this load, whose elements are contiguous
    int64_t limit = 0;                       // exclusive upper bound of `lanes`
  };
  std::optional<LanePositions> lane_positions(const schedule::Index& at);
  bool has_lane_form(const schedule::Index& at) const;
  std::optional<std::string> lane_term(schedule::AtomId id);
};

}  // namespace heddle::codegen
