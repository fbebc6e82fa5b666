#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/modules.h"
#include "driver/report/picture.h"

namespace heddle::driver {

// A topological sequence of items that make values from values. Values are numbered in any way.
struct PictureItems {
  struct Port {
    size_t value;
    Picture::Box box;
  };

  std::string_view what;                              // "nodes"
  std::vector<std::string> names{}, signatures{};     // as fold_items() takes them
  std::vector<std::vector<size_t>> reads{}, makes{};  // values, by item
  std::vector<Port> inputs{}, outputs{};              // of the whole
};

// Draws the items, large sequences folded into modules and repeats. `box` makes the box of an item or a module, which
// occurs `times` times.
std::string draw_folded(Picture& picture, const PictureItems& items, Modules modules,
                        const std::function<Picture::Box(const ModuleBox& part, size_t times)>& box);

}  // namespace heddle::driver
