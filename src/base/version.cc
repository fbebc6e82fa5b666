#include "heddle/version.h"

namespace heddle {

const char* version() {
  return HEDDLE_VERSION;
}

}  // namespace heddle
