#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/reader/external_data.h"
#include "heddle/error.h"
#include "heddle/model.h"
#include "heddle/tensor.h"
#include "ir/graph.h"

namespace heddle::onnx {

struct ImportOptions {
  // Maps the name of an input to its shape, for inputs whose shape in the model is symbolic or unknown. The items of a
  // sequence input `s` are named `s.0`, `s.1`, ...; the sequence has as many items as `shapes` has entries for it.
  // Symbolic dimensions that no entry determines are guessed (Imported::assumed). An input with a default (an
  // initialiser of the same name) is an input of the graph if `shapes` or `values` contains it, otherwise a constant.
  std::map<std::string, Shape> shapes;
  // Values of inputs, by name. A value is used only if shapes of the graph depend on it. The graph is then specialised
  // for this value.
  std::map<std::string, Tensor> values;
  // Names of optional inputs that the caller leaves out.
  std::set<std::string> absent;
  // The caller's operators, by domain and name (CompileOptions::operators).
  std::map<std::string, Operator> operators = {};
  // kFollow: external data may be reached through any symbolic link.
  DataLinks links = DataLinks::kRefuse;
  ImportLimits limits;
};

// How one output of the model is assembled from outputs of the graph.
struct OutputInfo {
  enum class Kind : uint8_t { kTensor, kStrings, kSequence, kNone };
  std::string name;  // kTensor: name of the graph's output; the items of sequence `s` are `s.0`, `s.1`, ...
  Kind kind = Kind::kTensor;
  Tensor strings;                 // kStrings: the value, computed at import
  std::vector<OutputInfo> items;  // kSequence: its items
};

// A symbolic dimension of an input whose extent was guessed.
struct AssumedDim {
  std::string input;
  int dim = 0;
  std::string symbol;
  int64_t value = 1;
};

// A branch of an If that cannot be imported for these shapes. If a run takes the branch, the run fails with `error`.
struct FailingBranch {
  std::string node;
  std::string branch;  // name of the attribute: "then_branch"
  Error error;
};

struct Imported {
  ir::Graph graph;
  std::vector<OutputInfo> outputs;
  // Inputs that were specialised: the graph depends on their values, and a run must pass exactly these values. Numeric
  // inputs in this list are still parameters of the graph. Text inputs are always specialised and are never parameters.
  std::vector<std::string> specialised_inputs;
  std::vector<AssumedDim> assumed;
  std::string guess;  // `assumed` as text, by Extents::describe()
  std::vector<FailingBranch> failing_branches;

  // A text input: its value, and its position among all inputs of the model.
  struct Text {
    uint32_t position = 0;
    std::string name;
    Tensor value;
  };
  std::vector<Text> texts;
  // All inputs with a default, whether or not this graph uses them.
  struct Default {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
  };
  std::vector<Default> defaults;
};

// A model file that can be imported for several sets of shapes. The file is read and decoded once. Each tensor of the
// file is loaded once and shared by the imported graphs. Not thread-safe.
class ModelFile {
 public:
  // Reads the file, using only the links and limits of `options`. Throws those errors of import_model() that do not
  // depend on the other options.
  explicit ModelFile(const std::string& path, const ImportOptions& options = {});
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  Imported import(const ImportOptions& options);

  // Returns the shapes that the model declares for the inputs that a caller with these options passes. Inputs of
  // unknown rank are omitted. If the model does not give the number of an extent, the extent is -1, and the entry of
  // `symbols` is its symbol ("" if it has no symbol).
  struct InputDims {
    std::string name;
    Shape extents;
    std::vector<std::string> symbols;
  };
  std::vector<InputDims> input_dims(const ImportOptions& options) const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

// Reads an ONNX file and lowers it to primitives for one set of input shapes. The file stays mapped while any tensor of
// the graph borrows from it. Throws:
//   kFile, kMalformedModel, kMissingData, kInvalidNode, kUnsupportedType, kLimit
//   kInvalidInput         a shape or value in the options does not fit the model
//   kUnsupportedOperator  the message lists all unsupported operators
//   kUnknownShape         the message names the inputs whose values are needed
// If extents were guessed, an error message lists the guesses and says how to set them.
Imported import_model(const std::string& path, const ImportOptions& options = {});

// Imports a model from memory, like import_model() above. `owner` keeps `bytes` alive; if `owner` is null, the bytes
// must outlive the graph. External data is looked up relative to `folder`.
Imported import_model(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& folder,
                      const ImportOptions& options = {});

}  // namespace heddle::onnx
