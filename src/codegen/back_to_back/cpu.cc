#include "codegen/back_to_back/cpu.h"

#include <algorithm>
#include <set>

#include "codegen/product/cpu/contraction.h"
#include "codegen/product/cpu/micro_table.h"
#include "codegen/text/kernel_name.h"

namespace heddle::codegen {
namespace {

using schedule::CpuBackToBackDesc;
using schedule::CpuChain;
using schedule::CpuLink;

ChainPlace place_of(const CpuBackToBackDesc& desc, const CpuLink& link) {
  ChainPlace place{{}, desc.images, link.rows.rows, link.pixels, link.by_image};
  for (const uint32_t operand : link.operands) {
    place.operands.push_back(operand == CpuLink::kBefore ? "part.in"
                             : operand == CpuLink::kMade ? "part.out"
                                                         : fmt::format("all[{}]", operand));
  }
  return place;
}

std::string link_text(const tile::ChainLink& link) {
  return fmt::format("{{.rows = {}, .row_bytes = {}, .kernel = {}, .stride = {}, .dilation = {}, .low = {}}}",
                     link.rows, link.row_bytes, link.kernel, link.stride, link.dilation, link.low);
}

void write_kernel(Writer& out, const tile::ChainShape& s) {
  out.open(fmt::format("extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{",
                       kStandIn));
  std::vector<std::string> makers, links, buffers;
  for (int i = 0; i < s.links; ++i) {
    makers.push_back(fmt::format("link{}::make", i));
    links.push_back(link_text(s.link[i]));
    buffers.push_back(fmt::format("{}", s.buffer[i]));
  }
  out.line("static constexpr tile::ChainMaker makers[] = {{{}}};", fmt::join(makers, ", "));
  out.line("static constexpr tile::ChainShape shape{{");
  out.line("    .images = {}, .unit = {}, .strips = {}, .steps = {}, .links = {},", s.images, s.unit, s.strips, s.steps,
           s.links);
  out.line("    .link = {{{}}},", fmt::join(links, ", "));
  out.line("    .buffer = {{{}}}}};", fmt::join(buffers, ", "));
  out.line("tile::chain(shape, makers, operands, scratch, begin, end);");
  out.close();
}

}  // namespace

KernelSource emit_cpu_back_to_back(const schedule::KernelPlan& plan, const CpuBackToBackDesc& desc,
                                   const Target& target) {
  const CpuChain chain = blocked_chain(desc, plan.config.as<schedule::CpuBackToBackConfig>(), target);
  KernelSource source;
  Writer out;
  std::set<std::string> includes = {"tile/kernel/cpu/back_to_back.h"};
  std::string name = "back_to_back";
  int64_t scratch = 0;
  out.open(fmt::format("namespace {}_parts {{", kStandIn));
  out.open("namespace {");
  for (size_t i = 0; i < desc.links.size(); ++i) {
    const CpuLink& link = desc.links[i];
    out.open(fmt::format("namespace link{} {{", i));
    LinkText text = emit_link(out, link.desc, link.body(), chain.links[i], place_of(desc, link), target);
    out.close(fmt::format("}}  // namespace link{}", i));
    includes.insert(text.includes.begin(), text.includes.end());
    source.others.insert(source.others.end(), text.others.begin(), text.others.end());
    scratch = std::max(scratch, text.scratch_bytes);
    std::vector<schedule::ExprId> results;
    for (const auto& store : link.body().epilogue.stores) results.push_back(store.value);
    name += fmt::format("_{}{}", family_of(chain.links[i]), operators_of(link.body().epilogue.pool, results));
  }
  out.close("}  // namespace");
  write_kernel(out, chain.shape);
  out.close(fmt::format("}}  // namespace {}_parts", kStandIn));
  source.includes = {includes.begin(), includes.end()};
  source.text = out.text(source.includes);
  source.tasks = chain.shape.tasks();
  source.scratch_bytes = chain.shape.buffer[chain.shape.links - 1] + scratch;
  declare_others(source);
  source.symbol = name_kernel(source.text, name);
  return source;
}

}  // namespace heddle::codegen
