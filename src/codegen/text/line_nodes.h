#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::codegen {

// Maps the lines of a kernel's source text to the graph nodes that they compute. A comment in the text names the origin
// of a value by the kind of its model node ("add of Add"), so that equal layers share a text. If a kernel is emitted
// from a graph in which each node's kind is its node_tag(), the comments identify the nodes themselves. The rest of the
// text stays the same.
std::string node_tag(uint32_t node);

// Returns the distinct nodes of each line, in order; empty lists if the text names no nodes. A `const auto`
// declaration, which serves later lines, gets the nodes of the next line.
std::vector<std::vector<uint32_t>> nodes_by_line(std::string_view text);

}  // namespace heddle::codegen
