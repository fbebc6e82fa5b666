#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

void matmul(NodeContext& ctx) {
  ctx.set(0, ctx.b.matmul(ctx.in(0), ctx.in(1)));
}

void gemm(NodeContext& ctx) {
  if (ctx.rank(0) != 2 || ctx.rank(1) != 2) ctx.invalid("the operands must be matrices");
  const bool trans_a = ctx.attr_int("transA", 0) != 0, trans_b = ctx.attr_int("transB", 0) != 0;
  const double alpha = ctx.attr_float("alpha", 1), beta = ctx.attr_float("beta", 1);
  const DType type = ctx.dtype(0);
  // A product that only its factor brings into range stays in f32.
  const DType sums = alpha != 1 && is_float(type) ? wide_dtype(type) : type;
  ValueId y = ctx.b.emit(Op::kDot, {ctx.in(0), ctx.in(1)},
                         {{"lhs_batch", Ints{}},
                          {"rhs_batch", Ints{}},
                          {"lhs_contract", Ints{trans_a ? 0 : 1}},
                          {"rhs_contract", Ints{trans_b ? 1 : 0}},
                          {"out", sums}});
  // Factors of integer products may be fractions.
  const auto scaled = [&](ValueId v, double factor) {
    if (factor == 1) return v;
    if (is_float(type)) return ctx.b.binary(Op::kMul, v, factor);
    return ctx.b.cast(ctx.b.binary(Op::kMul, ctx.b.cast(v, DType::kF64), factor), type);
  };
  y = scaled(y, alpha);
  if (ctx.version() < 7 && ctx.has(2) && ctx.attr_int("broadcast", 0) == 0 && ctx.shape(2) != ctx.b.shape(y)) {
    ctx.invalid("without the attribute broadcast C must have the shape of the product");
  }
  if (ctx.has(2)) {
    const ValueId c = ctx.b.cast(ctx.in(2), sums);
    y = ctx.b.add(y, ctx.b.broadcast_to(scaled(c, beta), Shape(ctx.b.shape(y))));
  }
  ctx.set(0, ctx.b.cast(y, type));
}

// An operand of an Einsum: a value and the label of each of its dimensions. Labels are letters; the dimensions of an
// ellipsis get numbers from the last one backwards, so that they broadcast as numpy's do.
using Labels = std::vector<int>;
struct Term {
  ValueId value;
  Labels labels;
};

constexpr int kEllipsis = 1000;  // + position from the last

class Einsum {
 public:
  Einsum(NodeContext& ctx, std::string equation) : ctx_(ctx), b_(ctx.b) {
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    const std::string left = equation.substr(0, arrow);
    for (size_t start = 0, i = 0; start <= left.size(); ++i) {
      const size_t end = std::min(left.find(',', start), left.size());
      if (i >= ctx.input_count()) ctx.invalid("the equation has more terms than there are inputs");
      terms_.push_back({ctx.in(i), parse(left.substr(start, end - start), ctx.rank(i))});
      start = end + 1;
    }
    if (terms_.size() != ctx.input_count()) ctx.invalid("the equation has fewer terms than there are inputs");
    output_ = arrow == std::string::npos ? implicit_output() : parse(equation.substr(arrow + 2), -1);
  }

  ValueId run() {
    for (const Term& term : terms_) learn_extents(term);
    for (Term& term : terms_) simplify(term);
    Term result = terms_[0];
    for (size_t i = 1; i < terms_.size(); ++i) result = contract(result, terms_[i], i + 1);
    sum_out(result, [&](int label) { return in(output_, label); });
    return arrange(result);
  }

 private:
  static bool in(const Labels& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }

  // `rank` < 0: the output, whose ellipsis stands for all dimensions that an ellipsis had.
  Labels parse(const std::string& text, int64_t rank) {
    const size_t dots = text.find("...");
    const auto letters = static_cast<int64_t>(dots == std::string::npos ? text.size() : text.size() - 3);
    const int64_t covered = rank < 0 ? ellipsis_ : rank - letters;
    if (covered < 0 || (dots == std::string::npos && rank >= 0 && covered != 0)) {
      ctx_.invalid(fmt::format("term '{}' does not fit a tensor of rank {}", text, rank));
    }
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
      if (i == dots) {
        for (int64_t d = covered; d-- > 0;) labels.push_back(kEllipsis + static_cast<int>(d));
        ellipsis_ = std::max(ellipsis_, covered);
        i += 2;
      } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
        labels.push_back(text[i]);
      } else {
        ctx_.invalid(fmt::format("the equation has the unexpected character '{}'", text[i]));
      }
    }
    return labels;
  }

  Labels implicit_output() const {
    std::map<int, int> count;
    for (const Term& term : terms_) {
      for (const int label : term.labels) ++count[label];
    }
    Labels result;
    for (int64_t d = ellipsis_; d-- > 0;) result.push_back(kEllipsis + static_cast<int>(d));
    for (const auto& [label, times] : count) {
      if (times == 1 && label < kEllipsis) result.push_back(label);
    }
    return result;
  }

  void learn_extents(const Term& term) {
    const Shape shape = b_.shape(term.value);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = extents_.try_emplace(term.labels[i], 1).first->second;
      if (extent == 1) extent = shape[i];
      if (shape[i] != extent && shape[i] != 1) ctx_.invalid("one label stands for different extents");
    }
  }

  // Takes diagonals of repeated labels and drops dimensions that only broadcast.
  void simplify(Term& term) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
      for (size_t j = i + 1; j < term.labels.size();) {
        if (term.labels[i] != term.labels[j]) {
          ++j;
          continue;
        }
        const Shape shape = b_.shape(term.value);
        if (shape[i] != shape[j]) ctx_.invalid("a diagonal is taken of a matrix that is not square");
        const ValueId row = b_.iota(DType::kI64, shape, static_cast<int64_t>(i));
        const ValueId column = b_.iota(DType::kI64, shape, static_cast<int64_t>(j));
        const ValueId zero = b_.scalar(b_.dtype(term.value), 0);
        const ValueId masked = b_.select(b_.binary(Op::kEq, row, column), term.value, zero);
        term.value = b_.reduce("sum", masked, {static_cast<int64_t>(j)});
        term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
    Shape kept;
    Labels labels;
    const Shape shape = b_.shape(term.value);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != extents_.at(term.labels[i])) continue;
      kept.push_back(shape[i]);
      labels.push_back(term.labels[i]);
    }
    term = {b_.reshape(term.value, std::move(kept)), std::move(labels)};
  }

  template <typename Keep>
  void sum_out(Term& term, const Keep& keep) {
    Ints dims;
    Labels left;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (keep(term.labels[i])) {
        left.push_back(term.labels[i]);
      } else {
        dims.push_back(static_cast<int64_t>(i));
      }
    }
    if (dims.empty()) return;
    term = {b_.reduce("sum", term.value, std::move(dims)), std::move(left)};
  }

  bool needed_after(int label, size_t next) const {
    if (in(output_, label)) return true;
    for (size_t i = next; i < terms_.size(); ++i) {
      if (in(terms_[i].labels, label)) return true;
    }
    return false;
  }

  // One dot of two terms; `next` is the first term that comes later.
  Term contract(Term lhs, Term rhs, size_t next) {
    sum_out(lhs, [&](int l) { return in(rhs.labels, l) || needed_after(l, next); });
    sum_out(rhs, [&](int l) { return in(lhs.labels, l) || needed_after(l, next); });
    Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
    Labels labels, lhs_free, rhs_free;
    for (size_t i = 0; i < lhs.labels.size(); ++i) {
      const auto at = std::find(rhs.labels.begin(), rhs.labels.end(), lhs.labels[i]);
      if (at == rhs.labels.end()) {
        lhs_free.push_back(lhs.labels[i]);
        continue;
      }
      const bool batch = needed_after(lhs.labels[i], next);
      (batch ? lhs_batch : lhs_contract).push_back(static_cast<int64_t>(i));
      (batch ? rhs_batch : rhs_contract).push_back(at - rhs.labels.begin());
      if (batch) labels.push_back(lhs.labels[i]);
    }
    for (const int label : rhs.labels) {
      if (!in(lhs.labels, label)) rhs_free.push_back(label);
    }
    labels.insert(labels.end(), lhs_free.begin(), lhs_free.end());
    labels.insert(labels.end(), rhs_free.begin(), rhs_free.end());
    const ValueId product = b_.emit(Op::kDot, {lhs.value, rhs.value},
                                    {{"lhs_batch", lhs_batch},
                                     {"rhs_batch", rhs_batch},
                                     {"lhs_contract", lhs_contract},
                                     {"rhs_contract", rhs_contract},
                                     {"out", b_.dtype(lhs.value)}});
    return {product, std::move(labels)};
  }

  // Output labels that the result lost had extent 1.
  ValueId arrange(const Term& result) {
    Ints perm;
    Shape shape;
    for (const int label : output_) {
      const auto at = std::find(result.labels.begin(), result.labels.end(), label);
      const auto extent = extents_.find(label);
      if (extent == extents_.end()) ctx_.invalid("the output has a label that no input has");
      shape.push_back(extent->second);
      if (at == result.labels.end()) {
        if (extent->second != 1) ctx_.invalid("the output repeats a label");
        continue;
      }
      perm.push_back(at - result.labels.begin());
    }
    return b_.reshape(b_.transpose(result.value, std::move(perm)), std::move(shape));
  }

  NodeContext& ctx_;
  ir::Builder& b_;
  std::vector<Term> terms_;
  Labels output_;
  int64_t ellipsis_ = 0;
  std::map<int, int64_t> extents_;
};

void einsum(NodeContext& ctx) {
  ctx.set(0, Einsum(ctx, ctx.attr_string("equation")).run());
}

void det(NodeContext& ctx) {
  ctx.set(0, ctx.b.emit(Op::kCall, {ctx.in(0)}, {{"target", "det"}}));
}

}  // namespace

std::span<const OpHandler> matmul_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Det", 11, kAnyVersion, det},
      OpHandler{"", "Einsum", 12, kAnyVersion, einsum},
      OpHandler{"", "Gemm", 1, kAnyVersion, gemm},
      OpHandler{"", "MatMul", 1, kAnyVersion, matmul},
  };
  return kTable;
}

}  // namespace heddle::onnx
