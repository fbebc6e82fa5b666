#include <fmt/format.h>

#include "schedule/backend.h"
#include "schedule/expr/inline.h"
#include "schedule/kernel_desc.h"
#include "schedule/product/contraction.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {
namespace {

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
    case Op::kDequantize:
      if (graph.dtype(node.outputs[0]) == DType::kF64) return "few bits are widened to f32";
      return "";
    default:
      break;
  }
  if (ir::is_standalone(node.op)) return standalone_obstacle(graph, node, target);
  if (Inliner::inlines(node.op)) return "";
  return fmt::format("no kernel is generated for {}", ir::to_string(node.op));
}

}  // namespace

bool can_compile(const ir::Graph& graph, const ir::Node& node, const Target& target, std::string* reason) {
  std::string why;
  if (ir::class_of(node.op) == ir::OpClass::kContraction || ir::class_of(node.op) == ir::OpClass::kWindow) {
    if (!can_compile_contraction(graph, node, reason)) return false;
    why = backend_of(target).contraction_obstacle(graph, node);
  } else {
    why = obstacle(graph, node, target);
  }
  if (!why.empty() && reason != nullptr) *reason = why;
  return why.empty();
}

}  // namespace heddle::schedule
