#include "driver/plan/group_facts.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/interface/option.h"
#include "runtime/plan.h"

namespace heddle::driver {

using ir::ValueId;

std::string summarise_ops(const ir::Graph& graph, const ir::Group& group) {
  std::vector<std::pair<ir::Op, int>> counts;
  for (const ir::NodeId id : group.nodes) {
    const ir::Op op = graph.node(id).op;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& item) { return item.first == op; });
    if (found == counts.end()) {
      counts.emplace_back(op, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [op, count] : counts) {
    if (!text.empty()) text += ' ';
    text += to_string(op);
    if (count > 1) text += fmt::format(" x{}", count);
  }
  return text;
}

std::string summarise_origins(const ir::Graph& graph, const ir::Group& group) {
  constexpr size_t kNamesShown = 6;
  std::vector<ir::OriginId> ids;
  for (const ir::NodeId id : group.nodes) {
    for (const ir::OriginId origin : graph.node(id).origins) {
      if (std::find(ids.begin(), ids.end(), origin) == ids.end()) ids.push_back(origin);
    }
  }
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kNamesShown); ++i) {
    if (i > 0) text += ", ";
    text += graph.origin(ids[i]).node;
  }
  if (ids.size() > kNamesShown) text += fmt::format(", ... ({} nodes)", ids.size());
  return text;
}

int64_t bytes_of(const ir::TensorType& type) {
  constexpr int64_t kMost = int64_t{1} << 56;  // of which sums do not overflow
  const int64_t bytes = runtime::dense_bytes(type.dtype, type.shape);
  if (bytes >= 0 && bytes <= kMost) return bytes;
  fail(ErrorCode::kOutOfMemory, "a value " + ir::to_string(type), "no machine has memory for it",
       fmt::format("Reduce the batch or the sequence length ({})", option::shape()));
}

int64_t bytes_inside(const ir::Graph& graph, const ir::Group& group) {
  const std::set<ValueId> outputs(group.outputs.begin(), group.outputs.end());
  int64_t bytes = 0;
  for (const ir::NodeId id : group.nodes) {
    for (const ValueId value : graph.node(id).outputs) {
      if (!outputs.contains(value)) bytes += 2 * bytes_of(graph.type(value));
    }
  }
  return bytes;
}

double compulsory_bytes(const ir::Graph& graph, const ir::Group& group) {
  double bytes = 0;
  for (const ValueId v : group.outputs) {
    const ir::Node& maker = graph.producer(v);
    bytes += static_cast<double>(bytes_of(graph.type(ir::is_in_place(maker) ? maker.inputs[2] : v)));
  }
  std::unordered_map<ValueId, double> taken;
  for (const ir::NodeId id : group.nodes) {
    const ir::Node& node = graph.node(id);
    for (const ValueId v : node.inputs) {
      if (ir::is_in_place(node) && v == node.inputs[0]) continue;
      const bool part = node.op == ir::Op::kSlice || (node.op == ir::Op::kGather && node.inputs[0] == v);
      taken[v] += static_cast<double>(bytes_of(graph.type(part ? node.outputs[0] : v)));
    }
  }
  for (const ValueId v : group.inputs) bytes += std::min(taken[v], static_cast<double>(bytes_of(graph.type(v))));
  return bytes;
}

}  // namespace heddle::driver
