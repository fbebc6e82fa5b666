#include "passes/opt.h"

#include "ir/text/text.h"

namespace heddle::passes {

std::string optimise_text(std::string_view text, std::span<const std::string> names, const PassContext& context) {
  const ir::Graph graph = ir::parse(text);
  const ir::Graph result = names.empty() ? run_pipeline(graph, context) : run_passes(graph, names, context);
  return ir::print(result, {.max_constant_elements = -1, .origins = true});
}

}  // namespace heddle::passes
