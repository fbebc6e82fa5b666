#include "driver/report/inside/node_work.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "driver/plan/group_facts.h"

namespace heddle::driver {
namespace {

using ir::Op;
using ir::ValueId;

int64_t elements_of(const ir::Graph& graph, ValueId value) {
  return element_count(graph.shape(value));
}

// Elements of an operand that each element of the result sums over.
int64_t depth_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.op == Op::kConv) {
    const Shape& filters = graph.shape(node.inputs[1]);
    return filters[0] == 0 ? 0 : element_count(filters) / filters[0];
  }
  const Shape& a = graph.shape(node.inputs[0]);
  int64_t depth = 1;
  for (const int64_t dim : node.attrs.ints("lhs_contract")) depth *= a[static_cast<size_t>(dim)];
  return depth;
}

int64_t operations_of(const ir::Graph& graph, const ir::Node& node) {
  const int64_t results = elements_of(graph, node.outputs[0]);
  if (node.op == Op::kDot || node.op == Op::kConv) return 2 * results * depth_of(graph, node);
  if (ir::is_elementwise(node.op)) {
    return results * static_cast<int64_t>(cost_of(node.op).cycles(graph.dtype(node.outputs[0])));
  }
  const bool reduces = node.op == Op::kReduce || node.op == Op::kWindowReduce || node.op == Op::kScan;
  return reduces ? elements_of(graph, node.inputs[0]) : 0;
}

}  // namespace

std::vector<NodeWork> work_of(const ir::Graph& graph, const ir::Group& group) {
  std::set<ValueId> unread(group.inputs.begin(), group.inputs.end());
  const std::set<ValueId> outputs(group.outputs.begin(), group.outputs.end());
  std::vector<NodeWork> work;
  for (const ir::NodeId id : group.nodes) {
    const ir::Node& node = graph.node(id);
    NodeWork own;
    for (const ValueId value : node.inputs) {
      if (unread.erase(value) > 0) own.bytes += bytes_of(graph.type(value));
    }
    for (const ValueId value : node.outputs) {
      if (outputs.contains(value)) own.bytes += bytes_of(graph.type(value));
    }
    own.flops = operations_of(graph, node);
    work.push_back(own);
  }
  return work;
}

std::vector<double> shares_of(const std::vector<NodeWork>& work, double bandwidth, double rate) {
  std::vector<double> shares;
  for (const NodeWork& w : work) {
    shares.push_back(std::max(static_cast<double>(w.bytes) / bandwidth, static_cast<double>(w.flops) / rate));
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = sum > 0 ? share / sum : 1 / static_cast<double>(shares.size());
  return shares;
}

}  // namespace heddle::driver
