#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

// Operators that read an image at coordinates that are computed from data.
namespace heddle::onnx {
namespace {

enum class Outside : uint8_t { kZeros, kBorder, kReflection };
enum class Interpolation : uint8_t { kNearest, kLinear, kCubic };

// An image with channels last, [B, D1, ..., Dr, C].
struct Image {
  ValueId data;
  Shape extents;  // D1 ... Dr
  Outside outside;
  bool align_corners = false;  // where the borders lie that reflection mirrors at

  double low() const { return align_corners ? 0 : -0.5; }
  double high(size_t d) const { return static_cast<double>(extents[d]) - (align_corners ? 1 : 0.5); }
};

// Mirrors coordinates at the borders until they lie between them.
ValueId reflect(ir::Builder& b, const Image& image, size_t d, ValueId x) {
  const double low = image.low(), range = image.high(d) - low;
  if (range <= 0) return b.binary(Op::kMul, x, 0.0);
  const ValueId phase = b.binary(Op::kMod, b.binary(Op::kSub, x, low), 2 * range);
  const ValueId back = b.binary(Op::kMul, b.binary(Op::kSub, phase, 2 * range), -1.0);
  return b.binary(Op::kAdd, b.min(phase, back), low);
}

ValueId clamp(ir::Builder& b, ValueId x, double low, double high) {
  return b.binary(Op::kMin, b.binary(Op::kMax, x, low), high);
}

// One tap along one dimension: whole coordinates with a weight.
struct Tap {
  ValueId index;   // i64 [B, P], inside the image
  ValueId weight;  // [B, P]; zero where the image is padded with zeros
};

Tap make_tap(ir::Builder& b, const Image& image, size_t d, ValueId at, ValueId weight) {
  const double last = static_cast<double>(image.extents[d] - 1);
  if (image.outside == Outside::kReflection) at = reflect(b, image, d, at);
  if (image.outside == Outside::kZeros) {
    const ValueId inside = b.binary(Op::kAnd, b.binary(Op::kGe, at, 0.0), b.binary(Op::kLe, at, last));
    weight = b.select(inside, weight, b.scalar(b.dtype(weight), 0));
  }
  return {b.cast(clamp(b, at, 0, last), DType::kI64), weight};
}

std::vector<Tap> taps_of(ir::Builder& b, const Image& image, size_t d, ValueId x, Interpolation mode) {
  const ValueId one = b.full(b.dtype(x), Shape(b.shape(x)), 1);
  if (mode == Interpolation::kNearest) return {make_tap(b, image, d, b.unary(Op::kRound, x), one)};
  const ValueId first = b.unary(Op::kFloor, x), t = b.sub(x, first), u = b.sub(one, t);
  std::vector<Tap> taps;
  if (mode == Interpolation::kLinear) {
    taps.push_back(make_tap(b, image, d, first, u));
    taps.push_back(make_tap(b, image, d, b.binary(Op::kAdd, first, 1.0), t));
    return taps;
  }
  constexpr double kA = -0.75;
  const auto near = [&](ValueId v) {  // ((a + 2) v - (a + 3)) v^2 + 1
    const ValueId line = b.binary(Op::kSub, b.binary(Op::kMul, v, kA + 2), kA + 3);
    return b.binary(Op::kAdd, b.mul(b.mul(line, v), v), 1.0);
  };
  const auto far = [&](ValueId v) {  // a ((v - 5) v + 8) v - 4 a, for 1 <= v < 2
    const ValueId square = b.binary(Op::kAdd, b.mul(b.binary(Op::kSub, v, 5.0), v), 8.0);
    return b.binary(Op::kMul, b.binary(Op::kSub, b.mul(square, v), 4.0), kA);
  };
  taps.push_back(make_tap(b, image, d, b.binary(Op::kSub, first, 1.0), far(b.binary(Op::kAdd, t, 1.0))));
  taps.push_back(make_tap(b, image, d, first, near(t)));
  taps.push_back(make_tap(b, image, d, b.binary(Op::kAdd, first, 1.0), near(u)));
  taps.push_back(make_tap(b, image, d, b.binary(Op::kAdd, first, 2.0), far(b.binary(Op::kAdd, u, 1.0))));
  return taps;
}

// The image at P points of each batch entry: coordinates[d] is [B, P], the result [B, P, C].
ValueId sample(ir::Builder& b, const Image& image, const std::vector<ValueId>& coordinates, Interpolation mode) {
  const size_t rank = image.extents.size();
  std::vector<std::vector<Tap>> taps;
  size_t total = 1;
  for (size_t d = 0; d < rank; ++d) {
    taps.push_back(taps_of(b, image, d, coordinates[d], mode));
    total *= taps[d].size();
  }
  ValueId sum = 0;
  for (size_t n = 0; n < total; ++n) {
    std::vector<ValueId> index;
    ValueId weight = 0;
    size_t rest = n;
    for (size_t d = 0; d < rank; ++d) {
      const Tap& tap = taps[d][rest % taps[d].size()];
      rest /= taps[d].size();
      index.push_back(unsqueeze(b, tap.index, {2}));
      weight = d == 0 ? tap.weight : b.mul(weight, tap.weight);
    }
    const ValueId values = b.emit(Op::kGatherNd, {image.data, b.concat(index, 2)}, {{"batch_dims", int64_t{1}}});
    const ValueId part = b.mul(values, unsqueeze(b, weight, {2}));
    sum = n == 0 ? part : b.add(sum, part);
  }
  return sum;
}

// [-1, 1] to pixels.
ValueId denormalize(ir::Builder& b, ValueId x, int64_t extent, bool align_corners) {
  const auto length = static_cast<double>(extent);
  const ValueId shifted = b.binary(Op::kAdd, x, 1.0);
  if (align_corners) return b.binary(Op::kMul, shifted, (length - 1) / 2);
  return b.binary(Op::kMul, b.binary(Op::kSub, b.binary(Op::kMul, shifted, length), 1.0), 0.5);
}

void grid_sample(NodeContext& ctx) {
  const Shape shape = ctx.shape(0), grid = ctx.shape(1);
  const auto rank = static_cast<int64_t>(shape.size()) - 2;
  if (rank < 1 || grid.size() != shape.size() || grid.back() != rank || grid[0] != shape[0]) {
    ctx.invalid("the grid does not fit the input");
  }
  const DType type = ctx.dtype(0), wide = wide_dtype(type);
  Image image;
  image.data = move_axis(ctx.b, ctx.b.cast(ctx.in(0), wide), 1, rank + 1);
  image.extents.assign(shape.begin() + 2, shape.end());
  image.align_corners = ctx.attr_int("align_corners", 0) != 0;
  const std::string padding = ctx.attr_string("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    ctx.invalid("padding_mode '" + padding + "' is unknown");
  }
  image.outside = padding == "zeros" ? Outside::kZeros : padding == "border" ? Outside::kBorder : Outside::kReflection;
  std::string mode = ctx.attr_string("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") ctx.invalid("mode '" + mode + "' is unknown");
  const Interpolation how = mode == "nearest"  ? Interpolation::kNearest
                            : mode == "linear" ? Interpolation::kLinear
                                               : Interpolation::kCubic;
  Shape out(grid.begin() + 1, grid.end() - 1);
  const int64_t points = element_count(out);
  const ValueId flat = ctx.b.cast(ctx.b.reshape(ctx.in(1), {shape[0], points, rank}), wide);
  std::vector<ValueId> coordinates;
  for (int64_t d = 0; d < rank; ++d) {  // the grid names the last dimension first
    const auto s = static_cast<size_t>(d);
    const ValueId raw = ctx.b.reshape(ctx.b.slice_dim(flat, 2, rank - 1 - d, rank - d), {shape[0], points});
    ValueId x = denormalize(ctx.b, raw, image.extents[s], image.align_corners);
    if (how == Interpolation::kNearest) x = ctx.b.unary(Op::kRound, x);
    // The four taps of cubic interpolation are each moved inside; otherwise the point is.
    const bool move_point = how != Interpolation::kCubic;
    if (image.outside == Outside::kReflection && move_point) x = reflect(ctx.b, image, s, x);
    if (image.outside == Outside::kBorder && move_point) {
      x = clamp(ctx.b, x, 0, static_cast<double>(image.extents[s] - 1));
    }
    coordinates.push_back(x);
  }
  const ValueId y = move_axis(ctx.b, sample(ctx.b, image, coordinates, how), 2, 1);
  out.insert(out.begin(), {shape[0], shape[1]});
  ctx.set(0, ctx.b.cast(ctx.b.reshape(y, out), type));
}

// theta [N, r, r + 1] applied to the points of a regular grid on [-1, 1].
void affine_grid(NodeContext& ctx) {
  const Shape size = ctx.constant_ints(1), theta = ctx.shape(0);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (rank < 1 || theta != Shape{size[0], rank, rank + 1}) ctx.invalid("theta does not fit the size");
  const Shape extents(size.begin() + 2, size.end());
  const bool align = ctx.attr_int("align_corners", 0) != 0;
  const int64_t points = element_count(extents);
  const DType type = ctx.dtype(0);
  std::vector<ValueId> rows;  // x first: the last dimension
  for (int64_t d = rank; d-- > 0;) {
    const int64_t n = extents[static_cast<size_t>(d)];
    std::vector<double> line;
    check_table(ctx, {n});
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<double>(i), length = static_cast<double>(n);
      line.push_back(align ? (n == 1 ? -1 : -1 + 2 * at / (length - 1)) : (2 * at + 1) / length - 1);
    }
    const ValueId along = ctx.b.broadcast(real_constant(ctx.b, type, {n}, line), extents, {d});
    rows.push_back(ctx.b.reshape(along, {1, points}));
  }
  rows.push_back(ctx.b.full(type, {1, points}, 1));
  const ValueId base = ctx.b.transpose(ctx.b.concat(rows, 0), {1, 0});              // [points, r + 1]
  const ValueId moved = ctx.b.matmul(base, ctx.b.transpose(ctx.in(0), {0, 2, 1}));  // [N, points, r]
  Shape to = {size[0]};
  to.insert(to.end(), extents.begin(), extents.end());
  to.push_back(rank);
  ctx.set(0, ctx.b.reshape(moved, to));
}

// Samples columns at learned offsets, then contracts them with the weights.
void deform_conv(NodeContext& ctx) {
  const Shape x = ctx.shape(0), w = ctx.shape(1), offset = ctx.shape(2);
  const auto rank = static_cast<int64_t>(x.size()) - 2;
  if (rank < 1 || w.size() != x.size() || offset.size() != x.size()) ctx.invalid("the operands differ in rank");
  const auto n = static_cast<size_t>(rank);
  const Shape kernel(w.begin() + 2, w.end()), out(offset.begin() + 2, offset.end());
  const Ints strides = ctx.attr_ints("strides", Ints(n, 1)), dilations = ctx.attr_ints("dilations", Ints(n, 1));
  const Ints pads = ctx.attr_ints("pads", Ints(2 * n, 0));
  const int64_t groups = ctx.attr_int("group", 1), og = ctx.attr_int("offset_group", 1);
  const int64_t taps = element_count(kernel), points = element_count(out);
  if (groups < 1 || og < 1 || x[1] % og != 0 || x[1] != w[1] * groups || w[0] % groups != 0 || strides.size() != n ||
      dilations.size() != n || pads.size() != 2 * n || offset[1] != og * taps * rank || offset[0] != x[0]) {
    ctx.invalid("input, weights, offsets and groups do not fit each other");
  }
  Image image;
  image.extents.assign(x.begin() + 2, x.end());
  image.outside = Outside::kZeros;
  Shape grouped = {x[0] * og, x[1] / og};
  grouped.insert(grouped.end(), image.extents.begin(), image.extents.end());
  image.data = move_axis(ctx.b, ctx.b.reshape(ctx.in(0), grouped), 1, rank + 1);
  const ValueId offsets = ctx.b.reshape(ctx.in(2), {x[0] * og, taps, rank, points});
  check_table(ctx, {taps, points});
  std::vector<ValueId> coordinates;
  int64_t taps_left = taps, points_left = points;
  for (size_t d = 0; d < n; ++d) {
    taps_left /= kernel[d];
    points_left = out[d] == 0 ? 0 : points_left / out[d];
    std::vector<double> base;  // [taps, points]
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t p = 0; p < points; ++p) {
        const int64_t k = t / taps_left % kernel[d], o = p / points_left % out[d];
        base.push_back(static_cast<double>(o * strides[d] - pads[d] + k * dilations[d]));
      }
    }
    const auto dim = static_cast<int64_t>(d);
    const ValueId shift = ctx.b.reshape(ctx.b.slice_dim(offsets, 2, dim, dim + 1), {x[0] * og, taps, points});
    const ValueId at = ctx.b.add(shift, real_constant(ctx.b, ctx.dtype(2), {taps, points}, base));
    coordinates.push_back(ctx.b.reshape(at, {x[0] * og, taps * points}));
  }
  ValueId columns = sample(ctx.b, image, coordinates, Interpolation::kLinear);  // [N og, taps points, C / og]
  if (ctx.has(4)) columns = ctx.b.mul(columns, ctx.b.reshape(ctx.in(4), {x[0] * og, taps * points, 1}));
  columns = ctx.b.transpose(columns, {0, 2, 1});
  columns = ctx.b.reshape(columns, {x[0], groups, x[1] / groups * taps, points});
  const ValueId weights = ctx.b.reshape(ctx.in(1), {groups, w[0] / groups, w[1] * taps});
  Shape to = {x[0], w[0]};
  to.insert(to.end(), out.begin(), out.end());
  const ValueId y = ctx.b.reshape(ctx.b.matmul(weights, columns), to);
  ctx.set(0, ctx.has(3) ? ctx.b.add(y, per_channel(ctx.b, ctx.in(3), rank + 2)) : y);
}

// One spatial side of the sampling points of RoiAlign: [R, pooled, samples].
struct Side {
  ValueId low_index, high_index;    // i64
  ValueId low_weight, high_weight;  // zero outside the image and beyond the samples of this region
  ValueId samples;                  // [R]: how many samples this region takes
};

Side roi_side(NodeContext& ctx, ValueId start, ValueId length, int64_t pooled, int64_t most, bool adaptive,
              int64_t extent) {
  ir::Builder& b = ctx.b;
  const int64_t rois = b.shape(start)[0];
  const DType type = b.dtype(start);
  const Shape cube = {rois, pooled, most};
  const auto column = [&](ValueId v) { return b.reshape(v, {rois, 1, 1}); };
  const ValueId bin = b.binary(Op::kDiv, length, static_cast<double>(pooled));
  Side side;
  side.samples = adaptive ? b.unary(Op::kCeil, bin) : b.full(type, {rois}, static_cast<double>(most));
  const ValueId index = b.iota(type, cube, 2), cell = b.iota(type, cube, 1);
  const ValueId within = b.div(b.binary(Op::kAdd, index, 0.5), column(b.binary(Op::kMax, side.samples, 1.0)));
  const ValueId y = b.add(column(start), b.mul(b.add(cell, within), column(bin)));
  const ValueId valid =
      b.binary(Op::kAnd, b.binary(Op::kLt, index, column(side.samples)),
               b.binary(Op::kAnd, b.binary(Op::kGe, y, -1.0), b.binary(Op::kLe, y, static_cast<double>(extent))));
  const ValueId inside = clamp(b, y, 0, static_cast<double>(extent - 1));
  const ValueId low = b.unary(Op::kFloor, inside);
  const ValueId zero = b.scalar(type, 0);
  side.low_index = b.cast(low, DType::kI64);
  side.high_index = b.binary(Op::kMin, b.binary(Op::kAdd, side.low_index, 1.0), static_cast<double>(extent - 1));
  side.high_weight = b.select(valid, b.sub(inside, low), zero);
  side.low_weight = b.select(valid, b.sub(b.scalar(type, 1), b.sub(inside, low)), zero);
  return side;
}

struct RoiBoxes {
  ValueId start_x, start_y, width, height;  // [R]
};

RoiBoxes read_boxes(NodeContext& ctx) {
  const int64_t rois = ctx.shape(1)[0];
  const std::string mode =
      ctx.attr_string("coordinate_transformation_mode", ctx.version() < 16 ? "output_half_pixel" : "half_pixel");
  const bool half = mode == "half_pixel";
  const double scale = ctx.attr_float("spatial_scale", 1);
  const auto edge = [&](int64_t i) {
    const ValueId raw = ctx.b.reshape(ctx.b.slice_dim(ctx.in(1), 1, i, i + 1), {rois});
    const ValueId scaled = ctx.b.binary(Op::kMul, raw, scale);
    return half ? ctx.b.binary(Op::kSub, scaled, 0.5) : scaled;
  };
  RoiBoxes boxes{edge(0), edge(1), 0, 0};
  boxes.width = ctx.b.sub(edge(2), boxes.start_x);
  boxes.height = ctx.b.sub(edge(3), boxes.start_y);
  if (!half) {  // no region is smaller than a pixel
    boxes.width = ctx.b.binary(Op::kMax, boxes.width, 1.0);
    boxes.height = ctx.b.binary(Op::kMax, boxes.height, 1.0);
  }
  return boxes;
}

// Samples that the largest region takes along one side.
int64_t most_samples(NodeContext& ctx, ValueId length, int64_t pooled) {
  double most = 1;
  const ir::Array lengths = ir::to_array(ctx.constant_of(length));
  if (!lengths.real()) ctx.invalid("regions are given by floats");
  for (const double v : lengths.f()) {
    most = std::max(most, std::ceil(v / static_cast<double>(pooled)));
  }
  if (!(most <= 4096)) ctx.invalid("a region is too large");
  return static_cast<int64_t>(most);
}

void roi_align(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const Shape shape = ctx.shape(0);
  const int64_t rois = ctx.rank(1) == 2 ? ctx.shape(1)[0] : -1, rows = ctx.attr_int("output_height", 1),
                columns = ctx.attr_int("output_width", 1), ratio = ctx.attr_int("sampling_ratio", 0);
  const std::string mode = ctx.attr_string("mode", "avg");
  if (shape.size() != 4 || rois < 0 || ctx.shape(1)[1] != 4 || rows < 1 || columns < 1 || ratio < 0 || shape[2] < 1 ||
      shape[3] < 1 || (mode != "avg" && mode != "max")) {
    ctx.invalid("input, regions and attributes do not fit each other");
  }
  const RoiBoxes boxes = read_boxes(ctx);
  const int64_t grid_y = ratio > 0 ? ratio : most_samples(ctx, boxes.height, rows);
  const int64_t grid_x = ratio > 0 ? ratio : most_samples(ctx, boxes.width, columns);
  const Side y = roi_side(ctx, boxes.start_y, boxes.height, rows, grid_y, ratio == 0, shape[2]);
  const Side x = roi_side(ctx, boxes.start_x, boxes.width, columns, grid_x, ratio == 0, shape[3]);
  const ValueId image = b.reshape(move_axis(b, ctx.in(0), 1, 3), {shape[0] * shape[2] * shape[3], shape[1]});
  const ValueId batch = b.reshape(b.cast(ctx.in(2), DType::kI64), {rois, 1, 1, 1, 1});
  // Points are laid out [R, rows, grid_y, columns, grid_x].
  const auto across = [&](ValueId v) { return b.reshape(v, {rois, rows, grid_y, 1, 1}); };
  const auto along = [&](ValueId v) { return b.reshape(v, {rois, 1, 1, columns, grid_x}); };
  const Shape points = {rois, rows, grid_y, columns, grid_x};
  ValueId result = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const bool low_y = corner < 2, low_x = corner % 2 == 0;
    const ValueId row =
        b.add(b.binary(Op::kMul, batch, static_cast<double>(shape[2])), across(low_y ? y.low_index : y.high_index));
    const ValueId place =
        b.add(b.binary(Op::kMul, row, static_cast<double>(shape[3])), along(low_x ? x.low_index : x.high_index));
    const ValueId weight =
        b.mul(across(low_y ? y.low_weight : y.high_weight), along(low_x ? x.low_weight : x.high_weight));
    const ValueId values = b.gather(image, b.broadcast_to(place, points), 0);
    const ValueId part = b.mul(values, unsqueeze(b, weight, {5}));
    result = corner == 0 ? part : b.binary(mode == "avg" ? Op::kAdd : Op::kMax, result, part);
  }
  if (mode == "avg") {
    const ValueId count = b.binary(Op::kMax, b.mul(y.samples, x.samples), 1.0);
    result = b.div(b.reduce("sum", result, {2, 4}), b.reshape(count, {rois, 1, 1, 1}));
  } else {
    // Samples beyond those of this region must not count.
    const auto counted = [&](const Side& side, int64_t cells, int64_t grid) {
      const Shape cube = {rois, cells, grid};
      return b.binary(Op::kLt, b.iota(b.dtype(side.samples), cube, 2), b.reshape(side.samples, {rois, 1, 1}));
    };
    const ValueId mask = b.binary(Op::kAnd, across(counted(y, rows, grid_y)), along(counted(x, columns, grid_x)));
    const ValueId lowest = b.scalar(b.dtype(result), -HUGE_VAL);
    result = b.reduce("max", b.select(unsqueeze(b, mask, {5}), result, lowest), {2, 4});
    result = b.select(b.binary(Op::kEq, result, -HUGE_VAL), b.scalar(b.dtype(result), 0), result);
  }
  ctx.set(0, b.transpose(result, {0, 3, 1, 2}));
}

// Which positions of one side belong to each bin: bool [R, pooled, extent]. Regions are rounded to whole pixels.
ValueId bin_mask(NodeContext& ctx, ValueId rois, int64_t first, int64_t last, int64_t pooled, int64_t extent) {
  ir::Builder& b = ctx.b;
  const int64_t count = b.shape(rois)[0];
  const double scale = ctx.attr_float("spatial_scale", 1);
  const auto edge = [&](int64_t i) {
    const ValueId scaled = b.binary(Op::kMul, b.slice_dim(rois, 1, i, i + 1), scale);
    return b.reshape(b.unary(Op::kFloor, b.binary(Op::kAdd, scaled, 0.5)), {count, 1, 1});
  };
  const ValueId start = edge(first);
  const ValueId length = b.binary(Op::kMax, b.binary(Op::kAdd, b.sub(edge(last), start), 1.0), 1.0);
  const ValueId bin = b.binary(Op::kDiv, length, static_cast<double>(pooled));
  const DType type = b.dtype(rois);
  const ValueId cell = b.iota(type, {1, pooled, 1}, 1), at = b.iota(type, {1, 1, extent}, 2);
  const ValueId low = b.add(start, b.unary(Op::kFloor, b.mul(cell, bin)));
  const ValueId high = b.add(start, b.unary(Op::kCeil, b.mul(b.binary(Op::kAdd, cell, 1.0), bin)));
  return b.binary(Op::kAnd, b.binary(Op::kGe, at, low), b.binary(Op::kLt, at, high));
}

void max_roi_pool(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const Shape shape = ctx.shape(0);
  const Ints pooled = ctx.attr_ints("pooled_shape");
  if (shape.size() != 4 || pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || ctx.rank(1) != 2 ||
      ctx.shape(1)[1] != 5) {
    ctx.invalid("input, regions and pooled_shape do not fit each other");
  }
  const int64_t rois = ctx.shape(1)[0];
  const DType type = ctx.dtype(0);
  const ValueId lowest = b.scalar(type, -HUGE_VAL);
  const ValueId batch = b.cast(b.reshape(b.slice_dim(ctx.in(1), 1, 0, 1), {rois}), DType::kI64);
  const ValueId x = b.gather(ctx.in(0), batch, 0);  // [R, C, H, W]
  const ValueId columns =
      b.reshape(bin_mask(ctx, ctx.in(1), 1, 3, pooled[1], shape[3]), {rois, 1, 1, pooled[1], shape[3]});
  const ValueId rows =
      b.reshape(bin_mask(ctx, ctx.in(1), 2, 4, pooled[0], shape[2]), {rois, 1, pooled[0], shape[2], 1});
  const ValueId across = b.reduce("max", b.select(columns, unsqueeze(b, x, {3}), lowest), {4});  // [R, C, H, PW]
  const ValueId y = b.reduce("max", b.select(rows, unsqueeze(b, across, {2}), lowest), {3});
  ctx.set(0, b.select(b.binary(Op::kEq, y, -HUGE_VAL), b.scalar(type, 0), y));
}

}  // namespace

std::span<const OpHandler> sampling_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "AffineGrid", 20, kAnyVersion, affine_grid},
      OpHandler{"", "DeformConv", 19, kAnyVersion, deform_conv},
      OpHandler{"", "GridSample", 16, kAnyVersion, grid_sample},
      OpHandler{"", "MaxRoiPool", 1, kAnyVersion, max_roi_pool},
      OpHandler{"", "RoiAlign", 10, kAnyVersion, roi_align},
  };
  return kTable;
}

}  // namespace heddle::onnx
