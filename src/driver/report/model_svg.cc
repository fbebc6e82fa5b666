#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "driver/report/folded_picture.h"
#include "driver/report/inspect.h"
#include "driver/report/svg.h"
#include "driver/shapes/import.h"
#include "driver/shapes/onnx_text.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/op_registry.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

std::string dims_text(const onnx::TensorProto& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.dims, ","));
}

class NodePicture {
 public:
  NodePicture(const onnx::ModelProto& model, const std::string& path) : model_(model), graph_(model.graph) {
    picture_.heading(std::filesystem::path(path).filename().string(), fmt::format("{} nodes", graph_.nodes.size()));
    for (const onnx::TensorProto& tensor : graph_.initializers) weights_.emplace(tensor.name, &tensor);
    for (const onnx::ValueInfoProto& value : graph_.value_infos) types_.emplace(value.name, &value.type);
    for (const onnx::FunctionProto& f : model.functions) functions_.emplace(f.domain, f.name);
    for (const onnx::NodeProto& node : graph_.nodes) {
      if (node.op_type != "Constant") nodes_.push_back(&node);
    }
  }

  std::string draw(Modules modules) {
    PictureItems items{"nodes", module_names()};
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      if (!weights_.contains(input.name)) items.inputs.push_back({number(input.name), terminal(input)});
    }
    for (const onnx::NodeProto* node : nodes_) {
      items.signatures.push_back(signature(*node));
      items.reads.push_back(numbers(node->inputs));
      items.makes.push_back(numbers(node->outputs));
    }
    for (const onnx::ValueInfoProto& output : graph_.outputs) {
      types_.emplace(output.name, &output.type);
      items.outputs.push_back({number(output.name), terminal(output)});
    }
    return draw_folded(picture_, items, modules, [this](const ModuleBox& part, size_t) {
      return part.name.empty() ? box(*nodes_[part.items.front()]) : module_box(part);
    });
  }

 private:
  size_t number(std::string_view value) { return numbers_.emplace(value, numbers_.size()).first->second; }
  std::vector<size_t> numbers(const std::vector<std::string_view>& values) {
    std::vector<size_t> result;
    for (const std::string_view value : values) result.push_back(number(value));
    return result;
  }

  // By node: its name, or that of its first result, with slashes between modules. Writers that have no slashes put
  // dots.
  std::vector<std::string> module_names() const {
    std::vector<std::string> names;
    for (const onnx::NodeProto* node : nodes_) {
      names.emplace_back(!node->name.empty() || node->outputs.empty() ? node->name : node->outputs.front());
    }
    const auto has_slash = [](const std::string& name) { return name.find('/') != std::string::npos; };
    if (std::none_of(names.begin(), names.end(), has_slash)) {
      for (std::string& name : names) std::replace(name.begin(), name.end(), '.', '/');
    }
    return names;
  }

  bool is_missing(const onnx::NodeProto& node) const {
    return !functions_.contains({node.domain, node.op_type}) &&
           onnx::find_handler(node.domain, node.op_type, onnx::version_of(model_.opset_imports, node.domain)) ==
               nullptr;
  }

  Picture::Box module_box(const ModuleBox& part) const {
    constexpr size_t kMostOperators = 4;
    std::map<std::string, size_t> counts;
    std::set<std::string> missing;
    for (const size_t n : part.items) {
      ++counts[operator_name(*nodes_[n])];
      if (is_missing(*nodes_[n])) missing.insert(operator_name(*nodes_[n]));
    }
    std::vector<std::pair<std::string, size_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    Picture::Box box{part.name, {}, missing.empty() ? Picture::Kind::kModule : Picture::Kind::kMissing, part.name};
    std::string text;
    for (size_t i = 0; i < order.size(); ++i) {
      const std::string one = fmt::format("{} {}", order[i].second, order[i].first);
      box.title += "\n" + one;
      if (i < kMostOperators) text += (i == 0 ? "" : ", ") + one;
    }
    box.lines.push_back(fmt::format("{} nodes", part.items.size()));
    box.lines.push_back(text + (order.size() > kMostOperators ? ", ..." : ""));
    if (!missing.empty()) box.lines.push_back(fmt::format("not supported: {}", fmt::join(missing, ", ")));
    return box;
  }

  std::string weights_of(const onnx::NodeProto& node) const {
    std::string text;
    for (const std::string_view input : node.inputs) {
      if (const auto found = weights_.find(input); found != weights_.end()) text += " " + dims_text(*found->second);
    }
    return text;
  }

  std::string signature(const onnx::NodeProto& node) const {
    return fmt::format("{}|{}|{}|{}", operator_name(node), node.inputs.size(), node.outputs.size(), weights_of(node));
  }

  Picture::Box box(const onnx::NodeProto& node) const {
    Picture::Box box;
    box.name = operator_name(node);
    if (const std::string weights = weights_of(node); !weights.empty()) box.lines.push_back("weights" + weights);
    if (!node.name.empty()) box.lines.emplace_back(node.name);
    const bool missing = is_missing(node);
    if (missing) box.lines.emplace_back("not supported");
    if (!node.outputs.empty()) {
      const auto type = types_.find(node.outputs.front());
      if (type != types_.end()) box.lines.push_back("to " + type_text(*type->second));
    }
    box.kind = missing ? Picture::Kind::kMissing : Picture::Kind::kNode;
    box.title = fmt::format("{}\n{} -> {}", node.name, fmt::join(node.inputs, ", "), fmt::join(node.outputs, ", "));
    return box;
  }

  static Picture::Box terminal(const onnx::ValueInfoProto& port) {
    return {std::string(port.name), {type_text(port.type)}, Picture::Kind::kPort, std::string(port.name)};
  }

  const onnx::ModelProto& model_;
  const onnx::GraphProto& graph_;
  std::unordered_map<std::string_view, const onnx::TensorProto*> weights_;
  std::unordered_map<std::string_view, const onnx::TypeProto*> types_;
  std::set<std::pair<std::string_view, std::string_view>> functions_;
  std::vector<const onnx::NodeProto*> nodes_;
  std::unordered_map<std::string_view, size_t> numbers_;  // of values
  Picture picture_;
};

}  // namespace

std::string draw_model_svg(const std::string& path, const CompileOptions& options, Modules modules) {
  if (runtime::is_plan_file(path)) {
    fail(ErrorCode::kInvalidArgument, path, "a plan no longer has the graph of its model", "Draw the ONNX model");
  }
  if (is_ir_file(path)) return draw_svg(compile_model(path, options, false, false), modules);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const onnx::ModelProto model = onnx::parse_model(file->text(), file, path);
  return NodePicture(model, path).draw(modules);
}

}  // namespace heddle::driver
