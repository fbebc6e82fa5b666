#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/rewrite.h"
#include "passes/names.h"

namespace heddle::passes {

class Emitter;

// A node that is about to be emitted. Its operands are values of the target graph.
struct Match {
  Emitter& e;
  ir::Op op;
  const std::vector<ir::ValueId>& in;
  const ir::Attrs& attrs;
};

// A rewriting rule. `apply` is called for a node of `op` before the node is created. It returns an equivalent value, or
// nullopt. A rule must make progress (fewer or cheaper nodes, or nodes closer to the canonical form), since the rules
// are applied again to the nodes that it emits.
struct Rule {
  ir::Op op;
  std::string_view name;
  std::optional<ir::ValueId> (*apply)(const Match&);
};

// Rules, indexed by the op that they match.
class RuleTable {
 public:
  explicit RuleTable(std::initializer_list<std::span<const Rule>> families);
  std::span<const Rule> of(ir::Op op) const { return rules_[static_cast<size_t>(op)]; }

 private:
  std::array<std::vector<Rule>, 256> rules_;
};

// Emits nodes with one result through a rule table. The first matching rule replaces the node. The rules are applied
// again to the nodes that the rule emits.
class Emitter {
 public:
  Emitter(ir::Rewriter& rewriter, const RuleTable& rules) : rewriter_(rewriter), rules_(rules) {}

  const ir::Graph& graph() { return rewriter_.target(); }
  // True if the emitted value feeds a decision (ir/analysis/decisions.h). Rules that would change a rounding must not
  // be applied then.
  bool feeds_decision() const { return feeds_decision_; }
  void set_feeds_decision(bool feeds) { feeds_decision_ = feeds; }
  ir::ValueId emit(ir::Op op, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {});
  // Emits a node without applying rules.
  ir::ValueId emit_plain(ir::Op op, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {}) {
    return rewriter_.emit(op, std::move(inputs), std::move(attrs));
  }
  // Adds the origins of this target node to all values that are emitted later.
  void also_from(const ir::Node& target_node) { rewriter_.also_from(target_node); }

  const ir::Node& def(ir::ValueId v) { return graph().producer(v); }
  bool is(ir::ValueId v, ir::Op op) { return def(v).op == op; }
  const Shape& shape(ir::ValueId v) { return graph().shape(v); }
  DType dtype(ir::ValueId v) { return graph().dtype(v); }
  int64_t count(ir::ValueId v) { return element_count(shape(v)); }

  // If `v` is a constant whose elements are all equal, returns their value; otherwise nullopt. Looks through broadcasts
  // and reshapes. Returns nullopt for large constants, which would take long to search.
  std::optional<double> splat(ir::ValueId v);
  // True if a value is a constant or a broadcast of one.
  bool is_constant(ir::ValueId v);

  ir::ValueId constant(Tensor value) { return rewriter_.constant(std::move(value)); }
  // A tensor filled with `value`, of the type and shape of `like`: a scalar and a broadcast.
  ir::ValueId full_like(ir::ValueId like, double value);
  ir::ValueId unary(ir::Op op, ir::ValueId x) { return emit(op, {x}); }
  ir::ValueId binary(ir::Op op, ir::ValueId a, ir::ValueId b) { return emit(op, {a, b}); }
  ir::ValueId cast(ir::ValueId x, DType to);
  ir::ValueId reshape(ir::ValueId x, Shape shape);
  ir::ValueId transpose(ir::ValueId x, ir::Ints perm);
  ir::ValueId broadcast(ir::ValueId x, Shape shape, ir::Ints dims);
  ir::ValueId slice(ir::ValueId x, ir::Ints starts, ir::Ints limits, ir::Ints strides);

 private:
  ir::Rewriter& rewriter_;
  const RuleTable& rules_;
  int depth_ = 0;
  bool feeds_decision_ = false;
};

// Rebuilds a graph, emitting every node through a rule table.
ir::Graph apply_rules(const ir::Graph& graph, const RuleTable& rules);

// The rule table of canonicalize, and the families of rules that it consists of. Other passes may use the families in
// their own tables.
const RuleTable& canonical_rules();
std::span<const Rule> arithmetic_rules();
std::span<const Rule> layout_rules();
std::span<const Rule> indexing_rules();
std::span<const Rule> contraction_rules();
std::span<const Rule> shared_operand_rules();

// Converts a dimension to an index of a container.
inline size_t at(int64_t dim) {
  return static_cast<size_t>(dim);
}
// The list 0, 1, ..., count - 1.
ir::Ints counting(size_t count);
ir::Ints inverse(const ir::Ints& perm);
// The position of a value in a list; -1 if the list does not contain it.
int64_t index_of(const ir::Ints& list, int64_t value);

}  // namespace heddle::passes
