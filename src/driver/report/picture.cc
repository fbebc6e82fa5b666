#include "driver/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/printable.h"

namespace heddle::driver {
namespace {

constexpr double kCharWidth = 6.6, kLineHeight = 15, kPad = 8, kGapX = 28, kGapY = 46, kMargin = 30;
constexpr size_t kMaxText = 64;

// Names come from the model: what is in them is made text that XML allows before it is cut.
std::string escape(const std::string& text) {
  std::string out;
  for (const char c : printable(text, Lines::kMany)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

size_t Picture::add(const Box& box) {
  Placed placed{box};
  size_t longest = 8;
  for (std::string& line : placed.box.lines) {
    line = clipped(printable(line), kMaxText);
    longest = std::max(longest, columns(line));
  }
  placed.width = static_cast<double>(longest) * kCharWidth + 2 * kPad;
  placed.height = static_cast<double>(box.lines.size()) * kLineHeight + 2 * kPad;
  boxes_.push_back(std::move(placed));
  return boxes_.size() - 1;
}

void Picture::connect(size_t from, size_t to, const std::string& label) {
  if (from < to && joined_.emplace(from, to).second) edges_.push_back({from, to, clipped(printable(label), kMaxText)});
}

void Picture::frame(std::vector<size_t> boxes, size_t count) {
  frames_.push_back({std::move(boxes), count});
}

std::string Picture::svg() {
  layout();
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "font-family=\"monospace\" font-size=\"11\">\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
      "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#666\"/></marker>"
      "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width_, height_);
  for (const Frame& frame : frames_) svg += frame_svg(frame);
  for (const Edge& edge : edges_) svg += edge_svg(edge);
  for (const Placed& box : boxes_) svg += box_svg(box);
  return svg + "</svg>\n";
}

// Layers by longest path, boxes of a layer side by side in the order of their neighbours above.
void Picture::layout() {
  edges_into_.assign(boxes_.size(), {});
  for (size_t e = 0; e < edges_.size(); ++e) edges_into_[edges_[e].to].push_back(e);
  find_layers();
  int last = 0;
  for (const Placed& box : boxes_) last = std::max(last, box.layer);
  std::vector<std::vector<size_t>> layers(static_cast<size_t>(last) + 1);
  for (size_t b = 0; b < boxes_.size(); ++b) layers[static_cast<size_t>(boxes_[b].layer)].push_back(b);
  double y = kMargin;
  for (std::vector<size_t>& layer : layers) y = place_layer(layer, y);
  height_ = y;
  double left = 0;
  for (const Placed& box : boxes_) left = std::min(left, box.x);
  right_of_layer_.assign(layers.size(), 0);
  for (Placed& box : boxes_) {
    box.x += kMargin + kGapX - left;
    width_ = std::max(width_, box.x + box.width + kMargin + kGapX);
    double& right = right_of_layer_[static_cast<size_t>(box.layer)];
    right = std::max(right, box.x + box.width);
  }
}

void Picture::find_layers() {
  for (size_t b = 0; b < boxes_.size(); ++b) {
    for (const size_t e : edges_into_[b]) {
      boxes_[b].layer = std::max(boxes_[b].layer, boxes_[edges_[e].from].layer + 1);
    }
  }
  std::map<size_t, int> first_reader;
  for (const Edge& edge : edges_) {
    if (!boxes_[edge.from].box.terminal) continue;
    const int layer = boxes_[edge.to].layer;
    const auto [found, added] = first_reader.emplace(edge.from, layer);
    if (!added) found->second = std::min(found->second, layer);
  }
  for (const auto& [box, layer] : first_reader) boxes_[box].layer = std::max(layer - 1, 0);
}

double Picture::place_layer(std::vector<size_t>& layer, double y) {
  std::map<size_t, double> wish;
  for (const size_t b : layer) {
    double sum = 0, count = 0;
    for (const size_t e : edges_into_[b]) {
      const Placed& above = boxes_[edges_[e].from];
      if (above.layer >= boxes_[b].layer) continue;
      sum += above.x + above.width / 2;
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

std::string Picture::frame_svg(const Frame& frame) const {
  double left = 1e9, top = 1e9, right = 0, bottom = 0;
  for (const size_t b : frame.boxes) {
    const Placed& box = boxes_[b];
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

std::string Picture::edge_svg(const Edge& edge) const {
  const Placed& a = boxes_[edge.from];
  const Placed& b = boxes_[edge.to];
  const double x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
  const bool near = b.layer == a.layer + 1;
  // An edge over several layers swings out to the right of what lies between.
  double bow = 0;
  for (int layer = a.layer + 1; layer < b.layer; ++layer) {
    bow = std::max(bow, right_of_layer_[static_cast<size_t>(layer)] + 14 - std::max(x1, x2));
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

std::string Picture::box_svg(const Placed& box) {
  std::string text = fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\" fill=\"{}\" "
      "stroke=\"#444\"/>",
      escape(box.box.title), box.x, box.y, box.width, box.height, box.box.fill);
  double y = box.y + kPad + kLineHeight - 4;
  for (const std::string& line : box.box.lines) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", box.x + kPad, y, escape(line));
    y += kLineHeight;
  }
  return text + "</g>\n";
}

}  // namespace heddle::driver
