#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/gemm.h"
#include "ir/ops/parallel.h"
#include "ir/ops/rules.h"
#include "ir/ops/spatial.h"

namespace heddle::ir {
namespace {

bool is_byte(DType type) {
  return type == DType::kI8 || type == DType::kU8;
}

// The result type of a contraction; integers wider than a byte keep their type, bytes widen.
DType result_dtype(const InferContext& context) {
  const DType a = context.inputs[0].dtype, b = context.inputs[1].dtype;
  const bool bytes = is_byte(a) && is_byte(b);
  require(bytes || (a == b && is_number(a)), "operands of {} and {}; equal numeric types or i8/u8 expected", a, b);
  if (!context.attrs.has("out")) return bytes ? DType::kI32 : a;
  const DType out = context.attrs.dtype("out");
  require(is_float(out) == is_float(a) && is_number(out), "a result of {} from operands of {}", out, a);
  return out;
}

// Dimensions of an operand that are neither batch nor contracting, in order. Checks that all are in range and distinct.
Ints free_dims(const char* side, size_t rank, const Ints& batch, const Ints& contract) {
  std::vector<bool> used(rank, false);
  for (const Ints* dims : {&batch, &contract}) {
    for (int64_t d : *dims) {
      require(d >= 0 && d < static_cast<int64_t>(rank) && !used[d],
              "{} dimension {} is out of range or named twice (rank {})", side, d, rank);
      used[d] = true;
    }
  }
  Ints result;
  for (size_t d = 0; d < rank; ++d) {
    if (!used[d]) result.push_back(static_cast<int64_t>(d));
  }
  return result;
}

struct DotDims {
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract, lhs_free, rhs_free;
};

DotDims dot_dims(const Attrs& attrs, const Shape& lhs, const Shape& rhs) {
  DotDims d{
      attrs.ints("lhs_batch"), attrs.ints("rhs_batch"), attrs.ints("lhs_contract"), attrs.ints("rhs_contract"), {}, {}};
  require(d.lhs_batch.size() == d.rhs_batch.size() && d.lhs_contract.size() == d.rhs_contract.size(),
          "the numbers of batch or contracting dimensions of the two sides differ");
  d.lhs_free = free_dims("lhs", lhs.size(), d.lhs_batch, d.lhs_contract);
  d.rhs_free = free_dims("rhs", rhs.size(), d.rhs_batch, d.rhs_contract);
  const auto same = [&](const Ints& l, const Ints& r) {
    for (size_t i = 0; i < l.size(); ++i) {
      require(lhs[l[i]] == rhs[r[i]], "lhs dimension {} has extent {}, its partner, rhs dimension {}, {}", l[i],
              lhs[l[i]], r[i], rhs[r[i]]);
    }
  };
  same(d.lhs_batch, d.rhs_batch);
  same(d.lhs_contract, d.rhs_contract);
  return d;
}

std::vector<TensorType> infer_dot(const InferContext& context) {
  const Shape &lhs = context.inputs[0].shape, &rhs = context.inputs[1].shape;
  const DotDims dims = dot_dims(context.attrs, lhs, rhs);
  Shape shape;
  for (int64_t d : dims.lhs_batch) shape.push_back(lhs[d]);
  for (int64_t d : dims.lhs_free) shape.push_back(lhs[d]);
  for (int64_t d : dims.rhs_free) shape.push_back(rhs[d]);
  return {{result_dtype(context), std::move(shape)}};
}

// Element offsets of all positions over some dimensions of a row-major tensor, in row-major order of `dims`.
std::vector<int64_t> offsets(const Shape& shape, const Ints& dims) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  std::vector<int64_t> result = {0};
  for (int64_t d : dims) {
    std::vector<int64_t> next;
    next.reserve(result.size() * static_cast<size_t>(shape[d]));
    for (int64_t base : result) {
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(base + i * strides[d]);
    }
    result = std::move(next);
  }
  return result;
}

// Packs panels of an operand whose element (row or column i, term k) lies at base[outer[i] + inner[k]].
template <typename T, int64_t kWidth, typename S>
PackPanel<T> pack_offsets(const S* base, const std::vector<int64_t>& outer, const std::vector<int64_t>& inner) {
  return [base, &outer, &inner](int64_t first, int64_t k, int64_t depth, T* panel) {
    const int64_t width = std::min<int64_t>(kWidth, static_cast<int64_t>(outer.size()) - first);
    for (int64_t t = 0; t < depth; ++t) {
      for (int64_t w = 0; w < kWidth; ++w) {
        panel[t * kWidth + w] = w < width ? static_cast<T>(base[outer[first + w] + inner[k + t]]) : T{0};
      }
    }
  };
}

template <typename T, typename S>
void dot(const std::vector<S>& lhs, const Shape& lhs_shape, const std::vector<S>& rhs, const Shape& rhs_shape,
         const DotDims& dims, T* out) {
  const auto lhs_base = offsets(lhs_shape, dims.lhs_batch), rhs_base = offsets(rhs_shape, dims.rhs_batch);
  const auto lhs_rows = offsets(lhs_shape, dims.lhs_free), rhs_cols = offsets(rhs_shape, dims.rhs_free);
  const auto lhs_terms = offsets(lhs_shape, dims.lhs_contract), rhs_terms = offsets(rhs_shape, dims.rhs_contract);
  std::vector<int64_t> rows(lhs_rows.size()), cols(rhs_cols.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i * cols.size());
  for (size_t j = 0; j < cols.size(); ++j) cols[j] = static_cast<int64_t>(j);
  const auto work = static_cast<int64_t>(rows.size() * cols.size() * lhs_terms.size());
  const auto one = [&](int64_t b) {
    Product<T> product;
    product.depth = static_cast<int64_t>(lhs_terms.size());
    product.lhs = pack_offsets<T, kPanelRows>(lhs.data() + lhs_base[b], lhs_rows, lhs_terms);
    product.rhs = pack_offsets<T, kPanelCols>(rhs.data() + rhs_base[b], rhs_cols, rhs_terms);
    product.out = out + static_cast<size_t>(b) * rows.size() * cols.size();
    product.rows = &rows;
    product.cols = &cols;
    multiply(product);
  };
  parallel_for(static_cast<int64_t>(lhs_base.size()), work, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) one(b);
  });
}

std::vector<Array> eval_dot(const EvalContext& context) {
  const Array &lhs = *context.inputs[0], &rhs = *context.inputs[1];
  const DotDims dims = dot_dims(context.attrs, lhs.shape, rhs.shape);
  Array result(context.outputs[0].dtype, context.outputs[0].shape);
  if (lhs.size() == 0 || rhs.size() == 0) return results_of(std::move(result));  // empty sums are zero
  if (lhs.real()) {
    dot<double>(lhs.f(), lhs.shape, rhs.f(), rhs.shape, dims, result.f().data());
  } else {
    dot(lhs.i(), lhs.shape, rhs.i(), rhs.shape, dims, reinterpret_cast<uint64_t*>(result.i().data()));
  }
  if (!result.real()) wrap(result.dtype, result.i());
  return results_of(std::move(result));
}

struct ConvDims {
  bool nhwc = false;
  bool ohwi = false;  // of the filters
  int64_t groups = 1, batch = 0, channels = 0, features = 0;
  Shape in, kernel, out;  // spatial extents
  Ints strides, low, high, dilations, lhs_dilations;
};

ConvDims conv_dims(const Attrs& attrs, const Shape& x, const Shape& w) {
  ConvDims c;
  const std::string& layout = attrs.text("layout");
  require(layout == "nchw" || layout == "nhwc", "layout \"{}\" is neither nchw nor nhwc", layout);
  require(x.size() >= 3 && x.size() <= 5 && w.size() == x.size(),
          "operands of rank {} and {}; equal ranks of 3 to 5 expected", x.size(), w.size());
  const std::string filters = attrs.has("filters") ? attrs.text("filters") : "oihw";
  require(filters == "oihw" || filters == "ohwi", "filters \"{}\" are neither oihw nor ohwi", filters);
  c.nhwc = layout == "nhwc";
  c.ohwi = filters == "ohwi";
  c.groups = attrs.integer("groups");
  c.batch = x[0];
  c.channels = c.nhwc ? x.back() : x[1];
  c.features = w[0];
  require(c.groups >= 1 && c.groups <= std::max<int64_t>(1, c.features) && c.features % c.groups == 0 &&
              c.channels % c.groups == 0 && c.channels / c.groups == (c.ohwi ? w.back() : w[1]),
          "{} channels in {} groups do not match weights {}", c.channels, c.groups, w);
  const size_t spatial = x.size() - 2;
  c.in.assign(x.begin() + (c.nhwc ? 1 : 2), x.end() - (c.nhwc ? 1 : 0));
  c.kernel.assign(w.begin() + (c.ohwi ? 1 : 2), w.end() - (c.ohwi ? 1 : 0));
  c.strides = attrs.ints("strides");
  c.low = attrs.ints("low");
  c.high = attrs.ints("high");
  c.dilations = attrs.ints("dilations");
  c.lhs_dilations = attrs.ints("lhs_dilations");
  check_spatial_attr("strides", c.strides, spatial, 1);
  check_spatial_attr("low", c.low, spatial, -(int64_t{1} << 31));
  check_spatial_attr("high", c.high, spatial, -(int64_t{1} << 31));
  check_spatial_attr("dilations", c.dilations, spatial, 1);
  check_spatial_attr("lhs_dilations", c.lhs_dilations, spatial, 1);
  for (size_t d = 0; d < spatial; ++d) {
    require(c.in[d] < int64_t{1} << 31 && c.kernel[d] >= 1 && c.kernel[d] < int64_t{1} << 31,
            "spatial dimension {}: extent {} under a kernel of {}", d, c.in[d], c.kernel[d]);
    const int64_t dilated = c.in[d] == 0 ? 0 : (c.in[d] - 1) * c.lhs_dilations[d] + 1;
    c.out.push_back(windowed_extent(d, dilated, c.low[d], c.high[d], c.kernel[d], c.dilations[d], c.strides[d]));
  }
  return c;
}

std::vector<TensorType> infer_conv(const InferContext& context) {
  const ConvDims c = conv_dims(context.attrs, context.inputs[0].shape, context.inputs[1].shape);
  Shape shape = {c.batch};
  if (!c.nhwc) shape.push_back(c.features);
  shape.insert(shape.end(), c.out.begin(), c.out.end());
  if (c.nhwc) shape.push_back(c.features);
  return {{result_dtype(context), std::move(shape)}};
}

// For each spatial dimension, tap and output position, the offset of the input element that meets them; kOutside where
// padding or a hole between dilated elements does. The offsets of the dimensions add up, and one that is outside makes
// the sum negative.
constexpr int64_t kOutside = -(int64_t{1} << 60);

struct Taps {
  std::vector<std::vector<int64_t>> offset;  // [dimension][tap * outputs + output]
};

Taps make_taps(const ConvDims& c) {
  Taps taps;
  int64_t stride = c.nhwc ? c.channels : 1;
  taps.offset.resize(c.in.size());
  for (size_t d = c.in.size(); d-- > 0;) {
    for (int64_t t = 0; t < c.kernel[d]; ++t) {
      for (int64_t o = 0; o < c.out[d]; ++o) {
        const int64_t at = o * c.strides[d] + t * c.dilations[d] - c.low[d];
        const bool inside = at >= 0 && at % c.lhs_dilations[d] == 0 && at / c.lhs_dilations[d] < c.in[d];
        taps.offset[d].push_back(inside ? at / c.lhs_dilations[d] * stride : kOutside);
      }
    }
    stride *= c.in[d];
  }
  return taps;
}

// Packs columns (output positions) of the matrix of patches of one image and group: term k is (channel, tap).
template <typename T, typename S>
PackPanel<T> pack_patches(const S* x, const ConvDims& c, const Taps& taps) {
  const int64_t plane = element_count(c.in), positions = element_count(c.out);
  const int64_t channel_stride = c.nhwc ? 1 : plane;
  return [=, &c, &taps](int64_t first, int64_t k, int64_t depth, T* panel) {
    const size_t spatial = c.in.size();
    int64_t output[kPanelCols][3] = {};
    const int64_t width = std::min(kPanelCols, positions - first);
    for (int64_t w = 0; w < width; ++w) {
      int64_t at = first + w;
      for (size_t d = spatial; d-- > 0; at /= c.out[d]) output[w][d] = at % c.out[d];
    }
    for (int64_t t = 0; t < depth; ++t) {
      int64_t rest = k + t;
      const int64_t* row[3] = {};
      for (size_t d = spatial; d-- > 0; rest /= c.kernel[d]) {
        row[d] = taps.offset[d].data() + rest % c.kernel[d] * c.out[d];
      }
      const S* channel = x + rest * channel_stride;
      for (int64_t w = 0; w < kPanelCols; ++w) {
        int64_t at = w < width ? 0 : kOutside;
        for (size_t d = 0; d < spatial && w < width; ++d) at += row[d][output[w][d]];
        panel[t * kPanelCols + w] = at >= 0 ? static_cast<T>(channel[at]) : T{0};
      }
    }
  };
}

template <typename T, typename S>
void convolve(const std::vector<S>& x, const std::vector<S>& w, const ConvDims& c, T* out) {
  const Taps taps = make_taps(c);
  const int64_t plane = element_count(c.in), positions = element_count(c.out);
  const int64_t group_channels = c.channels / c.groups, group_features = c.features / c.groups;
  const int64_t taps_of_filter = element_count(c.kernel), depth = group_channels * taps_of_filter;
  std::vector<int64_t> weight_rows(group_features), terms(depth), rows(group_features), cols(positions);
  for (int64_t i = 0; i < group_features; ++i) weight_rows[i] = i * depth;
  for (int64_t k = 0; k < depth; ++k) {
    terms[k] = c.ohwi ? k % taps_of_filter * group_channels + k / taps_of_filter : k;
  }
  for (int64_t i = 0; i < group_features; ++i) rows[i] = c.nhwc ? i : i * positions;
  for (int64_t j = 0; j < positions; ++j) cols[j] = c.nhwc ? j * c.features : j;
  const auto one = [&](int64_t n, int64_t g) {
    const S* image = x.data() + n * c.channels * plane + g * group_channels * (c.nhwc ? 1 : plane);
    Product<T> product;
    product.depth = depth;
    product.lhs = pack_offsets<T, kPanelRows>(w.data() + g * group_features * depth, weight_rows, terms);
    product.rhs = pack_patches<T>(image, c, taps);
    product.out = out + n * c.features * positions + g * group_features * (c.nhwc ? 1 : positions);
    product.rows = &rows;
    product.cols = &cols;
    multiply(product);
  };
  parallel_for(c.batch * c.groups, group_features * positions * depth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i / c.groups, i % c.groups);
  });
}

std::vector<Array> eval_conv(const EvalContext& context) {
  const Array &x = *context.inputs[0], &w = *context.inputs[1];
  const ConvDims dims = conv_dims(context.attrs, x.shape, w.shape);
  Array result(context.outputs[0].dtype, context.outputs[0].shape);
  if (x.size() == 0 || w.size() == 0 || result.size() == 0) return results_of(std::move(result));
  if (x.real()) {
    convolve<double>(x.f(), w.f(), dims, result.f().data());
  } else {
    convolve(x.i(), w.i(), dims, reinterpret_cast<uint64_t*>(result.i().data()));
  }
  if (!result.real()) wrap(result.dtype, result.i());
  return results_of(std::move(result));
}

}  // namespace

std::span<const OpSchema> contraction_schemas() {
  static const std::vector<OpSchema> ops = {{Op::kDot,
                                             2,
                                             2,
                                             {{"lhs_batch", AttrKind::kInts},
                                              {"rhs_batch", AttrKind::kInts},
                                              {"lhs_contract", AttrKind::kInts},
                                              {"rhs_contract", AttrKind::kInts},
                                              {"out", AttrKind::kDType, false},
                                              {"tf32", AttrKind::kInt, false},
                                              {"operand_bits", AttrKind::kInt, false}},
                                             infer_dot,
                                             eval_dot},
                                            {Op::kConv,
                                             2,
                                             2,
                                             {{"strides", AttrKind::kInts},
                                              {"low", AttrKind::kInts},
                                              {"high", AttrKind::kInts},
                                              {"dilations", AttrKind::kInts},
                                              {"lhs_dilations", AttrKind::kInts},
                                              {"groups", AttrKind::kInt},
                                              {"layout", AttrKind::kText},
                                              {"filters", AttrKind::kText, false},
                                              {"image_range", AttrKind::kInt, false},
                                              {"out", AttrKind::kDType, false},
                                              {"tf32", AttrKind::kInt, false}},
                                             infer_conv,
                                             eval_conv}};
  return ops;
}

}  // namespace heddle::ir
