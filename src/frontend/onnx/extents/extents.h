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

// The meaning of an extent that the model leaves open. The meaning is guessed from the position and the name of the
// extent.
enum class ExtentRole : uint8_t { kBatch, kChannels, kHeight, kWidth, kSequence, kSamples, kOther };

// An extent that neither the model nor the options specify. All dimensions with the same symbol have one extent.
struct OpenExtent {
  std::string key;     // the symbol, or for example "x[2]" for a dimension without a symbol
  std::string symbol;  // "" if the extent has none
  std::string input;   // the first input with this extent
  int dim = 0;
  ExtentRole role = ExtentRole::kOther;
  int64_t partner = -1;  // the width that belongs to a height, or vice versa; -1 if the model leaves it open
};

// The symbolic extents of a model's inputs: those that the shapes in the options determine, and those that are still
// open.
class Extents {
 public:
  // `model` must outlive this object.
  Extents(const ModelProto& model, const ImportOptions& options);

  const std::vector<OpenExtent>& open() const { return open_; }

  // The extent of dimension `i` of an input, for a dimension that the model leaves open. The extent comes from the
  // shapes in the options, or else from `guesses` (by key); the default is 1. The symbol of the dimension may also be a
  // sum, product or quotient of symbols.
  int64_t value(const std::string& input, size_t i, const Dimension& dim,
                const std::map<std::string, int64_t>& guesses) const;
  // The extent of dimension `dim` of an output or an intermediate value. It is the number that the model gives, or else
  // the value that the options' shapes or the guesses give to the dimension's symbol. Returns nullopt if the extent is
  // in none of these.
  std::optional<int64_t> declared(std::string_view value, size_t dim,
                                  const std::map<std::string, int64_t>& guesses) const;
  // The key of an input's dimension; "" if the dimension is not open.
  std::string open_key(const std::string& input, size_t dim) const;
  // assumed() lists the guessed dimensions. describe() also shows the option that sets them:
  // "batch = 1, width = 320 (guessed; --shape x=1,3,48,320 sets them)". It returns "" if nothing was guessed.
  std::vector<AssumedDim> assumed(const std::map<std::string, int64_t>& guesses) const;
  std::string describe(const std::map<std::string, int64_t>& guesses) const;

  static std::string key_of(const std::string& input, size_t i, const Dimension& dim);

 private:
  bool known(const Dimension& dim) const;  // true if the options determine the extent
  std::optional<int64_t> evaluate(std::string_view text, const std::map<std::string, int64_t>& guesses) const;
  void learn(const ModelProto& model, const ImportOptions& options);

  const ModelProto& model_;
  std::map<std::string, int64_t> known_;
  std::set<std::string> symbols_;  // symbols only, without formulas
  std::vector<OpenExtent> open_;
  std::vector<std::pair<std::string, const std::vector<Dimension>*>> inputs_;  // inputs without a shape in the options
};

// The shape that the options give for an input; null if they give none.
const Shape* given_shape(const ImportOptions& options, const std::string& name);

// The inputs that a caller passes: inputs without a default (an initialiser), and inputs named in the options.
std::vector<const ValueInfoProto*> model_inputs(const GraphProto& graph, const ImportOptions& options);

}  // namespace heddle::onnx
