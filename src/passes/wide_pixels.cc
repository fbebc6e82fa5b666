#include "passes/wide_pixels.h"

#include <optional>

#include "ir/scalar.h"
#include "passes/emitter.h"

namespace heddle::passes {
namespace {

using ir::Attrs;
using ir::Ints;
using ir::Node;
using ir::Op;
using ir::ValueId;

constexpr int64_t kPieceBytes = 16;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// How the last spatial dimension and the channels become wider pixels: [pixels][channels], or, where many pixels become
// one, [channels][pixels], so that pictures that have their channels first are moved in runs.
struct Widening {
  bool channels_first() const { return pixels >= 8; }

  int64_t pixels = 1;                         // neighbours that become one
  int64_t channels = 0;                       // of each of them, with zeros
  int64_t before = 0, after = 0, stride = 1;  // padding and stride in wide pixels
  int64_t size = 0, window = 0;               // of the image and of the filters in wide pixels
  int64_t skipped = 0;                        // pixels of the first wide one that are before the window
};

// The one that makes the fewest products.
std::optional<Widening> widening(const Node& conv, const Shape& x, const Shape& w, const Shape& y, int64_t bytes) {
  const int64_t stride = conv.attrs.ints("strides").back(), low = conv.attrs.ints("low").back();
  const int64_t dilation = conv.attrs.ints("dilations").back(), channels = x.back(), length = w.back();
  const int64_t size = x[x.size() - 2], out = y[y.size() - 2];
  std::optional<Widening> best;
  for (int64_t pixels = 1; pixels <= stride; ++pixels) {
    if (stride % pixels != 0 || (pixels > 1 && (dilation != 1 || low < 0))) continue;
    Widening wide;
    wide.pixels = pixels, wide.channels = channels;
    while (pixels * wide.channels * bytes % kPieceBytes != 0) ++wide.channels;
    wide.size = ceil_div(size, pixels), wide.stride = stride / pixels;
    if (pixels == 1) {
      wide.before = low, wide.after = conv.attrs.ints("high").back(), wide.window = length;
    } else {
      wide.before = ceil_div(low, pixels), wide.skipped = wide.before * pixels - low;
      wide.window = ceil_div(length + wide.skipped, pixels);
      wide.after = (out - 1) * wide.stride + wide.window - wide.before - wide.size;
      if (wide.after < 0) continue;
    }
    const auto products = [](const Widening& o) { return o.window * o.pixels * o.channels; };
    if (!best || products(wide) <= products(*best)) best = wide;
  }
  return best;
}

// Zeros at the end of each dimension, and `low` of them at the beginning of the last.
ValueId padded(Emitter& e, ValueId x, const Ints& high, int64_t low = 0) {
  Ints before(high.size(), 0);
  before.back() = low;
  const ValueId zero = e.constant(ir::splat(e.dtype(x), {}, 0));
  return e.emit(Op::kPad, {x, zero}, {{"low", before}, {"high", high}, {"mode", std::string("constant")}});
}

ValueId widen_image(Emitter& e, ValueId x, const Widening& wide) {
  Shape shape = e.shape(x);
  const size_t row = shape.size() - 2;
  Ints high(shape.size(), 0);
  high[row] = wide.size * wide.pixels - shape[row], high.back() = wide.channels - shape.back();
  ValueId filled = padded(e, x, high);
  Shape wider = shape;
  wider[row] = wide.size, wider.back() = wide.pixels * wide.channels;
  if (wide.channels_first()) {
    shape[row] = wide.size, shape.back() = wide.pixels, shape.push_back(wide.channels);
    Ints perm = counting(shape.size());
    std::swap(perm[row + 1], perm[row + 2]);
    filled = e.transpose(e.reshape(filled, shape), perm);
  }
  return e.reshape(filled, wider);
}

// [O, C, ..., length] -> [O, wide channels, ..., window]
ValueId widen_filters(Emitter& e, ValueId w, const Widening& wide) {
  Shape shape = e.shape(w);
  const size_t rank = shape.size();
  Ints high(rank, 0);
  high[1] = wide.channels - shape[1];
  high.back() = wide.window * wide.pixels - shape.back() - wide.skipped;
  ValueId result = padded(e, w, high, wide.skipped);
  shape[1] = wide.channels, shape.back() = wide.window;
  shape.push_back(wide.pixels);
  Ints perm = counting(rank);
  perm.insert(perm.begin() + (wide.channels_first() ? 2 : 1), static_cast<int64_t>(rank));
  result = e.transpose(e.reshape(result, shape), perm);
  shape.pop_back();
  shape[1] = wide.pixels * wide.channels;
  return e.reshape(result, shape);
}

bool is_constant(Emitter& e, ValueId v) {
  while (e.is(v, Op::kCast) || e.is(v, Op::kReshape) || e.is(v, Op::kTranspose)) v = e.def(v).inputs[0];
  return e.is(v, Op::kConstant);
}

std::optional<ValueId> widened(Emitter& e, const std::vector<ValueId>& in, const Node& node, const Shape& y) {
  constexpr int64_t kFewest = 2;  // images of one channel lie as they should already
  const auto& attrs = node.attrs;
  const DType type = e.dtype(in[0]);
  const bool halves = type == DType::kF16 || type == DType::kBF16;
  const bool tf32 = type == DType::kF32 && attrs.has("tf32") && attrs.integer("tf32") != 0;
  if (!(halves || tf32) || e.dtype(in[1]) != type || attrs.text("layout") != "nhwc") return {};
  if (attrs.integer("groups") != 1 || !is_constant(e, in[1])) return {};
  for (const int64_t dilation : attrs.ints("lhs_dilations")) {
    if (dilation != 1) return {};
  }
  const Shape &x = e.shape(in[0]), &w = e.shape(in[1]);
  const auto bytes = static_cast<int64_t>(size_of(type));
  if (x.back() < kFewest || x.back() * bytes >= kPieceBytes || element_count(y) == 0 || element_count(x) == 0)
    return {};
  const auto wide = widening(node, x, w, y, bytes);
  if (!wide) return {};
  Attrs changed = attrs;
  const auto set_last = [&](const char* name, int64_t value) {
    Ints values = attrs.ints(name);
    values.back() = value;
    changed.set(name, values);
  };
  set_last("strides", wide->stride), set_last("low", wide->before), set_last("high", wide->after);
  const ValueId image = widen_image(e, in[0], *wide), filters = widen_filters(e, in[1], *wide);
  return e.emit(Op::kConv, {image, filters}, changed);
}

}  // namespace

ir::Graph wide_pixels(const ir::Graph& graph, const PassContext& context) {
  constexpr int kTensorCores = 80;
  if (context.target.kind != TargetKind::kCuda || context.target.cuda.sm < kTensorCores) return graph;
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kConv) return std::nullopt;
    const auto result = widened(e, r(node.inputs), node, graph.shape(node.outputs[0]));
    if (!result) return std::nullopt;
    return std::vector{*result};
  });
}

}  // namespace heddle::passes
