#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/report/picture_layout.h"

namespace heddle::driver {

// A drawing of boxes in layers and edges between the boxes, written as SVG for light and dark backgrounds. A legend
// explains the kinds of boxes that occur. Texts may contain any bytes; they are converted to valid XML.
class Picture {
 public:
  enum class Kind { kPort, kNode, kMissing, kContraction, kAttention, kStitch, kControl, kReference, kView, kModule };

  struct Box {
    std::string name;
    std::vector<std::string> lines;  // below the name; long lines are cut
    Kind kind = Kind::kNode;
    std::string title;                            // tooltip
    std::vector<std::pair<Kind, double>> time{};  // drawn as a bar: fractions of a run's time
  };

  void heading(std::string title, std::string note);
  // Adds a box and returns its index. Edges lead from earlier boxes to later ones.
  size_t add(const Box& box);
  // Connects two boxes. At most one edge is drawn for a pair. A backward edge is not drawn, since the frame around a
  // repetition implies it.
  void connect(size_t from, size_t to);
  // Draws a frame around boxes that are repeated `count` times.
  void frame(std::vector<size_t> boxes, size_t count);

  std::string svg();

 private:
  struct Frame {
    std::vector<size_t> boxes;
    size_t count;
  };

  struct Legend {
    std::string svg;
    double below = 0;  // the height of all rows after the first
  };

  // Makes the legend in rows that end before `right`. The text of the first row is at height `y`.
  Legend make_legend(double y, double right) const;
  std::string frame_svg(const Frame& frame, bool label) const;
  std::string edge_svg(size_t edge) const;
  std::string box_svg(size_t box) const;
  std::string bar_svg(size_t box) const;

  std::string title_, note_;
  std::vector<Box> boxes_;
  std::vector<LayoutRequest::Box> sizes_;
  std::vector<std::pair<size_t, size_t>> edges_;
  std::set<std::pair<size_t, size_t>> joined_;
  std::vector<Frame> frames_;
  Layout layout_;
  double longest_ = 0;  // the largest fraction of time of a box
};

}  // namespace heddle::driver
