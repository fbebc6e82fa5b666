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
  // Input name -> shape, for inputs whose shape in the model is symbolic or unknown. An item of a sequence input `s` is
  // the input `s.0`, `s.1`, ...; the sequence has as many items as there are shapes for it. Symbolic dimensions that
  // nothing fixes are guessed (Imported::assumed). An input with a default (an initialiser of its name) is an input if
  // `shapes` or `values` names it, otherwise a constant.
  std::map<std::string, Shape> shapes;
  // Values of inputs. They are used only if shapes of the graph depend on them; then the graph is specialised for them.
  std::map<std::string, Tensor> values;
  // Optional inputs that are left out.
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
  std::string name;  // kTensor: the graph's output of this name; items of sequence `s` are `s.0`, `s.1`, ...
  Kind kind = Kind::kTensor;
  Tensor strings;                 // kStrings: text is computed at import
  std::vector<OutputInfo> items;  // kSequence
};

// A symbolic dimension of an input whose extent was guessed.
struct AssumedDim {
  std::string input;
  int dim = 0;
  std::string symbol;
  int64_t value = 1;
};

// A branch of an If that cannot be imported for these shapes. A run that takes it ends with the error.
struct FailingBranch {
  std::string node;
  std::string branch;  // the attribute: "then_branch"
  Error error;
};

struct Imported {
  ir::Graph graph;
  std::vector<OutputInfo> outputs;
  // Inputs whose values became part of the graph; a run must pass exactly these values. They remain parameters, except
  // for text, which is always specialised and never reaches the graph.
  std::vector<std::string> specialised_inputs;
  std::vector<AssumedDim> assumed;
  std::string guess;  // Extents::describe() of `assumed`
  std::vector<FailingBranch> failing_branches;

  // A text input: its value, and its position among all inputs.
  struct Text {
    uint32_t position = 0;
    std::string name;
    Tensor value;
  };
  std::vector<Text> texts;
  // The inputs with a default, whether or not this graph uses it.
  struct Default {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
  };
  std::vector<Default> defaults;
};

// A model file to import for several sets of shapes. It is read and decoded once and each of its tensors is loaded
// once, so that the graphs share them. Not thread-safe.
class ModelFile {
 public:
  // Reads the file with the links and limits of the options. Throws the errors of import_model that do not depend on
  // the other options.
  explicit ModelFile(const std::string& path, const ImportOptions& options = {});
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  Imported import(const ImportOptions& options);

  // The shapes that the model declares for the inputs that a caller with these options passes, if their rank is known.
  // A symbolic extent is -1 and has its symbol, or "" if it has none.
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

// Reads an ONNX file and lowers it to primitives for one set of input shapes. The file stays mapped as long as a tensor
// of the graph borrows from it. Throws Error: kFile, kMalformedModel, kMissingData, kInvalidNode, kInvalidInput (a
// shape or value of the options does not fit the model), kUnsupportedOperator (all of them in one message),
// kUnsupportedType, kUnknownShape (names the inputs whose values are needed), kLimit. After a guess, an error says what
// was guessed and how to set it.
Imported import_model(const std::string& path, const ImportOptions& options = {});

// import_model() for bytes that `owner` keeps alive. `owner` may be null: then the bytes must outlive the graph.
// External data is searched for relative to `folder`.
Imported import_model(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& folder,
                      const ImportOptions& options = {});

}  // namespace heddle::onnx
