#include "codegen/scalar/gather.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::codegen {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;

bool GatherEmitter::has_lane_form(const Index& at) const {
  const schedule::Range range = pool_.indices.range(at);
  if (style_.cuda || !lanes_ || range.lo < INT32_MIN || range.hi > INT32_MAX) return false;
  return std::all_of(at.terms.begin(), at.terms.end(), [&](const auto& term) {
    const schedule::Atom& atom = pool_.indices.atom(term.first);
    if (atom.kind == schedule::Atom::Kind::kVar || atom.kind == schedule::Atom::Kind::kDynamic) return true;
    return (pool_.vars(Index{0, {{term.first, 1}}}) >> lanes_->var & 1) == 0 && !pool_.indices.reads_values(term.first);
  });
}

// What an atom is in each lane; nullopt: the same in all of them.
std::optional<std::string> GatherEmitter::lane_term(schedule::AtomId id) {
  const schedule::Atom& atom = pool_.indices.atom(id);
  if (atom.kind != schedule::Atom::Kind::kDynamic || !wide(atom.id)) return std::nullopt;
  const Expr& position = pool_[atom.id];
  // Casts saturate, so that positions out of range of 32 bits are clamped to the same elements.
  const bool narrows = position.kind == Expr::Kind::kOp && position.op == Op::kCast && find(atom.id) == nullptr &&
                       is_float(pool_[position.args[0]].dtype);
  const std::string text = narrows ? fmt::format("tile::cast<int32_t>({})", value(position.args[0]).text)
                                   : value(atom.id).text;
  if (atom.b == 0) return fmt::format("tile::wrap_lanes({}, {})", text, extent(atom.a));
  return position.dtype == DType::kI32 ? text : fmt::format("tile::convert<int32_t>({})", text);
}

std::optional<GatherEmitter::LanePositions> GatherEmitter::lane_positions(const Index& at) {
  if (!has_lane_form(at)) return std::nullopt;
  LanePositions positions;
  positions.shared.constant = at.constant;
  size_t terms = 0;
  for (const auto& [id, c] : at.terms) {
    const schedule::Atom& atom = pool_.indices.atom(id);
    std::optional<std::string> term = lane_term(id);
    if (!term) positions.shared.terms.emplace_back(id, c);
    // The shared part counts lane 0; this term adds the distance from it.
    if (atom.kind == schedule::Atom::Kind::kVar && atom.id == lanes_->var) {
      term = fmt::format("tile::iota<int32_t, {}>()", lanes_->width);
    }
    if (!term) continue;
    const bool plain = c == 1 && atom.kind == schedule::Atom::Kind::kDynamic && atom.b != 0;
    const Expr& position = pool_[atom.id];
    if (++terms == 1 && plain && position.kind == Expr::Kind::kLoad && position.dtype == DType::kI32 &&
        lane_stride(position.index) == 1) {
      positions.loaded = atom.id;
      positions.limit = atom.a;
    }
    positions.lanes += fmt::format("{}{}{}", terms > 1 ? " + " : "", *term,
                                   c == 1 ? "" : fmt::format(" * int32_t({})", extent(c)));
  }
  if (terms != 1) positions.loaded.reset();
  if (terms > 1) positions.lanes = fmt::format("({})", positions.lanes);
  return positions;
}

std::optional<std::string> GatherEmitter::lane_index(const Index& at) {
  const std::optional<LanePositions> positions = lane_positions(at);
  if (!positions) return std::nullopt;
  return fmt::format("{} + int32_t({})", positions->lanes, index(positions->shared));
}

std::optional<std::string> GatherEmitter::gather(ExprId e) {
  const Expr& expr = pool_[e];
  if (is_float(expr.dtype) && size_of(expr.dtype) < 2) return std::nullopt;
  const std::optional<LanePositions> at = lane_positions(expr.index);
  if (!at) return std::nullopt;
  const std::string from = sum(names_.buffers[expr.id], index(at->shared));
  if (!at->loaded) return fmt::format("tile::gather_lanes({}, {}, {})", from, at->lanes, lanes_->count);
  if (pool_[*at->loaded].lo == 0) {
    return fmt::format("tile::gather_at<{}>({}, {}, {})", lanes_->width, from, place(*at->loaded), lanes_->count);
  }
  return fmt::format("tile::gather_near<{}, {}>({}, {}, {}, {})", lanes_->width, pool_[*at->loaded].lo, from,
                     place(*at->loaded), extent(at->limit), lanes_->count);
}

}  // namespace heddle::codegen
