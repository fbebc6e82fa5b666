#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::driver {

// Computes the places of a picture's boxes and the routes of its edges. The layer of a box is the length of the longest
// path to it. If there are many layers, they fold into columns, which are read down, up, down and so on. In a network
// whose second half reads results of the first half (a UNet), both ends of such an edge are then at one height.
//
// An edge to the next layer is a curve. All other edges run in the gaps between layers and in lanes beside the columns,
// where no box is. The edges of one source share a lane.
struct LayoutRequest {
  struct Box {
    double width, height;
    bool floats = false;  // lies just before its first reader instead of at the beginning
  };

  std::vector<Box> boxes;                        // each edge leads from an earlier box to a later one
  std::vector<std::pair<size_t, size_t>> edges;  // distinct
  std::vector<std::vector<size_t>> frames;       // boxes kept in one column, if they are not too many
};

struct Point {
  double x, y;
};

struct Layout {
  double width = 0, height = 0;
  std::vector<Point> corners;              // the upper left corner of each box
  std::vector<size_t> columns;             // of each box
  std::vector<std::vector<Point>> routes;  // of each edge, from box to box; with two points a curve
};

Layout lay_out(const LayoutRequest& request);

}  // namespace heddle::driver
