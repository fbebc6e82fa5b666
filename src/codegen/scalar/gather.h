#pragma once

#include <optional>
#include <string>

#include "codegen/scalar/address.h"

namespace heddle::codegen {

// Writes loads whose positions are not affine in the lanes, on a CPU.
class GatherEmitter : public AddressEmitter {
 protected:
  using AddressEmitter::AddressEmitter;
  ~GatherEmitter() = default;

  // The name of `e` if it is written already.
  virtual const TextValue* find(schedule::ExprId e) const = 0;

  // The lanes of an index that can be computed as a vector of 32-bit integers, and of a load at such an index.
  std::optional<std::string> lane_index(const schedule::Index& at);
  std::optional<std::string> gather(schedule::ExprId load);

 private:
  // Such an index in two parts: the part that all lanes share, and the part that each lane adds.
  struct LanePositions {
    schedule::Index shared;
    std::string lanes;
    std::optional<schedule::ExprId> loaded;  // `lanes` is this load, whose elements are side by side
    int64_t limit = 0;                       // all of `lanes` are less
  };
  std::optional<LanePositions> lane_positions(const schedule::Index& at);
  bool has_lane_form(const schedule::Index& at) const;
  std::optional<std::string> lane_term(schedule::AtomId id);
};

}  // namespace heddle::codegen
