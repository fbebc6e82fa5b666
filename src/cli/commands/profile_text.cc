#include "cli/commands/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/output.h"
#include "cli/support.h"
#include "profile/views.h"

namespace heddle::cli {
namespace {

using profile::CallingContextTree;
using profile::Frame;
using profile::Row;

constexpr size_t kNameColumns = 62;

std::string value_text(const profile::Metric& metric, int64_t value) {
  const auto number = static_cast<double>(value);
  if (metric.unit == "ns") return human_seconds(number * 1e-9);
  return metric.unit == "bytes" ? human_bytes(number) : fmt::format("{}", value);
}

std::string share_text(int64_t value, int64_t total) {
  return total == 0 ? "-" : fmt::format("{:.1f}%", 100.0 * static_cast<double>(value) / static_cast<double>(total));
}

// The end of a long name says more than its middle.
std::string cut(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  const size_t tail = most / 3, head = most - tail - 3;
  return name.substr(0, head) + "..." + name.substr(name.size() - tail);
}

// As much of a text as cut() can show: a name may be megabytes long and repeat in every row.
std::string shown_part(const std::string& text) {
  if (text.size() <= 2 * kNameColumns) return text;
  return text.substr(0, kNameColumns) + text.substr(text.size() - kNameColumns);
}

std::string frame_text(const Frame& frame, size_t most = kNameColumns) {
  const std::string place = frame.file.empty() ? "" : fmt::format("  {}:{}", shown_part(frame.file), frame.line);
  return cut(shown_part(frame.name) + place, most);
}

class Text {
 public:
  Text(const profile::Profile& profile, int top)
      : profile_(profile),
        tree_(profile.tree),
        top_(static_cast<size_t>(std::max(top, 1))),
        metric_(profile::time_metric(tree_).value_or(0)),
        total_(tree_.total(metric_)) {}

  void print() {
    print_line(profile_.title, Style::kBold);
    size_t widest = 0;
    for (const auto& [name, value] : profile_.facts) widest = std::max(widest, std::min(name.size(), kNameColumns));
    for (const auto& [name, value] : profile_.facts) print_line(fmt::format("{:<{}}  {}", name, widest, value));
    print_hot_path();
    print_calls();
    print_nodes();
    print_kernels();
    print_floors();
    print_advice();
  }

 private:
  // Indentation is capped, so rows deep in a recursion line up.
  static std::string indent(size_t depth) { return std::string(2 * std::min<size_t>(depth, 20), ' '); }

  std::string value(int64_t v) const { return value_text(tree_.metrics()[metric_], v); }

  void begin(const std::string& title) const {
    print_line("");
    print_line(title, Style::kBold);
  }

  void print_hot_path() const {
    const std::vector<profile::NodeId> path = profile::hot_path(tree_, metric_);
    if (path.size() < 2) return;
    begin("hot path");
    const std::vector<int64_t> inclusive = tree_.inclusive(metric_);
    constexpr size_t kEnds = 30;  // rows shown at each end of a deep path
    for (size_t i = 1; i < path.size(); ++i) {
      if (i == kEnds + 1 && path.size() > 2 * kEnds + 2) {
        i = path.size() - kEnds;
        print_line(fmt::format("{:>7}  ({} calls between)", "", i - kEnds - 1));
      }
      const Frame& frame = tree_.frame(path[i]);
      print_line(fmt::format("{:>7}  {}{} {}", share_text(inclusive[path[i]], total_), indent(i - 1),
                             cut(frame.kind, kNameColumns), frame_text(frame)));
    }
  }

  // The calls with the largest inclusive values, each below those that it is part of.
  void print_calls() const {
    const Row root = profile::top_down(tree_, metric_);
    std::vector<int64_t> values = tree_.inclusive(metric_);
    std::sort(values.rbegin(), values.rend());
    const int64_t least = std::max<int64_t>(values[std::min(top_, values.size()) - 1], 1);
    begin("by call");
    Table table({"share", "total", "own", "call"});
    std::vector<std::pair<const Row*, size_t>> waiting = {{&root, 0}};  // with their depths; the next row is last
    bool whole = true;
    while (!waiting.empty()) {
      const auto [row, depth] = waiting.back();
      waiting.pop_back();
      const std::string before = indent(depth);
      table.add({share_text(row->inclusive, total_), value(row->inclusive), row->own == 0 ? "" : value(row->own),
                 before + frame_text(tree_.frames()[row->frame], kNameColumns - before.size())});
      for (size_t i = row->children.size(); i-- > 0;) {
        const bool shown = row->children[i].inclusive >= least;
        if (shown) waiting.emplace_back(&row->children[i], depth + 1);
        whole = whole && (shown || row->children[i].inclusive == 0);
      }
    }
    table.print();
    if (!whole) print_line(fmt::format("calls of less than {} are left out (--top)", value(least)));
  }

  void print_nodes() const {
    const std::vector<int64_t> inclusive = tree_.inclusive(metric_);
    std::vector<std::pair<int64_t, profile::NodeId>> rows;
    for (profile::NodeId node = 0; node < tree_.size(); ++node) {
      if (tree_.frame(node).kind == "node") rows.emplace_back(inclusive[node], node);
    }
    print_rows("by node of the model", "node", std::move(rows),
               [&](profile::NodeId node) { return profile::path_text(tree_, node); });
  }

  // Kernels over the whole run, wherever they were called.
  void print_kernels() const {
    std::vector<std::pair<int64_t, profile::FrameId>> rows;
    for (const Row& row : profile::flat(tree_, metric_)) {
      if (tree_.frames()[row.frame].kind == "kernel") rows.emplace_back(row.inclusive, row.frame);
    }
    print_rows("by kernel", "kernel", std::move(rows),
               [&](profile::FrameId frame) { return frame_text(tree_.frames()[frame]); });
  }

  // `name_of` is called only for rows that are shown.
  template <typename NameOf>
  void print_rows(const char* title, const char* what, std::vector<std::pair<int64_t, uint32_t>> rows,
                  const NameOf& name_of) const {
    if (rows.size() < 2) return;
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    begin(title);
    Table table({"share", "total", what});
    for (size_t i = 0; i < std::min(rows.size(), top_); ++i) {
      table.add({share_text(rows[i].first, total_), value(rows[i].first), cut(name_of(rows[i].second), kNameColumns)});
    }
    table.print();
    if (rows.size() > top_) print_line(fmt::format("and {} more (--top)", rows.size() - top_));
  }

  void print_floors() const {
    if (profile_.roofline.empty() || profile::is_of_busy_machine(profile_)) return;
    std::vector<const profile::RooflineRow*> rows;
    for (const profile::RooflineRow& row : profile_.roofline) rows.push_back(&row);
    const std::vector<int64_t>& own = tree_.own(metric_);
    const auto lost = [&](const profile::RooflineRow* row) { return own[row->node] - row->floor_ns; };
    std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return lost(a) > lost(b); });
    begin("above its floor, the least time that the device allows");
    Table table({"lost", "total", "floor", "share of it", "bound", "node"});
    for (size_t i = 0; i < std::min(rows.size(), top_); ++i) {
      const profile::RooflineRow& row = *rows[i];
      if (lost(&row) <= 0) break;
      table.add({share_text(lost(&row), total_), value(own[row.node]), value(row.floor_ns),
                 share_text(row.floor_ns, own[row.node]), cut(row.bound, kNameColumns),
                 cut(profile::path_text(tree_, tree_.parent(row.node)), kNameColumns - 20)});
    }
    table.print();
  }
  void print_advice() const {
    if (profile_.advice.empty()) return;
    begin("advice");
    for (const profile::Advice& a : profile_.advice) {
      print_line(fmt::format("{} ({:.1f}% of the run, {}): {}. {}", a.rule, a.share * 100, a.confidence, a.evidence,
                             a.remedy));
    }
  }

  const profile::Profile& profile_;
  const CallingContextTree& tree_;
  size_t top_;
  size_t metric_;
  int64_t total_;
};

}  // namespace

void print_profile(const profile::Profile& profile, int top) {
  if (profile.tree.metrics().empty()) {
    print_line(profile.title + ": nothing was counted");
    return;
  }
  Text(profile, top).print();
}

void print_difference(const profile::Difference& difference, int top) {
  const CallingContextTree& now = difference.profile.tree;
  if (now.metrics().empty()) return print_line(difference.profile.title + ": nothing was counted");
  const size_t metric = profile::time_metric(now).value_or(0);
  // The older values in a tree of the same shape.
  CallingContextTree before = now;
  for (profile::NodeId node = 0; node < now.size(); ++node) {
    before.add(node, metric, difference.before[metric][node] - now.own(metric)[node]);
  }
  const int64_t total = now.total(metric), was = before.total(metric);
  const profile::Metric& m = now.metrics()[metric];
  print_line(difference.profile.title, Style::kBold);
  print_line(fmt::format("{}: {} -> {} ({:+.1f}%)", m.title, value_text(m, was), value_text(m, total),
                         was == 0 ? 0.0 : 100.0 * static_cast<double>(total - was) / static_cast<double>(was)));
  struct Change {
    profile::FrameId frame;
    int64_t before, now;
  };
  std::vector<Change> changes(now.frames().size());
  for (profile::FrameId frame = 0; frame < changes.size(); ++frame) changes[frame] = {frame, 0, 0};
  for (const Row& row : profile::flat(before, metric)) changes[row.frame].before = row.own;
  for (const Row& row : profile::flat(now, metric)) changes[row.frame].now = row.own;
  std::erase_if(changes, [](const Change& c) { return c.before == c.now; });
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.now - a.before) > std::abs(b.now - b.before);
  });
  print_line("");
  Table table({"change", "before", "now", "frame"});
  for (size_t i = 0; i < std::min<size_t>(changes.size(), static_cast<size_t>(std::max(top, 1))); ++i) {
    const Change& c = changes[i];
    const std::string sign = c.now >= c.before ? "+" : "-";
    table.add({sign + value_text(m, std::abs(c.now - c.before)), value_text(m, c.before), value_text(m, c.now),
               cut(now.frames()[c.frame].kind, kNameColumns) + " " + frame_text(now.frames()[c.frame])});
  }
  table.print();
}

}  // namespace heddle::cli
