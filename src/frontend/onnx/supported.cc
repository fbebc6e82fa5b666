#include <algorithm>
#include <map>

#include "frontend/onnx/custom_operator.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

constexpr size_t kNodesListed = 16;  // per operator

// In any version.
bool is_known(std::string_view domain, std::string_view op_type) {
  for (const auto family : all_families()) {
    for (const OpHandler& handler : family) {
      if (handler.domain == domain && handler.op_type == op_type) return true;
    }
  }
  return false;
}

class Checker {
 public:
  explicit Checker(const ModelState& state) : state_(state) {}

  void nodes(const std::vector<NodeProto>& list, const std::vector<OperatorSet>& opsets, const std::string& prefix) {
    for (size_t i = 0; i < list.size(); ++i) node(list[i], i, opsets, prefix);
  }

  void report() const {
    const std::string model = state_.model.path.empty() ? "model" : state_.model.path;
    if (missing_.empty()) {
      if (foreign_.empty()) return;
      const auto& [domain, node] = *foreign_.begin();
      fail(ErrorCode::kMalformedModel, node, fmt::format("the model imports no operator set for the domain {}", domain),
           "Export the model again, or add the operator set to its opset_import");
    }
    std::vector<std::string> lines;
    for (const auto& [op, names] : missing_) {
      const size_t shown = std::min(names.size(), kNodesListed);
      lines.push_back(fmt::format("{} at {}{}", op, fmt::join(names.begin(), names.begin() + shown, ", "),
                                  names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : ""));
    }
    std::string why =
        fmt::format("{} kind(s) of operator are not supported: {}", missing_.size(), fmt::join(lines, "; "));
    for (const auto& item : foreign_) why += fmt::format("; the model imports no operator set for {}", item.first);
    fail(ErrorCode::kUnsupportedOperator, model, std::move(why),
         "Export the model with other operators or with functions that define these, or give kernels for them "
         "(heddle.compile(..., kernels={\"domain::Operator\": ...}))");
  }

 private:
  void node(const NodeProto& n, size_t position, const std::vector<OperatorSet>& opsets, const std::string& prefix) {
    const std::string label = prefix + node_label(n, position);
    for (const AttributeProto& a : n.attributes) {
      if (a.g) nodes(a.g->nodes, opsets, label + "/");
    }
    if (custom_operator(state_.options, n) != nullptr) return;
    const auto function = state_.functions.find({n.domain, n.op_type, n.overload});
    if (function != state_.functions.end()) {
      if (visited_.insert(function->second).second) {
        nodes(function->second->nodes, function->second->opset_imports, label + "/");
      }
      return;
    }
    const int64_t version = version_of(opsets, n.domain);
    const std::string domain = n.domain.empty() ? "ai.onnx" : std::string(n.domain);
    if (version == 0) {
      foreign_.emplace(domain, fmt::format("node '{}' ({})", label, n.op_type));
      if (!is_known(n.domain, n.op_type)) missing_[fmt::format("{}.{}", domain, n.op_type)].push_back(label);
    } else if (find_handler(n.domain, n.op_type, version) == nullptr) {
      missing_[fmt::format("{}.{} version {}", domain, n.op_type, version)].push_back(label);
    }
  }

  const ModelState& state_;
  std::set<const FunctionProto*> visited_;
  std::map<std::string, std::vector<std::string>> missing_;
  std::map<std::string, std::string> foreign_;  // domains without an operator set, and a node of each
};

}  // namespace

int64_t version_of(const std::vector<OperatorSet>& opsets, std::string_view domain) {
  for (const OperatorSet& set : opsets) {
    if (set.domain == domain) return set.version;
  }
  return 0;
}

void check_supported(const ModelState& state) {
  Checker checker(state);
  checker.nodes(state.model.graph.nodes, state.model.opset_imports, "");
  checker.report();
}

}  // namespace heddle::onnx
