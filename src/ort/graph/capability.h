#pragma once

#include <map>
#include <string>
#include <vector>

#include "ort/graph/graph.h"
#include "ort/options.h"

namespace heddle::ort {

// The regions of a graph that Heddle takes, and why other nodes stay with ONNX Runtime.
struct Capability {
  std::vector<std::vector<size_t>> regions;  // indices of nodes
  std::map<size_t, std::string> reasons;     // by the index of a node that is in no region
};

Capability find_capability(const Runtime& runtime, const Graph& graph, const Options& options);

// Returns the reasons as text, each with its nodes.
std::string describe(const Capability& capability, const Graph& graph);

}  // namespace heddle::ort
