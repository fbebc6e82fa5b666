#pragma once

#include <optional>
#include <vector>

#include "ir/builder.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// A graph while it grows, with the value of everything on the case's inputs.
class State {
 public:
  State(uint64_t seed, const GeneratorOptions& options);

  Rng& rng() { return rng_; }
  ir::Builder& builder() { return builder_; }
  ir::Graph& graph() { return case_.graph; }
  // Values that may be operands: finite, moderate, not too large.
  const std::vector<ir::ValueId>& values() const { return values_; }

  bool allows(ir::Op op) const { return options_.ops.empty() || options_.ops.contains(op); }
  // One of `ops` that is allowed, or the first.
  ir::Op pick_op(const std::vector<ir::Op>& ops);

  // Late values are likelier, so that graphs get deep.
  ir::ValueId any();
  ir::ValueId any_float();
  ir::ValueId any_number();
  // A value of the same dtype whose shape broadcasts with that of `v`: an old one or a new parameter or constant.
  ir::ValueId partner(ir::ValueId v);
  // A new parameter or constant.
  ir::ValueId random_value(DType dtype, Shape shape);
  // New indices within [-extent, extent).
  ir::ValueId random_indices(Shape shape, int64_t extent);
  ir::ValueId integers(Shape shape, std::vector<int64_t> values);

  int64_t extent();  // from the case's small set, so that shapes meet
  Shape shape(int max_rank);
  // The shape with some extents 1 and some leading dimensions gone.
  Shape thinned(Shape shape);
  ir::Ints some_dims(const Shape& shape, bool may_be_empty);
  int64_t elements_of(const ir::Ints& dims, ir::ValueId v);
  bool fits(const Shape& shape) const { return element_count(shape) <= options_.max_elements; }

  // Makes a value an operand for later nodes if its elements are fit for it.
  void keep(ir::ValueId v);
  // Without the dead nodes where some of them were too large to evaluate.
  Case take();

 private:
  ir::ValueId add_parameter(ir::Array array);
  // Evaluates what was added since. What a graph may not hold (large values inside a move, all of them together) is
  // left out before any memory is taken for it, and so is what reads it.
  void evaluate_new();
  bool may_hold(const ir::Node& node) const;

  GeneratorOptions options_;
  Rng rng_;
  Case case_;
  ir::Builder builder_;
  DType main_;
  std::vector<int64_t> extents_;
  std::vector<ir::ValueId> values_;
  std::vector<std::optional<ir::Array>> arrays_;
  size_t evaluated_ = 0;        // nodes
  int64_t elements_ = 0;        // of all arrays_
  bool has_oversized_ = false;  // nodes that were not evaluated
};

// Moves that change layout, index, contract or branch; each may also decide to add nothing.
void add_broadcast(State& s);
void add_reshape(State& s);
void add_transpose(State& s);
void add_slice(State& s);
void add_reverse(State& s);
void add_pad(State& s);
void add_concat(State& s);
void add_gather(State& s);
void add_gather_elements(State& s);
void add_gather_nd(State& s);
void add_packed_product(State& s);
void add_scatter_elements(State& s);
void add_scatter_nd(State& s);
void add_dot(State& s);
void add_conv(State& s);
void add_iota(State& s);
void add_loop(State& s);
void add_if(State& s);

}  // namespace heddle::fuzz
