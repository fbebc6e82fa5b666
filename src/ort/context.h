#pragma once

#include <memory>
#include <string>

#include "ort/fused_node.h"

namespace heddle::ort {

// Plans inside ONNX models: a node EPContext of the domain com.microsoft holds the plan of a region, or names a file
// beside the model that holds it.

// True if the node is an EPContext of this provider.
bool is_context(const Runtime& runtime, const GraphNode& node);

// Returns a new EPContext for a compiled node, the `number`-th of the session. Writes the plan file unless the options
// embed plans. `model_path`: of the session's model. Throws kFile.
OrtNode* make_context(const Runtime& runtime, const FusedNode& node, int number, const std::string& model_path,
                      const Options& options);

// Loads the plan of an EPContext. Throws kFile if the model or the plan's file may have been written by another user,
// kDamagedArtefact, and kDevice if the plan was made for another machine.
std::unique_ptr<FusedNode> load_context(const Runtime& runtime, const GraphNode& node, FusedNode::Place place,
                                        const std::string& model_path, const Options& options);

}  // namespace heddle::ort
