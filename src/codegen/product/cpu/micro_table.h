#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "target/target.h"

namespace heddle::codegen {

// Tables of the micro-kernels that a kernel calls. Each is a text of its own, compiled once for all kernels.
struct MicroTables {
  std::string type;
  std::string value;      // an expression
  std::string arguments;  // for templates that take the table: vectors of a panel; whether the last panel may be narrow
  std::vector<KernelText> texts;
};

struct MicroProblem {
  std::string_view compute, stored;
  int64_t columns, lanes;    // lanes: of a vector
  bool has_narrow = true;    // a last panel of one vector or less is computed at that width
  bool any_columns = false;  // marked kernels support any number of columns
};

// Tables for micro tiles of `micro_m` rows and `micro_n` columns. `marked`: if the height of micro tiles is a common
// one, it is a number that may become an argument.
MicroTables micro_tables(const MicroProblem& problem, int64_t micro_m, int64_t micro_n, const Target& target,
                         bool marked);

// Prepends the declarations of the `others` that the text names. Drops others with a declaration that it does not name.
void declare_others(KernelSource& source);

}  // namespace heddle::codegen
