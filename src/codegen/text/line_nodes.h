#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// The graph nodes that the lines of a kernel's text compute. A text's comments name the origin of a value by the kind
// of its node in the model ("add of Add"), so that layers share texts. If a kernel is written from a graph whose kinds
// are node_tag()s, its comments name nodes instead. The rest of the text is the same.
std::string node_tag(uint32_t node);

// The nodes of each line, in order, each once; none if the text names none. A declaration for later lines gets the
// nodes of the line that follows.
std::vector<std::vector<uint32_t>> nodes_by_line(std::string_view text);

}  // namespace heddle::codegen
