#include "driver/report/picture_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace heddle::driver {
namespace {

constexpr double kLongest = 1500;  // a picture that is longer folds
constexpr double kAspect = 1.5;    // of width to height, as near as columns come to it
constexpr double kBetween = 80;    // two columns, about: lanes
constexpr size_t kMostColumns = 16;
constexpr size_t kFarReader = 3;  // layers from a box of a frame to its first reader that are too many

class Folder {
 public:
  explicit Folder(const LayoutRequest& request)
      : request_(request), inputs_(request.boxes.size()), layer_(request.boxes.size()) {}

  PictureColumns run() {
    find_layers();
    find_columns();
    return {std::move(inputs_), std::move(layer_), std::move(layers_), std::move(column_)};
  }

 private:
  void find_layers() {
    for (const auto& [from, to] : request_.edges) inputs_[to].push_back(from);
    for (size_t b = 0; b < layer_.size(); ++b) {
      for (const size_t from : inputs_[b]) layer_[b] = std::max(layer_[b], layer_[from] + 1);
    }
    std::map<size_t, size_t> first_reader;
    for (const auto& [from, to] : request_.edges) {
      if (!request_.boxes[from].floats) continue;
      const auto [found, added] = first_reader.emplace(from, layer_[to]);
      if (!added) found->second = std::min(found->second, layer_[to]);
    }
    for (const auto& [box, layer] : first_reader) layer_[box] = layer > 0 ? layer - 1 : 0;
    gather_frames();
    for (size_t b = 0; b < layer_.size(); ++b) {
      layers_.resize(std::max(layers_.size(), layer_[b] + 1));
      layers_[layer_[b]].push_back(b);
    }
  }

  // What of a frame could lie far in front of the rest moves to its first reader, so that frames enclose little else.
  void gather_frames() {
    std::vector<size_t> first(layer_.size(), std::numeric_limits<size_t>::max());  // layer of the first reader
    std::set<size_t> framed;
    for (const std::vector<size_t>& frame : request_.frames) framed.insert(frame.begin(), frame.end());
    for (size_t b = layer_.size(); b-- > 0;) {
      const bool far = first[b] != std::numeric_limits<size_t>::max() && first[b] > layer_[b] + kFarReader;
      if (far && framed.contains(b)) layer_[b] = first[b] - 1;
      for (const size_t from : inputs_[b]) first[from] = std::min(first[from], layer_[b]);
    }
  }

  // Layers behind which a column may end: not within a frame, unless that is as long as a column.
  std::vector<bool> ends() const {
    std::vector<bool> ends(layers_.size(), true);
    for (const std::vector<size_t>& frame : request_.frames) {
      size_t first = layers_.size(), last = 0;
      for (const size_t b : frame) {
        first = std::min(first, layer_[b]);
        last = std::max(last, layer_[b]);
      }
      double height = 0;
      for (size_t l = first; l <= last; ++l) height += height_of(l) + kPictureGapY;
      for (size_t l = first; l < last && height < kLongest; ++l) ends[l] = false;
    }
    return ends;
  }

  void find_columns() {
    double height = 0;
    for (size_t l = 0; l < layers_.size(); ++l) height += height_of(l) + kPictureGapY;
    const std::vector<bool> may_end = ends();
    double nearest = std::numeric_limits<double>::max();
    for (size_t n = 1; n == 1 || (height > kLongest && n <= kMostColumns); ++n) {
      const std::vector<size_t> columns = columns_of(n, height, may_end);
      const double off = std::abs(std::log(aspect(columns) / kAspect));
      if (off >= nearest) continue;
      nearest = off;
      column_ = columns;
    }
  }

  // By layer: its column, where about `count` columns share a height.
  std::vector<size_t> columns_of(size_t count, double height, const std::vector<bool>& may_end) const {
    std::vector<size_t> columns;
    double done = 0, left = height;  // of this column; of this one and those behind it
    size_t column = 0;
    for (size_t l = 0; l < layers_.size(); ++l) {
      columns.push_back(column);
      done += height_of(l) + kPictureGapY;
      const double share = left / static_cast<double>(count - column);
      if (!may_end[l] || column + 1 == count || done < share - height_of(l) / 2) continue;
      left -= std::exchange(done, 0);
      ++column;
    }
    return columns;
  }

  // Of width to height, without what lanes and tracks add.
  double aspect(const std::vector<size_t>& columns) const {
    std::vector<double> widths(columns.back() + 1), heights(columns.back() + 1);
    for (size_t l = 0; l < columns.size(); ++l) {
      widths[columns[l]] = std::max(widths[columns[l]], layer_width(request_, layers_[l]));
      heights[columns[l]] += height_of(l) + kPictureGapY;
    }
    double width = 0;
    for (const double w : widths) width += w + kBetween;
    return width / *std::max_element(heights.begin(), heights.end());
  }

  double height_of(size_t l) const { return layer_height(request_, layers_[l]); }

  const LayoutRequest& request_;
  std::vector<std::vector<size_t>> inputs_;  // by box
  std::vector<size_t> layer_;                // by box
  std::vector<std::vector<size_t>> layers_;
  std::vector<size_t> column_;  // by layer
};

}  // namespace

double layer_height(const LayoutRequest& request, const std::vector<size_t>& layer) {
  double tallest = 0;
  for (const size_t b : layer) tallest = std::max(tallest, request.boxes[b].height);
  return tallest;
}

double layer_width(const LayoutRequest& request, const std::vector<size_t>& layer) {
  double width = -kPictureGapX;
  for (const size_t b : layer) width += request.boxes[b].width + kPictureGapX;
  return width;
}

PictureColumns fold_columns(const LayoutRequest& request) {
  return Folder(request).run();
}

}  // namespace heddle::driver
