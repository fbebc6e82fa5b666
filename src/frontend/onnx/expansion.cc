#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "frontend/onnx/graph_importer.h"

namespace heddle::onnx {
namespace {

constexpr uint64_t kMany = std::numeric_limits<uint64_t>::max() / 2;

uint64_t add(uint64_t a, uint64_t b) {
  return std::min(kMany, a + b);
}
uint64_t multiply(uint64_t a, uint64_t b) {
  return b != 0 && a > kMany / b ? kMany : a * b;
}

// What a list of nodes, with the graphs inside it, says by itself.
struct Content {
  struct Calls {
    uint64_t count = 0;
    int depth = 0;  // of the deepest call
  };
  uint64_t nodes = 0;
  int depth = 0;
  std::map<const FunctionProto*, Calls> calls;
};

// What it becomes.
struct Expansion {
  uint64_t nodes = 0;
  int depth = 0;
};

class Counter {
 public:
  explicit Counter(const ModelState& state) : state_(state) {}

  Expansion expand(const std::vector<NodeProto>& list) { return join(content_of(list)); }

 private:
  Content content_of(const std::vector<NodeProto>& list) const {
    Content content;
    std::vector<std::pair<const std::vector<NodeProto>*, int>> waiting = {{&list, 1}};
    while (!waiting.empty()) {
      const auto [nodes, depth] = waiting.back();
      waiting.pop_back();
      content.nodes += nodes->size();
      content.depth = std::max(content.depth, depth);
      for (const NodeProto& node : *nodes) {
        for (const AttributeProto& a : node.attributes) {
          if (a.g) waiting.emplace_back(&a.g->nodes, depth + 1);
        }
        const auto function = state_.functions.find({node.domain, node.op_type, node.overload});
        if (function == state_.functions.end()) continue;
        Content::Calls& calls = content.calls[function->second];
        ++calls.count;
        calls.depth = std::max(calls.depth, depth);
      }
    }
    return content;
  }

  // Functions are counted once each, callees first, on a stack of its own: chains of them may be long.
  Expansion join(const Content& top) {
    struct Open {
      const FunctionProto* function;
      Content content;
      std::map<const FunctionProto*, Content::Calls>::const_iterator next;
    };
    std::vector<std::unique_ptr<Open>> open;
    const auto enter = [&](const FunctionProto* function) {
      if (!active_.insert(function).second) fail_cycle(*function);
      auto frame = std::make_unique<Open>(Open{function, content_of(function->nodes), {}});
      frame->next = frame->content.calls.begin();
      open.push_back(std::move(frame));
    };
    for (const auto& [called, calls] : top.calls) {
      if (!done_.contains(called)) enter(called);
      while (!open.empty()) {
        Open& frame = *open.back();
        if (frame.next == frame.content.calls.end()) {
          done_.emplace(frame.function, sum(frame.content));
          active_.erase(frame.function);
          open.pop_back();
        } else if (const FunctionProto* callee = (frame.next++)->first; !done_.contains(callee)) {
          enter(callee);
        }
      }
    }
    return sum(top);
  }

  Expansion sum(const Content& content) const {
    Expansion result{content.nodes, content.depth};
    for (const auto& [callee, calls] : content.calls) {
      const Expansion& inner = done_.at(callee);
      result.nodes = add(result.nodes, multiply(calls.count, inner.nodes));
      result.depth = std::max(result.depth, calls.depth + inner.depth);
    }
    return result;
  }

  [[noreturn]] static void fail_cycle(const FunctionProto& function) {
    fail(ErrorCode::kMalformedModel, fmt::format("function '{}'", function.name),
         "functions call each other in a circle", "An ONNX function must not call itself; export the model again");
  }

  const ModelState& state_;
  std::map<const FunctionProto*, Expansion> done_;
  std::set<const FunctionProto*> active_;  // callers of what is being counted
};

}  // namespace

void check_expansion(const ModelState& state) {
  const std::string where = state.model.path.empty() ? "model" : state.model.path;
  const Expansion expansion = Counter(state).expand(state.model.graph.nodes);
  state.budget.check_nodes(expansion.nodes, where);
  state.budget.check_depth(expansion.depth, where);
}

}  // namespace heddle::onnx
