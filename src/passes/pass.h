#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/placement.h"
#include "ir/group.h"
#include "passes/names.h"
#include "passes/quantized/quantized_products.h"
#include "target/target.h"

namespace heddle::passes {

// The type in which an f32 model is computed. Accumulation, statistics and softmax remain f32 for every choice.
enum class Precision : uint8_t { kF32, kTf32, kF16, kBF16 };

class FoldMemo;  // passes/simplify/fold.h

struct PassContext {
  const Target& target;
  Precision precision = Precision::kF32;
  FoldMemo* folded = nullptr;  // folded constants of earlier runs, or null
  // Groups a graph's nodes. The driver sets this to its group_nodes(). If empty, passes do not know the groups.
  std::function<ir::Grouping(const ir::Graph&)> group = {};
  // Says why the kernels of a group cannot store a value in place. The driver sets this to
  // schedule::placement_obstacle(). If empty, no value is stored in place.
  ir::PlacementObstacle placement_obstacle = {};
  QuantisedProducts* quantised = nullptr;  // receives how products of quantised operands are computed; may be null
};

// A pass: a free function from graph to graph, in its own pair of files (passes/<folder>/<name>.h and .cc).
struct Pass {
  std::string_view name;
  std::string_view what;  // one line for `heddle opt --list`
  ir::Graph (*run)(const ir::Graph&, const PassContext&);
  // Returns false if the pass cannot change the graph, judged by the target, the precision and the nodes outside of
  // loop and branch bodies. The graph is then neither copied nor verified. Null: the pass always runs.
  bool (*applies)(const ir::Graph&, const PassContext&) = nullptr;
};

// All passes in the order in which they run, as listed in pipeline.cc. A pass may occur more than once.
std::span<const Pass> pipeline();
const Pass* find_pass(std::string_view name);

struct PassReport {
  std::string_view name;
  double seconds;
};

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes to skip
  bool verify = true;                 // verify the graph after each pass
  std::function<void(const PassReport&, const ir::Graph&)> observe;
};

// Runs the passes on a graph and skips those that do not apply. Throws kInvalidArgument for an unknown name in
// `disabled`. Throws kInternal, with the name of the pass, if the result of a pass does not verify.
ir::Graph run_pipeline(const ir::Graph& graph, const PassContext& context, const PipelineOptions& options = {});
ir::Graph run_passes(const ir::Graph& graph, std::span<const std::string> names, const PassContext& context);
// Returns how the pipeline would compute the products of quantised operands. Runs no pass that comes after those that
// decide it, so the values of large constants do not matter.
QuantisedProducts find_quantised_products(const ir::Graph& graph, PassContext context);

}  // namespace heddle::passes
