#include "codegen/product/cpu/functor.h"

#include <algorithm>
#include <set>

#include "schedule/expr/expr_walk.h"
#include "schedule/expr/lane_stride.h"

namespace heddle::codegen {
namespace {

bool is_dynamic(const schedule::ExprPool& pool, const schedule::Index& at) {
  return std::any_of(at.terms.begin(), at.terms.end(), [&](const auto& term) {
    return pool.indices.atom(term.first).kind == schedule::Atom::Kind::kDynamic;
  });
}

Names epilogue_names(const FunctorMembers& members, const Epilogue& e) {
  Names names = members.names();
  names.locals[0] = {"acc", e.accumulator, true};
  names.vars[e.batch] = "batch", names.vars[e.row] = "row";
  names.vars[e.col_outer] = "col_outer", names.vars[e.col] = "col";
  return names;
}

void split_column(Writer& out, const FunctorMembers& members, const Epilogue& e) {
  if (e.pool.indices.extent(e.col_outer) <= 1) return;
  const std::string split = members.marked() ? marked(e.split) : fmt::format("{}", e.split);
  out.declare("int64_t", "col_outer", fmt::format("col / {}", split));
  out.line("col %= {};", split);
}

std::string bounds_condition(ScalarEmitter& emitter, const Epilogue& e) {
  std::vector<std::string> all;
  for (const Epilogue::Bound& bound : e.bounds) all.push_back(emitter.within(bound.index, 0, bound.end));
  return fmt::format("{}", fmt::join(all, " && "));
}

}  // namespace

std::string argument(const KernelDesc& desc, uint32_t operand) {
  return fmt::format("static_cast<{}>(operands[{}])", pointer_type(desc.operands[operand]), operand);
}

std::string initialisers(const KernelDesc& desc, const FunctorMembers& members, Sizes& sizes) {
  std::vector<std::string> values;
  for (const uint32_t id : members.used_operands()) {
    values.push_back(argument(desc, id) + sizes.place(members.begin_of(id)));
  }
  for (const int64_t number : members.numbers()) values.push_back(sizes(number));
  if (members.marked()) values.push_back(argument_array(desc.operands.size()));
  return fmt::format("{{{}}}", fmt::join(values, ", "));
}

ScalarEmitter body_emitter(const schedule::ExprPool& pool, Names names, const FunctorMembers& members, Writer& out) {
  ScalarEmitter emitter(pool, std::move(names), out);
  emitter.set_style({.cpu = true});
  if (members.marked()) {
    out.raw(argument_line(kArgumentMember));
    emitter.mark_numbers();
  }
  return emitter;
}

namespace {

// Opens a struct that computes the value of the only store.
FunctorMembers open_value(Writer& out, const char* name, const KernelDesc& desc, const Epilogue& e,
                          const Sizes& sizes) {
  FunctorMembers members(e.pool, desc.operands);
  members.begin_at_slices({e.stores.at(0).value}, {});
  members.use(e.stores.at(0).value);
  members.drop_numbers();
  if (sizes.marked()) members.mark_numbers();
  out.open(fmt::format("struct {} {{", name));
  members.declare(out);
  return members;
}

// The functor's member `lines` (tile/kernel/cpu/gemm.h): results, and operands that have rows of their own.
void write_lines(Writer& out, const FunctorMembers& members, const Epilogue& e) {
  out.raw("template <typename Visit>");
  out.open(
      "TILE_INLINE void lines(int64_t batch, int64_t row, "
      "int64_t col, const Visit& visit) const {");
  ScalarEmitter emitter = body_emitter(e.pool, epilogue_names(members, e), members, out);
  split_column(out, members, e);
  emitter.set_lanes(Lanes{e.col, "1", "1"});
  const auto visit = [&](uint32_t operand, const schedule::Index& at) {
    if (is_dynamic(e.pool, at) || emitter.lane_stride(at) != 1) return;
    out.line("visit(p{} + {});", operand, emitter.index(members.from_begin(operand, at)));
  };
  std::set<schedule::ExprId> loads;
  schedule::ExprWalk walk(e.pool);
  for (const Epilogue::Store& store : e.stores) {
    visit(store.operand, store.at);
    walk.run(store.value, [&](schedule::ExprId id) {
      if (e.pool[id].kind == Expr::Kind::kLoad) loads.insert(id);
      return true;
    });
  }
  for (schedule::ExprId id : loads) {
    if (e.pool.vars(e.pool[id].index) >> e.row & 1) visit(e.pool[id].id, e.pool[id].index);
  }
  out.close();
}

}  // namespace

bool runs_along_rows(const Epilogue& e) {
  if (e.interleaved > 1) return true;
  if (e.stores.empty() || !e.bounds.empty()) return false;
  if (e.pool.indices.extent(e.row) == 1 || e.pool.indices.extent(e.col) == 1) return false;
  const auto stride = [&](const schedule::Index& at, schedule::VarId var) {
    return schedule::lane_stride(e.pool, at, {var}, {});
  };
  bool affine = e.pool.indices.extent(e.col_outer) <= 1;
  schedule::ExprWalk walk(e.pool);
  for (const Epilogue::Store& store : e.stores) {
    affine = affine && !is_dynamic(e.pool, store.at) && stride(store.at, e.row) == 1 && stride(store.at, e.col) > 1;
    walk.run(store.value, [&](schedule::ExprId id) {
      const Expr& expr = e.pool[id];
      affine =
          affine && (expr.kind != Expr::Kind::kLoad || (!is_dynamic(e.pool, expr.index) && stride(expr.index, e.row)));
      return true;
    });
  }
  return affine;
}

FunctorMembers write_epilogue(Writer& out, const KernelDesc& desc, const Epilogue& e, const Sizes& sizes,
                              bool with_lines, bool along_rows) {
  FunctorMembers members(e.pool, desc.operands);
  std::vector<std::pair<uint32_t, schedule::Index>> stores;
  for (const Epilogue::Store& store : e.stores) stores.emplace_back(store.operand, store.at);
  members.begin_at_slices(e.values(), stores);
  for (const Epilogue::Store& store : e.stores) {
    members.use_operand(store.operand);
    members.use(members.from_begin(store.operand, store.at));
    members.use(store.value);
  }
  for (const Epilogue::Bound& bound : e.bounds) members.use(bound.index);
  if (!sizes.shared()) members.drop_numbers();
  if (sizes.marked()) members.mark_numbers();
  out.open("struct Epilogue {");
  members.declare(out);
  if (along_rows) out.line("static constexpr bool kAlongRows = true;");
  if (e.interleaved > 1) out.line("static constexpr int kInterleaved = {};", e.interleaved);
  if (e.panel_phases) out.line("static constexpr bool kPanelPhases = true;");
  out.raw("template <int W, typename N>");
  out.open(
      fmt::format("TILE_INLINE void operator()(tile::vec<{}, W> acc, int64_t batch, "
                  "int64_t row, int64_t col, N n) const {{",
                  computed_type(e.accumulator)));
  ScalarEmitter emitter = body_emitter(e.pool, epilogue_names(members, e), members, out);
  split_column(out, members, e);
  const bool lanes_differ = e.bounds_lanes();
  if (!e.bounds.empty() && !lanes_differ) out.line("if (!({})) return;", bounds_condition(emitter, e));
  const schedule::VarId along = along_rows ? e.row : e.col;
  emitter.set_lanes(Lanes{along, "W", "n"});
  for (const Epilogue::Store& store : e.stores) {
    const std::string buffer = fmt::format("p{}", store.operand);
    const DType storage = desc.operands[store.operand].dtype;
    const schedule::Index at = members.from_begin(store.operand, store.at);
    if (!lanes_differ && emitter.lane_stride(at)) {
      emitter.store(buffer, storage, at, store.value);
      continue;
    }
    // The lanes of a vector lie in several runs of the result, or beside it.
    const std::string value = emitter.vector(store.value);
    const bool mask = storage == DType::kBool && emitter.value(store.value).mask_bytes > 0;
    const std::string begin = emitter.names().vars[along];
    emitter.names().vars[along] = fmt::format("({} + k)", begin);
    out.open("for (int64_t k = 0; k < n; ++k) {");
    if (lanes_differ) out.line("if (!({})) continue;", bounds_condition(emitter, e));
    const std::string lane = fmt::format("tile::lane({}, k)", value);
    out.line("tile::store({} + {}, {});", buffer, emitter.index(at),
             mask ? fmt::format("tile::from_mask<uint8_t>({})", lane) : lane);
    out.close();
    emitter.names().vars[along] = begin;
  }
  out.close();
  if (with_lines && !along_rows) write_lines(out, members, e);
  out.close("};");
  return members;
}

FunctorMembers write_scores(Writer& out, const KernelDesc& desc, const Epilogue& e, const Sizes& sizes) {
  FunctorMembers members = open_value(out, "Scores", desc, e, sizes);
  out.raw("template <int W, typename N>");
  out.open(
      "TILE_INLINE tile::vec<float, W> operator()(tile::vec<float, W> acc, int64_t batch, int64_t row, int64_t col, N "
      "n) "
      "const {");
  ScalarEmitter emitter = body_emitter(e.pool, epilogue_names(members, e), members, out);
  emitter.set_lanes(Lanes{e.col, "W", "n"});
  out.line("return {};", emitter.vector(e.stores[0].value));
  out.close();
  out.close("};");
  return members;
}

FunctorMembers write_sink(Writer& out, const KernelDesc& desc, const Epilogue& e, const Sizes& sizes) {
  FunctorMembers members = open_value(out, "Sink", desc, e, sizes);
  out.open("TILE_INLINE tile::vec<float, 1> operator()(int64_t batch, int64_t row) const {");
  ScalarEmitter emitter = body_emitter(e.pool, epilogue_names(members, e), members, out);
  out.line("return {};", emitter.vector(e.stores[0].value));
  out.close();
  out.close("};");
  return members;
}

}  // namespace heddle::codegen
