#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "target/target.h"

namespace heddle::codegen {

// The micro-kernels that a kernel calls, as tables that are texts of their own: each is compiled once for all kernels.
struct MicroTables {
  std::string type;
  std::string value;      // an expression
  std::string arguments;  // of the templates that take it: vectors of a panel, whether the last one may be narrow
  std::vector<KernelText> texts;
};

struct MicroProblem {
  std::string_view compute, stored;
  int64_t columns, lanes;    // of a vector
  bool has_narrow = true;    // a last panel of one vector or less is computed at that width
  bool any_columns = false;  // kernels that are marked serve any number of columns
};

// Of micro tiles of `micro_m` rows and `micro_n` columns. `marked`: the height of micro tiles is a number that may
// become an argument where it is a common one.
MicroTables micro_tables(const MicroProblem& problem, int64_t micro_m, int64_t micro_n, const Target& target,
                         bool marked);

// Begins the text with declarations of what it names of `others`, and drops those of them that it does not name.
void declare_others(KernelSource& source);

}  // namespace heddle::codegen
