#include <algorithm>
#include <unordered_set>

#include "frontend/onnx/graph_importer.h"

namespace heddle::onnx {
namespace {

void note_reads(const NodeProto& node, const std::unordered_set<std::string_view>& known,
                std::unordered_set<std::string_view>& seen, std::vector<std::string_view>& out) {
  const auto read = [&](std::string_view name) {
    if (!name.empty() && !known.contains(name) && seen.insert(name).second) out.push_back(name);
  };
  for (const std::string_view name : node.inputs) read(name);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.g) continue;
    for (const std::string_view name : free_names(*attribute.g)) read(name);
  }
}

// Every name that a node reads, its subgraphs' free names included.
std::vector<std::string_view> reads_of(const NodeProto& node) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> out;
  note_reads(node, {}, seen, out);
  return out;
}

}  // namespace

std::vector<std::string_view> free_names(const GraphProto& graph) {
  std::unordered_set<std::string_view> known, seen;
  std::vector<std::string_view> out;
  for (const ValueInfoProto& input : graph.inputs) known.insert(input.name);
  for (const TensorProto& t : graph.initializers) known.insert(t.name);
  for (const SparseTensorProto& t : graph.sparse_initializers) known.insert(t.values.name);
  for (const NodeProto& node : graph.nodes) known.insert(node.outputs.begin(), node.outputs.end());
  for (const NodeProto& node : graph.nodes) note_reads(node, known, seen, out);
  for (const ValueInfoProto& output : graph.outputs) {
    if (!output.name.empty() && !known.contains(output.name) && seen.insert(output.name).second) {
      out.push_back(output.name);
    }
  }
  return out;
}

std::string node_label(const NodeProto& node, size_t position) {
  return node.name.empty() ? fmt::format("{}_{}", node.op_type, position) : std::string(node.name);
}

std::vector<size_t> topological_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string_view name : nodes[i].outputs) {
      if (!name.empty()) producer.emplace(name, i);
    }
  }
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waiting(nodes.size());
  bool sorted = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string_view name : reads_of(nodes[i])) {
      const auto at = producer.find(name);
      if (at == producer.end()) continue;
      users[at->second].push_back(i);
      ++waiting[i];
      sorted = sorted && at->second < i;
    }
  }
  std::vector<size_t> order;
  order.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (sorted || waiting[i] == 0) order.push_back(i);
  }
  if (sorted) return order;
  for (size_t next = 0; next < order.size(); ++next) {
    for (const size_t user : users[order[next]]) {
      if (--waiting[user] == 0) order.push_back(user);
    }
  }
  if (order.size() < nodes.size()) {
    std::vector<std::string> stuck;
    for (size_t i = 0; i < nodes.size() && stuck.size() < 8; ++i) {
      if (waiting[i] > 0) stuck.push_back(fmt::format("{} ({})", node_label(nodes[i], i), nodes[i].op_type));
    }
    fail(ErrorCode::kMalformedModel, "graph",
         fmt::format("the nodes form a cycle; it involves {}", fmt::join(stuck, ", ")),
         "An ONNX graph must be acyclic; export the model again");
  }
  return order;
}

}  // namespace heddle::onnx
