#include "ort/graph/capability.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>

#include "base/check.h"
#include "driver/compile/compile.h"
#include "driver/options/options.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/op_registry.h"
#include "frontend/onnx/reader/proto.h"
#include "ort/graph/model_writer.h"
#include "ort/graph/partition.h"

namespace heddle::ort {
namespace {

// Each import that fails takes one node or more out of a region, and costs the time of an import.
constexpr int kMostImports = 100;

const std::unordered_set<std::string_view> kRandom = {"RandomNormal", "RandomNormalLike",  "RandomUniform",
                                                      "Bernoulli",    "RandomUniformLike", "Multinomial"};
// Operators that only move elements, or compute shapes.
const std::unordered_set<std::string_view> kMoves = {
    "Cast",   "CastLike", "Concat", "Constant",  "ConstantOfShape", "Dropout", "Expand", "Flatten",
    "Gather", "Identity", "Pad",    "Range",     "Reshape",         "Shape",   "Size",   "Slice",
    "Split",  "Squeeze",  "Tile",   "Transpose", "Unsqueeze"};

// Types narrower than a byte are packed in ONNX Runtime's tensors, but not in Heddle's.
bool passes_border(const GraphValue& value) {
  const std::optional<DType> dtype = dtype_of(value.element);
  return dtype && *dtype != DType::kString && bits_of(*dtype) >= 8;
}

// Calls f on a node and on all nodes of its bodies.
void for_each_inside(const Graph& graph, const GraphNode& node, const auto& f) {
  f(graph, node);
  for (const GraphBody& body : node.bodies) {
    for (const GraphNode& inner : body.graph->nodes) for_each_inside(*body.graph, inner, f);
  }
}

class Finder {
 public:
  Finder(const Runtime& runtime, const Graph& graph, const Options& options)
      : runtime_(runtime), graph_(graph), options_(options), settings_(driver::resolve(options.compile)) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) check_alone(node);
  }

  Capability find() {
    NodeGraph nodes;
    for (const GraphNode& node : graph_.nodes) {
      std::vector<size_t>& next = nodes.successors.emplace_back();
      for (const size_t value : node.outputs) {
        if (value != kNone) next.insert(next.end(), graph_.uses[value].begin(), graph_.uses[value].end());
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      result_.regions.clear();
      nodes.wanted.clear();
      for (size_t node = 0; node < graph_.nodes.size(); ++node) nodes.wanted.push_back(!result_.reasons.contains(node));
      for (std::vector<size_t>& members : partition(nodes)) {
        if (accept(members)) {
          result_.regions.push_back(std::move(members));
        } else {
          changed = true;
        }
      }
    }
    return std::move(result_);
  }

 private:
  void leave(const std::vector<size_t>& nodes, const std::string& reason) {
    for (const size_t node : nodes) result_.reasons.emplace(node, reason);
  }

  void check_alone(size_t index) {
    const GraphNode& node = graph_.nodes[index];
    if (node.op_type == "If") leave({index}, "ONNX Runtime chooses the branch, whose nodes may be taken");
    // While ONNX Runtime asks for the nodes of a body, it does not say where other captured values come from
    // (read_loop()), and the answers for the body and for its node must agree.
    for (const size_t value : node.captured) {
      if (value == kNone || graph_.values[value].is_constant) continue;
      leave({index}, fmt::format("its body reads {}, which is not constant", graph_.values[value].name));
    }
    for_each_inside(graph_, node, [&](const Graph&, const GraphNode& inner) {
      const std::string_view domain = onnx::canonical_domain(inner.domain);
      const auto opset = std::find_if(graph_.opsets.begin(), graph_.opsets.end(),
                                      [&](const auto& set) { return onnx::canonical_domain(set.first) == domain; });
      const int64_t version = opset == graph_.opsets.end() ? 0 : opset->second;
      if (inner.is_assigned) {
        leave({index}, &inner == &node ? "it has a provider" : "nodes of its body have a provider");
      } else if (onnx::find_handler(domain, inner.op_type, version) == nullptr) {
        leave({index}, &inner == &node ? "the operator is not supported"
                                       : fmt::format("its body has {}, which is not supported", inner.op_type));
      } else if (kRandom.contains(inner.op_type)) {
        leave({index}, "each run takes other random numbers");
      }
    });
    for (const auto* const list : {&node.inputs, &node.outputs}) {
      for (const size_t value : *list) {
        if (value == kNone || graph_.values[value].is_constant || passes_border(graph_.values[value])) continue;
        leave({index}, fmt::format("the type of {} is not supported", graph_.values[value].name));
      }
    }
  }

  // True if the region is taken; otherwise some of its nodes have a reason afterwards.
  bool accept(const std::vector<size_t>& members) {
    if (accepted_.contains(members)) return true;
    if (!options_.all_regions && !gains(members)) return false;
    if (!imports(members)) return false;
    accepted_.insert(members);
    return true;
  }

  bool gains(const std::vector<size_t>& members) {
    int computing = 0;
    for (const size_t member : members) {
      for_each_inside(graph_, graph_.nodes[member],
                      [&](const Graph& graph, const GraphNode& node) { computing += computes(graph, node) ? 1 : 0; });
    }
    if (computing < 2) leave(members, "there is nothing to fuse it with");
    return computing >= 2;
  }

  // False for moves of elements, and for arithmetic on shapes: wide integers only.
  static bool computes(const Graph& graph, const GraphNode& node) {
    if (kMoves.contains(node.op_type) || !node.bodies.empty()) return false;
    const auto any_is = [&](const std::vector<size_t>& values, auto kind) {
      return std::any_of(values.begin(), values.end(), [&](size_t value) {
        const std::optional<DType> dtype = value == kNone ? std::nullopt : dtype_of(graph.values[value].element);
        return dtype && kind(*dtype);
      });
    };
    const auto is_byte = [](DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; };
    return any_is(node.outputs, [&](DType dtype) { return is_float(dtype) || is_byte(dtype); }) ||
           any_is(node.inputs, is_byte);
  }

  // Imports the region as a model. If that fails, leaves the nodes that are to blame.
  bool imports(const std::vector<size_t>& members) {
    const Region region = region_of(graph_, members);
    if (region.outputs.empty()) {
      leave(members, "nothing reads its results");
      return false;
    }
    if (++imports_ > kMostImports) {
      leave(members, "too many operators around it are not supported");
      return false;
    }
    try {
      size_t largest = 0;
      const std::string bytes =
          write_model(runtime_, graph_, region, NodeNames::kIndices, [&](const void*, size_t size) {
            largest = std::max(largest, size);
            return WeightPlace{"zeros", 0};
          });
      provide_zeros(largest);
      const onnx::Imported imported = onnx::import_model(bytes, nullptr, folder_ ? folder_->path() : "",
                                                         {.shapes = inferred_shapes(graph_, region)});
      // An error where such a branch is taken, which ONNX Runtime may be able to run.
      if (!imported.failing_branches.empty()) {
        const onnx::FailingBranch& branch = imported.failing_branches.front();
        blame(region, Error(branch.error.code(), branch.node, branch.error.why(), branch.error.remedy()));
        return false;
      }
      return options_.all_regions || stays_quantised(members, imported.graph);
    } catch (const Error& error) {
      blame(region, error);
      return false;
    }
  }

  // ONNX Runtime multiplies two quantised operands as integers. A region most of whose products of such operands Heddle
  // would compute in floats stays with it, but on a GPU: it would move to the CPU.
  bool stays_quantised(const std::vector<size_t>& members, const ir::Graph& graph) {
    if (settings_.device >= 0) return true;
    passes::QuantisedProducts products = driver::quantised_products(graph, settings_);
    std::erase_if(products, [](const passes::QuantisedProduct& product) { return !product.of_two; });
    const auto in_floats = [](const passes::QuantisedProduct& product) {
      return product.form == passes::QuantisedProduct::Form::kFloats;
    };
    const auto count = static_cast<size_t>(std::count_if(products.begin(), products.end(), in_floats));
    if (2 * count <= products.size()) return true;
    leave(members, fmt::format("Heddle would compute {} of {} quantised products in floats, since {}", count,
                               products.size(), std::find_if(products.begin(), products.end(), in_floats)->reason));
    return false;
  }

  // What large constants contain decides nothing, so that the import reads zeros in their place.
  void provide_zeros(size_t bytes) {
    if (bytes <= zeros_) return;
    if (!folder_) folder_.emplace("heddle-ort");
    const std::string path = folder_->path() + "/zeros";
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
      fail_errno(path, "writing the file", errno, "Set TMPDIR to a folder that can be written");
    }
    zeros_ = bytes;
  }

  void blame(const Region& region, const Error& error) {
    const std::string& where = error.where();
    constexpr std::string_view kNode = "node 'n", kInput = "input '";
    if (const size_t at = where.find(kNode); at != std::string::npos) {
      size_t node = kNone;
      std::from_chars(where.data() + at + kNode.size(), where.data() + where.size(), node);
      if (std::binary_search(region.nodes.begin(), region.nodes.end(), node)) return leave({node}, error.why());
    }
    if (const size_t at = where.find(kInput); at != std::string::npos) {
      const std::string_view rest = std::string_view(where).substr(at + kInput.size());
      for (const size_t value : region.inputs) {
        const GraphValue& input = graph_.values[value];
        if (!rest.starts_with(input.name + "'")) continue;
        for (const size_t use : graph_.uses[value]) {
          if (std::binary_search(region.nodes.begin(), region.nodes.end(), use)) {
            leave({use}, fmt::format("{}: {}", input.name, error.why()));
          }
        }
        return;
      }
    }
    leave(region.nodes, error.what());
  }

  const Runtime& runtime_;
  const Graph& graph_;
  const Options& options_;
  const driver::Settings settings_;
  Capability result_;
  std::set<std::vector<size_t>> accepted_;
  std::optional<TempDir> folder_;  // for zeros
  size_t zeros_ = 0;
  int imports_ = 0;
};

}  // namespace

Capability find_capability(const Runtime& runtime, const Graph& graph, const Options& options) {
  return Finder(runtime, graph, options).find();
}

std::string describe(const Capability& capability, const Graph& graph) {
  constexpr size_t kNamed = 4;
  size_t taken = 0, stay = 0;
  for (const auto& region : capability.regions) taken += region.size();
  std::map<std::string, std::vector<std::string>> nodes;
  for (const auto& [index, reason] : capability.reasons) {
    const GraphNode& node = graph.nodes[index];
    if (node.is_assigned) continue;
    ++stay;
    nodes[reason].push_back(node.name.empty() ? node.op_type : fmt::format("{} ({})", node.name, node.op_type));
  }
  std::string text =
      fmt::format("{} takes {} of {} nodes in {} regions", kName, taken, taken + stay, capability.regions.size());
  for (const auto& [reason, names] : nodes) {
    const size_t shown = std::min(names.size(), kNamed);
    text +=
        fmt::format("; {}{} stay{}: {}", fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
                    names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "",
                    names.size() == 1 ? "s" : "", reason);
  }
  return text;
}

}  // namespace heddle::ort
