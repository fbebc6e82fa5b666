#include "ir/verify.h"

#include <unordered_set>

#include "base/check.h"
#include "ir/schema.h"

namespace heddle::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) check_node(id);
    check_ports();
  }

 private:
  template <typename... Args>
  void expect(bool holds, NodeId id, fmt::format_string<Args...> rule, Args&&... args) const {
    if (holds) return;
    const Node& node = graph_.node(id);
    std::string where = fmt::format("node {} ({})", id, to_string(node.op));
    for (OriginId o : node.origins) {
      if (o < graph_.origins().size()) where += " of " + graph_.origin(o).node;
    }
    fail(ErrorCode::kInternal, where, fmt::format(rule, std::forward<Args>(args)...),
         "This is a bug in Heddle: a pass has made an invalid graph.");
  }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<const TensorType*> operands;
    operands.reserve(node.inputs.size());
    for (ValueId v : node.inputs) {
      expect(v < graph_.value_count(), id, "operand {} does not exist", v);
      expect(graph_.value(v).producer < id, id, "operand {} is made later", v);
      operands.push_back(&graph_.type(v));
    }
    for (OriginId o : node.origins) expect(o < graph_.origins().size(), id, "origin {} does not exist", o);
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr)) {
        expect(*body != nullptr, id, "body {} is missing", name);
        verify(**body);
      }
    }
    std::vector<TensorType> results;
    try {
      results = schema(node.op).infer({node.op, OperandTypes(operands), node.attrs});
    } catch (const Error& error) {
      expect(false, id, "{}", error.why());
    }
    expect(results.size() == node.outputs.size(), id, "{} results, {} inferred", node.outputs.size(), results.size());
    for (uint32_t i = 0; i < results.size(); ++i) {
      const ValueId v = node.outputs[i];
      expect(v < graph_.value_count() && graph_.value(v).producer == id && graph_.value(v).index == i, id,
             "result {} is not its own", i);
      expect(graph_.type(v) == results[i], id, "result {} is {}, inferred {}", i, to_string(graph_.type(v)),
             to_string(results[i]));
    }
  }

  void check_ports() const {
    size_t parameters = 0;
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op != Op::kParameter) continue;
      expect(parameters < graph_.inputs().size() && graph_.inputs()[parameters].value == node.outputs[0] &&
                 graph_.inputs()[parameters].name == node.attrs.text("name"),
             id, "parameter is not input {} of the graph", parameters);
      ++parameters;
    }
    HEDDLE_CHECK(parameters == graph_.inputs().size(), "an input of the graph has no parameter");
    std::unordered_set<std::string_view> names;
    for (const Graph::Port& port : graph_.outputs()) {
      HEDDLE_CHECK(port.value < graph_.value_count(), "output {} does not exist", port.name);
      HEDDLE_CHECK(names.insert(port.name).second, "two outputs are named {}", port.name);
    }
  }

  const Graph& graph_;
};

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph).run();
}

}  // namespace heddle::ir
