#include "driver/report/picture_layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "driver/report/picture_columns.h"

namespace heddle::driver {
namespace {

constexpr double kTrack = 7, kLane = 9, kGutter = 20;

// Tracks of a gap between layers, one for each box that sends or takes something through it.
struct Gap {
  std::map<size_t, size_t> exits, entries;  // box -> track

  double height() const { return kPictureGapY + kTrack * static_cast<double>(exits.size() + entries.size()); }
};

// A vertical stretch of a lane between two columns.
struct Stretch {
  double low, high;
};

class Layouter {
 public:
  explicit Layouter(const LayoutRequest& request)
      : request_(request), folded_(fold_columns(request)), places_(request.boxes.size()) {
    columns_.resize(column_.back() + 1);
  }

  Layout run() {
    add_tracks();
    for (size_t l = 0; l < layers_.size(); ++l) place_layer(l);
    place_flow();
    measure_columns();
    place_columns();
    route_edges();
    finish();
    return std::move(layout_);
  }

 private:
  struct Place {
    double x = 0, flow = 0;  // within the column; along its direction
  };

  bool is_near(size_t from, size_t to) const {
    return layer_[to] == layer_[from] + 1 && column_[layer_[from]] == column_[layer_[to]];
  }

  // gaps_[l] lies in front of layer l, ends_[c] behind the last layer of column c.
  Gap& gap_behind(size_t l) {
    const bool last = l + 1 == layers_.size() || column_[l + 1] != column_[l];
    return last ? ends_[column_[l]] : gaps_[l + 1];
  }

  void add_tracks() {
    gaps_.resize(layers_.size());
    ends_.resize(columns_.size());
    for (const auto& [from, to] : request_.edges) {
      if (is_near(from, to)) continue;
      Gap& exit = gap_behind(layer_[from]);
      exit.exits.emplace(from, exit.exits.size());
      Gap& entry = gaps_[layer_[to]];
      entry.entries.emplace(to, entry.entries.size());
    }
  }

  void place_layer(size_t l) {
    std::vector<size_t>& layer = layers_[l];
    std::map<size_t, double> wish;
    double known = 0, count = 0;
    for (const size_t b : layer) {
      double sum = 0, inputs = 0;
      for (const size_t from : inputs_[b]) {
        if (column_[layer_[from]] != column_[l] || layer_[from] >= l) continue;
        sum += places_[from].x + request_.boxes[from].width / 2;
        ++inputs;
      }
      if (inputs == 0) continue;
      wish[b] = sum / inputs;
      known += wish[b];
      ++count;
    }
    const double centre = count > 0 ? known / count : 0;
    for (const size_t b : layer) wish.emplace(b, centre);
    std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
    double x = centre - layer_width(request_, layers_[l]) / 2;
    for (const size_t b : layer) {
      places_[b].x = x;
      x += request_.boxes[b].width + kPictureGapX;
    }
  }

  void place_flow() {
    double flow = 0;
    for (size_t l = 0; l < layers_.size(); ++l) {
      if (l > 0 && column_[l] != column_[l - 1]) flow = 0;
      gap_at_.push_back(flow);
      flow += gaps_[l].height();
      for (const size_t b : layers_[l]) places_[b].flow = flow;
      flow += layer_height(request_, layers_[l]);
      columns_[column_[l]].behind = flow;
      length_ = std::max(length_, flow + gap_behind(l).height());
    }
  }

  void measure_columns() {
    for (size_t l = 0; l < layers_.size(); ++l) {
      Column& column = columns_[column_[l]];
      for (const size_t b : layers_[l]) {
        column.left = std::min(column.left, places_[b].x);
        column.right = std::max(column.right, places_[b].x + request_.boxes[b].width);
      }
    }
  }

  // Lanes of edges that skip layers: in the gutter after their column, then, beyond the next column, over the top.
  void place_columns() {
    std::map<std::pair<size_t, size_t>, Stretch> wanted;  // source, gutter
    for (const auto& [from, to] : request_.edges) {
      const size_t a = column_[layer_[from]], b = column_[layer_[to]];
      if (is_near(from, to)) continue;
      const double exit = y_of_exit(from), entry = y_of_entry(to);
      const bool far = b > a + 1;
      want(wanted, {from, a}, exit, far ? 0 : entry);
      if (far) want(wanted, {from, b - 1}, 0, entry);
      if (far) over_top_.emplace(from, over_top_.size());
    }
    double x = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      columns_[c].shift = x - columns_[c].left;
      x += columns_[c].right - columns_[c].left + kGutter;
      std::vector<std::vector<Stretch>> lanes;
      for (const auto& [key, stretch] : wanted) {
        if (key.second == c) lanes_[key] = x + kLane * static_cast<double>(free_lane(lanes, stretch));
      }
      layout_.width = x - (lanes.empty() ? kGutter : kLane) + kLane * static_cast<double>(lanes.size());
      x += kLane * static_cast<double>(lanes.size()) + kGutter;
    }
  }

  static void want(std::map<std::pair<size_t, size_t>, Stretch>& wanted, std::pair<size_t, size_t> key, double a,
                   double b) {
    const auto [found, added] = wanted.try_emplace(key, Stretch{std::min(a, b), std::max(a, b)});
    if (added) return;
    found->second = {std::min({found->second.low, a, b}), std::max({found->second.high, a, b})};
  }

  static size_t free_lane(std::vector<std::vector<Stretch>>& lanes, const Stretch& stretch) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      const bool free = std::none_of(lanes[lane].begin(), lanes[lane].end(), [&](const Stretch& other) {
        return stretch.low < other.high + kTrack && other.low < stretch.high + kTrack;
      });
      if (!free) continue;
      lanes[lane].push_back(stretch);
      return lane;
    }
    lanes.push_back({stretch});
    return lanes.size() - 1;
  }

  bool is_upward(size_t box) const { return column_[layer_[box]] % 2 == 1; }
  double y_of_flow(size_t box, double flow) const { return is_upward(box) ? length_ - flow : flow; }

  double x_of(size_t box) const {
    return places_[box].x + columns_[column_[layer_[box]]].shift + request_.boxes[box].width / 2;
  }

  double y_of_exit(size_t box) {
    const size_t l = layer_[box];
    const Gap& gap = gap_behind(l);
    const bool last = &gap == &ends_[column_[l]];
    const double at = last ? columns_[column_[l]].behind : gap_at_[l + 1];
    return y_of_flow(box, at + kPictureGapY / 3 + kTrack * static_cast<double>(gap.exits.at(box)));
  }

  double y_of_entry(size_t box) const {
    const Gap& gap = gaps_[layer_[box]];
    const auto track = static_cast<double>(gap.exits.size() + gap.entries.at(box));
    return y_of_flow(box, gap_at_[layer_[box]] + kPictureGapY / 3 + kTrack * track);
  }

  void route_edges() {
    for (const auto& [from, to] : request_.edges) {
      const Point begin{x_of(from), y_of_flow(from, places_[from].flow + request_.boxes[from].height)};
      const Point end{x_of(to), y_of_flow(to, places_[to].flow)};
      std::vector<Point>& route = layout_.routes.emplace_back();
      route.push_back(begin);
      if (!is_near(from, to)) {
        const double exit = y_of_exit(from), entry = y_of_entry(to);
        const size_t a = column_[layer_[from]], b = column_[layer_[to]];
        route.push_back({begin.x, exit});
        double x = lanes_.at({from, a});
        route.push_back({x, exit});
        if (b > a + 1) {
          const double top = -kTrack * static_cast<double>(1 + over_top_.at(from));
          route.push_back({x, top});
          x = lanes_.at({from, b - 1});
          route.push_back({x, top});
        }
        route.push_back({x, entry});
        route.push_back({end.x, entry});
      }
      route.push_back(end);
    }
  }

  void finish() {
    const double top = kTrack * static_cast<double>(over_top_.size());
    for (size_t b = 0; b < places_.size(); ++b) {
      const double flow = places_[b].flow + (is_upward(b) ? request_.boxes[b].height : 0);
      layout_.columns.push_back(column_[layer_[b]]);
      layout_.corners.push_back({x_of(b) - request_.boxes[b].width / 2, y_of_flow(b, flow) + top});
    }
    for (std::vector<Point>& route : layout_.routes) {
      for (Point& point : route) point.y += top;
    }
    layout_.height = length_ + top;
  }

  struct Column {
    double left = std::numeric_limits<double>::max(), right = -std::numeric_limits<double>::max();
    double behind = 0;  // the end of its last layer
    double shift = 0;   // from places within it to places in the picture
  };

  const LayoutRequest& request_;
  PictureColumns folded_;
  const std::vector<std::vector<size_t>>& inputs_ = folded_.inputs;
  const std::vector<size_t>& layer_ = folded_.layer;
  const std::vector<size_t>& column_ = folded_.column;
  std::vector<std::vector<size_t>>& layers_ = folded_.layers;  // boxes from left to right
  std::vector<Column> columns_;
  std::vector<Gap> gaps_, ends_;
  std::vector<double> gap_at_;  // by layer
  std::vector<Place> places_;
  double length_ = 0;                                  // of the longest column
  std::map<std::pair<size_t, size_t>, double> lanes_;  // by source and column in front of the gutter
  std::map<size_t, size_t> over_top_;
  Layout layout_;
};

}  // namespace

Layout lay_out(const LayoutRequest& request) {
  if (request.boxes.empty()) return {};
  return Layouter(request).run();
}

}  // namespace heddle::driver
