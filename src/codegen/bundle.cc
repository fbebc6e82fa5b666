#include "codegen/bundle.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "codegen/stitch.h"
#include "codegen/writer.h"

namespace heddle::codegen {
namespace {

constexpr std::string_view kEntry = "extern \"C\" void ";

// The text of a kernel as a function that only this file sees.
std::string as_part(std::string text) {
  const size_t at = text.find(kEntry);
  HEDDLE_CHECK(at != std::string::npos, "a part has no entry");
  return text.replace(at, kEntry.size(), "static void ");
}

}  // namespace

KernelSource emit_bundle(const schedule::BundleDesc& bundle) {
  KernelSource source;
  Writer body;
  std::string parts;
  std::set<std::string> includes, symbols;
  int64_t first = 0;
  for (const schedule::BundleDesc::Part& part : bundle.parts) {
    const KernelSource kernel = emit_stitch({part.operands, part.body}, *part.body, part.config);
    if (symbols.insert(kernel.symbol).second) parts += as_part(kernel.text);
    includes.insert(kernel.includes.begin(), kernel.includes.end());
    source.scratch_bytes = std::max(source.scratch_bytes, kernel.scratch_bytes);
    std::vector<std::string> operands;
    for (const uint32_t operand : part.from) operands.push_back(fmt::format("operands[{}]", operand));
    const std::string table = fmt::format("void* const own[] = {{{}}};", fmt::join(operands, ", "));
    if (bundle.in_a_row) {
      body.open("{");
      body.raw(table);
      body.line("{}(own, scratch, 0, 1);", kernel.symbol);
    } else {
      const int64_t end = first + kernel.tasks;
      body.open(fmt::format("if (begin < {} && end > {}) {{", end, first));
      body.raw(table);
      body.line("{}(own, scratch, tile::larger(begin, {}) - {}, tile::smaller(end, {}) - {});", kernel.symbol, first,
                first, end, first);
      first = end;
    }
    body.close();
  }
  source.tasks = bundle.in_a_row ? 1 : first;
  source.includes.assign(includes.begin(), includes.end());
  const std::string inner = parts + body.text();
  source.symbol = fmt::format("bundle_{}", hash_text(inner).hex().substr(0, 16));
  const std::string unused = bundle.in_a_row ? "[[maybe_unused]] " : "";
  source.text = fmt::format(
      "namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n{2}{0}(void* const* operands, void* scratch, {4}int64_t "
      "begin, "
      "{4}int64_t end) {{\nusing namespace {0}_parts;\n{3}}}\n",
      source.symbol, parts, kEntry, body.text(), unused);
  return source;
}

}  // namespace heddle::codegen
