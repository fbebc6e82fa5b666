#include "schedule/attention/masks/row_mask.h"

#include <algorithm>
#include <optional>

#include "ir/analysis/row_bound.h"

namespace heddle::schedule {
namespace {

using ir::RowBound;
using ir::RowSpan;
using ir::SpanBounds;

class RowSpans {
 public:
  RowSpans(ScoreClasses& classes, int64_t rows, int64_t keys) : classes_(classes), rows_(rows), keys_(keys) {}

  std::optional<SpanBounds> run() {
    constexpr double kMostWork = 1 << 28;  // expressions to look at: some seconds
    constexpr double kLooks = 4;           // at most rows
    if (static_cast<double>(rows_) * kLooks * static_cast<double>(classes_.bounds().size()) > kMostWork) return {};
    std::vector<RowSpan> spans;
    bool has_empty = false;
    for (int64_t row = 0; row < rows_; ++row) {
      const std::optional<RowSpan> span = span_of(row, spans);
      if (!span) return std::nullopt;
      spans.push_back(*span);
      has_empty = has_empty || span->first >= span->last;
    }
    // What is negligible counts in rows that have nothing else.
    if (has_negligible_ && has_empty) return std::nullopt;
    return ir::fit_spans(spans, keys_);
  }

 private:
  // Most rows go on as the two before them.
  std::optional<RowSpan> span_of(int64_t row, const std::vector<RowSpan>& before) {
    if (!before.empty()) {
      const RowSpan last = before.back(), other = before.size() > 1 ? before[before.size() - 2] : last;
      const auto within = [&](int64_t key) { return std::clamp<int64_t>(key, 0, keys_); };
      for (const RowSpan guess :
           {RowSpan{within(2 * last.first - other.first), within(2 * last.last - other.last)}, last}) {
        if (guess.first <= guess.last && is_span(row, guess)) return guess;
      }
    }
    RowSpan span{keys_, 0};
    if (!find(row, 0, keys_, span)) return std::nullopt;
    if (span.first >= span.last) return RowSpan{0, 0};
    return is_all(row, span.first, span.last, true) ? std::optional(span) : std::nullopt;
  }
  bool is_span(int64_t row, const RowSpan& span) {
    return is_all(row, 0, span.first, false) && is_all(row, span.first, span.last, true) &&
           is_all(row, span.last, keys_, false);
  }
  // Whether the keys [first, last) are all plain, or all without weight.
  bool is_all(int64_t row, int64_t first, int64_t last, bool plain) {
    if (first >= last) return true;
    const ScoreClass c = classes_.at({{row, row}, {first, last - 1}});
    has_negligible_ = has_negligible_ || c == ScoreClass::kNegligible;
    return plain ? c == ScoreClass::kPlain : c == ScoreClass::kNone || c == ScoreClass::kNegligible;
  }
  // Widens `span` to all plain keys of [first, last); false where a score is neither plain nor without weight.
  bool find(int64_t row, int64_t first, int64_t last, RowSpan& span) {
    const ScoreClass c = classes_.at({{row, row}, {first, last - 1}});
    has_negligible_ = has_negligible_ || c == ScoreClass::kNegligible;
    if (c == ScoreClass::kPlain) span = {std::min(span.first, first), std::max(span.last, last)};
    if (c != ScoreClass::kMixed) return true;
    if (last - first == 1) return false;
    const int64_t middle = (first + last) / 2;
    return find(row, first, middle, span) && find(row, middle, last, span);
  }

  ScoreClasses& classes_;
  const int64_t rows_, keys_;
  bool has_negligible_ = false;
};

ExprId position(Epilogue& e, const RowBound& bound) {
  IndexPool& indices = e.pool.indices;
  const Index line = indices.offset(indices.scale(indices.var(e.row), bound.step), bound.offset);
  return e.pool.add(
      {.kind = Expr::Kind::kIndex, .dtype = DType::kI32, .index = indices.clamp(line, bound.low, bound.high)});
}

}  // namespace

bool simplify_mask(AttentionDesc& d, ScoreClasses& classes) {
  if (!classes.plain()) return false;
  const std::optional<SpanBounds> bounds = RowSpans(classes, d.m, d.n).run();
  if (!bounds) return false;
  Epilogue& e = d.scores;
  const auto operation = [&](ir::Op op, DType dtype, std::vector<ExprId> args) {
    return e.pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = op, .args = std::move(args)});
  };
  const ExprId key = e.pool.add({.kind = Expr::Kind::kIndex, .dtype = DType::kI32, .index = e.pool.indices.var(e.col)});
  std::optional<ExprId> seen;
  if (!bounds->first.is_constant() || bounds->first.low > 0) {
    seen = operation(ir::Op::kGe, DType::kBool, {key, position(e, bounds->first)});
  }
  if (!bounds->last.is_constant() || bounds->last.low < d.n) {
    const ExprId before = operation(ir::Op::kLt, DType::kBool, {key, position(e, bounds->last)});
    seen = seen ? operation(ir::Op::kAnd, DType::kBool, {*seen, before}) : before;
  }
  d.scaled = !seen;
  if (d.scaled) return true;
  ExprId score = e.pool.local(DType::kF32, 0);
  if (*classes.plain() != 1) {
    score = operation(ir::Op::kMul, DType::kF32, {score, e.pool.constant(DType::kF32, *classes.plain())});
  }
  e.stores[0].value = operation(ir::Op::kSelect, DType::kF32, {*seen, score, e.pool.constant(DType::kF32, -kInfinity)});
  return true;
}

}  // namespace heddle::schedule
