#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::driver {

// Items of a sequence that a picture shows as one box.
struct ModuleBox {
  std::string name;  // "down.0/1"; "" where it is one item
  std::vector<size_t> items;
};

// The items of a topological sequence gathered by the modules that their names tell of ("/down.0/1/a1/MatMul" is of
// module down.0/1/a1), in at most about `most` boxes. The largest modules are opened first. Items of one module are one
// box unless a path through another box leads from one to the other. The boxes are in topological order. reads[i]: the
// items that item i reads, all of them before it.
std::vector<ModuleBox> gather_modules(const std::vector<std::string>& names,
                                      const std::vector<std::vector<size_t>>& reads, size_t most);

}  // namespace heddle::driver
