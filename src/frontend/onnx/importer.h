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
  // the input `s.0`, `s.1`, ...; a sequence has as many items as shapes are given for. Symbolic dimensions that nothing
  // fixes are guessed (Imported::assumed). An input with a default (an initialiser of its name) is an input if this or
  // `values` names it, otherwise a constant.
  std::map<std::string, Shape> shapes;
  // Values of inputs, used only where the graph's shapes depend on them (then the input is specialised).
  std::map<std::string, Tensor> values;
  // Optional inputs that are not given.
  std::set<std::string> absent;
  // Of the caller's, by domain and name (CompileOptions::operators).
  std::map<std::string, Operator> operators = {};
  // Whether external data may lie behind any symbolic link.
  DataLinks links = DataLinks::kRefuse;
  ImportLimits limits;
};

// How one output of the model is put together from outputs of the graph.
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

// A branch of an If that cannot be made for these shapes: a run that takes it ends with the error.
struct FailingBranch {
  std::string node;
  std::string branch;  // the attribute: "then_branch"
  Error error;
};

struct Imported {
  ir::Graph graph;
  std::vector<OutputInfo> outputs;
  // Inputs whose values became part of the graph; a run must pass exactly these values. They stay parameters, except
  // for text, which is always specialised and never reaches the graph.
  std::vector<std::string> specialised_inputs;
  std::vector<AssumedDim> assumed;
  std::string guess;  // Extents::describe() of them
  std::vector<FailingBranch> failing_branches;

  // A text input: its value, and its position among all inputs.
  struct Text {
    uint32_t position = 0;
    std::string name;
    Tensor value;
  };
  std::vector<Text> texts;
  // The inputs with a default, whether or not it is used here.
  struct Default {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
  };
  std::vector<Default> defaults;
};

// A model file that is imported for several sets of shapes: it is read and decoded once, and each of its tensors is
// loaded once, so that the graphs share them. One thread at a time.
class ModelFile {
 public:
  // Links and limits of the options hold for reading the file. Throws what import_model throws before it looks at the
  // others.
  explicit ModelFile(const std::string& path, const ImportOptions& options = {});
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  Imported import(const ImportOptions& options);

  // The model's shapes of the inputs of known rank that a caller with these options passes. A symbolic extent is -1,
  // with its symbol, "" if it has none.
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
// kUnsupportedType, kUnknownShape (names the inputs whose values are needed), kLimit. An error after a guess says what
// was guessed and how to set it.
Imported import_model(const std::string& path, const ImportOptions& options = {});

// The same from bytes that the caller keeps alive through `owner` (may be null: then the bytes must outlive the graph).
// External data is looked for relative to `folder`.
Imported import_model(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& folder,
                      const ImportOptions& options = {});

}  // namespace heddle::onnx
