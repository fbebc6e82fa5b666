#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"
#include "target/target.h"

namespace heddle::codegen {

// The tables of micro-kernels that a kernel calls. Each table is a separate text, compiled once and shared by all
// kernels.
struct MicroTables {
  std::string type;
  std::string value;      // a C++ expression of this type
  std::string arguments;  // for templates that use the table: vectors per panel; whether the last panel may be narrow
  std::vector<KernelText> texts;
};

struct MicroProblem {
  std::string_view compute, stored;
  int64_t columns, lanes;    // lanes: per vector
  bool has_narrow = true;    // a last panel of at most one vector is computed at one vector's width
  bool any_columns = false;  // marked kernels support any number of columns
  schedule::Words words = schedule::Words::kNone;
  int64_t rows = 0;  // of A
};

// Makes the tables for micro tiles of `micro_m` rows and `micro_n` columns. If `marked` and micro_m is one of
// common_heights(), the kernel's text marks this height, so that the height can become a run-time argument.
MicroTables micro_tables(const MicroProblem& problem, int64_t micro_m, int64_t micro_n, const Target& target,
                         bool marked);

// Prepends to the kernel's text the declarations of those `source.others` whose symbols the text contains. Removes from
// `source.others` the texts that have a declaration but whose symbol the text does not contain.
void declare_others(KernelSource& source);

}  // namespace heddle::codegen
