#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

// What Resize and Upsample ask for, per dimension of the input.
struct Request {
  std::string mode = "nearest", coordinates = "asymmetric", nearest = "simple";
  std::vector<double> scales;
  Shape sizes;
  std::vector<double> roi_start, roi_end;  // fractions; read by tf_crop_and_resize only
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

// One resized dimension: output o is the sum over k of weight[o][k] * input[index[o][k]].
struct Taps {
  int64_t count = 0;
  Ints index;                   // [output, count]
  std::vector<double> weight;   // [output, count]
  std::vector<int64_t> inside;  // [output]: 0 where the coordinate lies outside the input (tf_crop_and_resize)
};

double source_coordinate(const Request& r, size_t d, double extent, int64_t output) {
  const double x = static_cast<double>(output), scale = r.scales[d], width = scale * extent;
  if (r.coordinates == "align_corners") return width == 1 ? 0 : x * (extent - 1) / (width - 1);
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (r.coordinates == "tf_crop_and_resize") {
    const double span = (r.roi_end[d] - r.roi_start[d]) * (extent - 1);
    const double at = width == 1 ? span / 2 : x * span / (width - 1);
    return at + r.roi_start[d] * (extent - 1);
  }
  const double centred = (x + 0.5) / scale - 0.5;
  if (r.coordinates == "pytorch_half_pixel") return r.sizes[d] == 1 ? 0 : centred;
  if (r.coordinates == "half_pixel_symmetric") {
    return extent / 2 * (1 - static_cast<double>(r.sizes[d]) / width) + centred;
  }
  return centred;
}

// Scales are f32 numbers or quotients, so a coordinate that should be whole or half is so up to rounding only.
double snap(double x) {
  const double halves = std::nearbyint(2 * x) / 2;
  return std::abs(x - halves) <= 1e-6 * std::max(1.0, std::abs(x)) ? halves : x;
}

double nearest_index(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

// Keys' cubic kernel, or the triangle.
double kernel_at(const Request& r, double distance) {
  const double x = std::abs(distance), a = r.cubic_a;
  if (r.mode == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

// Antialiasing widens the kernel by the factor of the reduction.
Taps make_taps(const Request& r, size_t d, int64_t extent) {
  Taps taps;
  const double stretch = r.antialias ? std::clamp(r.scales[d], 1e-6, 1.0) : 1;
  const double reach = r.mode == "linear" ? 1 : 2;
  taps.count = r.mode == "nearest" ? 1 : 2 - 2 * (static_cast<int64_t>(std::floor(-reach / stretch)) + 1);
  // Operator set 10 leaves the rounding open; runtimes round down, and up when they reduce.
  const std::string rounding = r.nearest == "simple" ? (r.scales[d] < 1 ? "ceil" : "floor") : r.nearest;
  for (int64_t o = 0; o < r.sizes[d]; ++o) {
    const double x = snap(source_coordinate(r, d, static_cast<double>(extent), o));
    taps.inside.push_back(x >= 0 && x <= static_cast<double>(extent - 1));
    const double first =
        r.mode == "nearest" ? nearest_index(rounding, x) : std::ceil(x) - static_cast<double>(taps.count / 2);
    double sum = 0;
    const size_t begin = taps.weight.size();
    for (int64_t k = 0; k < taps.count; ++k) {
      const double at = first + static_cast<double>(k);
      const bool outside = at < 0 || at > static_cast<double>(extent - 1);
      const double weight = r.mode == "nearest" ? 1 : kernel_at(r, (at - x) * stretch);
      taps.index.push_back(static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(extent - 1))));
      taps.weight.push_back(outside && r.exclude_outside ? 0 : weight);
      sum += taps.weight.back();
    }
    const bool scaled = r.mode != "nearest" && (r.antialias || r.exclude_outside) && sum != 0;
    for (size_t k = begin; scaled && k < taps.weight.size(); ++k) taps.weight[k] /= sum;
  }
  return taps;
}

constexpr int64_t kMostGathers = 4;  // wider kernels are a product with a matrix

ValueId resize_dim(NodeContext& ctx, ValueId x, const Taps& taps, int64_t dim) {
  ir::Builder& b = ctx.b;
  const int64_t outputs = static_cast<int64_t>(taps.inside.size());
  const Shape from = b.shape(x);
  const int64_t extent = from[static_cast<size_t>(dim)];
  if (taps.count == 1) return b.gather(x, b.ints(taps.index), dim);
  if (taps.count > kMostGathers) {
    check_table(ctx, {extent, outputs});
    std::vector<double> matrix(static_cast<size_t>(extent * outputs), 0);
    for (int64_t i = 0; i < outputs * taps.count; ++i) {
      const auto at = static_cast<size_t>(i);
      matrix[static_cast<size_t>(taps.index[at] * outputs + i / taps.count)] += taps.weight[at];
    }
    const ValueId weights = real_constant(b, b.dtype(x), {extent, outputs}, std::move(matrix));
    const ValueId product =
        b.emit(Op::kDot, {x, weights},
               {{"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", Ints{dim}}, {"rhs_contract", Ints{0}}});
    return move_axis(b, product, static_cast<int64_t>(from.size()) - 1, dim);
  }
  Shape along(from.size(), 1);
  along[static_cast<size_t>(dim)] = outputs;
  ValueId sum = 0;
  for (int64_t k = 0; k < taps.count; ++k) {
    Ints index;
    std::vector<double> weight;
    for (int64_t o = 0; o < outputs; ++o) {
      index.push_back(taps.index[static_cast<size_t>(o * taps.count + k)]);
      weight.push_back(taps.weight[static_cast<size_t>(o * taps.count + k)]);
    }
    const ValueId part = b.mul(b.gather(x, b.ints(index), dim), real_constant(b, b.dtype(x), along, std::move(weight)));
    sum = k == 0 ? part : b.add(sum, part);
  }
  return sum;
}

void resize_all(NodeContext& ctx, const Request& r) {
  const Shape shape = ctx.shape(0);
  const DType type = ctx.dtype(0);
  const bool blends = r.mode != "nearest";
  const bool crops = r.coordinates == "tf_crop_and_resize";
  ValueId x = ctx.in(0);
  const DType work = blends ? wide_dtype(type) : type;
  x = ctx.b.cast(x, work);
  std::vector<ValueId> masks;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (r.sizes[d] < 0) ctx.invalid("a size is negative");
    if (shape[d] == r.sizes[d] && r.scales[d] == 1 && !crops) continue;
    if (shape[d] == 0) ctx.invalid("an empty dimension cannot be resized");
    check_table(ctx, {r.sizes[d], r.antialias ? static_cast<int64_t>(4 / std::clamp(r.scales[d], 1e-6, 1.0)) + 4 : 4});
    const Taps taps = make_taps(r, d, shape[d]);
    const auto dim = static_cast<int64_t>(d);
    x = resize_dim(ctx, x, taps, dim);
    if (crops && std::count(taps.inside.begin(), taps.inside.end(), 0) > 0) {
      Shape along(shape.size(), 1);
      along[d] = r.sizes[d];
      masks.push_back(int_constant(ctx.b, along, taps.inside, DType::kBool));
    }
  }
  for (const ValueId mask : masks) x = ctx.b.select(mask, x, ctx.b.scalar(work, r.extrapolation));
  if (blends && is_int(type)) {  // integer results round and saturate
    x = ctx.b.unary(Op::kRound, x);
  }
  ctx.set(0, ctx.b.cast(x, type));
}

void check_mode(NodeContext& ctx, const Request& r) {
  static constexpr std::array kModes = {"nearest", "linear", "cubic"};
  static constexpr std::array kCoordinates = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                              "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                              "tf_half_pixel_for_nn"};
  static constexpr std::array kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"};
  const auto known = [](const auto& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (!known(kModes, r.mode)) ctx.invalid("mode '" + r.mode + "' is unknown");
  if (!known(kCoordinates, r.coordinates)) ctx.invalid("coordinate transformation '" + r.coordinates + "' is unknown");
  if (!known(kNearest, r.nearest)) ctx.invalid("nearest mode '" + r.nearest + "' is unknown");
}

void set_scales(NodeContext& ctx, Request& r, const std::vector<double>& scales, const Ints& axes) {
  if (scales.size() != axes.size()) ctx.invalid("there must be one scale for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (!(scales[i] >= 1e-6)) ctx.invalid("a scale is not positive, or too small");
    r.scales[d] = scales[i];
    const double size = std::floor(static_cast<double>(r.sizes[d]) * scales[i]);
    if (!(size < 1e15)) ctx.invalid("a scale is too large");
    r.sizes[d] = static_cast<int64_t>(size);
  }
}

void set_sizes(NodeContext& ctx, Request& r, const Ints& sizes, const Ints& axes) {
  const Shape shape = ctx.shape(0);
  const std::string policy = ctx.attr_string("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != axes.size()) ctx.invalid("there must be one size for each axis");
  std::vector<double> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto extent = static_cast<double>(std::max<int64_t>(1, shape[static_cast<size_t>(axes[i])]));
    scales.push_back(static_cast<double>(sizes[i]) / extent);
  }
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    ctx.invalid("keep_aspect_ratio_policy '" + policy + "' is unknown");
  }
  const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (sizes[i] < 0) ctx.invalid("a size is negative");
    r.sizes[d] = sizes[i];
    r.scales[d] = scales[i];
    if (policy == "stretch") continue;
    r.scales[d] = policy == "not_larger" ? *least : *most;
    r.sizes[d] = static_cast<int64_t>(r.scales[d] * static_cast<double>(shape[d]) + 0.5);
  }
}

Request identity_request(NodeContext& ctx) {
  Request r;
  r.sizes = ctx.shape(0);
  r.scales.assign(r.sizes.size(), 1);
  r.roi_start.assign(r.sizes.size(), 0);
  r.roi_end.assign(r.sizes.size(), 1);
  return r;
}

void resize(NodeContext& ctx) {
  Request r = identity_request(ctx);
  r.mode = ctx.attr_string("mode", "nearest");
  if (ctx.version() == 10) {
    set_scales(ctx, r, ctx.constant_reals(1), int_range(ctx.rank(0)));
    check_mode(ctx, r);
    return resize_all(ctx, r);
  }
  r.coordinates = ctx.attr_string("coordinate_transformation_mode", "half_pixel");
  r.nearest = ctx.attr_string("nearest_mode", "round_prefer_floor");
  r.cubic_a = ctx.attr_float("cubic_coeff_a", -0.75);
  r.extrapolation = ctx.attr_float("extrapolation_value", 0);
  r.exclude_outside = ctx.attr_int("exclude_outside", 0) != 0;
  r.antialias = ctx.attr_int("antialias", 0) != 0;
  check_mode(ctx, r);
  Ints axes = ctx.attr_ints("axes", int_range(ctx.rank(0)));
  ctx.axes(axes, ctx.rank(0));
  for (int64_t& a : axes) a = ctx.axis(a, ctx.rank(0));
  const bool has_sizes = ctx.has(3) && element_count(ctx.shape(3)) > 0;
  const bool has_scales = ctx.has(2) && element_count(ctx.shape(2)) > 0;
  if (has_sizes == has_scales) ctx.invalid("exactly one of scales and sizes must be given");
  if (has_sizes) {
    set_sizes(ctx, r, ctx.constant_ints(3), axes);
  } else {
    set_scales(ctx, r, ctx.constant_reals(2), axes);
  }
  if (r.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = ctx.has(1) ? ctx.constant_reals(1) : std::vector<double>();
    if (roi.size() != 2 * axes.size()) ctx.invalid("the region must hold two numbers for each axis");
    const auto finite = [](double v) { return std::isfinite(v); };
    if (!std::all_of(roi.begin(), roi.end(), finite)) ctx.invalid("the region is not finite");
    for (size_t i = 0; i < axes.size(); ++i) {
      r.roi_start[static_cast<size_t>(axes[i])] = roi[i];
      r.roi_end[static_cast<size_t>(axes[i])] = roi[axes.size() + i];
    }
  }
  resize_all(ctx, r);
}

void upsample(NodeContext& ctx) {
  Request r = identity_request(ctx);
  r.mode = ctx.attr_string("mode", "nearest");
  if (r.mode == "bilinear") r.mode = "linear";
  check_mode(ctx, r);
  std::vector<double> scales;
  if (ctx.version() < 7) {
    if (ctx.rank(0) != 4) ctx.invalid("the input must be [N,C,H,W]");
    scales = {1, 1, ctx.attr_float("height_scale"), ctx.attr_float("width_scale")};
  } else {
    scales = ctx.version() < 9 ? ctx.attr_floats("scales") : ctx.constant_reals(1);
  }
  set_scales(ctx, r, scales, int_range(ctx.rank(0)));
  resize_all(ctx, r);
}

}  // namespace

std::span<const OpHandler> resize_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Resize", 10, kAnyVersion, resize},
      OpHandler{"", "Upsample", 1, 10, upsample},
  };
  return kTable;
}

}  // namespace heddle::onnx
