#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/placement.h"
#include "ir/group.h"
#include "passes/names.h"
#include "target/target.h"

namespace heddle::passes {

// The type in which an f32 model is computed. Accumulation, statistics and softmax stay f32.
enum class Precision : uint8_t { kF32, kTf32, kF16, kBF16 };

class FoldMemo;  // passes/simplify/fold.h

struct PassContext {
  const Target& target;
  Precision precision = Precision::kF32;
  FoldMemo* folded = nullptr;  // results of earlier runs on the same constants
  // Returns the groups of a graph's nodes. The driver sets it to its group_nodes(). Empty: passes do not know the
  // groups.
  std::function<ir::Grouping(const ir::Graph&)> group = {};
  // Why kernels of those groups cannot store a value in place. The driver sets it to schedule::placement_obstacle().
  // Empty: nothing is stored in place.
  ir::PlacementObstacle placement_obstacle = {};
};

// A pass is one free function from graph to graph in its own pair of files (passes/<folder>/<name>.h, .cc).
struct Pass {
  std::string_view name;
  std::string_view what;  // one line for `heddle opt --list`
  ir::Graph (*run)(const ir::Graph&, const PassContext&);
  // Whether the pass may change a graph, judged by the target, the precision and the graph's nodes without bodies;
  // null: always. If it is false, the graph is neither copied nor verified.
  bool (*applies)(const ir::Graph&, const PassContext&) = nullptr;
};

// All passes in the order in which they run; a pass may stand in the list more than once. pipeline.cc is the list.
std::span<const Pass> pipeline();
const Pass* find_pass(std::string_view name);

struct PassReport {
  std::string_view name;
  double seconds;
};

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes to leave out
  bool verify = true;                 // verify the graph after each pass
  std::function<void(const PassReport&, const ir::Graph&)> observe;
};

// Skips passes that do not apply. Throws kInvalidArgument for an unknown name in `disabled`, and kInternal with the
// name of a pass whose result does not verify.
ir::Graph run_pipeline(const ir::Graph& graph, const PassContext& context, const PipelineOptions& options = {});
ir::Graph run_passes(const ir::Graph& graph, std::span<const std::string> names, const PassContext& context);

}  // namespace heddle::passes
