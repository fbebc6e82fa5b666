#include "ir/group.h"

#include "base/check.h"

namespace heddle::ir {

std::string_view to_string(GroupKind kind) {
  switch (kind) {
    case GroupKind::kStitch:
      return "stitch";
    case GroupKind::kContraction:
      return "contraction";
    case GroupKind::kAttention:
      return "attention";
    case GroupKind::kBackToBack:
      return "back_to_back";
    case GroupKind::kControl:
      return "control";
    case GroupKind::kTile:
      return "tile";
    case GroupKind::kReference:
      return "reference";
  }
  HEDDLE_CHECK(false, "group kind {}", static_cast<int>(kind));
}

}  // namespace heddle::ir
