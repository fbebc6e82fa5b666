#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lang/analysis/waits.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// A mask or another value that meets the pointer's elements; a scalar where it is the same everywhere.
std::string beside(Emitter& e, ValueId v, const Layout& layout) {
  return e.uniform(v) ? e.text(v) : e.tile(v, layout);
}

// Whether the scalars that a sum is made of have been written.
bool is_there(const Emitter& e, const Polynomial& p) {
  return std::all_of(p.terms().begin(), p.terms().end(), [&](const auto& term) {
    return std::all_of(term.first.begin(), term.first.end(), [&](ValueId v) { return e.is_bound(v); });
  });
}

// A tile of pointers to be read or written. Where it is an affine function of the places of its elements, it is one
// pointer of the thread and the distances of its registers from there, which are constants for the most part.
std::string addresses(Emitter& e, ValueId pointers) {
  constexpr size_t kMostTerms = 12;
  if (e.uniform(pointers)) return e.tile(pointers);
  const std::optional<Window> window = e.windows.window(pointers);
  if (!window || !e.is_bound(window->base) || !is_there(e, window->offset)) return e.tile(pointers);
  Polynomial offset = window->offset;
  std::vector<std::string> strides;
  for (const Window::Dim& dim : window->dims) {
    if (dim.wraps || !is_there(e, dim.stride) || !is_there(e, dim.start)) return e.tile(pointers);
    offset = offset + dim.start * dim.stride;
    strides.push_back(sum_text(e, dim.stride, "int64_t"));
  }
  if (offset.terms().size() > kMostTerms) return e.tile(pointers);
  const std::string first = offset.is_zero() ? e.text(window->base)
                                             : fmt::format("{} + ({})", codegen::factor(e.text(window->base)),
                                                           sum_text(e, offset, "int64_t"));
  return fmt::format("block::addresses<{}>({}, {{{}}})", e.layout_name(e.layout(pointers)), first,
                     fmt::join(strides, ", "));
}

// Shared memory by which one thread tells the others what it alone got from memory.
void need_for_one_thread(Emitter& e, const Type& type, const Layout* layout) {
  const bool through_shared = layout == nullptr || layout->replicated();
  if (through_shared) e.need_shared(std::max<int64_t>(16, type.elements() * size_of(type.element)));
}

void emit_load(Emitter& e, const Op& op) {
  const ValueId pointer = op.operands[0], result = op.results[0];
  const Type& type = e.type(pointer);
  if (type.is_scalar()) {
    if (is_volatile(op)) need_for_one_thread(e, type, nullptr);
    std::string text = fmt::format("block::{}({}", is_volatile(op) ? "load_volatile" : "load<block::Access::kPlain>",
                                   is_volatile(op) ? "kShared, " + e.text(pointer) : e.text(pointer));
    for (size_t i = 1; i < op.operands.size(); ++i) text += ", " + e.text(op.operands[i]);
    return e.declare(op, result, text + ")");
  }
  const Layout& layout = e.layout(pointer);
  const int64_t element = size_of(type.element);
  if (!e.uniform(pointer) && !is_volatile(op) && is_shifted(layout, e.facts_of(pointer), element) &&
      pads_with_zero(e.uses, op)) {
    const std::string shifted = fmt::format("block::shifted({})", load_pieces_text(e, op));
    return e.declare(op, result, e.converted(shifted, layout, e.layout(result), e.type(result)));
  }
  const int64_t vector = e.uniform(pointer) ? 1 : access_vector(layout, e.facts_of(pointer), element);
  if (is_volatile(op)) need_for_one_thread(e, type, &layout);
  std::string text = fmt::format("block::{}<{}>({}{}", is_volatile(op) ? "load_volatile" : "load", vector,
                                 is_volatile(op) ? "kShared, " : "", addresses(e, pointer));
  for (size_t i = 1; i < op.operands.size(); ++i) text += ", " + beside(e, op.operands[i], layout);
  e.declare(op, result, e.converted(text + ")", layout, e.layout(result), e.type(result)));
}

void emit_store(Emitter& e, const Op& op) {
  const ValueId pointer = op.operands[0];
  const Type& type = e.type(pointer);
  std::string text;
  if (type.is_scalar()) {
    text = fmt::format("block::store({}, {}", e.text(pointer), e.text(op.operands[1]));
    if (op.operands.size() > 2) text += ", " + e.text(op.operands[2]);
  } else {
    const Layout& layout = e.layout(pointer);
    const int64_t vector = e.uniform(pointer) ? 1 : access_vector(layout, e.facts_of(pointer), size_of(type.element));
    text = fmt::format("block::store<{}>({}, {}", vector, addresses(e, pointer), e.tile(op.operands[1], layout));
    if (op.operands.size() > 2) text += ", " + beside(e, op.operands[2], layout);
  }
  e.statement(op, text + ")");
}

std::string order_and_scope(const Op& op) {
  const std::string_view sem = op.attributes.word("sem", "acq_rel"), scope = op.attributes.word("scope", "gpu");
  const char* const order = sem == "relaxed"   ? "kRelaxed"
                            : sem == "acquire" ? "kAcquire"
                            : sem == "release" ? "kRelease"
                                               : "kAcquireRelease";
  return fmt::format("block::Order::{}, block::Scope::{}", order,
                     scope == "cta"   ? "kBlock"
                     : scope == "sys" ? "kSystem"
                                      : "kDevice");
}

const char* update_of(std::string_view kind) {
  if (kind == "add") return "block::atomic_add";
  if (kind == "and") return "block::atomic_and";
  if (kind == "or") return "block::atomic_or";
  if (kind == "xor") return "block::atomic_xor";
  if (kind == "min") return "block::atomic_min";
  return kind == "max" ? "block::atomic_max" : "block::atomic_exchange";
}

void emit_atomic(Emitter& e, const Op& op) {
  const ValueId pointer = op.operands[0];
  const Type& type = e.type(pointer);
  const bool swaps = op.code == OpCode::kAtomicCas;
  const bool scalar = type.is_scalar();
  const ValueId result = op.results[0];
  need_for_one_thread(e, type, scalar ? nullptr : &e.layout(result));
  std::vector<std::string> operands;
  for (size_t i = 0; i < (swaps ? 3u : 2u); ++i) {
    operands.push_back(scalar ? e.text(op.operands[i]) : e.tile(op.operands[i], e.layout(result)));
  }
  if (!swaps) {
    const bool masked = op.operands.size() > 2;
    operands.push_back(!masked  ? "true"
                       : scalar ? e.text(op.operands[2])
                                : beside(e, op.operands[2], e.layout(result)));
  }
  const std::string callee =
      swaps ? fmt::format("block::compare_and_swap<{}>", order_and_scope(op))
            : fmt::format("block::atomic<{}, {}>", update_of(op.attributes.word("kind")), order_and_scope(op));
  e.declare(op, op.results[0], fmt::format("{}(kShared, {})", callee, fmt::join(operands, ", ")));
}

std::vector<ValueId> offsets_of(const Emitter& e, const Op& op) {
  const auto rank = static_cast<std::ptrdiff_t>(e.type(op.operands[0]).shape.size());
  return {op.operands.begin() + 1, op.operands.begin() + 1 + rank};
}

// ---- Views

// What a store of a view wants: neighbours along the last dimension.
Layout view_layout(const Emitter& e, const std::vector<int64_t>& shape, int64_t vector) {
  int64_t elements = 1;
  for (const int64_t n : shape) elements *= n;
  while (vector > 1 && elements < vector * 32 * e.warps) vector /= 2;
  std::vector<int> order;
  for (size_t d = shape.size(); d-- > 0;) order.push_back(static_cast<int>(d));
  return blocked(shape, order, vector, e.warps);
}

int64_t within(const Layout& layout, int64_t vector) {
  const int64_t run = layout.run(layout.rank() - 1);
  return std::min(vector, run & -run);
}

void emit_volatile_view(Emitter& e, const Op& op, const Layout& layout) {
  need_for_one_thread(e, e.type(op.results[0]), &layout);
  const std::string at = e.fresh("at"), l = e.layout_name(layout);
  e.statement(op, fmt::format("const auto {} = {}", at, window_text(e, op, checked_of(op))));
  e.declare(
      op, op.results[0],
      fmt::format("block::load_volatile(kShared, block::pointers<{0}>({1}), block::inside<{0}>({1}), {2}.padding)", l,
                  at, e.text(op.operands[0])));
}

bool emit_view(Emitter& e, const Op& op) {
  switch (op.code) {
    case OpCode::kMakeView: {
      const Type& type = e.type(op.results[0]);
      const size_t rank = type.shape.size();
      std::vector<std::string> sizes, strides;
      for (size_t d = 0; d < rank; ++d) {
        sizes.push_back(codegen::factor(e.text(op.operands[1 + d])));
        strides.push_back(codegen::factor(e.text(op.operands[1 + rank + d])));
      }
      const std::string padding = op.attributes.word("padding") == "nan"
                                      ? fmt::format("block::cast<{}>(__builtin_nanf(\"\"))", element_type(type.element))
                                      : fmt::format("{}{{}}", element_type(type.element));
      e.declare(op, op.results[0],
                fmt::format("{}{{{}, {{{}}}, {{{}}}, {}}}", e.held_type(op.results[0]), e.text(op.operands[0]),
                            fmt::join(sizes, ", "), fmt::join(strides, ", "), padding));
      return true;
    }
    case OpCode::kLoadView: {
      const Layout& layout = e.layout(op.results[0]);
      if (is_volatile(op)) return emit_volatile_view(e, op, layout), true;
      const int64_t vector = within(layout, view_vector(e.kernel, e.facts, op.operands[0], offsets_of(e, op)));
      e.declare(op, op.results[0],
                fmt::format("block::load<{}, {}>({}, {}.padding)", e.layout_name(layout), vector,
                            window_text(e, op, checked_of(op)), e.text(op.operands[0])));
      return true;
    }
    case OpCode::kStoreView: {
      const int64_t vector = view_vector(e.kernel, e.facts, op.operands[0], offsets_of(e, op));
      const Layout layout = view_layout(e, e.type(op.operands.back()).shape, vector);
      e.statement(op, fmt::format("block::store<{}>({}, {})", within(layout, vector),
                                  window_text(e, op, checked_of(op)), e.tile(op.operands.back(), layout)));
      return true;
    }
    case OpCode::kAtomicView: {
      const ValueId value = op.operands.back();
      const Layout& layout = e.layout(value);
      need_for_one_thread(e, e.type(value), &layout);
      const std::string at = e.fresh("at"), all = fmt::format("{}u", (1u << layout.rank()) - 1);
      e.statement(op, fmt::format("const auto {} = {}", at, window_text(e, op, (1u << layout.rank()) - 1)));
      const std::string l = e.layout_name(layout);
      e.statement(op, fmt::format("block::atomic<{}, block::Order::kRelaxed, block::Scope::kDevice>(kShared, "
                                  "block::pointers<{}>({}), {}, block::inside<{}>({}))",
                                  update_of(op.attributes.word("kind")), l, at, e.tile(value), l, at));
      return true;
    }
    default:
      return false;
  }
}

// Rows of a view that a tile names.
bool emit_rows(Emitter& e, const Op& op) {
  if (op.code != OpCode::kGatherView && op.code != OpCode::kScatterView) return false;
  const bool gathers = op.code == OpCode::kGatherView;
  const int64_t vector = view_vector(e.kernel, e.facts, op.operands[0], {op.operands[2]});
  const Layout layout = gathers ? e.layout(op.results[0]) : view_layout(e, e.type(op.operands[3]).shape, vector);
  const std::string l = e.layout_name(layout), rows = e.fresh("rows"), view = e.text(op.operands[0]);
  e.statement(op, fmt::format("const auto {} = block::broadcast<{}, 1>({})", rows, l,
                              e.converted(fmt::format("block::expand<1>({})", e.tile(op.operands[1], slice(layout, 1))),
                                          expand(slice(layout, 1), 1), squeeze(layout, 1),
                                          Type::tile({layout.shape[0], 1}, Element::kI32))));
  const std::string where = fmt::format("{}, {}, {}", view, rows, codegen::factor(e.text(op.operands[2])));
  if (gathers) {
    e.declare(op, op.results[0],
              fmt::format("block::load<{}>(block::row_pointers({}), block::row_mask({}), {}.padding)",
                          within(layout, vector), where, where, view));
  } else {
    e.statement(op, fmt::format("block::store<{}>(block::row_pointers({}), {}, block::row_mask({}))",
                                within(layout, vector), where, e.tile(op.operands[3], layout), where));
  }
  return true;
}

}  // namespace

std::string load_pieces_text(Emitter& e, const Op& op) {
  const ValueId pointer = op.operands[0];
  const std::string mask = op.operands.size() > 1 ? beside(e, op.operands[1], e.layout(pointer)) : "true";
  return fmt::format("block::load_pieces<{}>({}, {})", kShiftedRun, e.tile(pointer), mask);
}

unsigned checked_of(const Op& op) {
  unsigned bits = 0;
  for (const int64_t d : op.attributes.list("check")) bits |= 1u << d;
  return bits;
}

std::string window_text(const Emitter& e, const Op& op, unsigned checked) {
  std::vector<std::string> offsets;
  for (const ValueId v : offsets_of(e, op)) offsets.push_back(codegen::factor(e.text(v)));
  return fmt::format("block::window<{}u>({}, {{{}}})", checked, e.text(op.operands[0]), fmt::join(offsets, ", "));
}

bool emit_memory(Emitter& e, const Op& op) {
  switch (op.code) {
    case OpCode::kLoad:
      return copy_kept_load(e, op) || (emit_load(e, op), true);
    case OpCode::kStore:
      return emit_store(e, op), true;
    case OpCode::kAtomicRmw:
    case OpCode::kAtomicCas:
      return emit_atomic(e, op), true;
    default:
      return emit_view(e, op) || emit_rows(e, op);
  }
}

}  // namespace heddle::lang::cuda
