#include "frontend/onnx/lowering/window.h"

#include <algorithm>

namespace heddle::onnx {
namespace {

constexpr int64_t kLimit = int64_t{1} << 28;  // products with any extent stay far from overflow

ir::Ints spatial_attr(const NodeContext& ctx, std::string_view name, size_t count, int64_t fallback, int64_t least) {
  ir::Ints values = ctx.attr_ints(name);
  if (values.empty()) values.assign(count, fallback);
  const bool fits = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v < kLimit; });
  if (values.size() != count || !fits) {
    ctx.invalid(fmt::format("{} = [{}] does not fit {} spatial dimensions", name, fmt::join(values, ","), count));
  }
  return values;
}

}  // namespace

Window read_window(const NodeContext& ctx, const Shape& spatial, ir::Ints kernel) {
  const size_t n = spatial.size();
  Window w;
  w.kernel = ctx.has_attr("kernel_shape") ? spatial_attr(ctx, "kernel_shape", n, 1, 1) : std::move(kernel);
  if (w.kernel.size() != n) ctx.invalid("the kernel has another number of spatial dimensions than the input");
  w.strides = spatial_attr(ctx, "strides", n, 1, 1);
  w.dilations = spatial_attr(ctx, "dilations", n, 1, 1);
  const std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  if (mode == "NOTSET") {
    const ir::Ints pads = spatial_attr(ctx, "pads", 2 * n, 0, -kLimit);
    w.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
    w.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
    return w;
  }
  w.low.assign(n, 0);
  w.high.assign(n, 0);
  if (mode == "VALID") return w;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") ctx.invalid("auto_pad '" + mode + "' is unknown");
  for (size_t d = 0; d < n; ++d) {
    const int64_t out = (spatial[d] + w.strides[d] - 1) / w.strides[d];
    const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[d] + w.span(d) - spatial[d]);
    w.low[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.high[d] = total - w.low[d];
  }
  return w;
}

Shape window_extents(const NodeContext& ctx, const Window& window, const Shape& spatial, bool ceil_mode) {
  Shape out;
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t room = spatial[d] + window.low[d] + window.high[d] - window.span(d);
    if (room < 0) ctx.invalid(fmt::format("spatial dimension {} is smaller than the window", d));
    int64_t extent = room / window.strides[d] + 1;
    const bool begins_inside = extent * window.strides[d] < spatial[d] + window.low[d];
    if (ceil_mode && room % window.strides[d] != 0 && begins_inside) ++extent;
    out.push_back(extent);
  }
  return out;
}

}  // namespace heddle::onnx
