#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heddle::driver {

// A drawing of boxes in layers with edges downwards, written as SVG. Texts may be any bytes; they become valid XML.
class Picture {
 public:
  struct Box {
    std::vector<std::string> lines;  // cut where they are long
    std::string fill;                // "#cfe3f7"
    std::string title;               // shown when the pointer rests on the box
    bool terminal = false;           // an input, which stands just above its first reader
  };

  // Boxes are added in an order in which edges lead from earlier ones to later ones. The result names the box.
  size_t add(const Box& box);
  // One edge for each pair of boxes. An edge backwards is left out: the frame of the repetition says it.
  void connect(size_t from, size_t to, const std::string& label);
  // A frame around boxes that stand for `count` times themselves.
  void frame(std::vector<size_t> boxes, size_t count);

  std::string svg();

 private:
  struct Placed {
    Box box;
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

  void layout();
  void find_layers();
  double place_layer(std::vector<size_t>& layer, double y);
  std::string frame_svg(const Frame& frame) const;
  std::string edge_svg(const Edge& edge) const;
  static std::string box_svg(const Placed& box);

  std::vector<Placed> boxes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_into_;  // by box
  std::vector<double> right_of_layer_;
  std::set<std::pair<size_t, size_t>> joined_;
  std::vector<Frame> frames_;
  double width_ = 0, height_ = 0;
};

}  // namespace heddle::driver
