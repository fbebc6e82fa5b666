// `heddle kernel attention`: the candidates of one attention, their times and whether the fastest is right.
#include "cli/commands/kernel_group.h"
#include "driver/tune/attention_bench.h"

namespace heddle::cli {

int kernel_attention_command(const Arguments& arguments) {
  const AttentionArguments& a = arguments.attention;
  driver::AttentionProblem p;
  p.tf32 = a.type == "tf32";
  p.type = p.tf32 ? DType::kF32 : parse_dtype(a.type).value();
  p.batch = a.batch, p.heads = a.heads, p.kv_heads = a.kv_heads == 0 ? a.heads : a.kv_heads;
  p.m = a.m, p.n = a.n == 0 ? a.m : a.n, p.depth = a.depth;
  p.width = a.width == 0 ? a.depth : a.width;
  p.causal = a.causal || a.window > 0 || a.prefix > 0, p.window = a.window, p.prefix = a.prefix, p.page = a.page;
  const nlohmann::json description = {{"type", a.type},     {"batch", p.batch},   {"heads", p.heads},
                                      {"m", p.m},           {"n", p.n},           {"kv_heads", p.kv_heads},
                                      {"depth", p.depth},   {"width", p.width},   {"causal", p.causal},
                                      {"window", p.window}, {"prefix", p.prefix}, {"page", p.page}};
  const driver::GroupProblem problem = attention_problem(p);
  return run_group(problem, group_target(arguments), description, arguments);
}

}  // namespace heddle::cli
