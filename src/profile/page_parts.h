#pragma once

#include <string_view>

namespace heddle::profile {

// The parts of the HTML page, taken from page/ when Heddle was built.
struct PageParts {
  std::string_view html;    // with {{title}}, {{style}}, {{profile}} and {{script}}, each once and in this order
  std::string_view style;
  std::string_view script;  // all scripts as one module
};

PageParts page_parts();

}  // namespace heddle::profile
