#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/file/file.h"
#include "ort/graph/graph.h"

namespace heddle::ort {

// The place of a constant's elements: a file in the model's folder.
struct WeightPlace {
  std::string file;
  uint64_t offset = 0;
};
// Called for each large constant of a model.
using PlaceWeight = std::function<WeightPlace(const void* data, size_t bytes)>;

// How nodes are called: as in the graph, or `n` and their index in the graph.
enum class NodeNames : bool { kOwn, kIndices };

// Returns the region as a serialised ONNX model. Inputs and outputs keep their order. The model leaves out
// inferred_shapes(), so that it can be compiled for others. Throws kUnsupportedType if an
// attribute has a type that ONNX Runtime's interface does not read.
std::string write_model(const Runtime& runtime, const Graph& graph, const Region& region, NodeNames names,
                        const PlaceWeight& place);

// A model file with its data, for as long as the object lives.
class ModelFolder {
 public:
  ModelFolder(const Runtime& runtime, const Graph& graph, const Region& region);
  std::string path() const { return folder_.path() + "/model.onnx"; }

 private:
  TempDir folder_;
};

}  // namespace heddle::ort
