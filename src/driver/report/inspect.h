#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/report/modules.h"
#include "heddle/model.h"

namespace heddle::driver {

// An input or output as the model declares it.
struct DeclaredPort {
  std::string name;
  std::string type;  // "f32[N,3,224,224]", "seq(i64[])"; what is not known is "?", an unknown rank "..."
  // Of a tensor whose rank is known: its extents, a number, a symbol or "?".
  std::optional<std::vector<std::string>> extents;
};

// What running it needs, found without compiling a kernel.
struct RunEstimate {
  std::vector<PortInfo> inputs, outputs;  // with the shapes that hold
  int64_t constant_bytes = 0;             // weights as kernels want them
  int64_t arena_bytes = 0;                // intermediate values
  int64_t port_bytes = 0;                 // inputs and outputs
  size_t kernels = 0;
  double floor_seconds = 0;  // of one run on the threads of the options: what the machine's memory and arithmetic allow
  std::string target;
};

// A model file as it is, whether or not Heddle can compile it.
struct ModelSummary {
  std::string path, format;  // "ONNX", "textual IR", "plan"
  uint64_t file_bytes = 0;
  int64_t ir_version = 0;                               // ONNX
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("ai.onnx") and version
  std::vector<DeclaredPort> inputs, outputs;
  std::vector<DeclaredPort> optional_inputs;  // with the extents of their defaults
  size_t nodes = 0;                           // nested ones and those of functions included
  std::map<std::string, size_t> operators;
  int64_t parameters = 0, parameter_tensors = 0, parameter_bytes = 0, external_bytes = 0;
  std::vector<std::string> unsupported;  // every reason why Heddle cannot compile it that shows without trying
  std::vector<std::string> remarks;      // extents that were guessed and the like
  std::optional<RunEstimate> estimate;
  std::string no_estimate;  // why there is no estimate: what a run with these options would throw
  int exit_code = 0;        // the exit code of that error
};

// Reads a model file and, where all of it is supported, plans a run for the shapes of the options. Compiles nothing.
// Throws kFile, kMalformedModel, kInvalidIr, kDamagedArtefact for what is no model, and kInvalidArgument for options.
ModelSummary inspect_model(const std::string& path, const CompileOptions& options);

// The nodes of an ONNX model as a picture, with the types that it declares; those that Heddle does not know are red.
// Layers that repeat are drawn once; of a model of many nodes modules are drawn, or stretches of nodes whose names tell
// of none, unless they are to stay open. Textual IR is drawn as draw_svg() does it. Throws as inspect_model() does, and
// kInvalidArgument for a plan.
std::string draw_model_svg(const std::string& path, const CompileOptions& options, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
