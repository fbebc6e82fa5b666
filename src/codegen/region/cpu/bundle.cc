#include "codegen/region/cpu/bundle.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/numbers.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {
KernelSource emit_cpu_bundle(const schedule::CpuBundleDesc& bundle, size_t operand_count, bool marked) {
  KernelSource source;
  Writer body;
  std::string parts;
  std::set<std::string> includes, symbols;
  std::map<std::string, std::string> part_names;  // by text
  int64_t first = 0;
  const auto number = [&](int64_t value) { return marked ? codegen::marked(value) : fmt::format("{}", value); };
  if (marked) body.raw(argument_line(argument_array(operand_count)));
  for (const schedule::CpuBundleDesc::Part& part : bundle.parts) {
    const CpuFunction function = stitch_function({part.operands, part.body}, *part.body, part.config, marked);
    const KernelSource& kernel = function.source;
    // With marked numbers the name says nothing of them.
    const std::string name =
        marked ? part_names.try_emplace(function.body, fmt::format("part{}", part_names.size())).first->second
               : function.symbol();
    if (symbols.insert(name).second) parts += function.text("static", name);
    includes.insert(kernel.includes.begin(), kernel.includes.end());
    source.scratch_bytes = std::max(source.scratch_bytes, kernel.scratch_bytes);
    std::vector<std::string> operands;
    for (const uint32_t operand : part.from) operands.push_back(fmt::format("operands[{}]", operand));
    if (marked) operands.push_back(fmt::format("operands[{}]", operand_count));
    const std::string table = fmt::format("void* const own[] = {{{}}};", fmt::join(operands, ", "));
    if (bundle.in_a_row) {
      body.open("{");
      body.raw(table);
      body.line("{}(own, scratch, 0, 1);", name);
    } else {
      const std::string from = number(first), to = number(first + kernel.tasks);
      body.open(fmt::format("if (begin < {} && end > {}) {{", to, from));
      body.raw(table);
      body.line("{}(own, scratch, tile::larger(begin, {}) - {}, tile::smaller(end, {}) - {});", name, from, from, to,
                from);
      first += kernel.tasks;
    }
    body.close();
  }
  source.tasks = bundle.in_a_row ? 1 : first;
  source.includes.assign(includes.begin(), includes.end());
  const std::string inner = parts + body.text();
  const std::string hashed = fmt::format("bundle_{}", hash_text(inner).hex().substr(0, 16));
  source.symbol = marked ? kStandIn : hashed;
  source.text = fmt::format(
      "namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n{2} void {0}(void* const* operands, void* scratch, "
      "int64_t begin, int64_t end) {{\nusing namespace {0}_parts;\n{3}}}\n",
      source.symbol, parts, kEntry, body.text());
  if (marked) source.symbol = "bundle";
  return source;
}

}  // namespace heddle::codegen
