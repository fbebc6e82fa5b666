#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lang/cpu/lanes.h"
#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// vector_width() returns the number of lanes of a vector along an extent, as text ("kLanes"). results_at_once() returns
// the number of independent accumulators of a reduction along the extent; several accumulators let operations overlap.
std::string vector_width(int64_t extent);
int results_at_once(int64_t extent);
// Adds a loop over the vectors of a row to `row`, the code for that row.
void add_loop(Writer& row, const Lanes& lanes, int64_t extent);

// Writes loops over the elements of tiles. Each sink (an op whose operands must be computed right away) has one loop.
// The loop also computes the pending values (values not computed yet) that the sink needs. Of these values, it stores
// those that later ops need and that are worth a buffer.
class Loops {
 public:
  explicit Loops(State& state) : state_(state) {}

  // Sets the sink that is being written, and its region. A value is still needed if the sink or a later op uses it.
  // After written(), only later ops count.
  void enter(const Op& op, const Region& region);
  void written() { sink_is_written_ = true; }
  const Region* region() const { return region_; }
  const Op* sink() const { return sink_; }

  using Body = std::function<void(Lanes& lanes, const Coords& coords)>;
  // Appends to `out` a loop over rows, with an inner loop over the vectors of each row.
  void loop(Writer& out, const std::vector<int64_t>& shape, const Body& body, const std::vector<ValueId>& kept = {});
  // Like loop(), but `finish` replaces the inner loop: it turns the text of a row into code.
  using Finish = std::function<void(Writer& row, const Lanes& lanes, const Coords& coords)>;
  void rows(Writer& out, const std::vector<int64_t>& shape, const Body& body, const Finish& finish);

  // Writes the rows of a reduction. `body` returns the last line of the code for one vector.
  void reduce_rows(Writer& out, const std::vector<int64_t>& shape,
                   const std::function<std::string(Lanes& lanes, const Coords& coords)>& body, const Finish& finish);

  // Prepares a value for reads at the coordinates of a loop over the value's shape. Values that would be computed more
  // than once, or that are read in another order, first get a buffer.
  void prepare(Writer& out, ValueId value);
  // Returns the name of a buffer with the elements of a tile.
  const std::string& buffer(Writer& out, ValueId value);
  // Writes element e of the value to buffer[e * scale + shift].
  void write_to(Writer& out, ValueId value, const std::string& buffer, int64_t scale = 1, int64_t shift = 0);
  // True if the sink is the last op that needs the elements of a value, and the value is defined in the sink's own
  // region. The sink may then overwrite the elements.
  bool is_last_use(ValueId value) const;

  // Adds a load that has no code yet. Later ops or the regions of the sink may need its value. flush_loads() writes the
  // code of the loads that are still needed; it must run before code that changes memory is written.
  void add_load(ValueId value) { loads_.push_back(value); }
  const std::vector<ValueId>& loads() const { return loads_; }
  void set_loads(std::vector<ValueId> loads) { loads_ = std::move(loads); }
  void flush_loads(Writer& out, const std::vector<ValueId>& but_of = {});
  // Computes the results of the sink into buffers now, although the sink is a lazy op.
  void write_now(Writer& out);
  // Prepares values from outside an op's regions that the regions would otherwise compute repeatedly.
  void prepare_regions(Writer& out, const Op& op);

 private:
  bool is_unused_from(ValueId value, int now, std::set<ValueId>& seen) const;
  // `unneeded` collects values known not to be needed. They are still not needed when values are added to `kept`.
  bool needed_later(ValueId value, const std::set<ValueId>& kept, std::set<ValueId>& unneeded) const;
  std::vector<ValueId> worth_keeping(const Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords,
                                     const std::vector<ValueId>& kept) const;
  void keep(Lanes& lanes, const std::vector<int64_t>& shape, const Coords& coords, const std::vector<ValueId>& values);
  // `written`: true if the sink no longer needs the elements of its operands (as after written()).
  void materialise(Writer& out, ValueId value, bool written = false);
  void prepare(Writer& out, ValueId value, std::set<ValueId>& seen);
  void prepare_operands(Writer& out, const Op& op, std::set<ValueId>& seen);

  State& state_;
  const Op* sink_ = nullptr;
  const Region* region_ = nullptr;
  bool sink_is_written_ = false;
  std::vector<ValueId> loads_;
};

}  // namespace heddle::lang::cpu
