#include "ir/schema.h"

#include <array>

#include "base/check.h"
#include "ir/ops/families.h"

namespace heddle::ir {
namespace {

using Table = std::array<const OpSchema*, 256>;

Table join() {
  Table table{};
  for (const auto family :
       {elementwise_schemas(), source_schemas(), layout_schemas(), indexing_schemas(), reduction_schemas(),
        window_schemas(), contraction_schemas(), control_schemas(), call_schemas()}) {
    for (const OpSchema& s : family) {
      const OpSchema*& slot = table[static_cast<size_t>(s.op)];
      HEDDLE_CHECK(slot == nullptr, "{} is described twice", to_string(s.op));
      slot = &s;
    }
  }
  return table;
}

}  // namespace

const OpSchema& schema(Op op) {
  static const Table table = join();
  const OpSchema* s = table[static_cast<size_t>(op)];
  HEDDLE_CHECK(s != nullptr, "{} has no schema", to_string(op));
  return *s;
}

}  // namespace heddle::ir
