#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/collapse.h"

namespace heddle::driver {

// Items of a sequence that a diagram shows as one box.
struct ModuleBox {
  std::string name;  // such as "down.0/1"; "" for a box with one item
  std::vector<size_t> items;
};

// Groups the items of a topological sequence into about `most` boxes, by the module paths in their names: the item
// "/down.0/1/a1/MatMul" belongs to module down.0/1/a1. Splits the largest modules into their submodules first. The
// items of a module form one box, unless a path between two of its items passes through another box. Returns the boxes
// in topological order. reads[i] lists the items that item i reads; all of them precede item i.
std::vector<ModuleBox> gather_modules(const std::vector<std::string>& names,
                                      const std::vector<std::vector<size_t>>& reads, size_t most);

// Selects how a diagram shows many items: as modules (kFolded) or one by one (kOpen).
enum class Modules : bool { kFolded, kOpen };

// The boxes of a diagram. A box is an item or a module. Of a repeated block of boxes, only the first block is shown.
struct FoldedItems {
  std::vector<ModuleBox> parts;  // in topological order
  std::vector<Repeat> repeats;   // repeated blocks of `parts`
  std::vector<size_t> shown_as;  // by part: the part's own index, or that of its counterpart in the first block

  // The number of parts that are shown.
  size_t shown() const;
  // The number of occurrences of each part in the model. Valid only for parts that are shown.
  std::vector<size_t> times() const;
};

// Chooses the boxes of a diagram. Items with equal `signatures` do equal work. If `modules` is kFolded and more than 60
// boxes would be shown, the boxes are modules, or sections of the sequence if modules give too many boxes.
FoldedItems fold_items(const std::vector<std::string>& names, const std::vector<std::vector<size_t>>& reads,
                       const std::vector<std::string>& signatures, Modules modules);

}  // namespace heddle::driver
