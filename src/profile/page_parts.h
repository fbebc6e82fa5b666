#pragma once

#include <string_view>

namespace heddle::profile {

// The parts of the HTML page. The build of Heddle copies them from the folder page/.
struct PageParts {
  std::string_view html;  // has {{title}}, {{style}}, {{profile}} and {{script}} once each, in this order
  std::string_view style;
  std::string_view script;  // all scripts as one module
};

PageParts page_parts();

}  // namespace heddle::profile
