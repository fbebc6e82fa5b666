#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/collapse.h"

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

// Whether a picture shows modules in place of their items where these are many.
enum class Modules : bool { kFolded, kOpen };

// What the boxes of a picture stand for: items, or modules of them. Blocks that repeat are shown once.
struct FoldedItems {
  std::vector<ModuleBox> parts;  // in topological order
  std::vector<Repeat> repeats;   // of parts
  std::vector<size_t> shown_as;  // by part: itself, or the part in its place in the first block of its repeat

  size_t shown() const;
  // By part: how often it stands in the model, for those that are shown.
  std::vector<size_t> times() const;
};

// `signatures` are equal for items that do equal work. Of more than 60 items modules are shown, or stretches of the
// sequence if the names tell of no modules.
FoldedItems fold_items(const std::vector<std::string>& names, const std::vector<std::vector<size_t>>& reads,
                       const std::vector<std::string>& signatures, Modules modules);

}  // namespace heddle::driver
