#include "passes/simplify/constant_masks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "ir/analysis/row_bound.h"
#include "ir/builder.h"
#include "ir/reference/array.h"
#include "ir/rewrite.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using ir::RowSpan;

// Smaller ones stay in the first-level cache.
constexpr int64_t kLeastMaskElements = 4096;
// Positions are compared as i32.
constexpr int64_t kMostSide = int64_t{1} << 30;

struct ConstantMask {
  ir::SpanBounds bounds;
  Tensor inside, outside;  // scalars
};

// A tensor as a matrix of its last two dimensions; others are 1. Elements are compared as bytes.
class MaskMatrix {
 public:
  explicit MaskMatrix(const Tensor& tensor)
      : tensor_(tensor),
        element_(size_of(tensor.dtype())),
        rows_(tensor.shape()[tensor.shape().size() - 2]),
        columns_(tensor.shape().back()) {}

  // `inside`: where an element of those that form the spans is, `outside` one of the others.
  std::optional<ConstantMask> mask(int64_t inside, int64_t outside) const {
    if (std::memcmp(at(inside), at(outside), element_) == 0) return std::nullopt;
    const Line all_inside(*this, inside), all_outside(*this, outside);
    std::vector<RowSpan> spans;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t begin = row * columns_;
      RowSpan span{0, columns_};
      while (span.first < columns_ && std::memcmp(at(begin + span.first), at(inside), element_) != 0) ++span.first;
      while (span.last > span.first && std::memcmp(at(begin + span.last - 1), at(inside), element_) != 0) --span.last;
      const bool fits = all_outside.has(at(begin), span.first) &&
                        all_inside.has(at(begin + span.first), span.last - span.first) &&
                        all_outside.has(at(begin + span.last), columns_ - span.last);
      if (!fits) return std::nullopt;
      spans.push_back(span);
    }
    const auto bounds = ir::fit_spans(spans, columns_);
    if (!bounds) return std::nullopt;
    return ConstantMask{*bounds, gather_view(tensor_, {{}, {}, inside}), gather_view(tensor_, {{}, {}, outside})};
  }

  std::optional<ConstantMask> run() const {
    const int64_t corners[] = {(rows_ - 1) * columns_, 0, columns_ - 1, rows_ * columns_ - 1};
    for (const int64_t inside : corners) {
      for (const int64_t outside : corners) {
        if (auto found = mask(inside, outside)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  // A row of one repeated element.
  struct Line {
    Line(const MaskMatrix& matrix, int64_t from) : element(matrix.element_) {
      bytes.resize(static_cast<size_t>(matrix.columns_) * element);
      for (size_t i = 0; i < bytes.size(); i += element) std::memcpy(bytes.data() + i, matrix.at(from), element);
    }
    bool has(const std::byte* data, int64_t count) const {
      return std::memcmp(bytes.data(), data, static_cast<size_t>(count) * element) == 0;
    }
    size_t element;
    std::vector<std::byte> bytes;
  };
  const std::byte* at(int64_t i) const {
    return static_cast<const std::byte*>(tensor_.data()) + static_cast<size_t>(i) * element_;
  }

  const Tensor& tensor_;
  const size_t element_;
  const int64_t rows_, columns_;
};

std::optional<ConstantMask> mask_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.size() < 2 || tensor.size() < kLeastMaskElements) return std::nullopt;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows < 2 || columns < 2 || rows * columns != tensor.size() || std::max(rows, columns) > kMostSide) {
    return std::nullopt;
  }
  return MaskMatrix(tensor).run();
}

// A vector whose elements are integers: step * (i / each) + offset, between limits.
struct Counting {
  ir::RowBound line;
  int64_t each = 1;
};

std::optional<Counting> counting_of(const Tensor& tensor) {
  constexpr int64_t kLeast = 32, kMost = 1 << 22;
  constexpr double kMostValue = 1 << 24;  // exact as f32
  const int64_t count = tensor.size();
  const Shape& shape = tensor.shape();
  if (count < kLeast || count > kMost || tensor.dtype() == DType::kBool) return std::nullopt;
  if (*std::max_element(shape.begin(), shape.end()) != count) return std::nullopt;
  const ir::Array array = ir::to_array(tensor);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const double x = array.real() ? array.f()[at] : static_cast<double>(array.i()[at]);
    const bool is_minus_zero = x == 0 && std::signbit(x);
    if (std::trunc(x) != x || std::fabs(x) > kMostValue || is_minus_zero) return std::nullopt;
    values.push_back(static_cast<int64_t>(x));
  }
  if (const auto line = ir::fit_row_bound(values)) {
    return line->is_constant() ? std::nullopt : std::optional(Counting{*line});
  }
  // Each value several times.
  const int64_t each = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) - values.begin() + 1;
  std::vector<int64_t> once;
  for (int64_t i = 0; i < count; ++i) {
    if (i % each == 0) once.push_back(values[static_cast<size_t>(i)]);
    if (values[static_cast<size_t>(i)] != once.back()) return std::nullopt;
  }
  const auto line = ir::fit_row_bound(once);
  return line ? std::optional(Counting{*line, each}) : std::nullopt;
}

ValueId counted(ir::Builder& b, const Counting& counting, const Shape& shape, DType dtype) {
  const auto dim = std::max_element(shape.begin(), shape.end()) - shape.begin();
  const ir::RowBound& line = counting.line;
  ValueId at = b.iota(DType::kI32, shape, dim);
  if (counting.each != 1) at = b.binary(Op::kDiv, at, static_cast<double>(counting.each));
  if (line.step != 1) at = b.binary(Op::kMul, at, static_cast<double>(line.step));
  if (line.offset != 0) at = b.binary(Op::kAdd, at, static_cast<double>(line.offset));
  const int64_t last = line.step * ((element_count(shape) - 1) / counting.each) + line.offset;
  const auto [least, most] = std::minmax(line.offset, last);
  if (least < line.low) at = b.binary(Op::kMax, at, static_cast<double>(line.low));
  if (most > line.high) at = b.binary(Op::kMin, at, static_cast<double>(line.high));
  return b.cast(at, dtype);
}

ValueId bound(ir::Builder& b, const ir::RowBound& of, const Shape& shape) {
  if (of.is_constant()) return b.full(DType::kI32, shape, static_cast<double>(of.low));
  ValueId line = b.iota(DType::kI32, shape, static_cast<int64_t>(shape.size()) - 2);
  if (of.step != 1) line = b.binary(Op::kMul, line, static_cast<double>(of.step));
  if (of.offset != 0) line = b.binary(Op::kAdd, line, static_cast<double>(of.offset));
  return b.binary(Op::kMin, b.binary(Op::kMax, line, static_cast<double>(of.low)), static_cast<double>(of.high));
}

ValueId comparisons(ir::Builder& b, const ConstantMask& mask, const Shape& shape) {
  const ValueId column = b.iota(DType::kI32, shape, static_cast<int64_t>(shape.size()) - 1);
  const ValueId after = b.binary(Op::kGe, column, bound(b, mask.bounds.first, shape));
  const ValueId inside = b.emit(Op::kAnd, {after, b.binary(Op::kLt, column, bound(b, mask.bounds.last, shape))});
  if (mask.inside.dtype() == DType::kBool) return mask.inside.values<bool>()[0] ? inside : b.unary(Op::kNot, inside);
  return b.select(inside, b.broadcast_to(b.constant(mask.inside), shape),
                  b.broadcast_to(b.constant(mask.outside), shape));
}

// What reads memory reads a constant; for the others comparisons are cheaper.
bool is_looked_through(const ir::Graph& graph, const std::vector<ir::NodeId>& readers) {
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](ir::NodeId id) {
    const Op op = graph.node(id).op;
    return ir::is_elementwise(op) || ir::class_of(op) == ir::OpClass::kLayout;
  });
}

}  // namespace

ir::Graph constant_masks(const ir::Graph& graph, const PassContext&) {
  const auto readers = ir::users(graph);
  std::vector<bool> is_output(graph.value_count(), false);
  for (const ir::Graph::Port& port : graph.outputs()) is_output[port.value] = true;
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kConstant) return std::nullopt;
    const ValueId value = node.outputs[0];
    if (is_output[value] || !is_looked_through(graph, readers[value])) return std::nullopt;
    const Tensor& content = node.attrs.tensor("value");
    ir::Builder b(r.target());
    b.set_origins(node.origins);
    if (const auto counting = counting_of(content)) {
      return std::vector{counted(b, *counting, graph.shape(value), graph.dtype(value))};
    }
    const auto mask = mask_of(content);
    if (!mask) return std::nullopt;
    return std::vector{comparisons(b, *mask, graph.shape(value))};
  });
}

}  // namespace heddle::passes
