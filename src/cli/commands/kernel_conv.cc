// `heddle kernel conv` and `heddle kernel b2b`: the candidates of a convolution, or of two contractions back to back,
// their times and whether the fastest is right.
#include "cli/commands/kernel_group.h"
#include "driver/tune/conv_bench.h"

namespace heddle::cli {

int kernel_conv_command(const Arguments& arguments) {
  const ConvArguments& a = arguments.conv;
  driver::ConvProblem p;
  p.type = a.type == "bf16" ? DType::kBF16 : DType::kF16;
  p.rows = a.rows, p.batch = a.batch, p.height = a.height, p.width = a.width == 0 ? a.height : a.width;
  p.channels = a.channels, p.filters = a.filters;
  p.window = a.window, p.stride = a.stride, p.groups = a.groups, p.out = a.out;
  const nlohmann::json description = {{"type", a.type},       {"rows", p.rows},     {"batch", p.batch},
                                      {"height", p.height},   {"width", p.width},   {"channels", p.channels},
                                      {"filters", p.filters}, {"window", p.window}, {"stride", p.stride},
                                      {"groups", p.groups},   {"out", p.out}};
  return run_group(conv_problem(p), description, arguments);
}

}  // namespace heddle::cli
