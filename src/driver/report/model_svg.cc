#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/file/file.h"
#include "driver/compile/collapse.h"
#include "driver/compile/compile.h"
#include "driver/report/inspect.h"
#include "driver/report/picture.h"
#include "driver/report/svg.h"
#include "driver/shapes/import.h"
#include "driver/shapes/onnx_text.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/op_registry.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

constexpr size_t kMostNodes = 4000;  // of a graph that is drawn; the rest is told in a box

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
      if (node.op_type == "Constant" || nodes_.size() == kMostNodes) continue;
      nodes_.push_back(&node);
    }
  }

  std::string draw() {
    std::unordered_map<std::string_view, size_t> made_by;
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      if (!weights_.contains(input.name)) made_by[input.name] = picture_.add(terminal(input));
    }
    add_nodes();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const std::string_view input : nodes_[n]->inputs) connect(made_by, input, box_of_[n]);
      for (const std::string_view output : nodes_[n]->outputs) made_by[output] = box_of_[n];
    }
    for (const onnx::ValueInfoProto& output : graph_.outputs) {
      types_.emplace(output.name, &output.type);
      connect(made_by, output.name, picture_.add(terminal(output)));
    }
    const auto constants = static_cast<size_t>(std::count_if(
        graph_.nodes.begin(), graph_.nodes.end(), [](const auto& node) { return node.op_type == "Constant"; }));
    if (const size_t left = graph_.nodes.size() - constants - nodes_.size(); left > 0) {
      picture_.add({fmt::format("and {} nodes more, which are not drawn", left), {}, Picture::Kind::kView, ""});
    }
    return picture_.svg();
  }

 private:
  // A box for each node; blocks of equal nodes in a row are drawn once.
  void add_nodes() {
    std::vector<std::string> signatures;
    for (const onnx::NodeProto* node : nodes_) signatures.push_back(signature(*node));
    std::vector<size_t> shown_as(nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n) shown_as[n] = n;
    std::vector<Repeat> repeats = find_repeats(signatures);
    repeats.erase(std::remove_if(repeats.begin(), repeats.end(), [](const Repeat& r) { return r.period < 2; }),
                  repeats.end());
    for (const Repeat& repeat : repeats) {
      for (size_t i = 0; i < repeat.period * repeat.count; ++i) {
        shown_as[repeat.begin + i] = repeat.begin + i % repeat.period;
      }
    }
    box_of_.assign(nodes_.size(), 0);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      box_of_[n] = shown_as[n] == n ? picture_.add(box(*nodes_[n])) : box_of_[shown_as[n]];
    }
    for (const Repeat& repeat : repeats) {
      const auto begin = box_of_.begin() + static_cast<int64_t>(repeat.begin);
      picture_.frame({begin, begin + static_cast<int64_t>(repeat.period)}, repeat.count);
    }
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
    const bool missing =
        !functions_.contains({node.domain, node.op_type}) &&
        onnx::find_handler(node.domain, node.op_type, onnx::version_of(model_.opset_imports, node.domain)) == nullptr;
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

  void connect(const std::unordered_map<std::string_view, size_t>& made_by, std::string_view value, size_t to) {
    const auto maker = made_by.find(value);
    if (maker != made_by.end()) picture_.connect(maker->second, to);
  }

  const onnx::ModelProto& model_;
  const onnx::GraphProto& graph_;
  std::unordered_map<std::string_view, const onnx::TensorProto*> weights_;
  std::unordered_map<std::string_view, const onnx::TypeProto*> types_;
  std::set<std::pair<std::string_view, std::string_view>> functions_;
  std::vector<const onnx::NodeProto*> nodes_;
  std::vector<size_t> box_of_;
  Picture picture_;
};

}  // namespace

std::string draw_model_svg(const std::string& path, const CompileOptions& options) {
  if (runtime::is_plan_file(path)) {
    fail(ErrorCode::kInvalidArgument, path, "a plan no longer has the graph of its model", "Draw the ONNX model");
  }
  if (is_ir_file(path)) return draw_svg(compile_model(path, options, false, false));
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const onnx::ModelProto model = onnx::parse_model(file->text(), file, path);
  return NodePicture(model, path).draw();
}

}  // namespace heddle::driver
