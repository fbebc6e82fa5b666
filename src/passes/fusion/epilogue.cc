#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "ir/analysis/gated_product.h"
#include "ir/analysis/partial_reduction.h"
#include "passes/fusion/context.h"
#include "passes/fusion/operand_producers.h"

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

constexpr size_t kMostReaders = 1024;  // that are looked at
constexpr int kMostViews = 4;          // of reshapes and casts that are looked through

// Whether a change of layout of a convolution's result makes neighbouring columns neighbouring pixels of a row: vectors
// of the results are interleaved in registers.
bool interleaves_columns(const ir::Graph& graph, const Node& anchor, const Node& node, const Target& target) {
  if (!target.traits().interleaves_columns || anchor.op != Op::kConv || node.op != Op::kTranspose) return false;
  const Shape &result = graph.shape(anchor.outputs[0]), &split = graph.shape(node.inputs[0]);
  const ir::Ints& perm = node.attrs.ints("perm");
  const size_t pixels = result.size() - 2, columns = split.size() - 1;
  if (columns <= pixels || !std::equal(result.begin(), result.end() - 1, split.begin())) return false;
  const auto at = std::find(perm.begin(), perm.end(), static_cast<int64_t>(columns));
  return at != perm.begin() && *(at - 1) == static_cast<int64_t>(pixels) && split.back() > 1 &&
         2 * target.cpu.lanes_f32() % split.back() == 0;
}

// Why it is faster to store a row's results side by side and to move them in a kernel of their own; empty where it is
// not. A GPU's L2 writes a whole sector for each result that lies alone.
std::string scattered_stores(const Target& target, const ir::TensorType& result) {
  if (!target.has_tensor_cores()) return {};
  constexpr double kSectorBytes = 32;
  const auto bytes = static_cast<double>(size_of(result.dtype)),
             count = static_cast<double>(element_count(result.shape));
  const double apart = (kSectorBytes - bytes) * count / target.gpu().model.wgmma.wave_per_us;
  const double copy =
      2 * bytes * count / target.copy_bytes_per_second() * 1e6 + target.gpu().model.chip.graph_boundary_us;
  if (apart < copy) return {};
  return fmt::format("its stores, a sector for each element, take about {:.3g} us longer, a copy {:.3g}", apart, copy);
}

bool is_store_layout(Op op) {
  return op == Op::kReshape || op == Op::kTranspose || op == Op::kReverse;
}

// Whether `v`, the dequantised value of `narrow`, is a result, becomes quantised again, or meets a value that is at
// hand by then: one that is `inside` the epilogue or was made before. Until then it meets only constants.
bool dequantises_for_epilogue(const FusionContext& c, ValueId v, ValueId narrow,
                              const std::function<bool(ValueId)>& inside, int depth = 0) {
  constexpr int kLongest = 8;
  if (c.is_output[v] || depth > kLongest) return true;
  const auto is_constant = [&](ValueId other) {
    const Node* node = &c.graph.producer(other);
    while (node->op == Op::kBroadcast || node->op == Op::kReshape) node = &c.graph.producer(node->inputs[0]);
    return node->op == Op::kConstant;
  };
  return std::any_of(c.users[v].begin(), c.users[v].end(), [&](NodeId id) {
    const Node& node = c.graph.node(id);
    if (!ir::is_elementwise(node.op)) return false;
    if (is_small_int(c.graph, node.outputs[0])) return true;
    const auto known = [&](ValueId other) { return other == v || is_constant(other); };
    if (std::all_of(node.inputs.begin(), node.inputs.end(), known)) {
      return dequantises_for_epilogue(c, node.outputs[0], narrow, inside, depth + 1);
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId other) {
      return known(other) || inside(other) ||
             !waits_for(c, c.graph.value(other).producer, c.graph.value(narrow).producer);
    });
  });
}

// Grows the epilogue of one anchor from its result outwards, in topological order.
class Epilogue {
 public:
  Epilogue(FusionContext& context, NodeId anchor, const Target& target)
      : c_(context), graph_(context.graph), target_(target), anchor_(anchor) {
    ValueId result = graph_.node(anchor).outputs[0];
    if (target.traits().gates_products && take_gate()) {
      result = graph_.node(gate_->meet).outputs[0];
    } else if (target.traits().reduces_in_epilogues) {
      matrix_ = ir::result_matrix(graph_, graph_.node(anchor));
    }
    count_ = element_count(graph_.shape(result));
    result_ = result;
    inside_[result] = {result, true};
    enqueue_users(result);
  }

  void grow() {
    while (!queue_.empty()) {
      const NodeId id = queue_.top();
      queue_.pop();
      if (c_.partition.same(id, anchor_) || c_.role[id] == Role::kEpilogue) continue;
      if (c_.role[id] != Role::kMemory && c_.role[id] != Role::kReference) continue;  // the next contraction
      std::string reason = refusal(id);
      if (reason.empty() && !join(id)) reason = "a path through other kernels leads back into it";
      c_.decide(reason.empty(), "epilogue", id, anchor_, reason.empty() ? accepted(id) : reason);
      if (reason.empty() && !reduces(id)) enqueue_users(graph_.node(id).outputs[0]);
    }
    producers().take();
  }

 private:
  // Takes all up to where pairs of columns meet: nothing else reads any of it.
  bool take_gate() {
    gate_ = ir::match_gated_product(graph_, anchor_);
    if (!gate_) return false;
    const auto free = [&](NodeId id) { return c_.role[id] == Role::kMemory; };
    if (gate_->nodes.size() >= kMostKernelNodes / 2 || !std::all_of(gate_->nodes.begin(), gate_->nodes.end(), free)) {
      return false;
    }
    for (const NodeId id : gate_->nodes) {
      HEDDLE_CHECK(c_.partition.merge(id, anchor_), "what only leads to a node of its own kernel leads elsewhere");
      c_.role[id] = Role::kEpilogue;
    }
    c_.decide(true, "gate", gate_->meet, anchor_, "pairs of columns become one while their sums are in registers");
    return true;
  }

  void enqueue_users(ValueId value) {
    for (NodeId user : c_.users[value]) {
      if (seen_.size() < kMostReaders && seen_.insert(user).second) queue_.push(user);
    }
  }

  // A reduction of a few neighbours of what may be a value of the epilogue.
  std::optional<ir::PartialReduction> partial_reduction(NodeId id) const {
    return matrix_ ? ir::match_partial_reduction(graph_, id, *matrix_) : std::nullopt;
  }
  // Whether it is one of a value of this epilogue, in the result's own order.
  bool reduces(NodeId id) const {
    const auto found = partial_reduction(id);
    if (!found) return false;
    const auto value = inside_.find(found->value);
    return value != inside_.end() && value->second.order == result_;
  }
  // Whether a node makes the operand of such reductions and nothing else.
  bool leads_to_reductions(NodeId id, int depth = 0) const {
    const Node& node = graph_.node(id);
    if (!matrix_ || depth > kMostViews || (node.op != Op::kReshape && node.op != Op::kCast)) return false;
    const ValueId result = node.outputs[0];
    return !c_.is_output[result] && !c_.users[result].empty() &&
           std::all_of(c_.users[result].begin(), c_.users[result].end(),
                       [&](NodeId user) { return partial_reduction(user) || leads_to_reductions(user, depth + 1); });
  }

  // A value of the epilogue.
  struct Inside {
    ValueId order;  // the value whose elements have its order, after the last change of layout
    bool columns;   // neighbours in a row of the result are still neighbours
  };
  // Whether it is a value of the epilogue in another order than the result.
  bool is_moved(ValueId v) const {
    const auto found = inside_.find(v);
    return found != inside_.end() && found->second.order != result_;
  }

  std::string accepted(NodeId id) const {
    if (reduces(id)) return "it reduces a few neighbours of the result, while they are in registers";
    if (graph_.node(id).op == Op::kSlice) return "decides what is stored";
    return is_store_layout(graph_.node(id).op) ? "changes the index of the store only"
                                               : "one element of the result decides one of it";
  }

  // Why a node cannot be in the epilogue; empty where it can.
  std::string refusal(NodeId id) const {
    const Node& node = graph_.node(id);
    if (c_.role[id] == Role::kReference) return "runs by the reference evaluator";
    if (is_full()) return fmt::format("its kernel has {} nodes already", kMostKernelNodes);
    const ValueId result = node.outputs[0];
    if (reduces(id) || (leads_to_reductions(id) && !is_moved(node.inputs[0]))) return {};
    if (node.op == Op::kSlice && takes_slices()) return refuse_slice(node, id);
    if (is_store_layout(node.op)) {
      if (node.op == Op::kReverse && !keeps_columns(graph_, node)) return "its vectors would be stored backwards";
      if (!c_.only_read_by(node.inputs[0], id)) return "its operand is needed in the old layout, too";
      return keeps_columns(graph_, node) ? "" : scattered_stores(target_, graph_.type(result));
    }
    if (!ir::is_elementwise(node.op)) return fmt::format("{} reads other elements of the result", to_string(node.op));
    if (reads_more(node, id) && reads_what_is_stored(node, id)) return "another kernel would store an operand for it";
    if (std::string reason = kernel_of_the_readers(node, id); !reason.empty()) return reason;
    if (std::string reason = refuse_order(node); !reason.empty()) return reason;
    if (node.op == Op::kCast && !is_trailing(result) &&
        size_of(graph_.dtype(result)) > size_of(graph_.dtype(node.inputs[0]))) {
      return widening_refusal(node.inputs[0], result, id);
    }
    return {};
  }

  // Whether a value is a result of the graph, perhaps in another shape, or nothing reads it.
  bool is_trailing(ValueId v, int depth = 0) const {
    const std::vector<NodeId>& readers = c_.users[v];
    if (readers.empty() || c_.is_output[v]) return true;
    return depth < kMostViews && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
             const Node& node = graph_.node(id);
             return node.op == Op::kReshape && is_trailing(node.outputs[0], depth + 1);
           });
  }

  // Why an elementwise node cannot compute in the order of its operands.
  std::string refuse_order(const Node& node) const {
    const Inside* first = nullptr;
    for (const ValueId v : node.inputs) {
      const auto found = inside_.find(v);
      if (found == inside_.end()) continue;
      if (!found->second.columns) return "it computes in a permuted layout";
      if (first && first->order != found->second.order) return "its operands have different orders";
      first = &found->second;
    }
    return {};
  }

  // Slices of dots move to their operands. Those of the phases of a transposed convolution cannot.
  bool takes_slices() const { return graph_.node(anchor_).op == Op::kConv && !gate_; }
  std::string refuse_slice(const Node& node, NodeId id) const {
    const ValueId whole = node.inputs[0];
    const auto& steps = node.attrs.ints("strides");
    if (!c_.only_read_by(whole, id)) return "its operand is needed whole, too";
    if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) return "it leaves gaps";
    if (2 * element_count(graph_.shape(node.outputs[0])) < element_count(graph_.shape(whole))) {
      return "it leaves less than half of the result";
    }
    // Everything that is stored is computed from the slice, so that one condition guards all stores.
    for (const auto& [v, inside] : inside_) {
      const bool ends = c_.users[v].empty() || c_.is_output[v] ||
                        std::any_of(c_.users[v].begin(), c_.users[v].end(),
                                    [&](NodeId user) { return user != id && !c_.partition.same(user, anchor_); });
      if (ends) return "other results are whole";
    }
    return {};
  }

  // True if another kernel would have to store an operand for the node. In a kernel together with the nodes that
  // compute the operand, the node reads their operands instead.
  bool reads_more(const Node& node, NodeId id) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return !inside_.contains(v) && producers().is_stored_for(v, id); });
  }

  // True for a reader that no epilogue can contain: a memory-bound node that is not elementwise, or that reads_more().
  // Looks through reshapes and casts.
  bool stays_outside(NodeId id, int depth = 0) const {
    const Node& node = graph_.node(id);
    if (leads_to_reductions(id)) return false;
    const bool passes_on = node.op == Op::kReshape || node.op == Op::kCast;
    if (passes_on && depth < kMostViews) return all_outside(node.outputs[0], depth + 1);
    if (c_.role[id] != Role::kMemory) return false;
    return ir::is_elementwise(node.op) ? reads_more(node, id) : !is_store_layout(node.op);
  }
  bool all_outside(ValueId v, int depth = 0) const {
    const std::vector<NodeId>& readers = c_.users[v];
    return !c_.is_output[v] && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId id) { return stays_outside(id, depth); });
  }
  // Whether the result of an epilogue value is stored in any case. `aside` is the reader in question, whose result only
  // later kernels read. Another reader that waits for those kernels cannot join the epilogue, so the value is stored.
  bool is_stored(ValueId v, NodeId aside, int depth = 0) const {
    if (c_.is_output[v]) return true;
    return std::any_of(c_.users[v].begin(), c_.users[v].end(), [&](NodeId id) {
      const Node& node = graph_.node(id);
      if (id == aside || leads_to_reductions(id)) return false;
      if (ir::is_elementwise(node.op) && waits_for(c_, id, aside)) return true;
      if (node.op == Op::kReshape) return depth < kMostViews && is_stored(node.outputs[0], aside, depth + 1);
      return stays_outside(id);
    });
  }

  // True if its operands in the epilogue are stored even without it.
  bool reads_what_is_stored(const Node& node, NodeId id) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return !inside_.contains(v) || is_stored(v, id); });
  }

  // A node between an epilogue value and readers that are not in the epilogue is better computed by these in two cases:
  // - one of its operands is made for it alone by memory-bound nodes (a slice of a sequence, say), which join the
  // readers'
  //   kernel through it, and would be a kernel of their own without;
  // - its operand from the epilogue is stored in any case: one more result would be one more store and load.
  std::string kernel_of_the_readers(const Node& node, NodeId id) const {
    if (!all_outside(node.outputs[0])) return {};
    bool stored = true;
    for (ValueId v : node.inputs) {
      const Node& producer = graph_.producer(v);
      if (inside_.contains(v)) {
        stored = stored && is_stored(v, id);
        continue;
      }
      const bool own = c_.role[graph_.value(v).producer] == Role::kMemory && producer.op != Op::kBroadcast &&
                       ir::class_of(producer.op) != ir::OpClass::kReduction && c_.users[v].size() == 1 &&
                       !c_.is_output[v];
      if (own) return "it is one stitch with what makes its other operand and with what reads it";
    }
    return stored ? "its readers compute it from a value that is stored in any case" : "";
  }

  // A wider type is converted where it is read, unless arithmetic that this epilogue can have, too, follows: with
  // values of its own, or with a row or column that is made outside, and not for outside readers of a value that is
  // stored.
  std::string widening_refusal(ValueId narrow, ValueId result, NodeId id) const {
    constexpr int64_t kMuchFewer = 16;
    const auto is_at_hand = [&](ValueId v) {
      const Node* node = &graph_.producer(v);
      if (node->op == Op::kBroadcast) {
        const ValueId source = node->inputs[0];
        const bool is_small = element_count(graph_.shape(source)) * kMuchFewer <= count_;
        if (is_small && !waits_for(c_, graph_.value(source).producer, graph_.value(narrow).producer)) return true;
        node = &graph_.producer(source);
      }
      return v == result || inside_.contains(v) || node->op == Op::kConstant || node->op == Op::kParameter;
    };
    if (is_small_int(graph_, result)) return {};  // products read it so
    const auto inside = [&](ValueId v) { return inside_.contains(v); };
    if (is_small_int(graph_, narrow) && !dequantises_for_epilogue(c_, result, narrow, inside)) {
      return "its readers dequantise the smaller type";
    }
    const bool stored = is_stored(narrow, id);
    for (NodeId user : c_.users[result]) {
      const Node& node = graph_.node(user);
      const bool is_inside = ir::is_elementwise(node.op) && !(stored && all_outside(node.outputs[0]));
      const auto is_available = [&](ValueId v) { return is_at_hand(v) || is_computed_beside(v, user); };
      if (is_inside && std::all_of(node.inputs.begin(), node.inputs.end(), is_available)) return {};
    }
    return "storing the narrower type moves fewer bytes";
  }

  OperandProducers producers() const { return {c_, anchor_, count_, target_}; }
  bool is_full() const { return producers().is_full(); }

  bool join(NodeId id) {
    const Node& node = graph_.node(id);
    if (!c_.partition.merge(id, anchor_)) return false;
    c_.role[id] = Role::kEpilogue;
    if (reduces(id)) return true;
    const ValueId made = node.outputs[0];
    const auto from =
        std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return inside_.contains(v); });
    Inside inside = inside_.at(*from);
    if (node.op == Op::kTranspose || node.op == Op::kReverse || node.op == Op::kSlice) {
      const bool keeps =
          keeps_columns(graph_, node) || interleaves_columns(graph_, graph_.node(anchor_), node, target_);
      inside = {made, inside.columns && keeps};
    }
    inside_[made] = inside;
    return true;
  }

  // Whether the epilogue can compute the operand `v` of `reader` itself, and what becomes of the reader's result is
  // stored in 16 bits.
  bool is_computed_beside(ValueId v, NodeId reader) const {
    return ends_narrow(graph_.node(reader).outputs[0]) && producers().can_compute(v, reader);
  }
  bool ends_narrow(ValueId v, int depth = 0) const {
    if (size_of(graph_.dtype(v)) <= 2) return true;
    return !c_.is_output[v] && depth < kMostViews &&
           std::all_of(c_.users[v].begin(), c_.users[v].end(), [&](NodeId id) {
             const Node& node = graph_.node(id);
             if (partial_reduction(id)) return true;
             return (ir::is_elementwise(node.op) || node.op == Op::kReshape) && ends_narrow(node.outputs[0], depth + 1);
           });
  }

  FusionContext& c_;
  const ir::Graph& graph_;
  const Target& target_;
  const NodeId anchor_;
  std::optional<ir::GatedProduct> gate_;
  std::optional<ir::ResultMatrix> matrix_;  // of which kernels of the target can reduce parts
  int64_t count_;
  ValueId result_ = 0;
  std::unordered_map<ValueId, Inside> inside_;
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> queue_;
  std::unordered_set<NodeId> seen_;
};

}  // namespace

void fuse_epilogue(FusionContext& context, NodeId anchor, const Target& target) {
  Epilogue(context, anchor, target).grow();
}

}  // namespace heddle::passes
