#include "driver/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/collapse.h"
#include "schedule/stitch.h"

namespace heddle::driver {
namespace {

constexpr double kCharWidth = 6.6, kLineHeight = 15, kPad = 8, kGapX = 28, kGapY = 46, kMargin = 30;
constexpr size_t kMaxText = 64;

struct Box {
  std::vector<std::string> lines;
  std::string fill;
  std::string title;  // shown when the pointer rests on it
  int layer = 0;
  double x = 0, y = 0, width = 0, height = 0;
};

struct Edge {
  size_t from, to;
  std::string label;
};

struct Frame {
  std::vector<size_t> boxes;
  size_t count;
};

std::string clip(std::string text) {
  if (text.size() > kMaxText) text = text.substr(0, kMaxText - 3) + "...";
  return text;
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

const char* colour(const GroupReport& group) {
  if (group.view) return "#eeeeee";
  if (group.kind == ir::GroupKind::kReference || !group.fallback.empty()) return "#f6c7c7";
  switch (group.kind) {
    case ir::GroupKind::kContraction:
    case ir::GroupKind::kAttention:
      return "#cfe3f7";
    case ir::GroupKind::kControl:
      return "#e6d6f5";
    default:
      return "#d5efd0";
  }
}

// What a stitch group moves, and in the title how each of its kernels works and why it is cut where it is.
void add_traffic(const GroupReport& group, Box& box) {
  double moved = 0, predicted = 0, measured = 0;
  for (const KernelReport& kernel : group.kernels) {
    moved += kernel.stitch.bytes_moved;
    predicted += kernel.stitch.predicted_seconds;
    measured += kernel.measured_seconds;
    box.title +=
        fmt::format("\n{}: {}, {} bytes on chip", kernel.label, kernel.stitch.mapping, kernel.stitch.on_chip_bytes);
    for (const schedule::SchemeChoice& choice : kernel.stitch.schemes) {
      box.title += fmt::format("\n  {}: {}, {}", choice.value, to_string(choice.scheme), choice.reason);
    }
  }
  for (const schedule::Boundary& boundary : group.boundaries) {
    box.title += fmt::format("\nboundary at {}: {}", boundary.value, boundary.reason);
  }
  box.lines.push_back(clip(fmt::format("{:.3g} KB moved, {:.3g} compulsory, {:.3g} us predicted{}", moved * 1e-3,
                                       group.compulsory_bytes * 1e-3, predicted * 1e6,
                                       measured > 0 ? fmt::format(", {:.3g} measured", measured * 1e6) : "")));
}

Box make_box(const GroupReport& group) {
  Box box;
  box.fill = colour(group);
  if (group.kernels.empty()) {
    const bool reference = group.kind == ir::GroupKind::kReference || !group.fallback.empty();
    box.lines.push_back(clip((group.view ? "view: " : reference ? "reference: " : "") + group.ops));
  }
  for (const KernelReport& kernel : group.kernels) box.lines.push_back(clip(kernel.label));
  if (!group.kernels.empty()) box.lines.push_back(clip(group.ops));
  box.title = fmt::format("{}\n{}", group.origins, group.ops);
  if (group.kind == ir::GroupKind::kStitch && !group.kernels.empty()) add_traffic(group, box);
  size_t longest = 8;
  for (const std::string& line : box.lines) longest = std::max(longest, line.size());
  box.width = static_cast<double>(longest) * kCharWidth + 2 * kPad;
  box.height = static_cast<double>(box.lines.size()) * kLineHeight + 2 * kPad;
  return box;
}

std::string signature(const GroupReport& group) {
  std::string text = fmt::format("{}|{}", static_cast<int>(group.kind), group.ops);
  for (const KernelReport& kernel : group.kernels) {
    text += "|" + kernel.symbol;
    for (const CudaLaunch& launch : kernel.launches) text += "|" + launch.symbol;
  }
  return text;
}

class Picture {
 public:
  explicit Picture(const CompiledModel& model) : graph_(*model.optimised), groups_(model.built.grouping.groups) {
    for (const GroupReport& group : model.report.groups) {
      if (group.depth == 0) reports_.push_back(&group);
    }
  }

  std::string draw() {
    collapse();
    add_boxes();
    add_edges();
    layout();
    return write();
  }

 private:
  // Group -> the group of the first block of its repeat.
  void collapse() {
    std::vector<std::string> signatures;
    for (const GroupReport* report : reports_) signatures.push_back(signature(*report));
    shown_as_.resize(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) shown_as_[g] = g;
    for (const Repeat& repeat : find_repeats(signatures)) {
      if (repeat.period < 2) continue;  // a few equal boxes in a row say more than a frame
      Frame frame{{}, repeat.count};
      for (size_t i = 0; i < repeat.period; ++i) frame.boxes.push_back(repeat.begin + i);
      for (size_t i = 0; i < repeat.period * repeat.count; ++i) {
        shown_as_[repeat.begin + i] = repeat.begin + i % repeat.period;
      }
      frames_.push_back(std::move(frame));
    }
  }

  void add_boxes() {
    box_of_.assign(groups_.size(), kNone);
    for (const ir::Graph::Port& port : graph_.inputs()) {
      input_box_[port.value] = boxes_.size();
      boxes_.push_back(terminal(port));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (shown_as_[g] != g) continue;
      box_of_[g] = boxes_.size();
      boxes_.push_back(make_box(*reports_[g]));
    }
    for (size_t g = 0; g < groups_.size(); ++g) box_of_[g] = box_of_[shown_as_[g]];
  }

  Box terminal(const ir::Graph::Port& port) const {
    Box box;
    box.lines = {clip(port.name), to_string(graph_.type(port.value))};
    box.fill = "#fff2cc";
    box.width = static_cast<double>(std::max(box.lines[0].size(), box.lines[1].size())) * kCharWidth + 2 * kPad;
    box.height = 2 * kLineHeight + 2 * kPad;
    return box;
  }

  void add_edge(size_t from, size_t to, ir::ValueId value) {
    if (from == to || !joined_.emplace(from, to).second) return;
    if (from > to) return;  // from one repetition back into the next: the frame says it
    edges_.push_back({from, to, to_string(graph_.type(value))});
  }

  void add_edges() {
    std::map<ir::ValueId, size_t> made_by;
    for (const auto& [value, box] : input_box_) made_by[value] = box;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const ir::ValueId value : groups_[g].inputs) {
        if (const auto maker = made_by.find(value); maker != made_by.end()) add_edge(maker->second, box_of_[g], value);
      }
      for (const ir::ValueId value : groups_[g].outputs) made_by[value] = box_of_[g];
    }
    for (const ir::Graph::Port& port : graph_.outputs()) {
      boxes_.push_back(terminal(port));
      if (const auto maker = made_by.find(port.value); maker != made_by.end()) {
        add_edge(maker->second, boxes_.size() - 1, port.value);
      }
    }
  }

  // Layers by longest path, boxes of a layer side by side in the order of their neighbours above.
  void layout() {
    for (const Edge& edge : edges_) {  // sorted by target in topological order
      boxes_[edge.to].layer = std::max(boxes_[edge.to].layer, boxes_[edge.from].layer + 1);
    }
    pull_inputs_down();
    int last = 0;
    for (const Box& box : boxes_) last = std::max(last, box.layer);
    std::vector<std::vector<size_t>> layers(static_cast<size_t>(last) + 1);
    for (size_t b = 0; b < boxes_.size(); ++b) layers[static_cast<size_t>(boxes_[b].layer)].push_back(b);
    double y = kMargin;
    for (std::vector<size_t>& layer : layers) y = place_layer(layer, y);
    height_ = y;
    double left = 0;
    for (const Box& box : boxes_) left = std::min(left, box.x);
    for (Box& box : boxes_) {
      box.x += kMargin + kGapX - left;
      width_ = std::max(width_, box.x + box.width + kMargin + kGapX);
    }
  }

  // An input stands just above its first reader.
  void pull_inputs_down() {
    for (const auto& [value, input] : input_box_) {
      int first = -1;
      for (const Edge& edge : edges_) {
        if (edge.from == input && (first < 0 || boxes_[edge.to].layer < first)) first = boxes_[edge.to].layer;
      }
      if (first > 0) boxes_[input].layer = first - 1;
    }
  }

  double place_layer(std::vector<size_t>& layer, double y) {
    std::map<size_t, double> wish;
    for (const size_t b : layer) {
      double sum = 0, count = 0;
      for (const Edge& edge : edges_) {
        if (edge.to != b || boxes_[edge.from].layer >= boxes_[b].layer) continue;
        sum += boxes_[edge.from].x + boxes_[edge.from].width / 2;
        ++count;
      }
      wish[b] = count > 0 ? sum / count : 0;
    }
    std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
    double total = -kGapX, centre = 0, tallest = 0;
    for (const size_t b : layer) {
      total += boxes_[b].width + kGapX;
      centre += wish[b] / static_cast<double>(layer.size());
      tallest = std::max(tallest, boxes_[b].height);
    }
    double x = centre - total / 2;
    for (const size_t b : layer) {
      boxes_[b].x = x;
      boxes_[b].y = y;
      x += boxes_[b].width + kGapX;
    }
    return y + tallest + kGapY;
  }

  std::string write() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"monospace\" font-size=\"11\">\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
        "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#666\"/></marker>"
        "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width_, height_);
    for (const Frame& frame : frames_) svg += write_frame(frame);
    for (const Edge& edge : edges_) svg += write_edge(edge);
    for (const Box& box : boxes_) svg += write_box(box);
    return svg + "</svg>\n";
  }

  std::string write_frame(const Frame& frame) const {
    double left = 1e9, top = 1e9, right = 0, bottom = 0;
    for (const size_t group : frame.boxes) {
      const Box& box = boxes_[box_of_[group]];
      left = std::min(left, box.x - 12);
      top = std::min(top, box.y - 18);
      right = std::max(right, box.x + box.width + 12);
      bottom = std::max(bottom, box.y + box.height + 12);
    }
    return fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"8\" fill=\"#fafafa\" stroke=\"#999\" "
        "stroke-dasharray=\"6 4\"/>\n<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#555\" font-size=\"13\">x {}</text>\n",
        left, top, right - left, bottom - top, right + 6, top + 14, frame.count);
  }

  std::string write_edge(const Edge& edge) const {
    const Box& a = boxes_[edge.from];
    const Box& b = boxes_[edge.to];
    const double x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
    const bool near = b.layer == a.layer + 1;
    // An edge over several layers swings out to the right of what lies between.
    double bow = 0;
    for (const Box& box : boxes_) {
      if (near || box.layer <= a.layer || box.layer >= b.layer) continue;
      bow = std::max(bow, box.x + box.width + 14 - std::max(x1, x2));
    }
    const double c1 = x1 + bow * 1.33, c2 = x2 + bow * 1.33, dy = near ? (y2 - y1) / 2 : std::min(60.0, (y2 - y1) / 2);
    std::string text = fmt::format(
        "<path d=\"M{:.1f},{:.1f} C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"#666\" "
        "marker-end=\"url(#a)\"/>\n",
        x1, y1, c1, y1 + dy, c2, y2 - dy, x2, y2);
    const double at = near ? 0.5 : 0.85;
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#777\" font-size=\"9\">{}</text>\n",
                        x1 + (x2 - x1) * at + bow * (near ? 0 : 0.35) + 4, y1 + (y2 - y1) * at + 3, escape(edge.label));
    return text;
  }

  static std::string write_box(const Box& box) {
    std::string text = fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\" fill=\"{}\" "
        "stroke=\"#444\"/>",
        escape(box.title), box.x, box.y, box.width, box.height, box.fill);
    double y = box.y + kPad + kLineHeight - 4;
    for (const std::string& line : box.lines) {
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", box.x + kPad, y, escape(line));
      y += kLineHeight;
    }
    return text + "</g>\n";
  }

  static constexpr size_t kNone = ~size_t{0};
  const ir::Graph& graph_;
  const std::vector<ir::Group>& groups_;
  std::vector<const GroupReport*> reports_;
  std::vector<size_t> shown_as_, box_of_;
  std::map<ir::ValueId, size_t> input_box_;
  std::vector<Box> boxes_;
  std::vector<Edge> edges_;
  std::set<std::pair<size_t, size_t>> joined_;
  std::vector<Frame> frames_;
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string draw_svg(const CompiledModel& model) {
  return Picture(model).draw();
}

}  // namespace heddle::driver
