#include "schedule/region/cpu/pieces.h"

#include <set>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

constexpr size_t kMaxPieces = 8;

// index = v + k with nothing else: k.
std::optional<int64_t> offset_from(const ExprPool& pool, const Index& index, VarId v) {
  if (index.terms.size() != 1 || index.terms[0].second != 1) return std::nullopt;
  const Atom& atom = pool.indices.atom(index.terms[0].first);
  if (atom.kind != Atom::Kind::kVar || atom.id != v) return std::nullopt;
  return index.constant;
}

class Cutter {
 public:
  Cutter(const ExprPool& pool, VarId var) : pool_(pool), var_(var), extent_(pool.indices.extent(var)) {}

  void look(ExprId root) {
    walk_.run(root, [this](ExprId e) {
      const Expr& expr = pool_[e];
      if (expr.kind == Expr::Kind::kGuard) {
        if (const auto k = offset_from(pool_, expr.index, var_)) {
          cut(expr.lo - *k);
          cut(expr.hi - *k);
        }
      }
      look(expr.index);
      return true;
    });
  }

  std::set<int64_t> cuts() const { return cuts_; }

 private:
  void cut(int64_t at) {
    if (at > 0 && at < extent_) cuts_.insert(at);
  }
  void look(const Index& index) {
    for (const auto& term : index.terms) {
      if (!atoms_.visit(term.first)) continue;
      const Atom& atom = pool_.indices.atom(term.first);
      look(atom.arg);
      const auto k = offset_from(pool_, atom.arg, var_);
      if (!k) continue;
      if (atom.kind == Atom::Kind::kClamp) {
        cut(atom.a - *k);
        cut(atom.b + 1 - *k);
      } else if (atom.kind == Atom::Kind::kReflect) {
        cut(-*k);
        cut(atom.a - *k);
      } else if (atom.kind == Atom::Kind::kMod || atom.kind == Atom::Kind::kDiv) {
        if (extent_ / atom.a > 4) continue;
        for (int64_t at = atom.a - *k % atom.a; at < extent_; at += atom.a) cut(at);
      }
    }
  }

  const ExprPool& pool_;
  VarId var_;
  int64_t extent_;
  ExprWalk walk_{pool_, Follow::kAll};
  DagWalk atoms_;
  std::set<int64_t> cuts_;
};

}  // namespace

std::vector<Piece> cut_pieces(ExprPool& pool, const Stage& stage, Piece whole) {
  if (!stage.vector) return {std::move(whole)};
  const VarId v = stage.loops.back();
  Cutter cutter(pool, v);
  for (ExprId e : whole.values) cutter.look(e);
  for (const Store& s : whole.stores) cutter.look(s.value);
  const std::set<int64_t> cuts = cutter.cuts();
  if (cuts.empty() || cuts.size() >= kMaxPieces) return {std::move(whole)};
  std::vector<Piece> pieces;
  int64_t lo = 0;
  std::vector<int64_t> ends(cuts.begin(), cuts.end());
  ends.push_back(pool.indices.extent(v));
  for (int64_t end : ends) {
    Piece piece = whole;
    piece.ranges.back() = {lo, end - 1};
    const std::map<VarId, Index> with = {{v, pool.indices.var(v, {lo, end - 1})}};
    for (ExprId& e : piece.values) e = pool.substitute(e, with, {});
    for (ExprId& e : piece.positions) e = pool.substitute(e, with, {});
    for (Store& s : piece.stores) {
      s.value = pool.substitute(s.value, with, {});
      s.at = pool.substitute(s.at, with, {});
    }
    pieces.push_back(std::move(piece));
    lo = end;
  }
  return pieces;
}

}  // namespace heddle::schedule
