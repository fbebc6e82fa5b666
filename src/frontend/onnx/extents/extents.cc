#include "frontend/onnx/extents/extents.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <set>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle::onnx {
namespace {

bool is_open(const Dimension& dim) {
  return !dim.value;
}

const TypeProto* tensor_type(const ValueInfoProto& input) {
  const TypeProto* type = &input.type;
  if (type->kind == TypeProto::Kind::kOptional && type->element) type = type->element.get();
  return type->kind == TypeProto::Kind::kTensor && type->shape ? type : nullptr;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool has_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.find(w) != std::string::npos; });
}

// ---- formulas: "past + 1", "2*s0", "(a + b)//2"

class Formula {
 public:
  // Names that `lookup` does not know make a text no formula.
  Formula(std::string_view text, const std::function<std::optional<int64_t>(const std::string&)>& lookup)
      : rest_(text), lookup_(lookup) {}

  std::optional<int64_t> evaluate() {
    const auto value = sum();
    skip();
    return value && rest_.empty() ? value : std::nullopt;
  }

 private:
  static constexpr int kMostNested = 16;

  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<int64_t> sum() {
    auto left = product();
    while (left) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      const auto right = product();
      int64_t result = 0;
      if (!right ||
          (plus ? __builtin_add_overflow(*left, *right, &result) : __builtin_sub_overflow(*left, *right, &result))) {
        return std::nullopt;
      }
      left = result;
    }
    return left;
  }
  std::optional<int64_t> product() {
    auto left = atom();
    while (left) {
      if (take("*")) {
        const auto right = atom();
        int64_t result = 0;
        if (!right || __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
        left = result;
      } else if (take("//") || take("/")) {
        const auto right = atom();
        if (!right || *right <= 0 || *left < 0) return std::nullopt;
        left = *left / *right;
      } else {
        break;
      }
    }
    return left;
  }
  std::optional<int64_t> atom() {
    if (take("(")) {
      if (++nested_ > kMostNested) return std::nullopt;
      const auto value = sum();
      return take(")") ? value : std::nullopt;
    }
    skip();
    size_t size = 0;
    const auto part_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
    while (size < rest_.size() && part_of_name(static_cast<unsigned char>(rest_[size]))) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (word.empty()) return std::nullopt;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) return number;
    return lookup_(std::string(word));
  }

  std::string_view rest_;
  const std::function<std::optional<int64_t>(const std::string&)>& lookup_;
  int nested_ = 0;
};

bool looks_like_formula(std::string_view text) {
  return text.find_first_of("+-*/(") != std::string_view::npos;
}

// ---- roles

ExtentRole role_of(const std::string& input, const std::string& symbol, const std::vector<Dimension>& dims, size_t i,
                   int32_t elem_type) {
  constexpr int32_t kFloat32 = 1, kFloat16 = 10;
  const std::string name = lower_case(symbol), of = lower_case(input);
  if (has_any(name, {"batch", "bsz"}) || name == "n" || name == "b") return ExtentRole::kBatch;
  if (has_any(name, {"height"}) || name == "h") return ExtentRole::kHeight;
  if (has_any(name, {"width"}) || name == "w") return ExtentRole::kWidth;
  if (has_any(name, {"channel"}) || name == "c") return ExtentRole::kChannels;
  if (has_any(name, {"sample", "audio", "wave"})) return ExtentRole::kSamples;
  if (has_any(name, {"seq", "len", "time", "frame", "token", "step"}) || name == "t") return ExtentRole::kSequence;
  if (i == 0) return dims.size() == 1 ? ExtentRole::kSequence : ExtentRole::kBatch;
  const auto few = [&](size_t d) {
    return d < dims.size() && dims[d].value && *dims[d].value >= 1 && *dims[d].value <= 4;
  };
  if (dims.size() == 4) {
    const bool channels_last = few(3) && !few(1);
    const size_t height = channels_last ? 1 : 2;
    if (i == height) return ExtentRole::kHeight;
    if (i == height + 1) return ExtentRole::kWidth;
    return ExtentRole::kChannels;
  }
  // The state of a recurrent layer: layers or directions, batch, units.
  constexpr int64_t kMostLayers = 8;
  const bool layers = dims[0].value && *dims[0].value > 1 && *dims[0].value <= kMostLayers;
  if (dims.size() == 3 && i == 1 && !is_open(dims[2]) && (layers || has_any(of, {"state", "hidden", "h0", "c0"}))) {
    return ExtentRole::kBatch;
  }
  if (has_any(of, {"audio", "wave", "pcm", "speech"}) && (elem_type == kFloat32 || elem_type == kFloat16) &&
      i + 1 == dims.size()) {
    return ExtentRole::kSamples;
  }
  return ExtentRole::kSequence;
}

int64_t partner_of(const std::vector<Dimension>& dims, size_t i, ExtentRole role) {
  const bool height = role == ExtentRole::kHeight;
  const size_t other = height ? i + 1 : i - 1;
  if ((!height && role != ExtentRole::kWidth) || other >= dims.size() || is_open(dims[other])) return -1;
  return *dims[other].value;
}

}  // namespace

const Shape* given_shape(const ImportOptions& options, const std::string& name) {
  if (const auto at = options.shapes.find(name); at != options.shapes.end()) return &at->second;
  if (const auto at = options.values.find(name); at != options.values.end()) return &at->second.shape();
  return nullptr;
}

std::vector<const ValueInfoProto*> model_inputs(const GraphProto& graph, const ImportOptions& options) {
  std::set<std::string_view> initialised;
  for (const TensorProto& t : graph.initializers) initialised.insert(t.name);
  for (const SparseTensorProto& t : graph.sparse_initializers) initialised.insert(t.values.name);
  std::vector<const ValueInfoProto*> inputs;
  for (const ValueInfoProto& input : graph.inputs) {
    if (!initialised.contains(input.name) || given_shape(options, std::string(input.name)) != nullptr) {
      inputs.push_back(&input);
    }
  }
  return inputs;
}

Extents::Extents(const ModelProto& model, const ImportOptions& options) : model_(model) {
  learn(model, options);
  std::set<std::string> seen;
  for (const ValueInfoProto* input : model_inputs(model.graph, options)) {
    const std::string name(input->name);
    const TypeProto* type = tensor_type(*input);
    if (type == nullptr || options.absent.contains(name) || given_shape(options, name) != nullptr) continue;
    inputs_.emplace_back(name, &*type->shape);
    for (size_t i = 0; i < type->shape->size(); ++i) {
      const Dimension& dim = (*type->shape)[i];
      const std::string key = key_of(name, i, dim), symbol(dim.param);
      if (!is_open(dim) || known(dim) || seen.contains(key)) continue;
      if (looks_like_formula(symbol) && evaluate(symbol, {})) continue;  // follows from other symbols
      seen.insert(key);
      const ExtentRole role = role_of(name, symbol, *type->shape, i, type->elem_type);
      open_.push_back({key, symbol, name, static_cast<int>(i), role, partner_of(*type->shape, i, role)});
    }
  }
}

void Extents::learn(const ModelProto& model, const ImportOptions& options) {
  for (const ValueInfoProto* input : model_inputs(model.graph, options)) {
    const TypeProto* type = tensor_type(*input);
    if (type == nullptr) continue;
    const Shape* given = given_shape(options, std::string(input->name));
    for (size_t i = 0; i < type->shape->size(); ++i) {
      const Dimension& dim = (*type->shape)[i];
      if (!is_open(dim) || dim.param.empty()) continue;
      const std::string symbol(dim.param);
      if (!looks_like_formula(symbol)) symbols_.insert(symbol);
      if (given != nullptr && given->size() == type->shape->size()) known_.emplace(symbol, (*given)[i]);
    }
  }
}

std::string Extents::key_of(const std::string& input, size_t i, const Dimension& dim) {
  return dim.param.empty() ? fmt::format("{}[{}]", input, i) : std::string(dim.param);
}

// With no guess for a symbol that exists, any value tells whether the text is a formula.
std::optional<int64_t> Extents::evaluate(std::string_view text, const std::map<std::string, int64_t>& guesses) const {
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    if (const auto at = known_.find(name); at != known_.end()) return at->second;
    if (const auto at = guesses.find(name); at != guesses.end()) return at->second;
    if (symbols_.contains(name)) return 1;
    return std::nullopt;
  };
  const std::function<std::optional<int64_t>(const std::string&)> function = lookup;
  return Formula(text, function).evaluate();
}

bool Extents::known(const Dimension& dim) const {
  return known_.contains(std::string(dim.param));
}

int64_t Extents::value(const std::string& input, size_t i, const Dimension& dim,
                       const std::map<std::string, int64_t>& guesses) const {
  const std::string key = key_of(input, i, dim);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  if (const auto at = guesses.find(key); at != guesses.end()) return at->second;
  if (!looks_like_formula(dim.param)) return 1;
  return std::max<int64_t>(0, evaluate(dim.param, guesses).value_or(1));
}

std::string Extents::open_key(const std::string& input, size_t dim) const {
  for (const auto& [name, dims] : inputs_) {
    if (name != input || dim >= dims->size()) continue;
    const std::string key = key_of(name, dim, (*dims)[dim]);
    const bool open = std::any_of(open_.begin(), open_.end(), [&](const OpenExtent& e) { return e.key == key; });
    return open && is_open((*dims)[dim]) ? key : std::string();
  }
  return {};
}

std::optional<int64_t> Extents::declared(std::string_view value, size_t dim,
                                         const std::map<std::string, int64_t>& guesses) const {
  for (const auto* infos : {&model_.graph.outputs, &model_.graph.value_infos}) {
    for (const ValueInfoProto& info : *infos) {
      if (info.name != value || !info.type.shape || dim >= info.type.shape->size()) continue;
      const Dimension& of = (*info.type.shape)[dim];
      if (!is_open(of)) return of.value;
      for (const auto* extents : {&known_, &guesses}) {
        if (const auto at = extents->find(std::string(of.param)); at != extents->end()) return at->second;
      }
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<AssumedDim> Extents::assumed(const std::map<std::string, int64_t>& guesses) const {
  std::vector<AssumedDim> dims;
  for (const auto& [name, shape] : inputs_) {
    for (size_t i = 0; i < shape->size(); ++i) {
      const Dimension& dim = (*shape)[i];
      const auto guess = guesses.find(key_of(name, i, dim));
      if (!is_open(dim) || guess == guesses.end()) continue;
      dims.push_back({name, static_cast<int>(i), std::string(dim.param), guess->second});
    }
  }
  return dims;
}

std::string Extents::describe(const std::map<std::string, int64_t>& guesses) const {
  std::vector<std::string> values;
  std::vector<option::NamedShape> shapes;
  std::set<std::string> seen;
  for (const AssumedDim& dim : assumed(guesses)) {
    const std::string name = dim.symbol.empty() ? fmt::format("{}[{}]", dim.input, dim.dim) : dim.symbol;
    if (seen.insert(name).second) values.push_back(fmt::format("{} = {}", name, dim.value));
  }
  for (const auto& [name, dims] : inputs_) {
    Shape shape;
    bool guessed = false;
    for (size_t i = 0; i < dims->size(); ++i) {
      const Dimension& dim = (*dims)[i];
      guessed = guessed || (is_open(dim) && guesses.contains(key_of(name, i, dim)));
      shape.push_back(is_open(dim) ? value(name, i, dim, guesses) : *dim.value);
    }
    if (guessed) shapes.emplace_back(name, std::move(shape));
  }
  if (values.empty()) return {};
  return fmt::format("{} (guessed; {} {} {})", fmt::join(values, ", "), option::shape(shapes),
                     shapes.size() == 1 ? "sets" : "set", values.size() == 1 ? "it" : "them");
}

}  // namespace heddle::onnx
