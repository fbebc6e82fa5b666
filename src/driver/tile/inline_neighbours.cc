#include "driver/tile/inline_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "driver/tile/tile_group.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"
#include "ir/tile_call.h"
#include "lang/program/inline.h"

namespace heddle::driver {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;
using lang::Elementwise;
using Leaf = Elementwise::Leaf;

constexpr size_t kMostInlined = 16;  // around one operand or result

// True for the elementwise ops that kernels compute as nodes do, of floats.
bool is_in_kernels(Op op) {
  return ir::is_elementwise(op) && lang::info_of(op).rule != nullptr &&
         (ir::types_of(op) & (ir::kFloats | ir::kMath)) != 0 && op != Op::kBitcast;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
}

lang::Element computed(DType dtype) {
  if (dtype == DType::kBool) return lang::Element::kI1;
  return dtype == DType::kF64 ? lang::Element::kF64 : lang::Element::kF32;
}

// One call with what it takes over, of what `others` did not take.
class Call {
 public:
  Call(const ir::Graph& graph, NodeId id, const std::vector<std::vector<NodeId>>& users,
       const std::vector<bool>& returned, const std::set<NodeId>& others)
      : graph_(graph), id_(id), users_(users), returned_(returned), operands_(graph.node(id).inputs), others_(others) {
    const Node& node = graph.node(id);
    program_ = lang::parse_program(node.attrs.text("program"), program_tensors(graph, node.inputs),
                                   program_tensors(graph, node.outputs));
    results_ = node.outputs;
  }

  void run(std::vector<ir::Decision>& decisions) {
    for (size_t i = 0; i < graph_.node(id_).inputs.size(); ++i) take_producer(i, decisions);
    for (size_t i = 0; i < results_.size(); ++i) {
      while (take_consumer(i, decisions)) {
      }
    }
  }

  bool changed() const { return !taken_.empty(); }
  const std::set<NodeId>& taken() const { return taken_; }
  // By result of the call: the value that it is now.
  const std::vector<ValueId>& results() const { return results_; }

  // The operands that are left, which the text counts.
  std::vector<ValueId> used_operands() {
    std::vector<ValueId> used;
    std::vector<size_t> number(operands_.size(), operands_.size());
    for (lang::Launch& launch : program_.launches) {
      for (lang::LaunchArgument& argument : launch.arguments) {
        if (argument.kind != lang::LaunchArgument::Kind::kOperand) continue;
        size_t& to = number[argument.index];
        if (to == operands_.size()) {
          to = used.size();
          used.push_back(operands_[argument.index]);
        }
        argument.index = to;
      }
    }
    return used;
  }
  std::string text() const { return lang::print_program(program_); }

 private:
  bool is_only_read_by(ValueId value, NodeId reader) const {
    const auto& readers = users_[value];
    return !returned_[value] && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId id) { return id == reader; });
  }

  bool is_supported(NodeId id) const {
    const Node& node = graph_.node(id);
    // Kernels may round a product and a sum of it once.
    if (others_.contains(id) || !is_in_kernels(node.op) || node.attrs.has("rounded") ||
        graph_.shape(node.outputs[0]) != graph_.shape(node.inputs[0]))
      return false;
    const auto fits = [&](ValueId v, bool may_be_bool) {
      const DType dtype = graph_.dtype(v);
      return (is_plain_float(dtype) || (may_be_bool && dtype == DType::kBool)) &&
             element_count(graph_.shape(v)) < std::numeric_limits<int32_t>::max();
    };
    const bool asks = ir::is_comparison(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!fits(node.inputs[i], node.op == Op::kSelect && i == 0)) return false;
    }
    return fits(node.outputs[0], asks);
  }

  size_t operand_of(ValueId value) {
    const auto found = std::find(operands_.begin(), operands_.end(), value);
    if (found == operands_.end()) {
      operands_.push_back(value);
      return operands_.size() - 1;
    }
    return static_cast<size_t>(found - operands_.begin());
  }

  // What lies under a value whose shape alone was changed: its elements stand in the same order.
  ValueId in_memory(ValueId value) const {
    while (graph_.producer(value).op == Op::kReshape) value = graph_.producer(value).inputs[0];
    return value;
  }

  // The tensor that the elements of a leaf are read from.
  ValueId tensor_of(ValueId value) const {
    const Node& producer = graph_.producer(value);
    return in_memory(producer.op == Op::kBroadcast && broadcast_leaf(producer) ? producer.inputs[0] : value);
  }

  // A tensor that is broadcast along its last or its first dimensions.
  std::optional<Leaf> broadcast_leaf(const Node& node) const {
    const Shape &from = graph_.shape(node.inputs[0]), &to = graph_.shape(node.outputs[0]);
    const ir::Ints& dims = node.attrs.ints("dims");
    Leaf leaf;
    leaf.kind = Leaf::Kind::kTensor;
    leaf.modulo = element_count(from);
    std::optional<size_t> end;  // behind the dimensions that it has
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto at = static_cast<size_t>(dims[i]);
      if (from[i] == 1) continue;
      if (from[i] != to[at] || (end && at != *end)) return std::nullopt;
      end = at + 1;
    }
    for (size_t d = end.value_or(to.size()); d < to.size(); ++d) leaf.divide *= to[d];
    return leaf;
  }

  // The number of a value that is of the call's kind.
  size_t leaf(ValueId value, Elementwise& made) {
    const Node& producer = graph_.producer(value);
    Leaf leaf;
    const Tensor* constant = graph_.constant_of(value);
    if (constant == nullptr && producer.op == Op::kBroadcast) constant = graph_.constant_of(producer.inputs[0]);
    if (constant != nullptr && ir::is_splat(*constant) && constant->dtype() != DType::kBool) {
      leaf.number = ir::real_at(*constant, 0);
    } else {
      const std::optional<Leaf> broadcast = producer.op == Op::kBroadcast ? broadcast_leaf(producer) : std::nullopt;
      if (broadcast) leaf = *broadcast;
      leaf.kind = Leaf::Kind::kTensor;
      leaf.operand = operand_of(tensor_of(value));
    }
    leaf.element = *lang::element_of(graph_.dtype(value));
    made.leaves.push_back(leaf);
    return made.leaves.size() - 1;
  }

  // A node of the graph as the last node of `made`. `operands`: as Elementwise::Node counts them.
  void add(const Node& node, std::vector<size_t> operands, Elementwise& made) const {
    const DType to = graph_.dtype(node.outputs[0]);
    const auto push = [&](Op code, lang::Element element, std::vector<size_t> of) -> Elementwise::Node& {
      made.nodes.push_back({code, {}, element, std::move(of)});
      return made.nodes.back();
    };
    if (node.op == Op::kCast) {
      // Rounds to a narrow type, and goes on in the type that it is computed in.
      push(Op::kCast, *lang::element_of(to), std::move(operands));
      if (*lang::element_of(to) != computed(to))
        push(Op::kCast, computed(to), {made.leaves.size() + made.nodes.size() - 1});
      return;
    }
    Elementwise::Node& last = push(node.op, computed(to), std::move(operands));
    if (node.op == Op::kMax || node.op == Op::kMin) last.attributes.set("nan", lang::Attribute::word("propagate"));
  }

  // Nodes count the leaves first, which are all known when the first node is made.
  struct Tree {
    std::vector<NodeId> nodes;  // topological
    std::vector<ValueId> leaves;
  };
  bool collect(ValueId value, NodeId reader, Tree& tree) const {
    const NodeId id = graph_.value(value).producer;
    const Node& node = graph_.node(id);
    const bool known = std::find(tree.nodes.begin(), tree.nodes.end(), id) != tree.nodes.end();
    if (known) return true;
    if (!is_only_read_by(value, reader) || !is_supported(id) || tree.nodes.size() >= kMostInlined) return false;
    for (const ValueId input : node.inputs) {
      if (!collect(input, id, tree) && std::find(tree.leaves.begin(), tree.leaves.end(), input) == tree.leaves.end()) {
        tree.leaves.push_back(input);
      }
    }
    tree.nodes.push_back(id);
    return true;
  }

  Elementwise value_of(const Tree& tree) {
    Elementwise made;
    std::map<ValueId, size_t> numbers;
    for (const ValueId value : tree.leaves) numbers[value] = leaf(value, made);
    for (const NodeId id : tree.nodes) {
      const Node& node = graph_.node(id);
      std::vector<size_t> operands;
      for (const ValueId input : node.inputs) operands.push_back(numbers.at(input));
      add(node, std::move(operands), made);
      numbers[node.outputs[0]] = made.leaves.size() + made.nodes.size() - 1;
    }
    return made;
  }

  void take_producer(size_t i, std::vector<ir::Decision>& decisions) {
    Tree tree;
    const ValueId operand = operands_[i];
    if (!collect(operand, id_, tree)) return;
    const std::vector<ValueId> before = operands_;
    const Elementwise value = value_of(tree);
    const std::string why = lang::inline_at_loads(program_, i, value);
    decide(why, "load", tree.nodes.back(), "its value is computed where the kernel loads it", decisions);
    if (why.empty()) {
      taken_.insert(tree.nodes.begin(), tree.nodes.end());
    } else {
      operands_ = before;
    }
  }

  // Takes the one reader of a result, all of whose other operands exist before the call.
  bool take_consumer(size_t i, std::vector<ir::Decision>& decisions) {
    const ValueId result = results_[i];
    if (users_[result].empty() || !is_only_read_by(result, users_[result][0])) return false;
    const NodeId id = users_[result][0];
    const Node& node = graph_.node(id);
    if (!is_supported(id) || !is_plain_float(graph_.dtype(node.outputs[0]))) return false;
    const std::vector<ValueId> before = operands_;
    Elementwise value;
    value.leaves.push_back({.kind = Leaf::Kind::kSelf});
    std::vector<size_t> operands;
    for (const ValueId input : node.inputs) {
      const ValueId tensor = tensor_of(input);
      if (input != result && graph_.value(tensor).producer >= id_ && graph_.constant_of(tensor) == nullptr) {
        operands_ = before;
        decide("another operand is computed later", "store", id, "", decisions);
        return false;
      }
      operands.push_back(input == result ? 0 : leaf(input, value));
    }
    add(node, std::move(operands), value);
    const std::string why =
        lang::inline_at_stores(program_, i, value, *lang::element_of(graph_.dtype(node.outputs[0])));
    decide(why, "store", id, "the kernel computes it of what it stores", decisions);
    if (!why.empty()) {
      operands_ = before;
      return false;
    }
    taken_.insert(id);
    results_[i] = node.outputs[0];
    return true;
  }

  void decide(const std::string& why, const char* rule, NodeId node, const char* reason,
              std::vector<ir::Decision>& decisions) const {
    const auto name = [&](NodeId of) {
      const Node& n = graph_.node(of);
      return std::string(to_string(n.op)) +
             (n.origins.empty() ? "" : fmt::format(" ({})", graph_.origin(n.origins[0]).node));
    };
    decisions.push_back({why.empty(), rule, name(node) + " into " + name(id_), why.empty() ? reason : why});
  }

  const ir::Graph& graph_;
  const NodeId id_;
  const std::vector<std::vector<NodeId>>& users_;
  const std::vector<bool>& returned_;
  lang::Program program_;
  std::vector<ValueId> operands_;  // of the graph, as the program counts them
  std::vector<ValueId> results_;
  const std::set<NodeId>& others_;
  std::set<NodeId> taken_;
};

// A value of this type that nobody reads.
ValueId unread(ir::Rewriter& rewriter, const ir::TensorType& type) {
  const ValueId one = rewriter.constant(Tensor(type.dtype, {}));
  return rewriter.emit(Op::kBroadcast, {one}, {{"shape", ir::Ints(type.shape)}, {"dims", ir::Ints{}}});
}

}  // namespace

ir::Graph inline_neighbours(const ir::Graph& graph, std::vector<ir::Decision>& decisions) {
  std::map<NodeId, Call> calls;
  std::set<NodeId> taken;
  const auto users = ir::users(graph);
  std::vector<bool> returned(graph.value_count());
  for (const ir::Graph::Port& port : graph.outputs()) returned[port.value] = true;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!ir::calls_tile_program(graph.node(id))) continue;
    Call call(graph, id, users, returned, taken);
    call.run(decisions);
    taken.insert(call.taken().begin(), call.taken().end());
    if (call.changed()) calls.emplace(id, std::move(call));
  }
  if (calls.empty()) return graph;
  std::map<ValueId, ValueId> taken_over;  // value of the source -> of the target
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.outputs.size() == 1 && taken_over.contains(node.outputs[0])) return {{taken_over.at(node.outputs[0])}};
    const auto found = calls.find(graph.value(node.outputs[0]).producer);
    if (found == calls.end()) return std::nullopt;
    Call& call = found->second;
    const std::vector<ValueId> operands = call.used_operands();
    for (const NodeId id : call.taken()) r.also_from(graph.node(id));
    std::vector<ir::TensorType> types;
    for (const ValueId v : call.results()) types.push_back(graph.type(v));
    const NodeId made = r.target().add(
        Op::kCall, r(operands), {{"target", "tile"}, {"program", call.text()}, {"results", ir::print_types(types)}},
        r.origins());
    std::vector<ValueId> results = r.target().node(made).outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      if (call.results()[i] == node.outputs[i]) continue;
      taken_over[call.results()[i]] = results[i];
      results[i] = unread(r, graph.type(node.outputs[i]));
    }
    return results;
  });
}

}  // namespace heddle::driver
