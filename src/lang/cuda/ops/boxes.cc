#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lang/analysis/waits.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// The parameter that describes a matrix; loads of one matrix with one box share it.
std::string map_name(Emitter& e, const TensorMapPlan& plan) {
  for (const TensorMapParameter& m : e.maps) {
    if (m.plan == plan) return m.name;
  }
  const std::string name = e.fresh("map_" + e.text(plan.base));
  e.maps.push_back({name, plan});
  e.prologue.push_back(fmt::format("if (threadIdx.x == 0) tile::sm90::prefetch({});", name));
  return name;
}

// A ring that lives as long as the kernel, so that its barriers are made once.
std::string make_ring(Emitter& e, int stages) {
  const std::string ring = e.fresh("ring");
  e.prologue.push_back(
      fmt::format("block::Ring<{}, {}> {}(kBarriers.memory() + {});", stages, e.warps, ring, e.barrier_bytes));
  constexpr int64_t kBarrierBytes = 8;
  e.barrier_bytes += (2 * stages + 1) * kBarrierBytes;
  return ring;
}

// Whether something may have been written to memory before the loop runs, by this program or by one that it waited for.
bool is_behind_writes(const Emitter& e, const Op& loop) {
  bool behind = false;
  const int at = e.uses.order(loop);
  for_each_op(e.kernel.body, [&](const Op& op) {
    const bool around = (op.code == OpCode::kFor || op.code == OpCode::kWhile) && &op != &loop &&
                        std::any_of(op.regions.begin(), op.regions.end(), [&](const Region& r) {
                          bool has = false;
                          for_each_op(r, [&](const Op& inner) { has = has || &inner == &loop; });
                          return has && (has_trait(r, kWrites) || orders_loads(r));
                        });
    const bool orders = info_of(op.code).has(kWrites) || orders_loads(op);
    behind = behind || around || (orders && e.uses.order(op) < at);
  });
  return behind;
}

// The statements by which one thread fills a slot, which are where operands are from now on.
void emit_loads(Emitter& e, const Pipeline& p, const std::string& ring, int64_t first) {
  std::vector<std::string> bytes;
  for (const StagedLoad& l : p.loads) bytes.push_back(fmt::format("block::box_bytes<{}>()", l.operand));
  e.out.line("{}.begin_fill({});", ring, fmt::join(bytes, " + "));
  int64_t at = first;
  for (const StagedLoad& l : p.loads) {
    std::vector<std::string> corners;  // in 32 bits: whatever is cut off in between, the sum fits
    for (const Polynomial& corner : l.box->corners) corners.push_back(sum_text(e, corner, "int32_t"));
    if (corners.size() == 2) corners.emplace_back("0");
    const auto slot = [&](const std::string& operand, const char* which) {
      return fmt::format("kShared.slot<{}, {}, {}>({}.{})", operand, at, p.slot_bytes(), ring, which);
    };
    e.statement(*l.load,
                fmt::format("block::load_boxes<{}>({}, {}.full[{}.fill], {}, {})", l.operand, map_name(e, l.box->map),
                            ring, ring, slot(l.operand, "fill"), fmt::join(corners, ", ")));
    for (const StagedLoad::Read& read : l.reads) {
      e.operands[read.value] = {read.operand, slot(read.operand, "use"), true};
    }
    at += aligned_slot(l.bytes);
  }
}

// Ops outside of any loop that scalars are made of, in their order; nothing where others are among them.
std::optional<std::set<const Op*>> scalar_slice(const Emitter& e, const std::vector<ValueId>& wanted) {
  std::set<const Op*> slice;
  std::vector<ValueId> open = wanted;
  while (!open.empty()) {
    const Op* const op = e.uses.definer(open.back());
    open.pop_back();
    if (op == nullptr || !slice.insert(op).second) continue;
    if (!info_of(op->code).has(kPure) || !op->regions.empty() || op->results.size() != 1 ||
        !e.type(op->results[0]).is_scalar() || e.uses.region(op->results[0]) != &e.kernel.body) {
      return std::nullopt;
    }
    open.insert(open.end(), op->operands.begin(), op->operands.end());
  }
  return slice;
}

// What a warpgroup of its own needs outside of the loop to fill its slots; nothing where it had better not do that: in
// loops within others, where more than scalars are needed, and where several blocks hide each other's waits.
std::optional<std::set<const Op*>> producer_slice(const Emitter& e, const Op& op, const Pipeline& p) {
  // A warpgroup more costs nothing where only one block fits on an SM.
  const bool alone = e.options.producer && 2 * e.kept_bytes > e.options.most_shared && (e.warps == 4 || e.warps == 8);
  const bool top =
      alone && !e.kernel.body.ops.empty() && &op >= &e.kernel.body.ops.front() && &op <= &e.kernel.body.ops.back();
  if (!top || !p.carried.empty()) return std::nullopt;
  std::vector<ValueId> wanted(op.operands.begin(), op.operands.begin() + 3);
  const auto in_body = [&](ValueId v) {
    const std::vector<Op>& ops = op.regions[0].ops;
    const Op* const made = e.uses.definer(v);
    return v == op.regions[0].arguments[0] || (made != nullptr && made >= &ops.front() && made <= &ops.back());
  };
  const auto want = [&](ValueId v) {
    if (!in_body(v)) wanted.push_back(v);
  };
  for (const StagedLoad& l : p.loads) {
    for (const Polynomial& corner : l.box->corners) {
      for (const auto& [product, factor] : corner.terms()) std::for_each(product.begin(), product.end(), want);
    }
  }
  for (const Op* inner : p.ahead) {
    if (!e.type(inner->results[0]).is_scalar()) return std::nullopt;
    std::for_each(inner->operands.begin(), inner->operands.end(), want);
  }
  return scalar_slice(e, wanted);
}

// The text of the thread that fills the slots of a loop.
void emit_producer(Emitter& e, const Op& op, const Pipeline& p, const std::set<const Op*>& slice,
                   const std::string& ring, int64_t first) {
  e.producer += e.apart([&] {
    e.out.open("{");
    for (const Op& outer : e.kernel.body.ops) {
      if (slice.count(&outer) != 0) e.emit(outer);
    }
    e.out.line("{}.wait_until_open();", ring);
    const ValueId index = op.regions[0].arguments[0];
    e.bind(index, e.fresh("ahead"));
    e.out.raw("#pragma unroll 1");
    e.out.open(for_head(e, op, e.text(index)));
    for (const Op& inner : op.regions[0].ops) {
      if (p.ahead.count(&inner) != 0) e.emit(inner);
    }
    emit_loads(e, p, ring, first);
    e.out.line("{}.end_fill();", ring);
    e.out.close();
    e.out.close();
  });
}

// The lambda that asks for the slot of the trip `ahead`; its name.
std::string emit_fill(Emitter& e, const Op& op, const Pipeline& p, const std::string& ring, int64_t first) {
  const Ahead ahead = open_ahead(e, op, p, "fill_next");
  e.out.open("if (threadIdx.x == 0) {");
  emit_loads(e, p, ring, first);
  e.out.close();
  e.out.raw("__syncwarp();");
  e.out.line("{}.end_fill();", ring);
  close_ahead(e, op, ahead);
  return ahead.lambda;
}

// The first product of a loop with several, made of what does not change and of what TMA brings: that of the next trip
// can be computed while the threads are busy with this one's.
const Op* leading_product(const Emitter& e, const Region& body) {
  constexpr int64_t kMostRegisters = 160;  // for sums, of 240 or 255
  const Op* first = nullptr;
  int products = 0;
  int64_t registers = 0;
  for (const Op& op : body.ops) {
    if (op.code == OpCode::kDot) {
      registers += e.assignment.dots.at(&op).layout.registers() * (products == 0 ? 2 : 1);
      if (products++ == 0) first = &op;
    }
    bool nested = false;
    for (const Region& r : op.regions) {
      for_each_op(r, [&](const Op& deep) { nested = nested || deep.code == OpCode::kDot; });
    }
    if (nested) return nullptr;
  }
  if (products < 2 || registers > kMostRegisters) return nullptr;
  const DotPlan& plan = e.assignment.dots.at(first);
  const bool there = e.operands.count(first->operands[0]) + e.operands.count(first->operands[1]) == 2;
  const bool fits = plan.by_group && !plan.swapped && e.layout(first->results[0]) == plan.layout;
  return there && fits && is_zero(e.uses, first->operands[2]) ? first : nullptr;
}

std::string source_text(const Emitter& e, ValueId operand, const std::string& ring, bool next) {
  OperandText text = e.operands.at(operand);
  const std::string use = ring + ".use";
  if (const size_t at = text.pointer.find(use); next && at != std::string::npos) {
    text.pointer.replace(at, use.size(), ring + ".second()");
  }
  return fmt::format("block::SwizzledSource<{}>{{{}}}", text.operand, text.pointer);
}

// A loop whose leading product runs one trip ahead. Behind the last trip it multiplies what lies in the slot.
void emit_ahead(Emitter& e, const Op& op, const Op& leading, const std::string& ring) {
  const DotPlan& plan = e.assignment.dots.at(&leading);
  const std::string layout = e.layout_name(plan.layout), next = e.fresh("product_ahead");
  const auto sources = [&](bool of_next) {
    return source_text(e, leading.operands[0], ring, of_next) + ", " +
           source_text(e, leading.operands[1], ring, of_next);
  };
  const auto goes_on = [&](const std::string& index) {
    const std::optional<int64_t> step = e.facts_of(op.operands[2]).value;
    const std::string to = e.text(op.operands[1]), by = e.text(op.operands[2]);
    return step ? fmt::format("{} {} {}", index, *step > 0 ? "<" : ">", to)
                : fmt::format("{0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}", by, index, to);
  };
  e.uses_groups = true;
  e.out.line("auto {} = block::fill<{}, float>(0.0f);", next, layout);
  e.out.open(fmt::format("if ({}) {{", goes_on(e.text(op.operands[0]))));
  e.out.line("{}.wait();", ring);
  e.out.line("block::begin_product<{}, 0>({}, {});", plan.sums, next, sources(false));
  e.out.line("block::end_products({});", next);
  e.out.close();
  const ValueId index = op.regions[0].arguments[0], result = leading.results[0];
  e.bind(index, e.name(index));
  e.out.raw("#pragma unroll 1");
  e.out.open(for_head(e, op, e.text(index)));
  const std::string now = e.name(result);
  e.out.line("const auto {} = {};", now, next);
  e.bind(result, now);
  e.skipped.insert(&leading);
  e.out.line("{} = block::fill<{}, float>(0.0f);", next, layout);
  e.out.line("if ({}) {}.wait_second();", goes_on(fmt::format("{} + {}", e.text(index), e.text(op.operands[2]))), ring);
  e.statement(leading, fmt::format("block::begin_product<{}, 1>({}, {})", plan.sums, next, sources(true)));
  emit_for_body(e, op);
  e.out.line("block::end_products({});", next);
  e.out.line("{}.release();", ring);
  e.out.close();
}

}  // namespace

bool overlaps(const Emitter& e, const Region& body) {
  for (const Op& inner : body.ops) {
    bool nested = false;
    for (const Region& r : inner.regions) {
      for_each_op(r, [&](const Op& deep) { nested = nested || deep.code == OpCode::kDot; });
    }
    if (nested) return false;
    if (inner.code == OpCode::kDot && e.assignment.dots.at(&inner).by_group) return true;
  }
  return false;
}

void emit_accumulating(Emitter& e, const Op& op, const AccumulatingProduct& product,
                       const std::vector<std::string>& behind) {
  const Region& body = op.regions[0];
  const std::string sums = e.text(body.arguments[product.carried + 1]);
  for (const Op& inner : body.ops) {
    if (info_of(inner.code).has(kTerminator)) break;
    if (&inner != product.dot) {
      e.emit(inner);
      continue;
    }
    e.statement(inner, begin_product_text(e, inner, sums));
    for (const std::string& line : behind) e.out.raw(line);
  }
  std::vector<ValueId> targets, values;
  for (size_t k = 0; k + 1 < body.arguments.size(); ++k) {
    if (k == product.carried) continue;
    targets.push_back(body.arguments[k + 1]);
    values.push_back(body.ops.back().operands[k]);
  }
  assign(e, targets, values);
}

void emit_by_boxes(Emitter& e, const Op& op, const Pipeline& p) {
  const Region& body = op.regions[0];
  const ValueId index = body.arguments[0];
  const KeptForLoop kept(e);
  const int64_t first = e.keep(p.slot_bytes() * p.stages);
  const std::string ring = make_ring(e, p.stages);
  // Slots and matrices were written by other means than TMA until now.
  if (is_behind_writes(e, op)) e.out.raw("tile::sm90::fence_async_global();");
  std::string fill;
  emit_carried(e, op);
  const bool any_laid = lay_down_invariants(e, body);
  const std::optional<std::set<const Op*>> slice = producer_slice(e, op, p);
  if (slice) {
    e.out.line("{}.open();", ring);
    if (any_laid) e.out.raw("block::show_operands();");
    emit_producer(e, op, p, *slice, ring, first);
  } else {
    e.out.raw("block::show_operands();");
    std::vector<std::string> own;
    for (const ValueId v : body.arguments) own.push_back(v == index ? "" : e.text(v));
    fill = emit_fill(e, op, p, ring, first);
    e.out.line("for (int i = 0; i < {}; ++i) {}();", p.stages - 1, fill);
    for (size_t i = 1; i < body.arguments.size(); ++i) e.bind(body.arguments[i], own[i]);
  }
  skip_addresses(e, body, p);

  constexpr int kLeastStages = 3;  // of this trip and the next, and one that is being filled
  const Op* const leading = slice && p.stages >= kLeastStages ? leading_product(e, body) : nullptr;
  if (leading != nullptr) {
    emit_ahead(e, op, *leading, ring);
    return;
  }
  const std::optional<AccumulatingProduct> product = accumulating_product(op, p, e.uses, e.assignment);
  e.bind(index, e.name(index));
  e.out.raw("#pragma unroll 1");
  e.out.open(for_head(e, op, e.text(index)));
  e.out.line("{}.wait();", ring);
  if (product) {
    std::vector<std::string> behind{ring + ".hold();"};
    if (!slice) behind.push_back(fill + "();");
    emit_accumulating(e, op, *product, behind);
  } else {
    if (!slice && overlaps(e, body)) {
      e.meanwhile = fill;
    } else if (!slice) {
      e.out.line("{}();", fill);
    }
    emit_for_body(e, op);
    e.out.line("{}.release();", ring);
  }
  e.out.close();
  if (product) {
    e.out.line("block::end_products({});", e.text(body.arguments[product->carried + 1]));
    e.out.line("{}.let_go();", ring);
  }
}

}  // namespace heddle::lang::cuda
