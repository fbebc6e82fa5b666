#pragma once

namespace heddle {

// "0.1.0"
const char* version();

}  // namespace heddle
