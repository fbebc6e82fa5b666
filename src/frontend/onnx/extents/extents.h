#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/importer.h"
#include "frontend/onnx/reader/proto.h"

namespace heddle::onnx {

// The meaning of an extent that the model leaves open, guessed from its position and name.
enum class ExtentRole : uint8_t { kBatch, kChannels, kHeight, kWidth, kSequence, kSamples, kOther };

// An extent that neither the model nor the options fix. All dimensions of one symbol are one extent.
struct OpenExtent {
  std::string key;     // the symbol; "x[2]" for a dimension without one
  std::string symbol;  // "" if it has none
  std::string input;   // where it occurs first
  int dim = 0;
  ExtentRole role = ExtentRole::kOther;
  int64_t partner = -1;  // of a height or width: the value of the other one if the model fixes it
};

// The symbolic extents of a model's inputs: those that the options' shapes fix, and those that are open.
class Extents {
 public:
  // `model` must outlive this object.
  Extents(const ModelProto& model, const ImportOptions& options);

  const std::vector<OpenExtent>& open() const { return open_; }

  // The value of dimension `i` of an input, if the model does not fix it. Taken from the options' shapes, else from
  // `guesses` (by key), else 1. A symbol may also be a sum, product or quotient of symbols with such values.
  int64_t value(const std::string& input, size_t i, const Dimension& dim,
                const std::map<std::string, int64_t>& guesses) const;
  // Dimension `dim` of any value: from the model, or the value of its symbol from the options' shapes or the guesses.
  // nullopt if none of them has it.
  std::optional<int64_t> declared(std::string_view value, size_t dim,
                                  const std::map<std::string, int64_t>& guesses) const;
  // The key of an input's dimension; "" unless it is open.
  std::string open_key(const std::string& input, size_t dim) const;
  // The guessed dimensions, and a text that shows the option to set them ("" if there are none):
  // "batch = 1, width = 320 (guessed; --shape x=1,3,48,320 sets them)".
  std::vector<AssumedDim> assumed(const std::map<std::string, int64_t>& guesses) const;
  std::string describe(const std::map<std::string, int64_t>& guesses) const;

  static std::string key_of(const std::string& input, size_t i, const Dimension& dim);

 private:
  bool known(const Dimension& dim) const;  // from the options
  std::optional<int64_t> evaluate(std::string_view text, const std::map<std::string, int64_t>& guesses) const;
  void learn(const ModelProto& model, const ImportOptions& options);

  const ModelProto& model_;
  std::map<std::string, int64_t> known_;
  std::set<std::string> symbols_;  // plain symbols, no formulas
  std::vector<OpenExtent> open_;
  std::vector<std::pair<std::string, const std::vector<Dimension>*>> inputs_;  // without a shape in the options
};

// The shape that the options give for an input, or null.
const Shape* given_shape(const ImportOptions& options, const std::string& name);

// The inputs that a caller passes: those without a default (an initialiser) and those that the options name.
std::vector<const ValueInfoProto*> model_inputs(const GraphProto& graph, const ImportOptions& options);

}  // namespace heddle::onnx
