#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/lowering/window.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

// A pooling node: its window with padding that reaches as far as the last output does.
struct Pool {
  Shape spatial, out;
  Window window;  // low and high as the attributes say
  Ints reach;     // high padding that the outputs read
};

Pool read_pool(NodeContext& ctx) {
  Pool p;
  const Shape shape = ctx.shape(0);
  if (shape.size() < 3) ctx.invalid("the input needs a batch, channels and at least one spatial dimension");
  p.spatial.assign(shape.begin() + 2, shape.end());
  if (!ctx.has_attr("kernel_shape")) ctx.invalid("attribute 'kernel_shape' is missing");
  p.window = read_window(ctx, p.spatial);
  for (size_t d = 0; d < p.spatial.size(); ++d) {
    if (p.window.low[d] < 0 || p.window.high[d] < 0) ctx.invalid("the padding of a pool must not be negative");
  }
  p.out = window_extents(ctx, p.window, p.spatial, ctx.attr_int("ceil_mode", 0) != 0);
  for (size_t d = 0; d < p.spatial.size(); ++d) {
    const int64_t end = (p.out[d] - 1) * p.window.strides[d] + p.window.span(d);
    p.reach.push_back(std::max<int64_t>(0, end - p.spatial[d] - p.window.low[d]));
  }
  return p;
}

Ints with_batch(const Ints& spatial, int64_t fill) {
  Ints all = {fill, fill};
  all.insert(all.end(), spatial.begin(), spatial.end());
  return all;
}

ValueId window_reduce(NodeContext& ctx, const Pool& p, const std::string& kind, ValueId x) {
  return ctx.b.emit(Op::kWindowReduce, {x},
                    {{"kind", kind},
                     {"window", with_batch(p.window.kernel, 1)},
                     {"strides", with_batch(p.window.strides, 1)},
                     {"low", with_batch(p.window.low, 0)},
                     {"high", with_batch(p.reach, 0)},
                     {"dilations", with_batch(p.window.dilations, 1)}});
}

// The counts of one dimension are computed at import.
constexpr int64_t kMaxCounts = int64_t{1} << 27;

// How many elements each window counts along one dimension. With padding included, what lies beyond the padding that
// the attributes ask for (reached in ceil mode) is still not counted.
std::vector<double> counts_along(const Pool& p, size_t d, bool include_pad) {
  std::vector<double> counts;
  const int64_t first = include_pad ? -p.window.low[d] : 0;
  const int64_t last = p.spatial[d] + (include_pad ? p.window.high[d] : 0);
  const int64_t step = p.window.dilations[d];
  if (p.out[d] > kMaxCounts) {
    fail(ErrorCode::kOutOfMemory, "AveragePool", fmt::format("its result has the extent {}", p.out[d]),
         "Reduce the input's shape");
  }
  for (int64_t o = 0; o < p.out[d]; ++o) {
    // Taps below a position: those of an arithmetic progression.
    const int64_t start = o * p.window.strides[d] - p.window.low[d];
    const auto taps_before = [&](int64_t position) {
      return position <= start ? 0 : std::min(p.window.kernel[d], (position - start - 1) / step + 1);
    };
    const int64_t count = taps_before(last) - taps_before(first);
    counts.push_back(static_cast<double>(std::max<int64_t>(count, 1)));
  }
  return counts;
}

void average_pool(NodeContext& ctx) {
  const Pool p = read_pool(ctx);
  const DType type = ctx.dtype(0), wide = wide_dtype(type);
  const bool include_pad = ctx.attr_int("count_include_pad", 0) != 0;
  ValueId y = window_reduce(ctx, p, "sum", ctx.b.cast(ctx.in(0), wide));
  const int64_t rank = static_cast<int64_t>(p.out.size()) + 2;
  double uniform = 1;
  std::optional<ValueId> count;  // per window, if windows differ
  for (size_t d = 0; d < p.out.size(); ++d) {
    std::vector<double> counts = counts_along(p, d, include_pad);
    const bool same = std::all_of(counts.begin(), counts.end(), [&](double c) { return c == counts[0]; });
    if (counts.empty()) continue;
    if (same) {
      uniform *= counts[0];
      continue;
    }
    Shape shape(static_cast<size_t>(rank), 1);
    shape[d + 2] = p.out[d];
    const ValueId own = real_constant(ctx.b, wide, shape, std::move(counts));
    count = count ? ctx.b.mul(*count, own) : own;
  }
  y = count ? ctx.b.div(y, ctx.b.binary(Op::kMul, *count, uniform)) : ctx.b.binary(Op::kDiv, y, uniform);
  ctx.set(0, ctx.b.cast(y, type));
}

// Positions in the flattened input of the first maximum of each window. The windows are gathered dimension by
// dimension into [N, C, outputs..., taps].
ValueId max_positions(NodeContext& ctx, const Pool& p, bool column_major) {
  const auto n = static_cast<int64_t>(p.spatial.size());
  const Shape shape = ctx.shape(0);
  const DType type = ctx.dtype(0);
  const ValueId lowest = ctx.b.reduce("max", ctx.b.full(type, {0}, 0), {0});
  ValueId x = ctx.b.pad(ctx.in(0), lowest, with_batch(p.window.low, 0), with_batch(p.reach, 0));
  Ints perm = {0, 1}, taps_last;
  for (int64_t d = 0; d < n; ++d) {  // [..., in_d, ...] -> [..., out_d, kernel_d, ...]
    const auto s = static_cast<size_t>(d);
    Ints at;
    check_table(ctx, {p.out[s], p.window.kernel[s]});
    for (int64_t o = 0; o < p.out[s]; ++o) {
      for (int64_t k = 0; k < p.window.kernel[s]; ++k) {
        at.push_back(o * p.window.strides[s] + k * p.window.dilations[s]);
      }
    }
    x = ctx.b.gather(x, int_constant(ctx.b, {p.out[s], p.window.kernel[s]}, std::move(at)), 2 + 2 * d);
    perm.push_back(2 + 2 * d);
    taps_last.push_back(3 + 2 * d);
  }
  perm.insert(perm.end(), taps_last.begin(), taps_last.end());
  Shape out = {shape[0], shape[1]};
  out.insert(out.end(), p.out.begin(), p.out.end());
  Shape windows = out;
  windows.push_back(element_count(p.window.kernel));
  x = ctx.b.reshape(ctx.b.transpose(x, perm), windows);
  ValueId tap = ctx.b.emit(Op::kArgReduce, {x}, {{"kind", "max"}, {"dim", n + 2}, {"last", int64_t{0}}});
  const auto index = [&](int64_t dim) { return ctx.b.iota(DType::kI64, out, dim); };
  const auto times = [&](ValueId v, int64_t f) { return ctx.b.binary(Op::kMul, v, static_cast<double>(f)); };
  ValueId position = times(ctx.b.add(times(index(0), shape[1]), index(1)), element_count(p.spatial));
  Ints strides(p.spatial.size(), 1);
  for (size_t d = 1; d < p.spatial.size(); ++d) {
    const size_t to = column_major ? d : p.spatial.size() - 1 - d, from = column_major ? d - 1 : to + 1;
    strides[to] = strides[from] * p.spatial[from];
  }
  for (size_t d = p.spatial.size(); d-- > 0;) {
    const auto kernel = static_cast<double>(p.window.kernel[d]);
    const ValueId k = ctx.b.binary(Op::kRem, tap, kernel);
    tap = ctx.b.binary(Op::kDiv, tap, kernel);
    const ValueId start = times(index(static_cast<int64_t>(d) + 2), p.window.strides[d]);
    const ValueId at = ctx.b.add(start, times(k, p.window.dilations[d]));
    const ValueId inside = ctx.b.binary(Op::kSub, at, static_cast<double>(p.window.low[d]));
    position = ctx.b.add(position, times(inside, strides[d]));
  }
  return position;
}

void max_pool(NodeContext& ctx) {
  const Pool p = read_pool(ctx);
  ctx.set(0, window_reduce(ctx, p, "max", ctx.in(0)));
  if (ctx.wants(1)) ctx.set(1, max_positions(ctx, p, ctx.attr_int("storage_order", 0) != 0));
}

// (sum |x|^p)^(1/p) of what `sum` adds up.
template <typename Sum>
ValueId p_norm(NodeContext& ctx, int64_t p, const Sum& sum) {
  const ValueId magnitude = ctx.b.unary(Op::kAbs, ctx.in(0));
  if (p == 1) return sum(magnitude);
  if (p == 2) return ctx.b.unary(Op::kSqrt, sum(square(ctx.b, magnitude)));
  const ValueId total = sum(ctx.b.binary(Op::kPow, magnitude, static_cast<double>(p)));
  return ctx.b.binary(Op::kPow, total, 1 / static_cast<double>(p));
}

// A real number before opset 2.
int64_t exponent_of(NodeContext& ctx) {
  if (ctx.version() >= 2) return ctx.attr_int("p", 2);
  const double p = ctx.attr_float("p", 2);
  if (p < 1 || p > 1 << 20 || p != std::floor(p)) ctx.unsupported(fmt::format("p = {} is no positive whole number", p));
  return static_cast<int64_t>(p);
}

void lp_pool(NodeContext& ctx) {
  const Pool p = read_pool(ctx);
  ctx.set(0, p_norm(ctx, exponent_of(ctx), [&](ValueId v) { return window_reduce(ctx, p, "sum", v); }));
}

Ints spatial_dims(NodeContext& ctx) {
  if (ctx.rank(0) < 2) ctx.invalid("the input needs a batch and channels");
  return int_range(ctx.rank(0) - 2, 2);
}

void global_average_pool(NodeContext& ctx) {
  ctx.set(0, ctx.b.mean(ctx.in(0), spatial_dims(ctx), true));
}

void global_max_pool(NodeContext& ctx) {
  ctx.set(0, ctx.b.reduce("max", ctx.in(0), spatial_dims(ctx), true));
}

void global_lp_pool(NodeContext& ctx) {
  const Ints dims = spatial_dims(ctx);
  ctx.set(0, p_norm(ctx, exponent_of(ctx), [&](ValueId v) { return ctx.b.reduce("sum", v, dims, true); }));
}

// Puts each value at the position that MaxPool found it; the positions count in the tensor that the window implies,
// which an explicit output shape surrounds.
void max_unpool(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  if (shape.size() < 3 || ctx.shape(1) != shape) ctx.invalid("values and positions must have one shape [N,C,...]");
  const Shape spatial(shape.begin() + 2, shape.end());
  const Window w = read_window(ctx, spatial);
  Shape inner = {shape[0], shape[1]};
  for (size_t d = 0; d < spatial.size(); ++d) {
    inner.push_back((spatial[d] - 1) * w.strides[d] - w.low[d] - w.high[d] + w.kernel[d]);
    if (inner.back() < 0) ctx.invalid("the padding is larger than the result");
  }
  const int64_t count = element_count(shape), places = element_count(inner);
  const ValueId zero = ctx.b.full(ctx.dtype(0), {places}, 0);
  const ValueId flat =
      ctx.b.emit(Op::kScatterElements, {zero, ctx.b.reshape(ctx.in(1), {count}), ctx.b.reshape(ctx.in(0), {count})},
                 {{"dim", int64_t{0}}, {"reduction", "none"}});
  const ValueId y = ctx.b.reshape(flat, inner);
  if (!ctx.has(2)) return ctx.set(0, y);
  const Shape wanted = ctx.constant_ints(2);
  Ints high;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted.size() != inner.size() || wanted[d] < inner[d]) ctx.invalid("output_shape is smaller than the result");
    high.push_back(wanted[d] - inner[d]);
  }
  ctx.set(0, ctx.b.pad(y, ctx.b.scalar(ctx.dtype(0), 0), Ints(inner.size(), 0), high));
}

}  // namespace

std::span<const OpHandler> pool_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "AveragePool", 1, kAnyVersion, average_pool},
      OpHandler{"", "GlobalAveragePool", 1, kAnyVersion, global_average_pool},
      OpHandler{"", "GlobalLpPool", 1, kAnyVersion, global_lp_pool},
      OpHandler{"", "GlobalMaxPool", 1, kAnyVersion, global_max_pool},
      OpHandler{"", "LpPool", 1, kAnyVersion, lp_pool},
      OpHandler{"", "MaxPool", 1, kAnyVersion, max_pool},
      OpHandler{"", "MaxUnpool", 9, kAnyVersion, max_unpool},
  };
  return kTable;
}

}  // namespace heddle::onnx
