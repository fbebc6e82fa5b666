#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/report/collapse.h"

namespace heddle::driver {

// Items of a sequence that a diagram shows as one box.
struct ModuleBox {
  std::string name;  // "down.0/1"; "" for one item
  std::vector<size_t> items;
};

// Groups the items of a topological sequence into about `most` boxes, by the modules in their names
// ("/down.0/1/a1/MatMul" belongs to module down.0/1/a1). The largest modules are opened first. The items of a module
// form one box, unless a path from one to another leads through another box. The boxes are in topological order.
// reads[i]: the items that item i reads, all of them earlier.
std::vector<ModuleBox> gather_modules(const std::vector<std::string>& names,
                                      const std::vector<std::vector<size_t>>& reads, size_t most);

// Whether a diagram of many items shows modules in place of items (kFolded) or all items (kOpen).
enum class Modules : bool { kFolded, kOpen };

// The boxes of a diagram, each an item or a module. Blocks that repeat are shown once.
struct FoldedItems {
  std::vector<ModuleBox> parts;  // in topological order
  std::vector<Repeat> repeats;   // of parts
  std::vector<size_t> shown_as;  // by part: itself, or its counterpart in the first block of its repeat

  size_t shown() const;
  // By part: how often it occurs in the model. Only valid for parts that are shown.
  std::vector<size_t> times() const;
};

// Items with equal `signatures` do equal work. Above 60 items, modules are shown instead, or sections of the sequence
// if the names contain no modules.
FoldedItems fold_items(const std::vector<std::string>& names, const std::vector<std::vector<size_t>>& reads,
                       const std::vector<std::string>& signatures, Modules modules);

}  // namespace heddle::driver
