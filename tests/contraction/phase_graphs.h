#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

namespace heddle::testing {

// Convolutions whose channels are phases of a result of which a border is cut off, then added to a bias and to another
// tensor: what passes make of transposed convolutions. Runs of 16 columns, of 3, of 8 that a border of the result cuts,
// and of all columns.
inline std::vector<std::string> phase_graphs(const std::string& type) {
  std::vector<std::string> graphs;
  for (const int features : {16, 3}) {
    graphs.push_back(fmt::format(
        R"(graph g(%x: {0}[2,3,4,8], %r: {0}[2,6,8,{1}]) {{
  %w = constant {{value = {0}[{2},8,2,2]{{1}}}}
  %b = constant {{value = {0}[{1}]{{1}}}}
  %0 = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"}} : {0}[2,4,5,{2}]
  %1 = reshape(%0) {{shape = [2,4,5,2,2,{1}]}} : {0}[2,4,5,2,2,{1}]
  %2 = transpose(%1) {{perm = [0,1,3,2,4,5]}} : {0}[2,4,2,5,2,{1}]
  %3 = reshape(%2) {{shape = [2,8,10,{1}]}} : {0}[2,8,10,{1}]
  %4 = slice(%3) {{starts = [0,1,1,0], limits = [2,7,9,{1}], strides = [1,1,1,1]}} : {0}[2,6,8,{1}]
  %5 = broadcast(%b) {{shape = [2,6,8,{1}], dims = [3]}} : {0}[2,6,8,{1}]
  %6 = add(%4, %5) : {0}[2,6,8,{1}]
  %7 = add(%6, %r) : {0}[2,6,8,{1}]
  return "y" = %7
}})",
        type, features, 4 * features));
  }
  for (const auto& [phases, features, first] : {std::array{4, 8, 2}, {32, 1, 5}}) {
    graphs.push_back(fmt::format(
        R"(graph g(%x: {0}[2,5,8], %r: {0}[2,{4},{2}]) {{
  %w = constant {{value = {0}[{5},8,2]{{1}}}}
  %0 = conv(%x, %w) {{strides = [1], low = [1], high = [1], dilations = [1], lhs_dilations = [1], groups = 1, layout = "nhwc"}} : {0}[2,6,{5}]
  %1 = reshape(%0) {{shape = [2,{3},{2}]}} : {0}[2,{3},{2}]
  %2 = slice(%1) {{starts = [0,{1},0], limits = [2,{6},{2}], strides = [1,1,1]}} : {0}[2,{4},{2}]
  %3 = add(%2, %r) : {0}[2,{4},{2}]
  return "y" = %3
}})",
        type, first, features, 6 * phases, 6 * phases - 2 * first, phases * features, 6 * phases - first));
  }
  return graphs;
}

}  // namespace heddle::testing
