#include "codegen/region/cpu/bundle.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/text/numbers.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {
namespace {

constexpr std::string_view kEntry = "extern \"C\" void ";

// The text of a kernel as a function that only this file sees.
std::string as_part(std::string text) {
  const size_t at = text.find(kEntry);
  HEDDLE_CHECK(at != std::string::npos, "a part has no entry");
  return text.replace(at, kEntry.size(), "static void ");
}

// Gives a part with marked numbers, which has no name yet, one that says nothing of the numbers.
void name_part(KernelSource& part, const std::string& name) {
  constexpr std::string_view kName = "KERNEL_NAME";
  part.symbol = name;
  for (size_t at = part.text.find(kName); at != std::string::npos; at = part.text.find(kName, at)) {
    part.text.replace(at, kName.size(), part.symbol);
  }
}

}  // namespace

KernelSource emit_bundle(const schedule::BundleDesc& bundle, size_t operand_count, bool marked) {
  KernelSource source;
  Writer body;
  std::string parts;
  std::set<std::string> includes, symbols;
  std::map<std::string, std::string> part_names;  // by text
  int64_t first = 0;
  const auto number = [&](int64_t value) { return marked ? codegen::marked(value) : fmt::format("{}", value); };
  if (marked) body.raw(argument_line(argument_array(operand_count)));
  for (const schedule::BundleDesc::Part& part : bundle.parts) {
    KernelSource kernel = emit_stitch({part.operands, part.body}, *part.body, part.config, marked);
    if (marked)
      name_part(kernel, part_names.try_emplace(kernel.text, fmt::format("part{}", part_names.size())).first->second);
    if (symbols.insert(kernel.symbol).second) parts += as_part(kernel.text);
    includes.insert(kernel.includes.begin(), kernel.includes.end());
    source.scratch_bytes = std::max(source.scratch_bytes, kernel.scratch_bytes);
    std::vector<std::string> operands;
    for (const uint32_t operand : part.from) operands.push_back(fmt::format("operands[{}]", operand));
    if (marked) operands.push_back(fmt::format("operands[{}]", operand_count));
    const std::string table = fmt::format("void* const own[] = {{{}}};", fmt::join(operands, ", "));
    if (bundle.in_a_row) {
      body.open("{");
      body.raw(table);
      body.line("{}(own, scratch, 0, 1);", kernel.symbol);
    } else {
      const std::string from = number(first), to = number(first + kernel.tasks);
      body.open(fmt::format("if (begin < {} && end > {}) {{", to, from));
      body.raw(table);
      body.line("{}(own, scratch, tile::larger(begin, {}) - {}, tile::smaller(end, {}) - {});", kernel.symbol, from,
                from, to, from);
      first += kernel.tasks;
    }
    body.close();
  }
  source.tasks = bundle.in_a_row ? 1 : first;
  source.includes.assign(includes.begin(), includes.end());
  const std::string inner = parts + body.text();
  const std::string hashed = fmt::format("bundle_{}", hash_text(inner).hex().substr(0, 16));
  source.symbol = marked ? "KERNEL_NAME" : hashed;
  source.text = fmt::format(
      "namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n{2}{0}(void* const* operands, void* scratch, int64_t "
      "begin, "
      "int64_t end) {{\nusing namespace {0}_parts;\n{3}}}\n",
      source.symbol, parts, kEntry, body.text());
  if (marked) source.symbol = "bundle";
  return source;
}

}  // namespace heddle::codegen
