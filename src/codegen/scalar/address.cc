#include "codegen/scalar/address.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "codegen/text/numbers.h"
#include "codegen/text/writer.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/expr/lane_stride.h"

namespace heddle::codegen {

using schedule::Atom;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;

const std::string& AddressEmitter::width(bool wide) const {
  static const std::string one = "1";
  return wide && lanes_ ? lanes_->width : one;
}

bool AddressEmitter::has_wide_local(ExprId root) const {
  const auto enter = [this](ExprId e) {
    if (wide_local_memo_.contains(e)) return false;
    const Expr& expr = pool_[e];
    if (const auto at = names_.cached.find(e); at != names_.cached.end()) {
      wide_local_memo_[e] = at->second.wide;
    } else if (expr.kind == Expr::Kind::kLocal) {
      const auto local = names_.locals.find(expr.id);
      wide_local_memo_[e] = local != names_.locals.end() && local->second.wide;
    } else {
      return true;
    }
    return false;
  };
  const auto leave = [this](ExprId e) {
    const std::vector<ExprId>& args = pool_[e].args;
    wide_local_memo_[e] =
        std::any_of(args.begin(), args.end(), [this](ExprId arg) { return wide_local_memo_.at(arg); });
  };
  if (const auto known = wide_local_memo_.find(root); known != wide_local_memo_.end()) return known->second;
  schedule::ExprWalk(pool_).run(root, enter, leave);
  return wide_local_memo_.at(root);
}

bool AddressEmitter::wide(ExprId e) const {
  if (!lanes_) return false;
  return (pool_.vars(e) >> lanes_->var & 1) != 0 || has_wide_local(e);
}

std::optional<int64_t> AddressEmitter::lane_stride(const Index& at) const {
  if (!lanes_) return 0;
  return schedule::lane_stride(pool_, at, {lanes_->var, lanes_->aligned}, multiples(),
                               [this](ExprId e) { return has_wide_local(e); });
}

std::string AddressEmitter::number(int64_t value) const {
  if (const auto name = names_.numbers.find(value); name != names_.numbers.end()) return name->second;
  return extent(value);
}

std::string AddressEmitter::extent(int64_t value) const {
  return marked_ ? marked(value, style_.index) : fmt::format("{}", value);
}

std::map<schedule::VarId, int64_t> AddressEmitter::multiples() const {
  std::map<schedule::VarId, int64_t> all = style_.multiples;
  if (lanes_) all[lanes_->var] = lanes_->aligned;
  return all;
}

// Elements by which a position is known to divide, a power of two up to the width of an aligned vector.
int64_t AddressEmitter::alignment(const Index& at) const {
  if (!lanes_) return 1;
  const int64_t d = pool_.indices.divisor(at, multiples());
  return d == 0 ? lanes_->aligned : std::min(lanes_->aligned, d & -d);
}

std::string AddressEmitter::term(schedule::AtomId id) {
  const Atom& atom = pool_.indices.atom(id);
  switch (atom.kind) {
    case Atom::Kind::kVar: {
      const auto name = names_.vars.find(atom.id);
      HEDDLE_CHECK(name != names_.vars.end(), "variable {} is not in scope", atom.id);
      return name->second;
    }
    case Atom::Kind::kDiv:
    case Atom::Kind::kMod: {
      const bool div = atom.kind == Atom::Kind::kDiv;
      const std::string of = index(atom.arg);
      if (pool_.indices.range(atom.arg).lo >= 0) {
        return fmt::format("({} {} {})", factor(of), div ? '/' : '%', extent(atom.a));
      }
      return fmt::format("tile::floor_{}({}, {})", div ? "div" : "mod", of, extent(atom.a));
    }
    case Atom::Kind::kClamp:
      return fmt::format("tile::clamp_index({}, {}, {})", index(atom.arg), extent(atom.a), extent(atom.b));
    case Atom::Kind::kReflect:
      return fmt::format("tile::reflect_index({}, {})", index(atom.arg), extent(atom.a));
    case Atom::Kind::kDynamic: {
      const TextValue at = value(atom.id);
      if (atom.b != 0) return fmt::format("int64_t({}{})", at.text, at.literal ? "" : ".v");
      const std::string text =
          fmt::format("tile::wrap_index({}{}, {})", at.text, at.literal ? "" : ".v", extent(atom.a));
      return style_.index == "int64_t" ? text : fmt::format("{}({})", style_.index, text);
    }
  }
  return {};
}

std::string AddressEmitter::index(const Index& at) {
  std::string text;
  const auto add = [&](bool minus, const std::string& term) {
    text += (text.empty() ? minus ? "-" : "" : minus ? " - " : " + ") + term;
  };
  for (const auto& [id, c] : at.terms) {
    const std::string term = this->term(id);
    if (term == "0") continue;
    const int64_t size = c < 0 ? -c : c;
    add(c < 0, size == 1 ? term : fmt::format("{} * {}", number(size), term));
  }
  if (at.constant != 0 || text.empty()) add(at.constant < 0, number(at.constant < 0 ? -at.constant : at.constant));
  return text;
}

std::string AddressEmitter::place(ExprId load) {
  const Expr& e = pool_[load];
  HEDDLE_CHECK(e.id < names_.buffers.size(), "buffer {} has no name", e.id);
  Index at = e.index;
  if (const auto begin = names_.begins.find(e.id); begin != names_.begins.end()) at.constant -= begin->second;
  return sum(names_.buffers[e.id], factor(index(at)));
}

const char* AddressEmitter::load_kind(uint32_t buffer) const {
  return names_.evict_first.count(buffer) != 0   ? "_evict_first"
         : names_.l1_resident.count(buffer) != 0 ? "_l1_resident"
                                                 : "";
}

std::string AddressEmitter::stored(ExprId load) {
  const Expr& e = pool_[load];
  return fmt::format("tile::load_stored{}<{}, {}>({})", load_kind(e.id), width(true), alignment(e.index), place(load));
}

std::string AddressEmitter::load(ExprId load) {
  const Expr& e = pool_[load];
  const std::string from = place(load);
  if (!wide(load)) return fmt::format("tile::load<1>({})", from);
  const int64_t stride = *lane_stride(e.index);
  const std::string& width = lanes_->width;
  if (style_.cuda && stride == 1) {
    return fmt::format("tile::load{}<{}, {}>({})", load_kind(e.id), width, alignment(e.index), from);
  }
  if (style_.cuda) return fmt::format("tile::load_strided<{}>({}, {})", width, from, stride);
  if (stride == 1) return fmt::format("tile::fetch<{}>({}, {})", width, from, lanes_->count);
  return fmt::format("tile::fetch_strided<{}>({}, {}, {})", width, from, extent(stride), lanes_->count);
}

std::string AddressEmitter::store(const std::string& buffer, const Index& at, const std::string& value, bool stream) {
  const auto stride = lane_stride(at);
  HEDDLE_CHECK(stride.has_value(), "a store that is not affine in its vector variable");
  const std::string to = sum(buffer, index(at));
  if (!lanes_) return fmt::format("tile::store({}, {});", to, value);
  if (style_.cuda && *stride == 1) return fmt::format("tile::store<{}>({}, {});", alignment(at), to, value);
  if (style_.cuda) return fmt::format("tile::store_strided({}, {}, {});", to, *stride, value);
  if (*stride == 1) return fmt::format("tile::put{}({}, {}, {});", stream ? "_stream" : "", to, value, lanes_->count);
  return fmt::format("tile::put_strided({}, {}, {}, {});", to, extent(*stride), value, lanes_->count);
}

bool AddressEmitter::aligned_at(ExprId load) const {
  const Expr& expr = pool_[load];
  if (!lanes_ || expr.kind != Expr::Kind::kLoad || !wide(load) || lane_stride(expr.index) != 1) return false;
  return fmt::format("{}", alignment(expr.index)) == lanes_->width;
}

std::string AddressEmitter::within(const Index& index, int64_t lo, int64_t hi) {
  const schedule::Range r = pool_.indices.range(index);
  const std::string at = this->index(index);
  std::string text;
  if (r.lo < lo) text = fmt::format("{} >= {}", at, extent(lo));
  if (r.hi >= hi) text += fmt::format("{}{} < {}", text.empty() ? "" : " && ", at, extent(hi));
  return text.empty() ? "true" : text;
}

bool AddressEmitter::same_for_all_lanes(const Expr& guard) const {
  const auto stride = lane_stride(guard.index);
  if (stride == 0) return true;
  if (stride != 1 || lanes_->aligned == 1) return false;
  const int64_t d = pool_.indices.divisor(guard.index, multiples());
  return d % lanes_->aligned == 0 && guard.lo % lanes_->aligned == 0 && guard.hi % lanes_->aligned == 0;
}

}  // namespace heddle::codegen
