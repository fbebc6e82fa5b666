#include "passes/contraction/long_dots.h"

#include <algorithm>

#include "base/divide.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/rewrite/dot_side.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

constexpr int64_t kLongSum = 4096;  // terms; of shorter sums a product takes no time worth the change
// Products of more than 8192 terms are summed exactly (schedule::summed_steps), and so must their parts be.
constexpr int64_t kShortestPart = 8200;
constexpr int64_t kPartsPerThread = 4;
constexpr int64_t kReuse = 16;  // times that the operands outweigh the sums of all parts at the least

// Whether a value is made of exponentials element by element, as the weights of an attention are: their product is a
// part of it.
bool is_of_exponentials(const ir::Graph& graph, ValueId v) {
  constexpr int kMostSteps = 8;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node& node = graph.producer(v);
    if (node.op == Op::kExp) return true;
    const bool passes = node.op == Op::kDiv || node.op == Op::kMul || node.op == Op::kCast || node.op == Op::kReshape ||
                        node.op == Op::kTranspose;
    if (!passes) return false;
    v = node.inputs[0];
  }
  return false;
}

class LongDot {
 public:
  LongDot(ir::Rewriter& r, const Node& node, int threads)
      : r_(r),
        node_(node),
        threads_(threads),
        b_(r.target()),
        a_(r.source(), node, 0),
        x_(r.source(), node, 1),
        out_(r.source().dtype(node.outputs[0])) {
    b_.set_origins(r.origins());
  }

  std::optional<ValueId> run() {
    const DType dtype = r_.source().dtype(node_.inputs[0]);
    if (has_packed_weights()) return std::nullopt;
    if (a_.terms() < kLongSum || element_count(result_shape()) == 0) return std::nullopt;
    const bool is_real = dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
    if (!is_real || r_.source().dtype(node_.inputs[1]) != dtype) return std::nullopt;
    sums_ = dtype == DType::kF64 ? dtype : DType::kF32;
    for (const ValueId v : node_.inputs) {
      if (is_of_exponentials(r_.source(), v)) return std::nullopt;
    }
    const bool vector = a_.lines() == 1 || x_.lines() == 1;
    if (vector && a_.is_row_major() && x_.is_row_major() && !has_constant_matrix()) return sum_of_products();
    return in_parts();
  }

 private:
  const Shape& result_shape() const { return r_.source().shape(node_.outputs[0]); }

  // A product reads these where they are packed.
  bool has_packed_weights() const {
    return std::any_of(node_.inputs.begin(), node_.inputs.end(),
                       [&](ValueId v) { return is_packed_weights(r_.source(), v); });
  }

  // Which is packed ahead, in its own type.
  bool has_constant_matrix() const {
    const auto is_constant = [&](size_t side) { return r_.source().constant_of(node_.inputs[side]) != nullptr; };
    return (a_.lines() > 1 && is_constant(0)) || (x_.lines() > 1 && is_constant(1));
  }

  ValueId sum_of_products() {
    const int64_t batch = a_.batches(), lines = std::max(a_.lines(), x_.lines());
    const Shape all = {batch, lines, a_.terms()};
    const auto spread = [&](ValueId v, const DotSide& side) {
      const ValueId wide = b_.cast(r_(std::vector{v})[0], sums_);
      if (side.lines() == lines) return b_.reshape(wide, all);
      return b_.broadcast(b_.reshape(wide, {batch, a_.terms()}), all, {0, 2});
    };
    const ValueId products = b_.mul(spread(node_.inputs[0], a_), spread(node_.inputs[1], x_));
    return finished(b_.reduce("sum", products, {2}));
  }

  std::optional<ValueId> in_parts() {
    if (threads_ <= 1 || a_.contract.size() != 1) return std::nullopt;
    const int64_t batches = a_.batches();
    const int64_t parts = std::min(ceil_div(kPartsPerThread * threads_, batches), a_.terms() / kShortestPart);
    const int64_t operands = a_.terms() * (a_.lines() + x_.lines()), sums = parts * a_.lines() * x_.lines();
    if (batches >= threads_ || parts < 2 || operands < kReuse * sums) return std::nullopt;
    const int64_t length = a_.terms() / parts, rest = a_.terms() - parts * length;
    ValueId sum = b_.reduce("sum", part(0, parts, length), {0});
    if (rest > 0) sum = b_.add(sum, b_.reduce("sum", part(parts * length, 1, rest), {0}));
    return finished(sum);
  }

  // [parts][results]: products over `length` terms each, from `first` on.
  ValueId part(int64_t first, int64_t parts, int64_t length) {
    ir::Attrs attrs = node_.attrs;
    const auto cut = [&](ValueId v, const DotSide& side, const char* batch, const char* contract) {
      const int64_t dim = side.contract[0];
      const ValueId some = b_.slice_dim(r_(std::vector{v})[0], dim, first, first + parts * length);
      Shape shape = side.shape;
      shape[static_cast<size_t>(dim)] = length;
      shape.insert(shape.begin() + dim, parts);
      Ints batches = {dim};
      for (const int64_t d : side.batch) batches.push_back(d < dim ? d : d + 1);
      attrs.set(batch, batches);
      attrs.set(contract, Ints{dim + 1});
      return b_.reshape(some, shape);
    };
    const ValueId a = cut(node_.inputs[0], a_, "lhs_batch", "lhs_contract");
    const ValueId x = cut(node_.inputs[1], x_, "rhs_batch", "rhs_contract");
    if (sums_ != r_.source().dtype(node_.inputs[0])) attrs.set("out", sums_);
    return b_.emit(Op::kDot, {a, x}, attrs);
  }

  ValueId finished(ValueId sum) { return b_.cast(b_.reshape(sum, result_shape()), out_); }

  ir::Rewriter& r_;
  const Node& node_;
  const int threads_;
  ir::Builder b_;
  const DotSide a_, x_;
  const DType out_;
  DType sums_ = DType::kF32;
};

}  // namespace

ir::Graph long_dots(const ir::Graph& graph, const PassContext& context) {
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kDot) return std::nullopt;
    const auto result = LongDot(r, node, context.target.cpu.threads).run();
    return result ? std::optional(std::vector{*result}) : std::nullopt;
  });
}

}  // namespace heddle::passes
