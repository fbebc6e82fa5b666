#include "codegen/region/cpu/standalone.h"

#include <functional>

#include "codegen/scalar/scalar.h"
#include "codegen/text/cpu_function.h"
#include "codegen/text/numbers.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {
namespace {

using ir::Op;

// Elements that are only moved are moved as bits.
std::string moved_type(DType dtype) {
  return fmt::format("uint{}_t", 8 * size_of(dtype));
}

std::string scatter_combiner(const std::string& reduction) {
  if (reduction == "none") return "tile::replaced";
  if (reduction == "add") return "tile::sum_of";
  if (reduction == "mul") return "tile::prod_of";
  return fmt::format("tile::{}_of", reduction);
}

using Number = std::function<std::string(int64_t)>;

std::string list(const Shape& shape, const Number& number) {
  std::vector<std::string> texts;
  for (const int64_t extent : shape) texts.push_back(number(extent));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void write_scatter(const schedule::StandaloneDesc& body, const schedule::Config& config, const Number& number,
                   bool marked, Writer& out) {
  const std::string_view storage = marked ? "const" : "static constexpr";
  const bool moved = body.reduction == "none";
  const std::string type = moved ? moved_type(body.dtype) : std::string(storage_type(body.dtype));
  int operand = 0;
  if (body.in_place || body.fill) {
    out.line("const {}* data = nullptr;{}", type, body.in_place ? "  // y holds it" : "");
  } else {
    out.line("const auto* data = static_cast<const {}*>(operands[{}]);", type, operand++);
  }
  if (body.fill) {
    out.line("const uint64_t bits = {:#x}u;  // of each element before the updates", *body.fill);
    out.line("{} value;", type);
    out.line("__builtin_memcpy(&value, &bits, sizeof(value));");
  }
  out.line("const {}* fill = {};", type, body.fill ? "&value" : "nullptr");
  out.line("const auto* indices = static_cast<const {}*>(operands[{}]);", storage_type(body.index_dtype), operand++);
  out.line("const auto* updates = static_cast<const {}*>(operands[{}]);", type, operand++);
  out.line("auto* y = static_cast<{}*>(operands[{}]);", type, operand);
  out.line("{} int64_t shape[] = {{{}}};  // {}", storage, list(body.data, number), to_string(body.dtype));
  if (body.op == Op::kScatterElements) {
    out.line("{} int64_t index_shape[] = {{{}}};", storage, list(body.indices, number));
    out.line("{} int64_t index_stride[] = {{{}}};", storage, list(body.index_strides(), number));
    out.line(
        "tile::scatter_elements<{}, {}, {}, {}>(data, fill, indices, updates, y, shape, index_shape, index_stride,",
        scatter_combiner(body.reduction), body.data.size(), body.dim, body.drop);
    out.line("                       first, last);");
    return;
  }
  const int64_t depth = body.indices.back();
  const auto& blocks = config.as<schedule::ScatterSlicesConfig>();
  out.line("tile::scatter_nd<{}, {}, {}>(data, fill, indices, updates, y, shape, {}, {}, {}, first, last);",
           scatter_combiner(body.reduction), body.data.size(), depth, number(element_count(body.indices) / depth),
           number(blocks.rows), number(blocks.columns));
}

void write_selection(const schedule::StandaloneDesc& body, const Number& number, Writer& out) {
  const std::string_view type = storage_type(body.dtype);
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(body.dim) + 1; d < body.data.size(); ++d) inner *= body.data[d];
  out.line("const auto* x = static_cast<const {}*>(operands[0]);  // {}{}", type, to_string(body.dtype),
           heddle::to_string(body.data));
  out.line("auto* values = static_cast<{}*>(operands[1]);", type);
  out.line("auto* positions = static_cast<int64_t*>(operands[2]);");
  out.line("for (int64_t i = first; i < last; ++i) {{");
  out.line("  const int64_t from = i / {0} * {1} + i % {0}, to = i / {0} * {2} + i % {0};", number(inner),
           number(inner * body.data[static_cast<size_t>(body.dim)]), number(inner * body.k));
  out.line("  tile::select_best<{}>(x + from, {}, {}, {}, values + to, positions + to, scratch);", body.largest,
           number(inner), number(body.data[static_cast<size_t>(body.dim)]), number(body.k));
  out.line("}}");
}

}  // namespace

KernelSource emit_cpu_standalone(const schedule::KernelDesc& desc, const schedule::StandaloneDesc& body,
                                 const schedule::Config& config, bool marked) {
  Writer out(1);
  if (marked) out.raw(argument_line(argument_array(desc.operands.size())));
  const auto number = [&](int64_t value) { return marked ? codegen::marked(value) : fmt::format("{}", value); };
  const int64_t parts = body.op == Op::kScatterNd ? config.tasks : body.parts();
  out.line("const int64_t first = begin * {0} / {1}, last = end * {0} / {1};", number(parts), number(config.tasks));
  CpuFunction function{config.reason};
  KernelSource& source = function.source;
  if (body.op == Op::kTopK) {
    write_selection(body, number, out);
    source.includes = {"tile/kernel/cpu/select.h"};
    constexpr int64_t kCandidate = 16;  // the widest key with its position
    source.scratch_bytes = body.k * kCandidate;
  } else {
    write_scatter(body, config, number, marked, out);
    source.includes = {"tile/kernel/cpu/scatter.h"};
  }
  function.body = out.text();
  source.symbol = body.op == Op::kTopK ? "select" : "scatter";
  source.tasks = config.tasks;
  return function.kernel(marked);
}

}  // namespace heddle::codegen
