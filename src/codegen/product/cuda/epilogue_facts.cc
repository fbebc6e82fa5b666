#include "codegen/product/cuda/epilogue_facts.h"

#include <algorithm>
#include <string_view>

#include "codegen/scalar/fast_math.h"

namespace heddle::codegen {

bool EpilogueFacts::whole() const {
  constexpr int64_t kMostColumns = 8;  // that a template hands over at once
  return e_.split % kMostColumns == 0;
}

bool EpilogueFacts::lanes_adjoin(const Index& at) const {
  if (split() && !whole()) return false;
  for (const auto& [id, c] : at.terms) {
    const schedule::Atom& atom = e_.pool.indices.atom(id);
    if (atom.kind == schedule::Atom::Kind::kVar && atom.id == e_.col) {
      if (c != 1) return false;
    } else if (e_.pool.vars(Index{0, {{id, 1}}}) & columns_) {
      return false;
    }
  }
  return (e_.pool.vars(at) & columns_) != 0;
}

bool EpilogueFacts::rounds_all() const {
  return std::all_of(e_.stores.begin(), e_.stores.end(), [&](const Epilogue::Store& store) {
    const DType dtype = operands_[store.operand].dtype;
    return is_float(dtype) && size_of(dtype) <= 2;
  });
}

ExprId EpilogueFacts::stored(size_t i) const {
  const Epilogue::Store& store = e_.stores[i];
  return e_.pool[store.value].dtype == operands_[store.operand].dtype ? unrounded(store.value) : store.value;
}

ExprId EpilogueFacts::unrounded(ExprId id) const {
  const Expr& e = e_.pool[id];
  const bool rounds =
      e.kind == Expr::Kind::kOp && e.op == ir::Op::kCast && (e.dtype == DType::kF16 || e.dtype == DType::kBF16);
  return rounds && e_.pool[e.args[0]].dtype == DType::kF32 ? e.args[0] : id;
}

bool EpilogueFacts::is_accumulator(ExprId id) const {
  const Expr& e = e_.pool[id];
  return e.kind == Expr::Kind::kLocal && e.id == 0;
}

bool EpilogueFacts::is_f32(ExprId id) const {
  return computed_type(e_.pool[id].dtype) == "float";
}

// What is converted between types of floating point.
ExprId EpilogueFacts::uncast(ExprId id) const {
  const Expr& e = e_.pool[id];
  const bool cast = e.kind == Expr::Kind::kOp && e.op == ir::Op::kCast && is_float(e.dtype);
  return cast && is_float(e_.pool[e.args[0]].dtype) ? uncast(e.args[0]) : id;
}

std::optional<EpilogueFacts::Steps> EpilogueFacts::steps() const {
  // What is reduced is computed from the accumulators, which may not begin with something else.
  if (!returns_only() || !e_.reductions.empty() || e_.accumulator != DType::kF32 || !rounds_all()) return std::nullopt;
  const ExprId root = stored(0);
  if (!is_f32(root)) return std::nullopt;
  Steps steps{{}, {}, root};
  if (const auto form = pack_form_of(e_.pool, root)) steps.inner = form->argument, steps.pack = form->function;
  // What a gate makes of sums is none of them.
  if (e_.gate || find_sum(steps) != 1) steps.accumulator_init.reset(), steps.sum.reset();
  const std::string_view pack = steps.pack;
  const bool sums = is_accumulator(steps.inner) || steps.inner == steps.sum;
  steps.costly = e_.gate || !sums || (pack != "tile::fast::pack" && pack != "tile::fast::pack_relu");
  return steps;
}

// Where the accumulators are added to what is the same for all rows. Returns how often they are used.
int EpilogueFacts::find_sum(Steps& steps) const {
  int uses = 0;
  schedule::ExprWalk(e_.pool).run(steps.inner, [&](ExprId id) {
    const Expr& e = e_.pool[id];
    for (size_t i = 0; i < e.args.size(); ++i) {
      if (!is_accumulator(e.args[i])) continue;
      ++uses;
      const bool adds = e.kind == Expr::Kind::kOp && e.op == ir::Op::kAdd && is_f32(id);
      if (!adds || is_accumulator(e.args[1 - i])) continue;
      const ExprId other = e.args[1 - i];
      const uint64_t vars = e_.pool.vars(other);
      const bool same = (vars & uint64_t{1} << e_.row) == 0 && (vars & columns_) != 0;
      if (same && is_f32(other)) steps.accumulator_init = other, steps.sum = id;
    }
    return true;
  });
  return uses;
}

std::optional<ExprId> EpilogueFacts::shared() const {
  std::optional<ExprId> shared;
  if (e_.reductions.empty() || e_.accumulator != DType::kF32) return shared;
  std::vector<ExprId> roots;
  for (size_t i = 0; i < e_.stores.size(); ++i) roots.push_back(stored(i));
  for (const Epilogue::Reduction& r : e_.reductions) roots.push_back(r.value);
  if (roots.size() == 1) return shared;
  for (const ExprId root : roots) {
    const ExprId value = uncast(root);
    const auto serves = [&](ExprId other) { return !needs_accumulator(other, value); };
    if (is_accumulator(value) || !is_f32(value)) continue;
    if (std::all_of(roots.begin(), roots.end(), serves)) shared = value;
  }
  return shared;
}

// Whether a value is computed from the accumulators otherwise than through `known`.
bool EpilogueFacts::needs_accumulator(ExprId value, ExprId known) const {
  bool needs = false;
  schedule::ExprWalk(e_.pool).run(value, [&](ExprId id) {
    if (id != known && is_accumulator(id)) needs = true;
    return id != known;
  });
  return needs;
}

EpilogueFacts::Rows EpilogueFacts::rows(const FunctorMembers& members) const {
  constexpr size_t kPiece = 16;
  Rows rows;
  if (e_.gate) return rows;             // kernels ask for them by columns of B
  if (!e_.bounds.empty()) return rows;  // and wherever there are sums
  const auto enter = [&](ExprId id) {
    const Expr& e = e_.pool[id];
    if (e.kind == Expr::Kind::kGuard) return false;
    const bool affine = std::all_of(e.index.terms.begin(), e.index.terms.end(), [&](const auto& term) {
      return e_.pool.indices.atom(term.first).kind == schedule::Atom::Kind::kVar;
    });
    if (e.kind != Expr::Kind::kLoad || !affine || split() || !lanes_adjoin(e.index)) return true;
    const auto piece = static_cast<size_t>(members.alignment(e.id, e.index, e_.col)) * size_of(operands_[e.id].dtype);
    const bool by_row = (e_.pool.vars(e.index) & uint64_t{1} << e_.row) != 0;
    if (!by_row) rows.vectors.push_back(id);
    if (by_row && piece == kPiece) rows.matrices.push_back(id);
    return true;
  };
  schedule::ExprWalk walk(e_.pool);
  for (size_t i = 0; i < e_.stores.size(); ++i) walk.run(stored(i), enter);
  return rows;
}

}  // namespace heddle::codegen
