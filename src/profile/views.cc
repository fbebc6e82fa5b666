#include "profile/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heddle::profile {
namespace {

void sort_rows(std::vector<Row>& all) {
  std::vector<std::vector<Row>*> waiting = {&all};
  while (!waiting.empty()) {
    std::vector<Row>& rows = *waiting.back();
    waiting.pop_back();
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.inclusive > b.inclusive; });
    for (Row& row : rows) {
      if (!row.children.empty()) waiting.push_back(&row.children);
    }
  }
}

// By node: its children in their order.
std::vector<std::vector<NodeId>> children_of(const CallingContextTree& tree) {
  std::vector<std::vector<NodeId>> children(tree.size());
  for (NodeId node = 1; node < tree.size(); ++node) children[tree.parent(node)].push_back(node);
  return children;
}

}  // namespace

Row::~Row() {
  std::vector<Row> rest = std::move(children);
  while (!rest.empty()) {
    std::vector<Row> below = std::move(rest.back().children);
    rest.pop_back();
    for (Row& row : below) rest.push_back(std::move(row));
  }
}

Row top_down(const CallingContextTree& tree, size_t metric) {
  const std::vector<int64_t>& own = tree.own(metric);
  const std::vector<int64_t> inclusive = tree.inclusive(metric);
  std::vector<Row> rows(tree.size());
  for (NodeId node = 0; node < tree.size(); ++node) rows[node] = Row(tree.frame_id(node), own[node], inclusive[node]);
  // Children come behind their parents: by the time a row is moved into its parent's, it is whole.
  for (NodeId node = static_cast<NodeId>(tree.size()); node-- > 1;) {
    rows[tree.parent(node)].children.push_back(std::move(rows[node]));
  }
  std::vector<Row> root;
  root.push_back(std::move(rows[0]));
  sort_rows(root);
  return std::move(root[0]);
}

std::vector<Row> flat(const CallingContextTree& tree, size_t metric) {
  const std::vector<int64_t>& own = tree.own(metric);
  const std::vector<int64_t> inclusive = tree.inclusive(metric);
  const std::vector<std::vector<NodeId>> children = children_of(tree);
  std::vector<Row> rows(tree.frames().size());
  std::vector<int> open(tree.frames().size(), 0);  // calls of a frame around the node that is visited
  struct Visit {
    NodeId node;
    bool is_end;
  };
  std::vector<Visit> visits = {{0, false}};
  while (!visits.empty()) {
    const auto [node, is_end] = visits.back();
    visits.pop_back();
    const FrameId frame = tree.frame_id(node);
    if (is_end) {
      --open[frame];
      continue;
    }
    rows[frame].frame = frame;
    rows[frame].own += own[node];
    if (open[frame]++ == 0) rows[frame].inclusive += inclusive[node];
    visits.push_back({node, true});
    for (const NodeId child : children[node]) visits.push_back({child, false});
  }
  std::erase_if(rows, [](const Row& row) { return row.inclusive == 0 && row.own == 0; });
  sort_rows(rows);
  return rows;
}

std::optional<size_t> find_metric(const CallingContextTree& tree, std::string_view name) {
  for (size_t m = 0; m < tree.metrics().size(); ++m) {
    if (tree.metrics()[m].name == name && tree.total(m) > 0) return m;
  }
  return std::nullopt;
}

std::optional<size_t> time_metric(const CallingContextTree& tree) {
  for (const Metric* metric : {&metrics::kGpuBusy, &metrics::kGpuKernels, &metrics::kCpu}) {
    if (const auto found = find_metric(tree, metric->name)) return found;
  }
  for (size_t m = 0; m < tree.metrics().size(); ++m) {
    if (tree.metrics()[m].unit == "ns" && tree.total(m) > 0) return m;
  }
  return std::nullopt;
}

std::string path_text(const CallingContextTree& tree, NodeId node) {
  constexpr size_t kMostFrames = 256, kMostBytes = 4096;
  std::vector<std::string_view> names = {std::string_view(tree.frame(node).name).substr(0, kMostBytes)};
  size_t bytes = names.back().size();
  for (; node != 0 && tree.parent(node) != 0; node = tree.parent(node)) {
    names.emplace_back(tree.frame(tree.parent(node)).name);
    bytes += names.back().size();
    if (names.size() > kMostFrames || bytes > kMostBytes) {
      names.back() = "...";
      break;
    }
  }
  std::reverse(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, "/"));
}

std::vector<NodeId> hot_path(const CallingContextTree& tree, size_t metric, double share) {
  const std::vector<int64_t> inclusive = tree.inclusive(metric);
  const std::vector<std::vector<NodeId>> children = children_of(tree);
  std::vector<NodeId> path = {0};
  while (!children[path.back()].empty()) {
    const std::vector<NodeId>& below = children[path.back()];
    const NodeId most =
        *std::max_element(below.begin(), below.end(), [&](NodeId a, NodeId b) { return inclusive[a] < inclusive[b]; });
    const auto wanted = share * static_cast<double>(inclusive[path.back()]);
    if (inclusive[most] <= 0 || static_cast<double>(inclusive[most]) < wanted) break;
    path.push_back(most);
  }
  return path;
}

}  // namespace heddle::profile
