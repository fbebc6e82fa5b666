#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/modules.h"
#include "driver/report/picture.h"

namespace heddle::driver {

// The items to draw, in topological order. Each item reads and produces values. A value is identified by an arbitrary
// number.
struct PictureItems {
  struct Port {
    size_t value;
    Picture::Box box;
  };

  std::string_view what;                              // "nodes"
  std::vector<std::string> names{}, signatures{};     // as in fold_items()
  std::vector<std::vector<size_t>> reads{}, makes{};  // for each item: the values that it reads; produces
  std::vector<Port> inputs{}, outputs{};              // of the whole sequence
};

// Draws the items. Large sequences are folded into modules and repeats. `box` returns the box of an item or a module
// that occurs `times` times.
std::string draw_folded(Picture& picture, const PictureItems& items, Modules modules,
                        const std::function<Picture::Box(const ModuleBox& part, size_t times)>& box);

}  // namespace heddle::driver
