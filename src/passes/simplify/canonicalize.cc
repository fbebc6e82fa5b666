#include "passes/simplify/canonicalize.h"

#include "passes/rewrite/emitter.h"

namespace heddle::passes {

const RuleTable& canonical_rules() {
  static const RuleTable table{arithmetic_rules(), layout_rules(), indexing_rules(), shared_operand_rules(),
                               contraction_rules()};
  return table;
}

ir::Graph canonicalize(const ir::Graph& graph, const PassContext&) {
  return apply_rules(graph, canonical_rules());
}

}  // namespace heddle::passes
