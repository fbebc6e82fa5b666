#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::driver {

// Where the boxes of a picture lie and how its edges run. Boxes are in layers by their longest path; layers that are
// many fold into columns, which are read down, up, down and so on, so that a network whose second half reads what the
// first one made (a UNet) has both sides of such an edge at one height.
//
// An edge to the next layer is a curve. All others run in the gaps between layers and in lanes beside them, where no
// box is; the edges of one source share a lane.
struct LayoutRequest {
  struct Box {
    double width, height;
    bool floats = false;  // lies just in front of its first reader, in place of at the beginning
  };

  std::vector<Box> boxes;                        // edges lead from earlier ones to later ones
  std::vector<std::pair<size_t, size_t>> edges;  // distinct
  std::vector<std::vector<size_t>> frames;       // boxes that stay in one column, if they are not too many
};

struct Point {
  double x, y;
};

struct Layout {
  double width = 0, height = 0;
  std::vector<Point> corners;              // the upper left one of each box
  std::vector<size_t> columns;             // of each box
  std::vector<std::vector<Point>> routes;  // of each edge, from box to box; two points: a curve
};

Layout lay_out(const LayoutRequest& request);

}  // namespace heddle::driver
