#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "schedule/expr/inline.h"
#include "schedule/kernel_desc.h"
#include "schedule/product/contraction.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {
namespace {

using ir::Op;

// Why a memory-bound node has no kernel; empty: it has.
std::string obstacle(const ir::Graph& graph, const ir::Node& node, const Target& target) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ir::ValueId v : *values) {
      if (graph.dtype(v) == DType::kString) return "strings stay at the border of a model";
      if (graph.shape(v).size() > 16) return "more than 16 dimensions";
    }
  }
  switch (node.op) {
    case Op::kReduce:
    case Op::kArgReduce:
    case Op::kScan:
      return "";
    case Op::kBitcast:
      for (ir::ValueId v : {node.inputs[0], node.outputs[0]}) {
        const DType dtype = graph.dtype(v);
        if (compute_dtype(dtype) != dtype || bits_of(dtype) < 8) {
          return fmt::format("the bits of {} are not at hand where it is computed in f32", to_string(dtype));
        }
      }
      return "";
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
      if (element_count(graph.shape(node.inputs[0])) == 0) return "there is nothing to gather from";
      return "";
    default:
      break;
  }
  if (ir::is_standalone(node.op)) return standalone_obstacle(graph, node, target);
  if (Inliner::inlines(node.op)) return "";
  return fmt::format("no kernel is generated for {}", ir::to_string(node.op));
}

// Kernels of products and windows on a GPU count rows, columns and tiles in 32 bits. The smallest tile has 16 elements.
std::string gpu_obstacle(const ir::Graph& graph, const ir::Node& node) {
  constexpr int64_t kMost = INT32_MAX, kMostElements = 16 * kMost;
  const Shape& a = graph.shape(node.inputs[0]);
  std::vector<int64_t> counts;
  if (node.op == Op::kDot) {
    const auto extent_of = [&](const char* dims) {
      int64_t extent = 1;
      for (const int64_t d : node.attrs.ints(dims)) extent *= a[static_cast<size_t>(d)];
      return extent;
    };
    const int64_t batch = extent_of("lhs_batch"), depth = extent_of("lhs_contract");
    const int64_t inner = std::max<int64_t>(batch * depth, 1);
    counts = {batch, depth, element_count(a) / inner, element_count(graph.shape(node.inputs[1])) / inner};
  } else {
    // Pixels and channels.
    for (const Shape& shape : {a, graph.shape(node.outputs[0])}) {
      if (shape.empty()) continue;
      counts.push_back(shape.back());
      counts.push_back(element_count(shape) / std::max<int64_t>(shape.back(), 1));
    }
  }
  const bool fits = std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count <= kMost; });
  if (fits && element_count(graph.shape(node.outputs[0])) <= kMostElements) return "";
  return "kernels of products on a GPU count rows and columns in 32 bits";
}

}  // namespace

bool can_compile(const ir::Graph& graph, const ir::Node& node, const Target& target, std::string* reason) {
  std::string why;
  if (ir::class_of(node.op) == ir::OpClass::kContraction || ir::class_of(node.op) == ir::OpClass::kWindow) {
    if (!can_compile_contraction(graph, node, reason)) return false;
    if (target.kind == TargetKind::kCuda) why = gpu_obstacle(graph, node);
  } else {
    why = obstacle(graph, node, target);
  }
  if (!why.empty() && reason != nullptr) *reason = why;
  return why.empty();
}

}  // namespace heddle::schedule
