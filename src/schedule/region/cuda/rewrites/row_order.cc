#include "schedule/region/cuda/rewrites/row_order.h"

#include <algorithm>
#include <numeric>

namespace heddle::schedule {
namespace {

using ir::Ints;

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) result[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return result;
}

bool is_identity(const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end());
}

// The values, as large as `value`, from which it is computed row by row, each with the nodes that move its rows on the
// way, in order.
std::map<ValueId, std::vector<const ir::Node*>> sources_by_rows(const ir::Graph& graph, ValueId value) {
  constexpr size_t kMost = 256;
  std::map<ValueId, std::vector<const ir::Node*>> found = {{value, {}}};
  std::vector<ValueId> open = {value};
  for (size_t next = 0; next < open.size() && open.size() < kMost; ++next) {
    const ir::Node& node = graph.producer(open[next]);
    std::vector<const ir::Node*> moves = found.at(open[next]);
    if (moves_rows(graph, node)) {
      moves.insert(moves.begin(), &node);
    } else if (!ir::is_elementwise(node.op)) {
      continue;
    }
    for (ValueId v : node.inputs) {
      if (found.emplace(v, moves).second) open.push_back(v);
    }
  }
  return found;
}

bool transposes(const std::vector<const ir::Node*>& moves) {
  return std::any_of(moves.begin(), moves.end(), [](const ir::Node* node) { return node->op == Op::kTranspose; });
}

class RowOrder {
 public:
  explicit RowOrder(LocalGraph& local) : local_(local), copier_(local) {}

  void run() {
    for (const ir::Node& node : local_.graph.nodes()) rewrite(node);
    for (const auto& port : local_.graph.outputs()) value(port.value);
    copier_.finish(local_);
    local_ = std::move(copier_.to);
  }

 private:
  // A value of the old graph that is a transpose of a value in the new graph.
  struct Moved {
    ValueId value;
    Ints perm;
  };

  void rewrite(const ir::Node& node) {
    if (node.outputs.size() == 1) {
      if (node.op == Op::kTranspose && begin(node)) return;
      const auto moved = std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_moved(v); });
      if (moved != node.inputs.end() && ir::is_elementwise(node.op))
        return through_elementwise(node, moved_.at(*moved));
      if (moved != node.inputs.end() && node.op == Op::kReduce) return through_reduce(node, moved_.at(*moved));
    }
    for (ValueId v : node.inputs) value(v);
    copier_.node(node);
  }

  bool is_moved(ValueId v) const { return moved_.count(v) != 0; }

  // The value in its own order.
  ValueId value(ValueId v) {
    if (copier_.map.count(v) == 0) copier_.map[v] = transposed(moved_.at(v).value, moved_.at(v).perm);
    return copier_.map.at(v);
  }

  ValueId transposed(ValueId v, const Ints& perm) {
    return copier_.to.graph.emit(Op::kTranspose, {v}, {{"perm", perm}}, {});
  }

  void define(ValueId v, ValueId before, Ints perm) {
    if (is_identity(perm)) {
      copier_.map[v] = before;
    } else {
      moved_[v] = {before, std::move(perm)};
    }
  }

  bool begin(const ir::Node& node) {
    constexpr int64_t kWorthwhile = 1 << 16;  // elements
    const ValueId x = node.inputs[0];
    Ints perm = node.attrs.ints("perm");
    if (!moves_rows(local_.graph, node) || element_count(local_.graph.shape(x)) < kWorthwhile) return false;
    if (!is_moved(x)) {
      define(node.outputs[0], value(x), std::move(perm));
      return true;
    }
    const Moved& before = moved_.at(x);
    for (int64_t& d : perm) d = before.perm[static_cast<size_t>(d)];
    define(node.outputs[0], before.value, std::move(perm));
    return true;
  }

  void through_elementwise(const ir::Node& node, const Moved& first) {
    const Ints perm = first.perm, back = inverse(perm);
    std::vector<ValueId> operands;
    for (ValueId v : node.inputs) {
      const bool same = is_moved(v) && moved_.at(v).perm == perm;
      operands.push_back(same ? moved_.at(v).value : transposed(value(v), back));
    }
    define(node.outputs[0], copier_.to.graph.emit(node.op, operands, node.attrs, node.origins), perm);
  }

  void through_reduce(const ir::Node& node, const Moved& operand) {
    Ints dims, kept;
    const Ints& reduced = node.attrs.ints("dims");
    const auto is_reduced = [&](size_t d) {
      return std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) != reduced.end();
    };
    for (size_t d = 0; d < operand.perm.size(); ++d) (is_reduced(d) ? dims : kept).push_back(operand.perm[d]);
    Ints perm;
    for (int64_t d : kept) perm.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t k) { return k < d; }));
    std::sort(dims.begin(), dims.end());
    ir::Attrs attrs = node.attrs;
    attrs.set("dims", dims);
    define(node.outputs[0], copier_.to.graph.emit(node.op, {operand.value}, attrs, node.origins), std::move(perm));
  }

  LocalGraph& local_;
  GraphCopier copier_;
  std::map<ValueId, Moved> moved_;
};

}  // namespace

void unify_row_order(LocalGraph& local) {
  RowOrder(local).run();
}

std::vector<RowMove> moves_to_order(const ir::Graph& graph, ValueId x, ValueId rows) {
  const auto of_x = sources_by_rows(graph, x), of_rows = sources_by_rows(graph, rows);
  std::vector<RowMove> moves;
  for (const auto& [shared, away] : of_x) {
    const auto found = of_rows.find(shared);
    if (found == of_rows.end()) continue;
    if (away == found->second || (!transposes(away) && !transposes(found->second))) return {};
    if (!moves.empty()) continue;
    for (auto node = away.rbegin(); node != away.rend(); ++node) {
      const bool reshapes = (*node)->op == Op::kReshape;
      moves.push_back({(*node)->op, reshapes ? graph.shape((*node)->inputs[0]) : inverse((*node)->attrs.ints("perm"))});
    }
    for (const ir::Node* node : found->second) {
      moves.push_back({node->op, node->op == Op::kReshape ? graph.shape(node->outputs[0]) : node->attrs.ints("perm")});
    }
  }
  return moves;
}

}  // namespace heddle::schedule
