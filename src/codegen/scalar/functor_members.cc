#include "codegen/scalar/functor_members.h"

#include <algorithm>

namespace heddle::codegen {

using schedule::Atom;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;

void FunctorMembers::add_number(int64_t value) {
  const int64_t size = value < 0 ? -value : value;
  if (size < 2 || std::find(numbers_.begin(), numbers_.end(), size) != numbers_.end()) return;
  numbers_.push_back(size);
}

void FunctorMembers::begin_at_slices(const std::vector<ExprId>& values,
                                     const std::vector<std::pair<uint32_t, Index>>& stores) {
  const auto add = [this](uint32_t operand, const Index& at) {
    const int64_t constant = std::max<int64_t>(at.constant, 0);
    const auto [begin, is_new] = begins_.try_emplace(operand, constant);
    if (!is_new) begin->second = std::min(begin->second, constant);
  };
  for (const auto& [operand, at] : stores) add(operand, at);
  schedule::visit_exprs(pool_, values, [&](ExprId id) {
    if (pool_[id].kind == Expr::Kind::kLoad) add(pool_[id].id, pool_[id].index);
  });
}

int64_t FunctorMembers::begin_of(uint32_t operand) const {
  const auto begin = begins_.find(operand);
  return begin == begins_.end() ? 0 : begin->second;
}

Index FunctorMembers::from_begin(uint32_t operand, Index at) const {
  at.constant -= begin_of(operand);
  return at;
}

void FunctorMembers::use(const Index& index) {
  for (const auto& [id, coefficient] : index.terms) {
    add_number(coefficient);
    if (pool_.indices.atom(id).kind == Atom::Kind::kDynamic) use(pool_.indices.atom(id).id);
  }
  add_number(index.constant);
}

void FunctorMembers::use(ExprId root) {
  walk_.run(root, [this](ExprId id) {
    const Expr& e = pool_[id];
    if (e.kind == Expr::Kind::kLoad) {
      use_operand(e.id);
      use(from_begin(e.id, e.index));
    }
    return true;
  });
}

Names FunctorMembers::names() const {
  Names names;
  for (size_t i = 0; i < operands_.size(); ++i) names.buffers.push_back(fmt::format("p{}", i));
  for (size_t i = 0; i < numbers_.size(); ++i) names.numbers[numbers_[i]] = fmt::format("s{}", i);
  names.begins = begins_;
  return names;
}

void FunctorMembers::declare(Writer& out) const {
  for (uint32_t id : used_) out.line("{} p{};", pointer_type(operands_[id]), id);
  for (size_t i = 0; i < numbers_.size(); ++i) out.line("int64_t s{};", i);
  if (marked_) out.raw("const int64_t* arguments;");
  if (used_.empty() && numbers_.empty() && !marked_) out.line("int64_t unused;");
}

int FunctorMembers::alignment(uint32_t operand, const Index& at, schedule::VarId lane) const {
  constexpr int64_t kWidest = 16;
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(operands_[operand].dtype), 1));
  int64_t factor = kWidest / element;
  const auto limit = [&](int64_t value) {
    if (value != 0) factor = std::min(factor, value & -value);
  };
  limit(at.constant);
  for (const auto& [id, coefficient] : at.terms) {
    const Atom& atom = pool_.indices.atom(id);
    if (atom.kind != Atom::Kind::kVar || atom.id != lane) limit(coefficient);
  }
  return static_cast<int>(std::max<int64_t>(factor, 1));
}

}  // namespace heddle::codegen
