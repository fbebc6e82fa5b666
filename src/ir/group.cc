#include "ir/group.h"

#include <iterator>

#include "base/check.h"

namespace heddle::ir {

std::string_view to_string(GroupKind kind) {
  constexpr std::string_view kNames[] = {"stitch",  "contraction", "attention", "back_to_back",
                                         "control", "tile",        "reference"};
  HEDDLE_CHECK(static_cast<size_t>(kind) < std::size(kNames), "group kind {}", static_cast<int>(kind));
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace heddle::ir
