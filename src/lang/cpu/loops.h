#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lang/cpu/lanes.h"
#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Lanes of a vector along an extent, as text: "kLanes"; and how many results a reduction along it has, so that
// combinations overlap.
std::string vector_width(int64_t extent);
int results_at_once(int64_t extent);
// The loop over the vectors of a row.
void add_loop(Lines& row, const Lanes& lanes, int64_t extent);

// Loops over the elements of tiles. An op that needs values at once (a sink) has one loop; pending values that it
// computes, that are worth a buffer and that others need later are kept by it.
class Loops {
 public:
  explicit Loops(State& state) : state_(state) {}

  // The sink that is being written, and the region it stands in. Users of values from `op` on, or behind it once its
  // own loop is written, still need them.
  void enter(const Op& op, const Region& region);
  void written() { sink_is_written_ = true; }
  const Region* region() const { return region_; }
  const Op* sink() const { return sink_; }

  using Body = std::function<void(Lanes& lanes, const Coords& coords)>;
  // for each row, then for each vector of it; appended to `out`.
  void loop(Lines& out, const std::vector<int64_t>& shape, const Body& body, const std::vector<ValueId>& kept = {});
  // The same loop over rows, with what `finish` makes of the text of a row in place of the loop over vectors.
  using Finish = std::function<void(Lines& row, const Lanes& lanes, const Coords& coords)>;
  void rows(Lines& out, const std::vector<int64_t>& shape, const Body& body, const Finish& finish);

  // The rows of a reduction: `body` ends the text of a vector with a line that it returns.
  void reduce_rows(Lines& out, const std::vector<int64_t>& shape,
                   const std::function<std::string(Lanes& lanes, const Coords& coords)>& body, const Finish& finish);

  // Makes a value ready to be read at the coordinates of a loop over its shape: what would be computed more than once,
  // or is read in another order, gets a buffer first.
  void prepare(Lines& out, ValueId value);
  // A buffer with the elements of a tile.
  const std::string& buffer(Lines& out, ValueId value);
  // Element e goes to buffer[e * scale + shift].
  void write_to(Lines& out, ValueId value, const std::string& buffer, int64_t scale = 1, int64_t shift = 0);
  // Whether the sink is the last one that needs the elements of a value of its own region, so that it may change them.
  bool is_last_use(ValueId value) const;

  // Before memory is written: loads that are pending and needed later, or by the regions of the op, are made now.
  void add_load(ValueId value) { loads_.push_back(value); }
  const std::vector<ValueId>& loads() const { return loads_; }
  void set_loads(std::vector<ValueId> loads) { loads_ = std::move(loads); }
  void flush_loads(Lines& out, const std::vector<ValueId>& but_of = {});
  // The sink, an op that is lazy, gets buffers all the same.
  void write_now(Lines& out);
  // What the regions of an op use from outside and would compute again and again.
  void prepare_regions(Lines& out, const Op& op);

 private:
  bool is_unused_from(ValueId value, int now, std::set<ValueId>& seen) const;
  // `unneeded`: values that are not, which stays so while `kept` grows.
  bool needed_later(ValueId value, const std::set<ValueId>& kept, std::set<ValueId>& unneeded) const;
  std::vector<ValueId> worth_keeping(const Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords,
                                     const std::vector<ValueId>& kept) const;
  void keep(Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords, const std::vector<ValueId>& values);
  // `written`: the sink itself does not need the elements of its operands any more.
  void materialise(Lines& out, ValueId value, bool written = false);
  void prepare(Lines& out, ValueId value, std::set<ValueId>& seen);
  void prepare_operands(Lines& out, const Op& op, std::set<ValueId>& seen);

  State& state_;
  const Op* sink_ = nullptr;
  const Region* region_ = nullptr;
  bool sink_is_written_ = false;
  std::vector<ValueId> loads_;
};

}  // namespace heddle::lang::cpu
