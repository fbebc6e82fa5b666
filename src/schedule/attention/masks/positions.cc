#include "schedule/attention/masks/positions.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heddle::schedule {
namespace {

// Up to which magnitude a type has all integers; 0 where it has none.
int64_t exact_integers(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return int64_t{1} << 53;
    case DType::kF32:
      return int64_t{1} << 24;
    case DType::kF16:
      return int64_t{1} << 11;
    case DType::kBF16:
      return int64_t{1} << 8;
    default:
      return 0;
  }
}

bool holds(DType dtype, Range range) {
  if (is_float(dtype)) {
    const int64_t most = exact_integers(dtype);
    return range.lo >= -most && range.hi <= most;
  }
  constexpr int64_t kMost = int64_t{1} << 40;  // sums and multiples of positions stay far below the largest i64
  const int bits = std::min(bits_of(dtype), 41) - (is_signed_int(dtype) ? 1 : 0);
  const int64_t end = std::min(kMost, int64_t{1} << bits);
  return is_int(dtype) && range.lo >= (is_signed_int(dtype) ? -end : 0) && range.hi < end;
}

class Finder {
 public:
  explicit Finder(ExprPool& pool) : pool_(pool), found_(pool.size()) {}

  std::vector<std::optional<Index>> run(const std::vector<ExprId>& order) {
    for (const ExprId id : order) {
      std::optional<Index> index = find(pool_[id]);
      if (index && !pool_.indices.reads_values(*index) && holds(pool_[id].dtype, pool_.indices.range(*index))) {
        found_[id] = std::move(index);
      }
    }
    return std::move(found_);
  }

 private:
  std::optional<Index> find(const Expr& e) {
    if (e.kind == Expr::Kind::kIndex) return e.index;
    if (e.kind == Expr::Kind::kConstant) return constant(e);
    if (e.kind != Expr::Kind::kOp || e.args.empty() || e.args.size() > 2) return std::nullopt;
    const auto &a = found_[e.args[0]], &b = found_[e.args.back()];
    if (!a || !b) return std::nullopt;
    return e.args.size() == 1 ? of_one(e, *a) : of_two(e, *a, *b);
  }
  std::optional<Index> constant(const Expr& e) const {
    if (is_int(e.dtype)) return IndexPool::constant(static_cast<int64_t>(e.bits));
    if (!is_float(e.dtype)) return std::nullopt;
    const auto x = std::bit_cast<double>(e.bits);
    if (std::trunc(x) != x || std::fabs(x) > 0x1p40) return std::nullopt;
    return IndexPool::constant(static_cast<int64_t>(x));
  }
  std::optional<Index> of_one(const Expr& e, const Index& a) {
    switch (e.op) {
      case Op::kCast:
      case Op::kFloor:
      case Op::kCeil:
      case Op::kRound:
      case Op::kTrunc:
        return a;
      case Op::kNeg:
        return pool_.indices.scale(a, -1);
      case Op::kAbs:
        if (pool_.indices.range(a).lo >= 0) return a;
        if (pool_.indices.range(a).hi <= 0) return pool_.indices.scale(a, -1);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }
  std::optional<Index> of_two(const Expr& e, const Index& a, const Index& b) {
    IndexPool& indices = pool_.indices;
    const bool divides = b.is_constant() && b.constant >= 1 && indices.range(a).lo >= 0;
    constexpr int64_t kMost = int64_t{1} << 40;
    switch (e.op) {
      case Op::kAdd:
        return indices.add(a, b);
      case Op::kSub:
        return indices.add(a, indices.scale(b, -1));
      case Op::kMul:
        if (b.is_constant()) return indices.scale(a, b.constant);
        if (a.is_constant()) return indices.scale(b, a.constant);
        return std::nullopt;
      case Op::kDiv:
        return divides && is_int(e.dtype) ? std::optional(indices.div(a, b.constant)) : std::nullopt;
      case Op::kRem:
      case Op::kMod:
        return divides ? std::optional(indices.mod(a, b.constant)) : std::nullopt;
      case Op::kMax:
        if (b.is_constant()) return indices.clamp(a, b.constant, kMost);
        if (a.is_constant()) return indices.clamp(b, a.constant, kMost);
        return std::nullopt;
      case Op::kMin:
        if (b.is_constant()) return indices.clamp(a, -kMost, b.constant);
        if (a.is_constant()) return indices.clamp(b, -kMost, a.constant);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  ExprPool& pool_;
  std::vector<std::optional<Index>> found_;
};

}  // namespace

std::vector<std::optional<Index>> positions_of(ExprPool& pool, const std::vector<ExprId>& order) {
  return Finder(pool).run(order);
}

}  // namespace heddle::schedule
