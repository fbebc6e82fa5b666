#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/rules.h"
#include "ir/tile_call.h"

namespace heddle::ir {
namespace {

// A function of the reference library: what `call {target}` may name.
struct Function {
  const char* target;
  int inputs;  // -1: any number
  std::vector<TensorType> (*infer)(const InferContext&);
  std::vector<Array> (*eval)(const EvalContext&);
};

void require_attr(const Attrs& attrs, const char* name, AttrKind kind) {
  const Attr* attr = attrs.find(name);
  require(attr != nullptr && attr->index() == static_cast<size_t>(kind), "attribute {} is missing or of another kind",
          name);
}

void require_square(const TensorType& x) {
  require(is_float(x.dtype), "floats expected, not {}", x.dtype);
  require(x.shape.size() >= 2 && x.shape.back() == x.shape[x.shape.size() - 2], "square matrices expected, not {}", x);
}

// "det": x[..., n, n] -> [...].
std::vector<TensorType> infer_det(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  require_square(x);
  return {{x.dtype, Shape(x.shape.begin(), x.shape.end() - 2)}};
}

// Swaps into row `col` the row at or below it with the largest pivot; false where that is zero.
bool pivot_rows(double* a, int64_t rows, int64_t stride, int64_t col, bool* swapped) {
  int64_t best = col;
  for (int64_t r = col + 1; r < rows; ++r) {
    if (std::abs(a[r * stride + col]) > std::abs(a[best * stride + col])) best = r;
  }
  *swapped = best != col;
  if (best != col) std::swap_ranges(a + best * stride, a + (best + 1) * stride, a + col * stride);
  return a[col * stride + col] != 0;
}

double determinant(std::vector<double> a, int64_t n) {
  double det = 1;
  for (int64_t c = 0; c < n; ++c) {
    bool swapped = false;
    if (!pivot_rows(a.data(), n, n, c, &swapped)) return 0;
    det *= swapped ? -a[c * n + c] : a[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[r * n + c] / a[c * n + c];
      for (int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
    }
  }
  return det;
}

std::vector<Array> eval_det(const EvalContext& context) {
  const Array& x = *context.inputs[0];
  Array result(context.outputs[0].dtype, context.outputs[0].shape);
  const int64_t n = x.shape.back();
  for (int64_t i = 0; i < result.size(); ++i) {
    const auto from = x.f().begin() + i * n * n;
    result.f()[i] = determinant({from, from + n * n}, n);
  }
  return results_of(std::move(result));
}

// "non_max_suppression": boxes f32[batch, n, 4], scores f32[batch, classes, n] -> i64[limit, 3] of (batch, class, box)
// and the number of rows that hold a result, i64[]; rows beyond it are -1. Attributes: limit (rows), max_per_class,
// center (1: boxes are x, y of the centre, width, height; 0: two opposite corners), iou_threshold, score_threshold.
std::vector<TensorType> infer_nms(const InferContext& context) {
  const TensorType &boxes = context.inputs[0], &scores = context.inputs[1];
  require(is_float(boxes.dtype) && is_float(scores.dtype), "floats expected, not {} and {}", boxes.dtype, scores.dtype);
  require(boxes.shape.size() == 3 && scores.shape.size() == 3 && boxes.shape[2] == 4 &&
              boxes.shape[0] == scores.shape[0] && boxes.shape[1] == scores.shape[2],
          "boxes [batch,n,4] and scores [batch,classes,n] expected, not {} and {}", boxes, scores);
  for (const char* name : {"limit", "max_per_class", "center"}) require_attr(context.attrs, name, AttrKind::kInt);
  for (const char* name : {"iou_threshold", "score_threshold"}) require_attr(context.attrs, name, AttrKind::kReal);
  const int64_t limit = context.attrs.integer("limit");
  require(limit >= 0 && context.attrs.integer("max_per_class") >= 0, "limit and max_per_class must not be negative");
  return {{DType::kI64, {limit, 3}}, {DType::kI64, {}}};
}

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_of(const double* v, bool center) {
  Box box;
  for (int d = 0; d < 2; ++d) {
    const double a = center ? v[d] - v[d + 2] / 2 : v[d], b = center ? v[d] + v[d + 2] / 2 : v[d + 2];
    box.low[d] = std::min(a, b);
    box.high[d] = std::max(a, b);
  }
  return box;
}

double intersection_over_union(const Box& a, const Box& b) {
  double common = 1;
  for (int d = 0; d < 2; ++d) common *= std::max(0.0, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  const double joined = a.area() + b.area() - common;
  return joined > 0 ? common / joined : 0;
}

std::vector<int64_t> suppress(std::span<const Box> boxes, const double* scores, const Attrs& attrs) {
  const double iou = attrs.real("iou_threshold"), least = attrs.real("score_threshold");
  std::vector<int64_t> order, kept;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > least) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t candidate : order) {
    if (static_cast<int64_t>(kept.size()) >= attrs.integer("max_per_class")) break;
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](int64_t other) {
      return intersection_over_union(boxes[candidate], boxes[other]) > iou;
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

std::vector<Array> eval_nms(const EvalContext& context) {
  const Array &boxes = *context.inputs[0], &scores = *context.inputs[1];
  const int64_t batch = scores.shape[0], classes = scores.shape[1], n = scores.shape[2];
  Array selected(DType::kI64, context.outputs[0].shape), count(DType::kI64, {});
  std::fill(selected.i().begin(), selected.i().end(), -1);
  int64_t& row = count.i()[0];
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Box> of_batch;
    for (int64_t i = 0; i < n; ++i) {
      of_batch.push_back(box_of(boxes.f().data() + (b * n + i) * 4, context.attrs.flag("center")));
    }
    for (int64_t c = 0; c < classes; ++c) {
      for (int64_t box : suppress(of_batch, scores.f().data() + (b * classes + c) * n, context.attrs)) {
        if (row == selected.shape[0]) break;
        const std::array<int64_t, 3> entry = {b, c, box};
        std::copy(entry.begin(), entry.end(), selected.i().begin() + row++ * 3);
      }
    }
  }
  return results_of(std::move(selected), std::move(count));
}

// "fail": what stands for work that cannot be done; a run that gets there ends with the error that it describes.
// Attributes: the result's dtype and shape, code, where, why, remedy.
std::vector<TensorType> infer_fail(const InferContext& context) {
  require_attr(context.attrs, "dtype", AttrKind::kDType);
  require_attr(context.attrs, "shape", AttrKind::kInts);
  require_attr(context.attrs, "code", AttrKind::kInt);
  for (const char* name : {"where", "why", "remedy"}) require_attr(context.attrs, name, AttrKind::kText);
  const int64_t family = context.attrs.integer("code") / 100;
  require(family >= 1 && family <= 4, "{} is no code of an error", context.attrs.integer("code"));
  TensorType type{context.attrs.dtype("dtype"), context.attrs.ints("shape")};
  require_type(type);
  return {std::move(type)};
}

std::vector<Array> eval_fail(const EvalContext& context) {
  const Attrs& attrs = context.attrs;
  fail(static_cast<ErrorCode>(attrs.integer("code")), attrs.text("where"), attrs.text("why"), attrs.text("remedy"));
}

// "tile": launches of kernels of the tile language. Attributes: program (src/lang/program), results (the types).
std::vector<TensorType> infer_tile(const InferContext& context) {
  for (const char* name : {"program", "results"}) require_attr(context.attrs, name, AttrKind::kText);
  const std::optional<std::vector<TensorType>> results = parse_types(context.attrs.text("results"));
  require(results && !results->empty(), "\"{}\" are no types of results", context.attrs.text("results"));
  for (const TensorType& type : *results) require_type(type);
  return *results;
}

std::vector<Array> eval_tile(const EvalContext& context) {
  const TileEvaluator evaluate = tile_evaluator();
  if (evaluate == nullptr) {
    fail(ErrorCode::kUnsupportedOperator, "call of a tile program", "nothing here interprets the tile language");
  }
  return evaluate(context);
}

const std::array kFunctions = {
    Function{"det", 1, infer_det, eval_det},
    Function{"fail", 0, infer_fail, eval_fail},
    Function{"non_max_suppression", 2, infer_nms, eval_nms},
    Function{"tile", -1, infer_tile, eval_tile},
};

const Function* find_function(const std::string& target) {
  const auto at =
      std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.target == target; });
  return at == kFunctions.end() ? nullptr : &*at;
}

std::vector<TensorType> infer_call(const InferContext& context) {
  const std::string& target = context.attrs.text("target");
  const Function* function = find_function(target);
  require(function != nullptr, "the reference library has no function \"{}\"", target);
  require(function->inputs < 0 || context.inputs.size() == static_cast<size_t>(function->inputs),
          "{} takes {} operands, not {}", target, function->inputs, context.inputs.size());
  return function->infer(context);
}

std::vector<Array> eval_call(const EvalContext& context) {
  return find_function(context.attrs.text("target"))->eval(context);
}

}  // namespace

std::span<const OpSchema> call_schemas() {
  static const std::vector<OpSchema> table = {{Op::kCall, 0, -1, {{"target", AttrKind::kText}}, infer_call, eval_call}};
  return table;
}

}  // namespace heddle::ir
