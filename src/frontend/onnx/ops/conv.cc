#include <algorithm>
#include <array>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/lowering/window.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

Shape spatial_of(NodeContext& ctx, size_t i) {
  const Shape& shape = ctx.shape(i);
  if (shape.size() < 3) ctx.invalid("the operands need a batch, channels and at least one spatial dimension");
  return {shape.begin() + 2, shape.end()};
}

ValueId with_bias(NodeContext& ctx, ValueId y, size_t bias) {
  if (!ctx.has(bias)) return y;
  return ctx.b.add(y, per_channel(ctx.b, ctx.in(bias), ctx.b.rank(y)));
}

void conv(NodeContext& ctx) {
  const Shape spatial = spatial_of(ctx, 0), kernel = spatial_of(ctx, 1);
  const Window w = read_window(ctx, spatial, kernel);
  if (w.kernel != kernel) ctx.invalid("kernel_shape differs from the weights' shape");
  const ValueId y = ctx.b.emit(Op::kConv, {ctx.in(0), ctx.in(1)},
                               {{"strides", w.strides},
                                {"low", w.low},
                                {"high", w.high},
                                {"dilations", w.dilations},
                                {"lhs_dilations", Ints(spatial.size(), 1)},
                                {"groups", ctx.attr_int("group", 1)},
                                {"layout", "nchw"}});
  ctx.set(0, with_bias(ctx, y, 2));
}

// Weights [C, O/groups, k...] of a transposed convolution as those of the convolution that computes it:
// [O, C/groups, k...] with the kernel turned round.
ValueId turned_weights(NodeContext& ctx, int64_t groups) {
  const Shape shape = ctx.shape(1);
  const auto rank = static_cast<int64_t>(shape.size());
  if (groups < 1 || shape[0] % groups != 0) ctx.invalid("the channels do not split into groups");
  Shape split = {groups, shape[0] / groups, shape[1]}, to = {shape[1] * groups, shape[0] / groups};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  to.insert(to.end(), shape.begin() + 2, shape.end());
  const ValueId moved = move_axis(ctx.b, ctx.b.reshape(ctx.in(1), split), 2, 1);
  return ctx.b.emit(Op::kReverse, {ctx.b.reshape(moved, to)}, {{"dims", int_range(rank - 2, 2)}});
}

// The padding of a transposed convolution, which auto_pad and output_shape may decide.
void place_output(NodeContext& ctx, Window& w, const Shape& spatial, const Ints& extra) {
  const std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  Ints wanted = ctx.attr_ints("output_shape");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (wanted.empty() && !same) return;
  if (!wanted.empty() && wanted.size() < spatial.size()) ctx.invalid("output_shape lacks a spatial dimension");
  if (wanted.size() > spatial.size()) wanted.erase(wanted.begin(), wanted.end() - static_cast<int>(spatial.size()));
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t extent = wanted.empty() ? spatial[d] * w.strides[d] : wanted[d];
    const int64_t total = w.strides[d] * (spatial[d] - 1) + extra[d] + w.span(d) - extent;
    const int64_t padding = wanted.empty() ? std::max<int64_t>(total, 0) : total;
    const int64_t half = (padding - (padding < 0 ? 1 : 0)) / 2;  // rounded down
    w.low[d] = mode == "SAME_UPPER" ? half : padding - half;
    w.high[d] = padding - w.low[d];
  }
}

void conv_transpose(NodeContext& ctx) {
  const Shape spatial = spatial_of(ctx, 0), kernel = spatial_of(ctx, 1);
  Window w = read_window(ctx, spatial, kernel);
  if (w.kernel != kernel) ctx.invalid("kernel_shape differs from the weights' shape");
  const int64_t groups = ctx.attr_int("group", 1);
  const Ints extra = ctx.attr_ints("output_padding", Ints(spatial.size(), 0));
  if (extra.size() != spatial.size()) ctx.invalid("output_padding has another number of dimensions");
  place_output(ctx, w, spatial, extra);
  Ints low, high;
  for (size_t d = 0; d < spatial.size(); ++d) {
    low.push_back(w.span(d) - 1 - w.low[d]);
    high.push_back(w.span(d) - 1 - w.high[d] + extra[d]);
  }
  const ValueId y = ctx.b.emit(Op::kConv, {ctx.in(0), turned_weights(ctx, groups)},
                               {{"strides", Ints(spatial.size(), 1)},
                                {"low", low},
                                {"high", high},
                                {"dilations", w.dilations},
                                {"lhs_dilations", w.strides},
                                {"groups", groups},
                                {"layout", "nchw"}});
  ctx.set(0, with_bias(ctx, y, 2));
}

// A depthwise causal convolution along the last dimension; the state holds the k - 1 newest elements.
void causal_conv_with_state(NodeContext& ctx) {
  const Shape shape = ctx.shape(0), kernel = ctx.shape(1);
  if (shape.size() != 3 || kernel.size() != 3 || kernel[1] != 1)
    ctx.unsupported("only [N,C,L] by [C,1,K] is supported");
  const int64_t history = kernel[2] - 1;
  const DType type = ctx.dtype(0);
  const ValueId state = ctx.has(3) ? ctx.in(3) : ctx.b.full(type, {shape[0], shape[1], history}, 0);
  const std::array parts = {state, ctx.in(0)};
  const ValueId x = ctx.b.concat(parts, 2);
  const ValueId y = ctx.b.emit(Op::kConv, {x, ctx.in(1)},
                               {{"strides", Ints{1}},
                                {"low", Ints{0}},
                                {"high", Ints{0}},
                                {"dilations", Ints{1}},
                                {"lhs_dilations", Ints{1}},
                                {"groups", shape[1]},
                                {"layout", "nchw"}});
  const ValueId sum = with_bias(ctx, y, 2);
  const std::string activation = ctx.attr_string("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") ctx.invalid("activation '" + activation + "' is unknown");
  ctx.set(0, silu ? ctx.b.mul(sum, ctx.b.sigmoid(sum)) : sum);
  ctx.set(1, ctx.b.slice_dim(x, 2, shape[2], shape[2] + history));
}

// Adds blocks of columns into an image: each (tap, block) pair has a fixed place, or none in the padding.
void col_to_im(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const Shape image = ctx.constant_ints(1);
  const Ints block = ctx.constant_ints(2);
  const size_t n = image.size();
  const Ints strides = ctx.attr_ints("strides", Ints(n, 1)), dilations = ctx.attr_ints("dilations", Ints(n, 1));
  const Ints pads = ctx.attr_ints("pads", Ints(2 * n, 0));
  const int64_t taps = element_count(block), pixels = element_count(image);
  if (shape.size() != 3 || block.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n ||
      taps == 0 || shape[1] % taps != 0) {
    ctx.invalid("image, block and columns do not fit each other");
  }
  Shape blocks;
  for (size_t d = 0; d < n; ++d) {
    const int64_t room = image[d] + pads[d] + pads[n + d] - dilations[d] * (block[d] - 1) - 1;
    if (strides[d] < 1 || room < 0) ctx.invalid("the block does not fit the image");
    blocks.push_back(room / strides[d] + 1);
  }
  const int64_t count = element_count(blocks);
  if (count != shape[2]) ctx.invalid(fmt::format("there are {} columns, {} expected", shape[2], count));
  check_table(ctx, {taps, count});
  Ints places;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t l = 0; l < count; ++l) {
      int64_t place = 0, stride = 1, tap = t, at = l;
      for (size_t d = n; d-- > 0;) {
        const int64_t x = at % blocks[d] * strides[d] + tap % block[d] * dilations[d] - pads[d];
        place = x < 0 || x >= image[d] || place < 0 ? -1 : place + x * stride;
        stride *= image[d];
        tap /= block[d];
        at /= blocks[d];
      }
      places.push_back(place < 0 ? pixels : place);
    }
  }
  const int64_t channels = shape[1] / taps, rows = shape[0] * channels;
  const ValueId x = ctx.b.reshape(ctx.in(0), {rows, taps * count});
  const ValueId index = ctx.b.broadcast_to(ctx.b.ints(places), {rows, taps * count});
  const ValueId zero = ctx.b.full(ctx.dtype(0), {rows, pixels + 1}, 0);  // the last place takes what falls outside
  const ValueId sum = ctx.b.emit(Op::kScatterElements, {zero, index, x}, {{"dim", int64_t{1}}, {"reduction", "add"}});
  Shape to = {shape[0], channels};
  to.insert(to.end(), image.begin(), image.end());
  ctx.set(0, ctx.b.reshape(ctx.b.slice_dim(sum, 1, 0, pixels), to));
}

}  // namespace

std::span<const OpHandler> conv_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "CausalConvWithState", 27, kAnyVersion, causal_conv_with_state},
      OpHandler{"", "Col2Im", 18, kAnyVersion, col_to_im},
      OpHandler{"", "Conv", 1, kAnyVersion, conv},
      OpHandler{"", "ConvTranspose", 1, kAnyVersion, conv_transpose},
  };
  return kTable;
}

}  // namespace heddle::onnx
