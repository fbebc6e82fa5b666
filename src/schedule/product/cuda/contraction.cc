#include "schedule/product/cuda/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "ir/analysis/planes.h"
#include "schedule/product/cuda/packed_weights.h"
#include "schedule/product/dot_problem.h"
#include "tile/core/contiguity.h"

namespace heddle::schedule {
namespace {

using Form = OperandView::Form;

using StridedDims = std::vector<std::pair<int64_t, int64_t>>;

// Whether a merge takes these dimensions.
bool merges(const std::vector<DotDim>& dims) {
  return dims.size() <= static_cast<size_t>(tile::Merged::kMaxDigits) && DotProblem::count(dims) > 0;
}

// One side of a dot as strides.
OperandView strided(const DotProblem& p, bool is_a) {
  const auto dims_of = [&](const std::vector<DotDim>& dims) {
    StridedDims result;
    for (const DotDim& d : dims) result.emplace_back(d.extent, is_a ? d.a : d.b);
    return result;
  };
  OperandView o;
  o.offset = (is_a ? p.a_view : p.b_view).offset;
  o.batch = dims_of(p.batch);
  const StridedDims rows = dims_of(is_a ? p.m : p.n), k = dims_of(p.k);
  o.row = rows.empty() ? 0 : rows.back().second;
  o.k = k.empty() ? 0 : k.back().second;
  o.depth = DotProblem::count(p.k);
  o.form = rows.size() <= 1 && k.size() <= 1 ? Form::kMatrix : Form::kMerged;
  if (o.form == Form::kMerged) o.row_dims = rows, o.k_dims = k;
  return o;
}

// A constant whose rows the tensor cores do not read as they lie becomes rows along k of a multiple of 16 bytes.
std::optional<Packing> padded_rows(const ContractionBuilder& builder, const DotProblem& p, bool is_a, OperandView& o,
                                   DType multiply) {
  const ir::ValueId value = (is_a ? p.a_view : p.b_view).value;
  const auto element = static_cast<int64_t>(size_of(o.dtype));
  const int64_t rows = DotProblem::count(is_a ? p.m : p.n);
  size_t batched = 0;
  for (const auto& [extent, stride] : o.batch) batched += stride != 0;
  if (builder.graph().constant_of(value) == nullptr || o.dtype != multiply || size_of(multiply) > 4 ||
      multiply == DType::kI32 || batched > 1 || o.depth == 0) {
    return std::nullopt;
  }
  if (o.form != Form::kMatrix) return std::nullopt;
  const bool along_k = o.k == 1 || o.depth == 1;
  const int64_t leading = along_k ? o.row : o.k;
  const bool readable = (along_k || (o.row == 1 && element == 2)) && leading * element % kCopyBytes == 0 &&
                        o.offset * element % kCopyBytes == 0;
  if (readable) return std::nullopt;
  const int64_t pitch = (o.depth * element + kCopyBytes - 1) / kCopyBytes * kCopyBytes / element;
  tile::PanelSource source{1, 0, 1, 0, o.depth, o.k, rows, o.row};
  for (auto& [extent, stride] : o.batch) {
    if (stride == 0) continue;
    source.groups = extent, source.group_stride = stride;
    stride = rows * pitch;
  }
  const Packing packing = rows_packing(source, o.offset, pitch);
  o.offset = 0, o.row = pitch, o.k = 1, o.depth = pitch;
  return packing;
}

// A dot in one form, with a builder of its own.
class CudaDotForm {
 public:
  // `packs`: weights of few bits are read in packed form, if possible; otherwise they are computed elements.
  CudaDotForm(const ContractionBuilder& builder, DotForm form, bool packs = false)
      : builder_(builder), p_(builder_, form), packs_(packs) {
    const ir::Graph& graph = builder_.graph();
    const ir::Node& node = builder_.anchor();
    const DType a = graph.dtype(node.inputs[0]), b = graph.dtype(node.inputs[1]);
    const DType compute = *contraction_compute(a, b, graph.dtype(node.outputs[0]));
    builder_.desc().compute = compute;
    desc_.m = DotProblem::count(p_.m), desc_.n = DotProblem::count(p_.n), desc_.k = DotProblem::count(p_.k);
    desc_.batch = DotProblem::count(p_.batch);
    set_multiply(desc_, graph, node, compute);
    if (p_.swapped) std::swap(desc_.multiply_a, desc_.multiply_b);
    make(desc_.a, true);
    make(desc_.b, false);
    builder_.make_epilogue(desc_.batch, desc_.m, desc_.n, 8,
                           [this](IndexPool& pool, const Index& batch, const Index& row, const Index& column) {
                             return p_.coordinates(pool, batch, row, column);
                           });
  }
  CudaDotForm(const CudaDotForm&) = delete;
  CudaDotForm& operator=(const CudaDotForm&) = delete;

  // Whether an operand is a view of memory, but no matrix.
  bool merges_views() const {
    return (p_.a_affine && desc_.a.form != Form::kMatrix) || (p_.b_affine && desc_.b.form != Form::kMatrix);
  }
  // Whether the epilogue combines neighbours of D.
  bool combines() {
    const Epilogue& epilogue = builder_.desc().epilogue;
    return !epilogue.reductions.empty() || epilogue.gate;
  }
  bool stores_apart() { return heddle::schedule::stores_apart(builder_.desc().epilogue); }
  bool reads_packed() const { return desc_.b.form == Form::kPacked; }
  bool has_kernel() { return has_cuda_kernel(builder_, desc_); }
  double predicted_us() { return fastest_config(builder_, desc_).predicted_us; }
  CudaProduct product() const { return {builder_, desc_, label(), p_.operations()}; }
  ScheduledGroup finish() { return finish_cuda_gemm(builder_, std::move(desc_), label(), p_.operations()); }

 private:
  std::string label() const {
    return p_.label() + (reads_packed() ? fmt::format(" of {} bits", desc_.b.weights->bits) : "");
  }

  void make(OperandView& o, bool is_a) {
    const View& view = is_a ? p_.a_view : p_.b_view;
    const bool affine = is_a ? p_.a_affine : p_.b_affine;
    if (has_packed_weights(builder_, view.value)) {
      if (is_a || !packs_ || !read_packed_weights(builder_, p_, desc_, o)) compute(o, is_a);
      return;
    }
    if (!affine || !merges(is_a ? p_.m : p_.n) || !merges(p_.k)) return compute(o, is_a);
    o = strided(p_, is_a);
    o.dtype = builder_.graph().dtype(view.value);
    const DType multiply = is_a ? desc_.multiply_a : desc_.multiply_b;
    const auto packing = padded_rows(builder_, p_, is_a, o, multiply);
    o.operand = packing ? builder_.input(view.value, *packing) : builder_.input(view.value);
  }

  void compute(OperandView& o, bool is_a) {
    o.dtype = builder_.graph().dtype(builder_.anchor().inputs[is_a != p_.swapped ? 0 : 1]);
    const std::vector<Index> loops = loops_of(o, desc_, is_a ? desc_.m : desc_.n);
    o.element = p_.element(desc_.pool, is_a, loops[0], loops[1], loops[2]);
  }

  ContractionBuilder builder_;
  DotProblem p_;
  bool packs_;
  Product desc_;
};

// Packed weights are operand B. Null if no kernel reads them.
std::unique_ptr<CudaDotForm> packed_form(const ContractionBuilder& builder) {
  const auto side = packed_side(builder);
  if (!side) return nullptr;
  auto form = std::make_unique<CudaDotForm>(builder, DotForm{.swapped = *side == 0}, true);
  return form->reads_packed() && form->has_kernel() ? std::move(form) : nullptr;
}

// Views whose lines are not one stride apart, and results that lie along D's columns, have other forms: in batches that
// are matrices for both, and transposed. The model says which is the fastest.
std::unique_ptr<CudaDotForm> fastest_form(const ContractionBuilder& builder) {
  using Lines = DotForm::Lines;
  if (auto packed = packed_form(builder)) return packed;
  auto best = std::make_unique<CudaDotForm>(builder, DotForm{});
  std::vector<DotForm> others;
  if (best->combines()) return best;
  if (best->merges_views()) others.push_back({Lines::kOneStride, false});
  if (best->stores_apart()) {
    for (const Lines lines : {Lines::kOneStride, Lines::kLast, Lines::kAll}) others.push_back({lines, true});
  }
  if (others.empty()) return best;
  double fastest = best->predicted_us();
  for (const DotForm& form : others) {
    auto other = std::make_unique<CudaDotForm>(builder, form);
    const double us = other->predicted_us();
    if (us < fastest) fastest = us, best = std::move(other);
  }
  return best;
}

}  // namespace

void set_multiply(Product& product, const ir::Graph& graph, const ir::Node& node, DType compute) {
  const DType a = graph.dtype(node.inputs[0]), b = graph.dtype(node.inputs[1]);
  const bool equal = a == b && (a == DType::kF16 || a == DType::kBF16);
  const bool bytes = compute == DType::kI32 && size_of(a) == 1 && size_of(b) == 1;
  product.multiply_a = equal || bytes ? a : compute;
  product.multiply_b = equal || bytes ? b : compute;
  product.tf32 = product.multiply_a == DType::kF32 && node.attrs.has("tf32") && node.attrs.integer("tf32") != 0;
}

std::vector<Index> loops_of(OperandView& o, Product& product, int64_t lines) {
  o.form = Form::kComputed;
  IndexPool& pool = product.pool.indices;
  const int64_t extents[3] = {product.batch, lines, product.k};
  std::vector<Index> result;
  for (size_t i = 0; i < 3; ++i) {
    o.vars[i] = pool.new_var(std::max<int64_t>(extents[i], 1));
    result.push_back(pool.var(o.vars[i]));
  }
  return result;
}

Packing rows_packing(const tile::PanelSource& s, int64_t offset, int64_t pitch) {
  return {"rows",
          {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride, offset, pitch}};
}

ScheduledGroup schedule_cuda_dot(ContractionBuilder& builder) {
  return fastest_form(builder)->finish();
}

double cuda_dot_us(const ContractionBuilder& builder) {
  return fastest_form(builder)->predicted_us();
}

std::optional<double> packed_dot_us(const ContractionBuilder& builder) {
  const auto form = packed_form(builder);
  return form ? std::optional(form->predicted_us()) : std::nullopt;
}

CudaProduct cuda_dot_product(const ContractionBuilder& builder) {
  return CudaDotForm(builder, DotForm{}).product();
}

CudaProduct cuda_product(const ContractionBuilder& builder) {
  switch (builder.anchor().op) {
    case ir::Op::kDot:
      return cuda_dot_product(builder);
    case ir::Op::kConv:
      return cuda_conv_product(builder);
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(builder.anchor().op)), "it is no product");
  }
}

ScheduledGroup schedule_cuda_contraction(ContractionBuilder& builder) {
  switch (builder.anchor().op) {
    case ir::Op::kDot:
      return schedule_cuda_dot(builder);
    case ir::Op::kConv:
      return schedule_cuda_conv(builder);
    default:
      return schedule_cuda_window(builder);
  }
}

namespace {

// The largest power of two, at most that of the widest access, that divides where rows of a value begin, in bytes.
int64_t alignment(const ir::TensorType& type, const Shape& memory, const std::vector<int64_t>& start) {
  int64_t all = kCopyBytes, stride = static_cast<int64_t>(size_of(type.dtype));
  for (size_t d = type.shape.size(); d-- > 0;) {
    for (const int64_t bytes : {start[d] * stride, d + 1 < type.shape.size() && type.shape[d] > 1 ? stride : 0}) {
      if (bytes != 0) all = std::min(all, bytes & -bytes);
    }
    stride *= memory[d];
  }
  return all;
}

}  // namespace

std::string cuda_placement_cost(const ir::TensorType& type, const ir::Placement& place) {
  const int64_t there = alignment(type, place.shape, place.start),
                alone = alignment(type, type.shape, std::vector<int64_t>(type.shape.size(), 0));
  if (there >= alone) return {};
  return fmt::format("its rows would begin at multiples of {} bytes in place of {}", there, alone);
}

// The smallest tile has 16 elements.
std::string cuda_contraction_obstacle(const ir::Graph& graph, const ir::Node& node) {
  constexpr int64_t kMost = INT32_MAX, kMostElements = 16 * kMost;
  const Shape& a = graph.shape(node.inputs[0]);
  if (node.op == ir::Op::kConv && is_channels_first(node)) {
    if (!ir::filters_planes(graph, node)) return "a convolution that is not nhwc and not depthwise";
    const bool fits = std::max(element_count(a), element_count(graph.shape(node.outputs[0]))) <= kMost;
    return fits ? "" : "a convolution with channels first counts pixels in 32 bits";
  }
  std::vector<int64_t> counts;
  if (node.op == ir::Op::kDot) {
    const auto extent_of = [&](const char* dims) {
      int64_t extent = 1;
      for (const int64_t d : node.attrs.ints(dims)) extent *= a[static_cast<size_t>(d)];
      return extent;
    };
    const int64_t batch = extent_of("lhs_batch"), depth = extent_of("lhs_contract");
    const int64_t inner = std::max<int64_t>(batch * depth, 1);
    counts = {batch, depth, element_count(a) / inner, element_count(graph.shape(node.inputs[1])) / inner};
  } else {
    // Pixels and channels.
    for (const Shape& shape : {a, graph.shape(node.outputs[0])}) {
      if (shape.empty()) continue;
      counts.push_back(shape.back());
      counts.push_back(element_count(shape) / std::max<int64_t>(shape.back(), 1));
    }
  }
  const bool fits = std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count <= kMost; });
  if (fits && element_count(graph.shape(node.outputs[0])) <= kMostElements) return "";
  return "kernels of products on a GPU count rows and columns in 32 bits";
}

}  // namespace heddle::schedule
