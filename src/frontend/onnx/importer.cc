#include "frontend/onnx/importer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/file/file.h"
#include "base/interface/option.h"
#include "base/memory.h"
#include "base/near_miss.h"
#include "frontend/onnx/extents/extent_search.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kOldestIr = 3;
constexpr int64_t kNewestIr = 14;
constexpr size_t kMaxSequence = 4096;

void check_versions(const ModelProto& model) {
  const std::string where = model.path.empty() ? "model" : model.path;
  if (model.ir_version < kOldestIr || model.ir_version > kNewestIr) {
    fail(ErrorCode::kMalformedModel, where,
         fmt::format("ir_version is {}; Heddle knows {} to {}", model.ir_version, kOldestIr, kNewestIr),
         "Check that the file is an ONNX model, or convert it with onnx.version_converter");
  }
  const int64_t opset = version_of(model.opset_imports, "");
  if (opset == 0 && model.opset_imports.empty()) {
    fail(ErrorCode::kMalformedModel, where, "the model imports no operator set");
  }
  const auto check = [&](const std::vector<OperatorSet>& sets) {
    const int64_t version = version_of(sets, "");
    if (version == 0 || (version >= kOldestOpset && version <= kNewestOpset)) return;
    fail(ErrorCode::kUnsupportedOperator, where,
         fmt::format("operator set {} of ai.onnx; Heddle knows {} to {}", version, kOldestOpset, kNewestOpset),
         "Convert the model with onnx.version_converter");
  };
  check(model.opset_imports);
  for (const FunctionProto& function : model.functions) check(function.opset_imports);
}

// Makes the parameters of the graph and binds the model's inputs.
class InputBinder {
 public:
  InputBinder(ModelState& state, GraphImporter& importer, Imported& result)
      : state_(state), options_(state.options), importer_(importer), result_(result) {}

  void bind_all(const GraphProto& graph, Scope& scope) {
    const std::vector<const ValueInfoProto*> inputs = model_inputs(graph, options_);
    note_defaults(graph);
    for (const ValueInfoProto* input : inputs) {
      names_.emplace_back(input->name);
      if (!known_names_.insert(names_.back()).second) {
        fail(ErrorCode::kMalformedModel, fmt::format("input '{}'", input->name), "two inputs have this name");
      }
    }
    check_extents(inputs);
    check_names();
    for (const ValueInfoProto* input : inputs) {
      scope.values.emplace(input->name, bind(std::string(input->name), input->type));
    }
  }

 private:
  void note_defaults(const GraphProto& graph) {
    std::unordered_map<std::string_view, const Shape*> shapes;
    for (const TensorProto& t : graph.initializers) shapes.emplace(t.name, &t.dims);
    for (const SparseTensorProto& t : graph.sparse_initializers) shapes.emplace(t.values.name, &t.dims);
    for (const ValueInfoProto& input : graph.inputs) {
      const auto shape = shapes.find(input.name);
      if (shape == shapes.end() || input.type.kind != TypeProto::Kind::kTensor) continue;
      const std::string name(input.name);
      result_.defaults.push_back(
          {name, dtype_of(input.type.elem_type, fmt::format("input '{}'", name)), *shape->second});
    }
  }

  // An item of a sequence `s` is `s.0`.
  bool is_known(const std::string& name) const {
    if (known_names_.contains(name)) return true;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (known_names_.contains(name.substr(0, dot))) return true;
    }
    return false;
  }

  // The name of an extent stands where shapes have that of an input.
  void check_extents(const std::vector<const ValueInfoProto*>& inputs) const {
    for (const auto& [name, shape] : options_.shapes) {
      if (is_known(name)) continue;
      for (const ValueInfoProto* input : inputs) {
        const auto& dims = input->type.shape;
        if (!dims || std::none_of(dims->begin(), dims->end(), [&](const Dimension& d) { return d.param == name; })) continue;
        fail(ErrorCode::kInvalidInput, fmt::format("extent '{}'", name),
             fmt::format("it is an extent of input '{}', {}, and a shape is that of a whole input", input->name, describe(*dims)),
             "Give the whole shape: " + option::shape_of(input->name));
      }
    }
  }

  void check_names() const {
    const auto check = [&](const std::string& name) {
      if (is_known(name)) return;
      fail(ErrorCode::kInvalidInput, fmt::format("input '{}'", name), "the model has no input of this name",
           did_you_mean(name, names_) + fmt::format("Its inputs are: {}", fmt::join(names_, ", ")));
    };
    for (const auto& item : options_.shapes) check(item.first);
    for (const auto& item : options_.values) check(item.first);
    for (const auto& name : options_.absent) check(name);
  }

  static std::string describe(const std::vector<Dimension>& dims) {
    std::vector<std::string> parts;
    for (const Dimension& d : dims) {
      parts.push_back(d.value ? std::to_string(*d.value) : d.param.empty() ? "?" : std::string(d.param));
    }
    return fmt::format("[{}]", fmt::join(parts, ","));
  }

  Shape resolve_shape(const std::string& name, const TypeProto& type) {
    const std::string where = fmt::format("input '{}'", name);
    const Shape* given = given_shape(options_, name);
    if (given != nullptr) {
      for (const int64_t d : *given) {
        if (d < 0) fail(ErrorCode::kInvalidInput, where, fmt::format("extent {} is negative", d));
      }
      bool fits = !type.shape || type.shape->size() == given->size();
      for (size_t i = 0; fits && type.shape && i < given->size(); ++i) {
        const Dimension& dim = (*type.shape)[i];
        fits = !dim.value || *dim.value == (*given)[i];
      }
      if (!fits) {
        fail(ErrorCode::kInvalidInput, where,
             fmt::format("shape {} is given, the model wants {}", to_string(*given), describe(*type.shape)));
      }
      return *given;
    }
    if (!type.shape) {
      fail(ErrorCode::kUnknownShape, where, "the model does not say its shape", "Give it: " + option::shape_of(name));
    }
    Shape shape;
    for (size_t i = 0; i < type.shape->size(); ++i) {
      const Dimension& dim = (*type.shape)[i];
      if (dim.value) {
        shape.push_back(*dim.value);
        continue;
      }
      shape.push_back(state_.extents.value(name, i, dim, state_.guesses));
    }
    return shape;
  }

  const Tensor* given_value(const std::string& name, const ir::TensorType& type) const {
    const auto at = options_.values.find(name);
    if (at == options_.values.end()) return nullptr;
    const Tensor& value = at->second;
    if (value.dtype() != type.dtype || value.shape() != type.shape) {
      fail(ErrorCode::kInvalidInput, fmt::format("input '{}'", name),
           fmt::format("a value of type {} is given, the model wants {}", ir::to_string({value.dtype(), value.shape()}),
                       ir::to_string(type)));
    }
    return &value;
  }

  Value bind_tensor(const std::string& name, const TypeProto& proto) {
    const std::string where = fmt::format("input '{}'", name);
    const ir::TensorType type{dtype_of(proto.elem_type, where), resolve_shape(name, proto)};
    check_size(type, where);
    const Tensor* value = given_value(name, type);
    if (type.dtype == DType::kString) {
      if (value == nullptr) {
        fail(ErrorCode::kUnknownShape, where, "it is text, whose value must be known when the model is compiled",
             "Give it: " + option::value_of(name));
      }
      specialise(name);
      const size_t before = importer_.builder().graph().inputs().size() + result_.texts.size();
      result_.texts.push_back({static_cast<uint32_t>(before), name, *value});
      return Value::strings(*value);
    }
    const ir::ValueId parameter = importer_.builder().graph().parameter(name, type);
    importer_.name_input(parameter, name);
    if (value == nullptr || !state_.specialised.contains(name)) return parameter;
    specialise(name);
    return importer_.builder().constant(*value);
  }

  // An input that memory cannot hold is refused before handlers compute with its extents.
  static void check_size(const ir::TensorType& type, const std::string& where) {
    uint64_t count = 0;
    try {
      count = static_cast<uint64_t>(element_count(type.shape));
    } catch (const Error& error) {
      fail(ErrorCode::kInvalidInput, where, error.why());
    }
    const uint64_t available = available_memory();
    if (count <= available / std::max<uint64_t>(size_of(type.dtype), 1)) return;
    fail(ErrorCode::kOutOfMemory, where,
         fmt::format("{} needs more than the {:.1f} GB of memory that are available", ir::to_string(type),
                     static_cast<double>(available) * 1e-9),
         "Reduce its shape");
  }

  void specialise(const std::string& name) { result_.specialised_inputs.push_back(name); }

  Value bind(const std::string& name, const TypeProto& type) {
    using Kind = TypeProto::Kind;
    const std::string where = fmt::format("input '{}'", name);
    switch (type.kind) {
      case Kind::kTensor:
        return bind_tensor(name, type);
      case Kind::kOptional:
        if (options_.absent.contains(name)) return Value::none();
        if (!type.element) fail(ErrorCode::kMalformedModel, where, "its optional type names no element type");
        return bind(name, *type.element);
      case Kind::kSequence: {
        if (!type.element) fail(ErrorCode::kMalformedModel, where, "its sequence type names no element type");
        std::vector<Value> items;
        for (size_t i = 0; i < kMaxSequence; ++i) {
          const std::string item = fmt::format("{}.{}", name, i);
          if (given_shape(options_, item) == nullptr) break;
          items.push_back(bind(item, *type.element));
        }
        return Value::sequence(std::move(items));
      }
      case Kind::kNone:
        fail(ErrorCode::kMalformedModel, where, "the model does not say its type");
      case Kind::kMap:
      case Kind::kSparse:
        fail(ErrorCode::kUnsupportedType, where, "maps and sparse tensors are not supported as inputs");
    }
    return {};
  }

  ModelState& state_;
  const ImportOptions& options_;
  GraphImporter& importer_;
  Imported& result_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> known_names_;
};

OutputInfo emit_output(ir::Graph& graph, const std::string& name, const Value& value) {
  OutputInfo info;
  info.name = name;
  switch (value.kind()) {
    case Value::Kind::kTensor:
      graph.output(name, value.tensor());
      break;
    case Value::Kind::kStrings:
      info.kind = OutputInfo::Kind::kStrings;
      info.strings = value.text();
      break;
    case Value::Kind::kSequence:
      info.kind = OutputInfo::Kind::kSequence;
      for (size_t i = 0; i < value.items().size(); ++i) {
        info.items.push_back(emit_output(graph, fmt::format("{}.{}", name, i), value.items()[i]));
      }
      break;
    case Value::Kind::kAbsent:
    case Value::Kind::kNone:
      info.kind = OutputInfo::Kind::kNone;
  }
  return info;
}

Imported attempt(ModelState& state) {
  Imported result;
  state.nodes_lowered = 0;
  state.failing_branches.clear();
  state.stuck_at.clear();
  state.sums.clear();
  GraphImporter importer(state, result.graph, nullptr);
  FunctionFrame frame;
  frame.opsets = &state.model.opset_imports;
  Scope scope;
  scope.frame = &frame;
  InputBinder(state, importer, result).bind_all(state.model.graph, scope);
  const std::vector<Value> outputs = importer.run(state.model.graph, scope);
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name(state.model.graph.outputs[i].name);
    if (!names.insert(name).second) {
      fail(ErrorCode::kMalformedModel, fmt::format("output '{}'", name), "two outputs have this name");
    }
    result.outputs.push_back(emit_output(result.graph, name, outputs[i]));
  }
  result.failing_branches = std::move(state.failing_branches);
  return result;
}

// Imports with the inputs as constants whose values shapes turn out to depend on.
Imported import_specialised(ModelState& state) {
  for (;;) {
    try {
      return attempt(state);
    } catch (const SpecialiseInputs& wanted) {
      std::vector<std::string> unknown;
      bool progress = false;
      for (const std::string& name : wanted.names) {
        if (!state.options.values.contains(name)) unknown.push_back(name);
        progress = state.specialised.insert(name).second || progress;
      }
      if (!unknown.empty()) {
        state.needs_value = true;
        fail(ErrorCode::kUnknownShape, wanted.where,
             fmt::format("a shape depends on the value of input {}", fmt::join(unknown, ", ")),
             "Give its value when compiling: " + option::value_of(unknown[0]));
      }
      if (!progress) fail(ErrorCode::kUnknownShape, wanted.where, "a shape cannot be computed while importing");
    }
  }
}

std::string with_guess(const std::string& remedy, const ModelState& state) {
  return remedy + (remedy.empty() ? "" : ". ") + "Extents of inputs: " + state.extents.describe(state.guesses);
}

// Imports with extents, where any are open, that the operators of the model accept. A guess with which a branch of an
// If fails is the last resort.
Imported import_guessing(ModelState& state) {
  ExtentSearch search(state.extents.open());
  std::optional<Error> failure;
  std::optional<Imported> found;
  std::map<std::string, int64_t> its_guess;
  const auto keep = [&](Imported imported) {
    its_guess = state.guesses;
    found = std::move(imported);
  };
  uint64_t furthest = 0;
  bool fits = false;  // the operators accept its guess but would prefer other extents
  for (bool more = true; more;) {
    state.guesses = search.guess();
    try {
      Imported imported = import_specialised(state);
      if (state.guesses.empty()) return imported;
      const bool fails = !imported.failing_branches.empty();
      if (!fails && !search.learn(state.sums)) return imported;
      if (!found || (!fails && !fits)) keep(std::move(imported));
      fits = fits || !fails;
      if (!fails) continue;
    } catch (const Error& error) {
      if (state.guesses.empty()) throw;
      if (fits) break;
      if (state.needs_value || !ExtentSearch::can_help(error.code())) {
        throw Error(error.code(), error.where(), error.why(), with_guess(error.remedy(), state));
      }
      if (!failure || state.nodes_lowered > furthest) {
        furthest = state.nodes_lowered;
        failure = error;
      }
    }
    more = search.learn(state.sums) || search.next({state.nodes_lowered, std::move(state.stuck_at)});
  }
  if (found) {
    state.guesses = its_guess;
    return std::move(*found);
  }
  state.guesses = search.guess();
  throw Error(failure->code(), failure->where(), failure->why(), with_guess(failure->remedy(), state));
}

Imported import_parsed(const ModelProto& model, TensorLoader& loader, Budget& budget, const ImportOptions& options) {
  check_versions(model);
  const Extents extents(model, options);
  ModelState state{model, options, loader, budget, extents, {}, {}, 0, {}, {}, {}, false, {}};
  for (const FunctionProto& f : model.functions) state.functions.emplace(std::tuple(f.domain, f.name, f.overload), &f);
  check_expansion(state);
  check_supported(state);
  Imported imported = import_guessing(state);
  imported.assumed = extents.assumed(state.guesses);
  imported.guess = extents.describe(state.guesses);
  return imported;
}

ModelProto read_model(const std::string& path, Budget& budget) {
  const std::shared_ptr<const MappedFile> file = MappedFile::read(path);
  return parse_model(file->text(), file, path, budget);
}

}  // namespace

struct ModelFile::Content {
  Content(const std::string& path, const ImportOptions& options)
      : budget(options.limits),
        model(read_model(path, budget)),
        loader(model, DataFolder::of_model(path, options.links), budget) {}

  Budget budget;
  ModelProto model;
  TensorLoader loader;
};

ModelFile::ModelFile(const std::string& path, const ImportOptions& options)
    : content_(std::make_unique<Content>(path, options)) {}

ModelFile::~ModelFile() = default;

std::vector<ModelFile::InputDims> ModelFile::input_dims(const ImportOptions& options) const {
  std::vector<InputDims> inputs;
  for (const ValueInfoProto* input : model_inputs(content_->model.graph, options)) {
    if (!input->type.shape) continue;
    InputDims& dims = inputs.emplace_back();
    dims.name = input->name;
    for (const Dimension& dim : *input->type.shape) {
      dims.extents.push_back(dim.value.value_or(-1));
      dims.symbols.emplace_back(dim.param);
    }
  }
  return inputs;
}

Imported ModelFile::import(const ImportOptions& options) {
  content_->budget = Budget(options.limits);  // of this import
  return import_parsed(content_->model, content_->loader, content_->budget, options);
}

Imported import_model(const std::string& path, const ImportOptions& options) {
  Budget budget(options.limits);
  const ModelProto model = read_model(path, budget);
  TensorLoader loader(model, DataFolder::of_model(path, options.links), budget);
  return import_parsed(model, loader, budget, options);
}

Imported import_model(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& folder,
                      const ImportOptions& options) {
  Budget budget(options.limits);
  const ModelProto model = parse_model(bytes, std::move(owner), "", budget);
  TensorLoader loader(model, DataFolder(folder, options.links), budget);
  return import_parsed(model, loader, budget, options);
}

}  // namespace heddle::onnx
