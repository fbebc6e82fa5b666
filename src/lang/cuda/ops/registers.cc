#include <fmt/format.h>

#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// What a load of the next trip brings.
std::string load_text(Emitter& e, const StagedLoad& l) {
  if (l.shifted) return load_pieces_text(e, *l.load);
  const Op& load = *l.load;
  if (load.code == OpCode::kLoadView) {
    return fmt::format("block::load<{}, {}>({}, {}.padding)", e.layout_name(e.layout(load.results[0])), l.vector,
                       window_text(e, load, checked_of(load)), e.text(load.operands[0]));
  }
  const ValueId pointer = load.operands[0];
  std::string mask = "true";
  if (load.operands.size() > 1) {
    const ValueId v = load.operands[1];
    mask = e.uniform(v) ? e.text(v) : e.tile(v, e.layout(pointer));
  }
  return fmt::format("block::load<{}>({}, {})", l.vector, e.tile(pointer), mask);
}

const Layout& layout_of(const Emitter& e, const Op& load) {
  return e.layout(load.code == OpCode::kLoadView ? load.results[0] : load.operands[0]);
}

}  // namespace

void emit_by_registers(Emitter& e, const Op& op, const Pipeline& p) {
  const Region& body = op.regions[0];
  const ValueId index = body.arguments[0];
  const KeptForLoop kept(e);
  const int64_t stride = p.slot_bytes(), first = e.keep(stride * p.stages);
  const AccumulatingProduct product = *accumulating_product(op, p, e.uses, e.assignment);
  e.out.raw("block::sync();");
  emit_carried(e, op);
  std::vector<std::string> own, held;
  for (const ValueId v : body.arguments) own.push_back(v == index ? "" : e.text(v));
  for (const StagedLoad& l : p.loads) {
    held.push_back(e.fresh("next"));
    const std::string element(scalar_type(e.type(l.load->results[0]).scalar_type())),
        layout = e.layout_name(layout_of(e, *l.load));
    e.out.raw(l.shifted ? fmt::format("block::Pieces<{}, {}, {}> {};", element, layout, kShiftedRun, held.back())
                        : fmt::format("block::Tile<{}, {}> {};", element, layout, held.back()));
  }
  const Ahead ahead = open_ahead(e, op, p, "load_next");
  for (size_t i = 0; i < p.loads.size(); ++i) {
    e.statement(*p.loads[i].load, fmt::format("{} = {}", held[i], load_text(e, p.loads[i])));
  }
  close_ahead(e, op, ahead);
  for (size_t i = 1; i < body.arguments.size(); ++i) e.bind(body.arguments[i], own[i]);
  skip_addresses(e, body, p);
  const std::string use = e.fresh("use");
  e.out.line("{}();", ahead.lambda);
  e.out.line("int {} = 0;", use);

  e.bind(index, e.name(index));
  e.out.raw("#pragma unroll 1");
  e.out.open(for_head(e, op, e.text(index)));
  int64_t at = first;
  for (size_t i = 0; i < p.loads.size(); ++i) {
    const StagedLoad& l = p.loads[i];
    const std::string slot = fmt::format("kShared.slot<{}, {}, {}>({})", l.operand, at, stride, use);
    e.statement(*l.load, fmt::format("block::put_swizzled<{}, {}>({}, {})", l.operand, l.row_dim, slot,
                                     l.shifted ? fmt::format("block::shifted({})", held[i]) : held[i]));
    for (const StagedLoad::Read& read : l.reads) e.operands[read.value] = {read.operand, slot, true};
    at += aligned_slot(l.bytes);
  }
  e.out.raw("block::show_operands();");
  // The tensor cores multiply while memory answers. The product ends in this trip: over the end of one it may not last
  // beside the code that shifts (ptxas then waits for each instruction of it).
  emit_accumulating(e, op, product,
                    {fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", use, p.stages), ahead.lambda + "();"});
  e.out.line("block::end_products({});", e.text(body.arguments[product.carried + 1]));
  e.out.close();
}

}  // namespace heddle::lang::cuda
