#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// Which nodes of a graph the lines of a kernel's text compute something of. Texts say in their comments what a value is
// of, by the kind of its node in the model ("add of Add"), so that layers share them. A kernel that is written from a
// graph whose kinds are node_tag()s says by node what it says by kind elsewhere, in a text that is the same but for its
// comments.
std::string node_tag(uint32_t node);

// By line: the nodes, in order, each once; none where the text does not say. Lines that declare what others use are of
// the nodes of the line that follows.
std::vector<std::vector<uint32_t>> nodes_by_line(std::string_view text);

}  // namespace heddle::codegen
