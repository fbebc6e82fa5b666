#include "schedule/region/repeats.h"

#include <algorithm>

#include "schedule/expr/kernel_size.h"

namespace heddle::schedule {

void Repeats::add(const KernelExprs& kernel) {
  times_.resize(context_.graph.value_count(), 0);
  for (const auto& [value, e] : kernel.made()) {
    if (context_.is_input(value)) continue;
    const auto elements = static_cast<double>(element_count(context_.graph.shape(value)));
    times_[value] += static_cast<double>(kernel.volume(kernel.pool.vars(e))) / std::max(elements, 1.0);
  }
}

double Repeats::most() const {
  double most = 0;
  for (const ir::Node& node : context_.graph.nodes()) {
    if (!ir::is_costly(node.op)) continue;
    const ValueId v = node.outputs[0];
    if (v < times_.size() && element_count(context_.graph.shape(v)) > 1) most = std::max(most, times_[v]);
  }
  return most;
}

// A kernel for one element costs more than to compute it often.
bool Repeats::is_candidate(ValueId value) const {
  const ir::Op op = context_.graph.producer(value).op;
  return ir::is_elementwise(op) && element_count(context_.graph.shape(value)) > 1 && !is_apart_(value);
}

std::vector<ValueId> Repeats::to_hand_over(const std::vector<std::vector<NodeId>>& users) const {
  const ir::Graph& graph = context_.graph;
  const auto is_repeated = [&](ValueId v) { return v < times_.size() && times_[v] > kMostRepeats; };
  // Whether a costly value is computed wherever this one is.
  std::vector<bool> holds_costly(graph.value_count());
  for (const ir::Node& node : graph.nodes()) {
    if (node.outputs.size() != 1 || !is_repeated(node.outputs[0])) continue;
    const ValueId v = node.outputs[0];
    holds_costly[v] = (is_candidate(v) && ir::is_costly(node.op)) ||
                      std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](ValueId input) { return holds_costly[input] && !context_.must_be_input(input); });
  }
  // Readers first: what is handed over relieves all below it.
  std::vector<ValueId> found;
  std::vector<bool> is_relieved(graph.value_count());
  for (size_t id = graph.nodes().size(); id-- > 0;) {
    const ir::Node& node = graph.node(static_cast<NodeId>(id));
    if (node.outputs.size() != 1 || !holds_costly[node.outputs[0]]) continue;
    const ValueId v = node.outputs[0];
    const bool above = std::any_of(users[v].begin(), users[v].end(), [&](NodeId user) {
      const auto& results = graph.node(user).outputs;
      return results.size() == 1 && is_relieved[results[0]];
    });
    if (!above && is_candidate(v)) found.push_back(v);
    is_relieved[v] = above || is_candidate(v);
  }
  return found;
}

}  // namespace heddle::schedule
