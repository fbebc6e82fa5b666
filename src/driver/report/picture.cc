#include "driver/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/printable.h"

namespace heddle::driver {
namespace {

constexpr double kNameWidth = 7.9, kLineWidth = 6.3;  // of a character, at most
constexpr double kNameHeight = 17, kLineHeight = 14, kPad = 9, kBar = 5, kMargin = 28, kFrame = 7, kHead = 86;
constexpr size_t kMostName = 44, kMostText = 52;

struct KindStyle {
  Picture::Kind kind;
  const char* css;     // class of its boxes and bars
  const char* legend;  // "" where the box says it itself
};

constexpr std::array<KindStyle, 10> kStyles = {
    {{Picture::Kind::kPort, "port", "input or output"},
     {Picture::Kind::kNode, "node", "operator"},
     {Picture::Kind::kMissing, "missing", "operator that is not supported"},
     {Picture::Kind::kContraction, "contraction", "matrix product, convolution"},
     {Picture::Kind::kAttention, "attention", "attention"},
     {Picture::Kind::kStitch, "stitch", "stitched memory-bound operators"},
     {Picture::Kind::kControl, "control", "loop or branch"},
     {Picture::Kind::kReference, "missing", "reference evaluator"},
     {Picture::Kind::kView, "view", "view, no kernel"},
     {Picture::Kind::kModule, "module", "module of the model"}}};

constexpr const char* kCss =
    "text{font:11px ui-sans-serif,system-ui,\"Segoe UI\",Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".n{font-size:12px;font-weight:600}.h{font-size:18px;font-weight:600}.m{fill:#59636e}"
    ".s{fill:#fff}.e{fill:none;stroke:#818b98;stroke-width:1.2}.a{fill:#818b98}"
    ".f{fill:none;stroke:#818b98;stroke-dasharray:6 4}.l{fill:#fff;stroke:#818b98}.b{fill:#d1d9e0}"
    "rect.port{fill:#fff3cf;stroke:#b98a2f}rect.node{fill:#eef1f4;stroke:#818b98}rect.missing{fill:#fbdcd5;stroke:#"
    "d1502f}"
    "rect.contraction{fill:#d9e8fc;stroke:#2f6fd0}rect.attention{fill:#e9dcfb;stroke:#7d4fc4}"
    "rect.stitch{fill:#d9f2e2;stroke:#1a7f64}rect.control{fill:#fde4f1;stroke:#b54a86}"
    "rect.view{fill:#f6f8fa;stroke:#d1d9e0}rect.module{fill:#f6f8fa;stroke:#59636e}"
    "rect.t{stroke:none}rect.t.contraction{fill:#2f6fd0}rect.t.attention{fill:#7d4fc4}rect.t.stitch{fill:#1a7f64}"
    "rect.t.control{fill:#b54a86}rect.t.missing{fill:#d1502f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}.s{fill:#0d1117}.e{stroke:#656c76}"
    ".a{fill:#656c76}.f{stroke:#656c76}.l{fill:#0d1117;stroke:#656c76}.b{fill:#3d444d}rect.port{fill:#3a2f12}"
    "rect.node{fill:#212830}rect.missing{fill:#46190f}rect.contraction{fill:#12294a}rect.attention{fill:#2d1a4d}"
    "rect.stitch{fill:#10321f}rect.control{fill:#43172f}rect.view{fill:#151b23;stroke:#3d444d}"
    "rect.module{fill:#151b23;stroke:#9198a1}rect.t.contraction{fill:#5b9bf5}rect.t.attention{fill:#a981ea}"
    "rect.t.stitch{fill:#3fb68f}rect.t.control{fill:#d977ae}rect.t.missing{fill:#f0704d}}";

const KindStyle& style(Picture::Kind kind) {
  return *std::find_if(kStyles.begin(), kStyles.end(), [&](const KindStyle& s) { return s.kind == kind; });
}

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

double text_width(const std::string& text, double character) {
  return static_cast<double>(columns(text)) * character;
}

}  // namespace

void Picture::heading(std::string title, std::string note) {
  title_ = printable(std::move(title));
  note_ = printable(std::move(note));
}

size_t Picture::add(const Box& box) {
  Box cut = box;
  cut.name = clipped(printable(cut.name), kMostName);
  double width = std::max(70.0, text_width(cut.name, kNameWidth));
  for (std::string& line : cut.lines) {
    line = clipped(printable(line), kMostText);
    width = std::max(width, text_width(line, kLineWidth));
  }
  double share = 0;
  for (const auto& [kind, part] : cut.time) share += part;
  longest_ = std::max(longest_, share);
  const double lines = static_cast<double>(cut.lines.size()) * kLineHeight;
  sizes_.push_back(
      {std::ceil(width + 2 * kPad), kNameHeight + lines + kPad + (share > 0 ? kBar + 6 : 4), cut.kind == Kind::kPort});
  boxes_.push_back(std::move(cut));
  return boxes_.size() - 1;
}

void Picture::connect(size_t from, size_t to) {
  if (from < to && joined_.emplace(from, to).second) edges_.emplace_back(from, to);
}

void Picture::frame(std::vector<size_t> boxes, size_t count) {
  frames_.push_back({std::move(boxes), count});
}

std::string Picture::svg() {
  LayoutRequest request{sizes_, edges_, {}};
  for (const Frame& frame : frames_) request.frames.push_back(frame.boxes);
  layout_ = lay_out(request);
  const double title = std::max(text_width(title_, 11), text_width(note_, kLineWidth));
  const double width = std::max({layout_.width, title, 640.0}) + 2 * kMargin;
  const Legend legend = make_legend(72, width - kMargin);
  const double head = kHead + legend.below, height = layout_.height + head + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n"
      "<style>{2}</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path class=\"a\" d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n"
      "<rect class=\"s\" width=\"100%\" height=\"100%\"/>\n<text class=\"h\" x=\"{3}\" y=\"32\">{4}</text>\n"
      "<text class=\"m\" x=\"{3}\" y=\"50\">{5}</text>\n",
      width, height, kCss, kMargin, escape(title_), escape(note_));
  svg += legend.svg;
  svg += fmt::format("<g transform=\"translate({} {})\">\n", kMargin, head);
  for (const Frame& frame : frames_) svg += frame_svg(frame, false);
  for (size_t e = 0; e < edges_.size(); ++e) svg += edge_svg(e);
  for (size_t b = 0; b < boxes_.size(); ++b) svg += box_svg(b);
  for (const Frame& frame : frames_) svg += frame_svg(frame, true);
  return svg + "</g>\n</svg>\n";
}

Picture::Legend Picture::make_legend(double y, double right) const {
  constexpr double kRow = 18;
  double x = kMargin;
  Legend legend;
  // `mark` writes what is explained at x, y.
  const auto entry = [&](const auto& mark, double width, const std::string& text) {
    const double needed = width + 5 + text_width(text, kLineWidth);
    if (x > kMargin && x + needed > right) {
      x = kMargin;
      y += kRow;
      legend.below += kRow;
    }
    legend.svg += mark();
    legend.svg += fmt::format("<text class=\"m\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x + width + 5, y, text);
    x += needed + 16;
  };
  for (const KindStyle& s : kStyles) {
    const bool occurs = std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
      return box.kind == s.kind ||
             std::any_of(box.time.begin(), box.time.end(), [&](const auto& part) { return part.first == s.kind; });
    });
    if (!occurs) continue;
    const auto box = [&] {
      return fmt::format("<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"16\" height=\"11\" rx=\"3\"/>", s.css, x,
                         y - 9);
    };
    entry(box, 16, s.legend);
  }
  const auto frame = [&] {
    return fmt::format("<rect class=\"f\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"20\" height=\"11\" rx=\"3\"/>", x, y - 9);
  };
  if (!frames_.empty()) entry(frame, 20, "repeated");
  const auto bar = [&] {
    return fmt::format("<rect class=\"b\" x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"24\" height=\"5\" rx=\"2\"/>", x, y - 6);
  };
  if (longest_ > 0) entry(bar, 24, fmt::format("share of the time, whole bar {:.0f}%", 100 * longest_));
  return legend;
}

// A rectangle in each column that the frame is in. It is drawn below everything, its label above.
std::string Picture::frame_svg(const Frame& frame, bool label) const {
  struct Extent {
    double left = std::numeric_limits<double>::max(), top = left, right = 0, bottom = 0;

    void hold(double x, double y) {
      left = std::min(left, x), right = std::max(right, x);
      top = std::min(top, y), bottom = std::max(bottom, y);
    }
  };
  std::map<size_t, Extent> extents;  // by column
  for (const size_t b : frame.boxes) {
    Extent& extent = extents[layout_.columns[b]];
    extent.hold(layout_.corners[b].x, layout_.corners[b].y);
    extent.hold(layout_.corners[b].x + sizes_[b].width, layout_.corners[b].y + sizes_[b].height);
  }
  const std::set<size_t> inside(frame.boxes.begin(), frame.boxes.end());
  // Its edges lie within it where no other box would.
  std::map<size_t, Extent> wide = extents;
  for (size_t e = 0; e < edges_.size(); ++e) {
    const auto [from, to] = edges_[e];
    if (!inside.contains(from) || !inside.contains(to) || layout_.columns[from] != layout_.columns[to]) continue;
    for (const Point& point : layout_.routes[e]) wide[layout_.columns[from]].hold(point.x, point.y);
  }
  for (auto& [column, extent] : extents) {
    bool free = true;
    for (size_t b = 0; b < boxes_.size(); ++b) {
      const auto [x, y] = layout_.corners[b];
      const Extent& w = wide[column];
      const bool meets = x < w.right && w.left < x + sizes_[b].width && y < w.bottom && w.top < y + sizes_[b].height;
      free = free && (inside.contains(b) || !meets);
    }
    if (free) extent = wide[column];
  }
  std::string svg;
  const std::string text = fmt::format("x {}", frame.count);
  const double width = text_width(text, kNameWidth) + 12;
  for (const auto& [column, extent] : extents) {
    const double left = extent.left - kFrame, top = extent.top - kFrame;
    if (label) {
      svg += fmt::format(
          "<rect class=\"l\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"18\" rx=\"9\"/>"
          "<text class=\"n\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
          left + 10, top - 9, width, left + 10 + width / 2, top + 4, text);
    } else {
      svg += fmt::format("<rect class=\"f\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"8\"/>\n",
                         left, top, extent.right + kFrame - left, extent.bottom + kFrame - top);
    }
  }
  return svg;
}

std::string Picture::edge_svg(size_t edge) const {
  const std::vector<Point>& route = layout_.routes[edge];
  std::string path = fmt::format("M{:.1f},{:.1f}", route[0].x, route[0].y);
  if (route.size() == 2) {
    const Point &a = route[0], &b = route[1];
    const double middle = (a.y + b.y) / 2;
    path += fmt::format("C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", a.x, middle, b.x, middle, b.x, b.y);
  }
  for (size_t i = 1; route.size() > 2 && i < route.size(); ++i) {
    const Point &from = route[i - 1], &at = route[i];
    if (i + 1 == route.size()) {
      path += fmt::format("L{:.1f},{:.1f}", at.x, at.y);
      continue;
    }
    // A corner is rounded as far as its two sides have room.
    const Point& to = route[i + 1];
    const double before = std::hypot(at.x - from.x, at.y - from.y), after = std::hypot(to.x - at.x, to.y - at.y);
    const double r = std::min({5.0, before / 2, after / 2});
    if (r < 0.1) continue;
    path += fmt::format("L{:.1f},{:.1f}Q{:.1f},{:.1f} {:.1f},{:.1f}", at.x - (at.x - from.x) / before * r,
                        at.y - (at.y - from.y) / before * r, at.x, at.y, at.x + (to.x - at.x) / after * r,
                        at.y + (to.y - at.y) / after * r);
  }
  return fmt::format("<path class=\"e\" d=\"{}\" marker-end=\"url(#a)\"/>\n", path);
}

std::string Picture::box_svg(size_t b) const {
  const Box& box = boxes_[b];
  const auto [x, top] = layout_.corners[b];
  std::string svg = fmt::format(
      "<g><title>{}</title><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>",
      escape(box.title), style(box.kind).css, x, top, sizes_[b].width, sizes_[b].height);
  double y = top + kPad / 2 + kNameHeight - 3;
  svg += fmt::format("<text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + kPad, y, escape(box.name));
  for (const std::string& line : box.lines) {
    y += kLineHeight;
    svg += fmt::format("<text class=\"m\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + kPad, y, escape(line));
  }
  return svg + bar_svg(b) + "</g>\n";
}

std::string Picture::bar_svg(size_t b) const {
  const double width = sizes_[b].width - 2 * kPad, y = layout_.corners[b].y + sizes_[b].height - kBar - 5;
  double x = layout_.corners[b].x + kPad;
  std::string svg;
  if (!boxes_[b].time.empty() && longest_ > 0) {
    svg = fmt::format("<rect class=\"b\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\"/>", x, y,
                      width, kBar);
  }
  for (const auto& [kind, share] : boxes_[b].time) {
    const double part = longest_ > 0 ? share / longest_ * width : 0;
    svg += fmt::format("<rect class=\"t {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/>",
                       style(kind).css, x, y, part, kBar);
    x += part;
  }
  return svg;
}

}  // namespace heddle::driver
