#include "ir/analysis/gated_product.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "ir/analysis/constant_weights.h"
#include "ir/analysis/partial_reduction.h"
#include "ir/rewrite.h"

namespace heddle::ir {
namespace {

constexpr size_t kMostNodes = 64;

bool is_output(const Graph& graph, ValueId value) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [&](const Graph::Port& port) { return port.value == value; });
}

// A slice of all columns from `first` up to `limit`, and of all else.
bool takes_columns(const Graph& graph, const Node& slice, int64_t first, int64_t limit) {
  const Shape& from = graph.shape(slice.inputs[0]);
  const auto &starts = slice.attrs.ints("starts"), &limits = slice.attrs.ints("limits"),
             &strides = slice.attrs.ints("strides");
  for (size_t d = 0; d < from.size(); ++d) {
    const bool last = d + 1 == from.size();
    if (strides[d] != 1 || starts[d] != (last ? first : 0) || limits[d] != (last ? limit : from[d])) return false;
  }
  return true;
}

std::optional<NodeId> first_reader(const Graph& graph, ValueId value) {
  const auto reads = [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  };
  for (NodeId id = graph.value(value).producer + 1; id < graph.nodes().size(); ++id) {
    if (reads(graph.node(id))) return id;
  }
  return std::nullopt;
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), users_(users(graph)) {}

  std::vector<GateCandidate> run() {
    std::map<std::tuple<ValueId, int64_t, int64_t>, std::vector<NodeId>> of_value;
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.node(id);
      if (!is_plain(node)) continue;
      if (auto split = split_at(id)) found_.push_back(*std::move(split));
      const auto key =
          std::tuple(node.inputs[0], node.attrs.ints("lhs_contract")[0], graph_.shape(node.outputs[0]).back());
      of_value[key].push_back(id);
    }
    for (const auto& [key, dots] : of_value) pair(dots);
    for (GateCandidate& candidate : found_) candidate.refused = refusal(candidate);
    return std::move(found_);
  }

 private:
  // x of any rank times a matrix, with sums in f32.
  bool is_plain(const Node& node) const {
    if (node.op != Op::kDot || !result_matrix(graph_, node)) return false;
    return node.attrs.ints("rhs_batch").empty() && node.attrs.ints("lhs_contract").size() == 1 &&
           graph_.shape(node.inputs[1]).size() == 2 && !graph_.shape(node.outputs[0]).empty();
  }

  // Products of one value that meet.
  void pair(const std::vector<NodeId>& dots) {
    constexpr size_t kMost = 16;
    std::vector<bool> taken(dots.size(), false);
    for (size_t i = 0; i < dots.size() && dots.size() <= kMost; ++i) {
      for (size_t j = i + 1; j < dots.size() && !taken[i]; ++j) {
        if (taken[j]) continue;
        const std::array<ValueId, 2> values = {graph_.node(dots[i]).outputs[0], graph_.node(dots[j]).outputs[0]};
        auto meeting = find_meeting(graph_, users_, values);
        if (!meeting) continue;
        taken[i] = taken[j] = true;
        found_.push_back({{dots[i], dots[j]}, values, {}, *std::move(meeting), {}});
      }
    }
  }

  // A product whose halves meet.
  std::optional<GateCandidate> split_at(NodeId dot) const {
    GateCandidate c{{dot, dot}, {}, {}, {}, {}};
    ValueId whole = graph_.node(dot).outputs[0];
    const int64_t columns = graph_.shape(whole).back();
    if (columns % 2 != 0) return std::nullopt;
    while (users_[whole].size() == 1 && !is_output(graph_, whole) && c.shared.size() < kMostNodes) {
      const NodeId next = users_[whole][0];
      if (!is_elementwise(graph_.node(next).op)) return std::nullopt;
      c.shared.push_back(next);
      whole = graph_.node(next).outputs[0];
    }
    if (users_[whole].size() != 2 || is_output(graph_, whole)) return std::nullopt;
    for (size_t half = 0; half < 2; ++half) {
      for (const NodeId id : users_[whole]) {
        const Node& node = graph_.node(id);
        const int64_t first = half == 0 ? 0 : columns / 2;
        if (node.op != Op::kSlice || !takes_columns(graph_, node, first, first + columns / 2)) continue;
        c.values[half] = node.outputs[0];
        c.shared.push_back(id);
      }
    }
    if (c.values[0] == 0 || c.values[1] == 0) return std::nullopt;
    auto meeting = find_meeting(graph_, users_, c.values);
    if (!meeting) return std::nullopt;
    c.meeting = *std::move(meeting);
    return c;
  }

  std::string refusal(const GateCandidate& c) const {
    const DType result = graph_.dtype(graph_.node(c.meeting.at()).outputs[0]);
    if (result != DType::kF32 && result != DType::kF16 && result != DType::kBF16)
      return "what they become is no number";
    const Node &one = graph_.node(c.dots[0]), &other = graph_.node(c.dots[1]);
    const auto of_one = constant_weights(graph_, one), of_other = constant_weights(graph_, other);
    if (!of_one || !of_other) return "their matrices are not constants whose columns could be interleaved";
    const auto rounds = [](const Node& dot) { return dot.attrs.has("tf32") ? dot.attrs.integer("tf32") : 0; };
    if (*of_one != *of_other || rounds(one) != rounds(other)) {
      return "they multiply different types";
    }
    const int64_t columns = graph_.shape(one.outputs[0]).back() / (c.is_split() ? 2 : 1);
    if (columns % kGateColumns != 0) return "their columns are no whole groups of 8";
    return {};
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<GateCandidate> found_;
};

}  // namespace

std::optional<Meeting> find_meeting(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                                    std::span<const ValueId> values) {
  Meeting found;
  std::map<ValueId, uint32_t> known;  // which of the values a value is computed from
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> open;
  const auto enter = [&](ValueId v, uint32_t from) {
    known[v] |= from;
    for (const NodeId id : users[v]) open.push(id);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_output(graph, values[i]) || users[values[i]].empty()) return std::nullopt;
    enter(values[i], uint32_t{1} << i);
  }
  const uint32_t all = (uint32_t{1} << values.size()) - 1;
  const Shape& shape = graph.shape(values[0]);
  while (!open.empty()) {
    const NodeId id = open.top();
    while (!open.empty() && open.top() == id) open.pop();
    const Node& node = graph.node(id);
    if (!is_elementwise(node.op) || graph.shape(node.outputs[0]) != shape) return std::nullopt;
    found.nodes.push_back(id);
    uint32_t from = 0;
    for (const ValueId v : node.inputs) {
      if (const auto at = known.find(v); at != known.end()) from |= at->second;
    }
    if (open.empty() && from == all) return found;
    if (found.nodes.size() >= kMostNodes || is_output(graph, node.outputs[0])) return std::nullopt;
    enter(node.outputs[0], from);
  }
  return std::nullopt;
}

std::vector<GateCandidate> find_gate_candidates(const Graph& graph) {
  return Finder(graph).run();
}

std::optional<GatedProduct> match_gated_product(const Graph& graph, NodeId dot) {
  const Node& node = graph.node(dot);
  if (node.op != Op::kDot || !result_matrix(graph, node) || graph.shape(node.outputs[0]).empty()) return std::nullopt;
  const ValueId sums = node.outputs[0];
  Shape half = graph.shape(sums), parts = half;
  half.back() /= 2;
  parts.back() /= 2 * kGateColumns;
  parts.insert(parts.end(), {2, kGateColumns});
  const auto apart = first_reader(graph, sums);
  if (!apart || graph.node(*apart).op != Op::kReshape) return std::nullopt;
  const ValueId split = graph.node(*apart).outputs[0];
  if (graph.shape(split) != parts || graph.value(sums).uses != 1 || is_output(graph, sums)) return std::nullopt;
  const auto readers = users(graph);
  const auto only = [&](ValueId v, Op op) -> std::optional<NodeId> {
    const bool one = readers[v].size() == 1 && !is_output(graph, v) && graph.node(readers[v][0]).op == op;
    return one ? std::optional(readers[v][0]) : std::nullopt;
  };
  if (readers[split].size() != 2 || is_output(graph, split)) return std::nullopt;
  GatedProduct found;
  found.nodes = {*apart};
  std::array<std::optional<ValueId>, 2> values;
  for (const NodeId id : readers[split]) {
    const Node& slice = graph.node(id);
    if (slice.op != Op::kSlice) return std::nullopt;
    const auto which = static_cast<size_t>(slice.attrs.ints("starts")[parts.size() - 2]);
    Shape one = parts;
    one[parts.size() - 2] = 1;
    const auto together = only(slice.outputs[0], Op::kReshape);
    if (graph.shape(slice.outputs[0]) != one || !together) return std::nullopt;
    values[which] = graph.node(*together).outputs[0];
    if (graph.shape(*values[which]) != half) return std::nullopt;
    found.nodes.insert(found.nodes.end(), {id, *together});
  }
  if (!values[0] || !values[1]) return std::nullopt;
  found.first = *values[0], found.second = *values[1];
  const std::array both = {found.first, found.second};
  const auto meeting = find_meeting(graph, readers, both);
  if (!meeting) return std::nullopt;
  found.nodes.insert(found.nodes.end(), meeting->nodes.begin(), meeting->nodes.end());
  found.meet = meeting->at();
  return found;
}

}  // namespace heddle::ir
