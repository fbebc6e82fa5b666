#include "passes/opt.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text.h"

namespace heddle::passes {

std::string optimise_text(std::string_view text, std::span<const std::string> names, const PassContext& context,
                          bool print_all) {
  const ir::Graph graph = ir::parse(text);
  const ir::Graph result = names.empty() ? run_pipeline(graph, context) : run_passes(graph, names, context);
  ir::PrintOptions options;
  if (print_all) options.max_constant_elements = -1;
  return ir::print(result, options);
}

std::string list_passes() {
  std::string text;
  std::vector<std::string_view> seen;
  for (const Pass& pass : pipeline()) {
    if (std::find(seen.begin(), seen.end(), pass.name) != seen.end()) continue;
    seen.push_back(pass.name);
    text += fmt::format("{:<20} {}\n", pass.name, pass.what);
  }
  return text;
}

}  // namespace heddle::passes
