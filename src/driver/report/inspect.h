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
  std::string type;  // "f32[N,3,224,224]", "seq(i64[])"; unknown parts are "?", an unknown rank "..."
  // For a tensor of known rank: its extents, each a number, a symbol or "?".
  std::optional<std::vector<std::string>> extents;
};

// The resources that a run needs, computed without compiling a kernel.
struct RunEstimate {
  std::vector<PortInfo> inputs, outputs;  // with the shapes of this run
  int64_t constant_bytes = 0;             // weights in the layouts that kernels need
  int64_t arena_bytes = 0;                // intermediate values
  int64_t port_bytes = 0;                 // inputs and outputs
  size_t kernels = 0;
  double floor_seconds = 0;  // of one run with the options' threads: limit by memory and arithmetic
  std::string target;
};

// A description of a model file, even if Heddle cannot compile it.
struct ModelSummary {
  std::string path, format;  // "ONNX", "textual IR", "plan"
  uint64_t file_bytes = 0;
  int64_t ir_version = 0;                               // ONNX
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("ai.onnx") and version
  std::vector<DeclaredPort> inputs, outputs;
  std::vector<DeclaredPort> optional_inputs;  // with the extents of their defaults
  size_t nodes = 0;                           // including nested ones and those of functions
  std::map<std::string, size_t> operators;
  int64_t parameters = 0, parameter_tensors = 0, parameter_bytes = 0, external_bytes = 0;
  std::vector<std::string> unsupported;  // reasons why Heddle cannot compile it, as far as they show without trying
  std::vector<std::string> remarks;      // guessed extents and the like
  std::optional<RunEstimate> estimate;
  std::string no_estimate;  // why there is no estimate: the error of a run with these options
  int exit_code = 0;        // the exit code of that error
};

// Reads a model file and, if all of it is supported, plans a run for the shapes of the options. Compiles nothing.
// Throws kFile, kMalformedModel, kInvalidIr, kDamagedArtefact if the file is not a model, and kInvalidArgument for bad
// options.
ModelSummary inspect_model(const std::string& path, const CompileOptions& options);

// The nodes of an ONNX model as a picture, with the types that it declares. Nodes that Heddle does not support are red.
// Repeated layers are drawn once. For a model with many nodes, modules are drawn (or runs of nodes, if their names
// reveal no module) unless `modules` keeps them open. Textual IR is drawn by draw_svg(). Throws as inspect_model()
// does, and kInvalidArgument for a plan.
std::string draw_model_svg(const std::string& path, const CompileOptions& options, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
