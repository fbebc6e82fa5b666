#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::driver {

// Computes the positions of a picture's boxes and the routes of its edges. A box's layer is the length of the longest
// path to the box. If there are many layers, they are folded into columns that are read alternately downwards and
// upwards. In some networks (UNet), the second half reads results of the first half. An edge from one half to the other
// then begins and ends at about the same height.
//
// An edge to the next layer is a curve. All other edges run in the gaps between layers and in lanes beside the columns,
// which contain no boxes. All edges from one box share a lane.
struct LayoutRequest {
  struct Box {
    double width, height;
    bool floats = false;  // placed just before its first reader, not at the top
  };

  std::vector<Box> boxes;                        // each edge leads from an earlier box to a later one
  std::vector<std::pair<size_t, size_t>> edges;  // distinct pairs (from, to) of box indices
  std::vector<std::vector<size_t>> frames;       // groups of boxes to keep in one column, if they are not too many
};

struct Point {
  double x, y;
};

struct Layout {
  double width = 0, height = 0;
  std::vector<Point> corners;              // the upper left corner of each box
  std::vector<size_t> columns;             // the column of each box
  std::vector<std::vector<Point>> routes;  // the points of each edge's route; two points are drawn as a curve
};

Layout lay_out(const LayoutRequest& request);

}  // namespace heddle::driver
