#pragma once

#include "passes/fusion/context.h"

namespace heddle::passes {

// The number of nodes of one kernel: the compiler sees epilogues as parts of larger texts.
constexpr size_t kMostKernelNodes = 128;

// The nodes that compute operands of an epilogue from values outside of it:
// - those that serve the epilogue alone and are cheap: broadcasts, slices, one row of a sequence, iotas, arithmetic;
// - on a GPU, also cheap elementwise nodes that have other readers, from at most two values in memory of the result's
//   size. Other readers that need nothing else are taken, too, until all that leaves the epilogue has 16 bits. The
//   gradient of a squared ReLU, say, multiplies a product by a function of what the forward pass has stored, and the
//   activation itself is the operand of the next product.
class OperandProducers {
 public:
  // `count` is the number of elements of the anchor's result.
  OperandProducers(FusionContext& context, ir::NodeId anchor, int64_t count, const Target& target)
      : c_(context), graph_(context.graph), anchor_(anchor), count_(count), target_(target) {}

  // True if the epilogue can compute `v` by itself once `reader` is in the epilogue.
  bool can_compute(ir::ValueId v, ir::NodeId reader) const;
  // True if another kernel would store `v` for `reader` in the epilogue: it has as many elements as the result, the
  // epilogue cannot compute it, and it is neither a result nor read by anything but memory-bound elementwise nodes.
  bool is_stored_for(ir::ValueId v, ir::NodeId reader) const;
  // Adds all of them to the epilogue's group.
  void take();
  // True if the kernel has as many nodes as it may.
  bool is_full() const;

 private:
  void take_elementwise();
  void take_own();
  bool is_own(ir::NodeId id) const;

  FusionContext& c_;
  const ir::Graph& graph_;
  const ir::NodeId anchor_;
  const int64_t count_;
  const Target& target_;
};

// True if a value has integers of at most 16 bits, as quantised values have.
bool is_small_int(const ir::Graph& graph, ir::ValueId v);
// True if a path leads from `earlier` to `later`, a node after it, as far as a few steps find it.
bool waits_for(const FusionContext& context, ir::NodeId later, ir::NodeId earlier);

}  // namespace heddle::passes
