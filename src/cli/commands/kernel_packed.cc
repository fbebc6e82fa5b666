// `heddle kernel packed`: a product with constant weights of few bits, its candidates, and whether the fastest is
// right.
#include "cli/commands/kernel_group.h"
#include "driver/tune/packed_bench.h"

namespace heddle::cli {

int kernel_packed_command(const Arguments& arguments) {
  const PackedArguments& a = arguments.packed;
  driver::PackedProblem p;
  p.type = parse_dtype(a.type).value();
  p.m = a.m, p.n = a.n, p.k = a.k, p.bits = a.bits, p.block = a.block, p.zeros = a.zeros;
  const nlohmann::json description = {{"type", a.type}, {"m", p.m},         {"n", p.n},        {"k", p.k},
                                      {"bits", p.bits}, {"block", p.block}, {"zeros", p.zeros}};
  return run_group(packed_problem(p), group_target(arguments), description, arguments);
}

}  // namespace heddle::cli
