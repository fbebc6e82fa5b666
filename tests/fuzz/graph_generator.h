#pragma once

#include <set>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::fuzz {

// A graph and values for its parameters, which the dtypes can hold exactly.
struct Case {
  ir::Graph graph;
  std::vector<ir::Array> inputs;
};

struct GeneratorOptions {
  // Only what stitch groups are made of (no contractions, control or reference ops), in the proportions of the regions
  // that stitching is for: statistics over any dimensions and their consumers, layout changes, several outputs; with
  // larger and odder extents.
  bool memory_bound = false;
  bool quantised = false;  // quantised networks: what generator_quantised.h adds, and movements of data between
  int max_nodes = 24;
  int64_t max_elements = 6000;  // per value
  std::set<ir::Op> ops;         // which primitives to choose from besides layout plumbing; empty: all
};

// The case of a seed. Values stay finite and moderate on the given inputs, and every index is inside its axis.
Case generate_case(uint64_t seed, const GeneratorOptions& options);

}  // namespace heddle::fuzz
