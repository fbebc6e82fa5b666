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

// An input or output of a model, as the model file declares it.
struct DeclaredPort {
  std::string name;
  std::string type;  // "f32[N,3,224,224]", "seq(i64[])"; "?" for an unknown part, "..." for an unknown rank
  // The extents of a tensor of known rank, each as text: a number, a symbol or "?".
  std::optional<std::vector<std::string>> extents;
};

// An estimate of the resources that a run needs, computed without compiling any kernel.
struct RunEstimate {
  std::vector<PortInfo> inputs, outputs;  // with the shapes of this run
  int64_t constant_bytes = 0;             // weights, in the layouts that kernels read
  int64_t arena_bytes = 0;                // intermediate values
  int64_t port_bytes = 0;                 // inputs and outputs
  size_t kernels = 0;
  double floor_seconds = 0;  // lower bound for one run with the threads of the options, from memory and arithmetic
  std::string target;
};

// A description of a model file. It can also describe a model that Heddle cannot compile.
struct ModelSummary {
  std::string path, format;  // "ONNX", "textual IR", "plan"
  uint64_t file_bytes = 0;
  int64_t ir_version = 0;                               // only for ONNX
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("ai.onnx") and version
  std::vector<DeclaredPort> inputs, outputs;
  std::vector<DeclaredPort> optional_inputs;  // with the extents of their default values
  size_t nodes = 0;                           // including nodes of subgraphs and functions
  std::map<std::string, size_t> operators;
  int64_t parameters = 0, parameter_tensors = 0, parameter_bytes = 0, external_bytes = 0;
  std::vector<std::string> unsupported;  // reasons why Heddle cannot compile the model, if visible without trying
  std::vector<std::string> remarks;      // other notes, such as guessed extents
  std::optional<RunEstimate> estimate;
  std::string no_estimate;  // why there is no estimate: the error that a run with these options would give
  int exit_code = 0;        // the exit code of that error
};

// Reads a model file. If Heddle supports the whole model, also plans a run for the shapes in the options. Compiles no
// kernels. Throws kFile, kMalformedModel, kInvalidIr or kDamagedArtefact if the file is not a model, and
// kInvalidArgument for invalid options.
ModelSummary inspect_model(const std::string& path, const CompileOptions& options);

// Draws the nodes of an ONNX model as an SVG, with the types that the model declares. Nodes that Heddle does not
// support are red. Repeated layers are drawn once. In a model with many nodes, each module is drawn as one box, unless
// `modules` keeps the modules open. If node names reveal no modules, a box is a sequence of consecutive nodes. For
// textual IR, use draw_svg(). Throws the errors of inspect_model(), and kInvalidArgument for a plan.
std::string draw_model_svg(const std::string& path, const CompileOptions& options, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
