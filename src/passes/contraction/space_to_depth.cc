#include "passes/contraction/space_to_depth.h"

#include <algorithm>
#include <optional>

#include "base/divide.h"
#include "ir/reference/scalar.h"
#include "passes/rewrite/emitter.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

constexpr int64_t kPieceBytes = 16;

// A spatial dimension of which neighbours become one.
struct Span {
  int64_t pixels = 1;  // so many
  int64_t window = 1;  // of the filters, in wide pixels
  int64_t needed = 0;  // pixels from the beginning of the padding that windows reach
};

// How the last two spatial dimensions (or the only one) and the channels become wider pixels.
struct Widening {
  std::vector<Span> spans;
  int64_t channels = 0;  // of each pixel, with zeros

  int64_t pixels() const {
    int64_t all = 1;
    for (const Span& s : spans) all *= s.pixels;
    return all;
  }
  // Where many pixels of a line become one, their channels come first, so that pictures that have them first are moved
  // in runs.
  bool channels_first() const { return spans.back().pixels >= 8; }
};

std::vector<Span> spans_of(const Attrs& attrs, size_t dim, int64_t out, int64_t length) {
  const int64_t stride = attrs.ints("strides")[dim], dilation = attrs.ints("dilations")[dim];
  std::vector<Span> result;
  for (int64_t pixels = 1; pixels <= stride; ++pixels) {
    if (stride % pixels != 0 || (pixels > 1 && dilation != 1)) continue;
    const int64_t reach = pixels == 1 ? (length - 1) * dilation + 1 : ceil_div(length, pixels) * pixels;
    result.push_back({pixels, ceil_div(length, pixels), (out - 1) * stride + reach});
  }
  return result;
}

// What a convolution costs: a line of a window is one run of memory, of which 128 bytes are read and multiplied at a
// time. TMA takes three times as long for runs that begin within a sector of 32 bytes.
int64_t products(const Widening& wide, int64_t bytes, bool copy_engine) {
  constexpr int64_t kStepBytes = 128, kSectorBytes = 32, kSlower = 3;
  const Span& line = wide.spans.back();
  const int64_t pixel = wide.pixels() * wide.channels * bytes;
  int64_t lines = 1;
  for (const Span& s : wide.spans) lines *= &s == &line ? 1 : s.window;
  return lines * ceil_div(line.window * pixel, kStepBytes) * (copy_engine && pixel % kSectorBytes != 0 ? kSlower : 1);
}

std::optional<Widening> widening(const Node& conv, const Shape& x, const Shape& w, const Shape& y, int64_t bytes,
                                 bool copy_engine) {
  const size_t spatial = x.size() - 2, first = spatial > 1 ? spatial - 2 : 0;
  std::optional<Widening> best;
  const std::vector<Span> one = {Span{}};
  const auto lines = spatial > 1 ? spans_of(conv.attrs, first, y[1 + first], w[2 + first]) : one;
  for (const Span& along : spans_of(conv.attrs, spatial - 1, y[spatial], w.back())) {
    for (const Span& across : lines) {
      Widening wide;
      if (spatial > 1) wide.spans.push_back(across);
      wide.spans.push_back(along);
      wide.channels = x.back();
      for (const int64_t piece : {2 * kPieceBytes, kPieceBytes}) {
        Widening whole = wide;
        while (whole.pixels() * whole.channels * bytes % piece != 0) ++whole.channels;
        if (!best || products(whole, bytes, copy_engine) <= products(*best, bytes, copy_engine)) best = whole;
      }
    }
  }
  return best;
}

ValueId padded(Emitter& e, ValueId x, const Ints& low, const Ints& high) {
  const ValueId zero = e.constant(ir::splat(e.dtype(x), {}, 0));
  return e.emit(Op::kPad, {x, zero}, {{"low", low}, {"high", high}, {"mode", std::string("constant")}});
}

// Joins pixels of spatial dimensions [first, ...) with the channels. `spatial` and `channel` are the first of these
// dimensions and the place of the channels, from which the result's channels are made.
ValueId joined(Emitter& e, ValueId x, const Widening& wide, size_t spatial, size_t channel) {
  const Shape shape = e.shape(x);
  Shape split;
  Ints outer, inner, at_channel;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto place = static_cast<int64_t>(split.size());
    if (d == channel) {
      at_channel.push_back(place);
      split.push_back(shape[d]);
    } else if (d >= spatial && d < spatial + wide.spans.size()) {
      const int64_t pixels = wide.spans[d - spatial].pixels;
      outer.push_back(place), inner.push_back(place + 1);
      split.push_back(shape[d] / pixels), split.push_back(pixels);
    } else {
      outer.push_back(place);
      split.push_back(shape[d]);
    }
  }
  Ints own = inner;
  own.insert(wide.channels_first() ? own.begin() : own.end(), at_channel[0]);
  // The channels stand where they did: second (filters) or last (images).
  Ints perm = outer;
  perm.insert(channel == 1 ? perm.begin() + 1 : perm.end(), own.begin(), own.end());
  Shape result = shape;
  for (size_t i = 0; i < wide.spans.size(); ++i) result[spatial + i] /= wide.spans[i].pixels;
  result[channel] = wide.pixels() * wide.channels;
  return e.reshape(e.transpose(e.reshape(x, split), perm), result);
}

// The image with its padding, as far as windows reach.
ValueId widen_image(Emitter& e, ValueId x, const Attrs& attrs, const Widening& wide, size_t first) {
  const size_t rank = e.shape(x).size();
  Ints low(rank, 0), high(rank, 0), limits = e.shape(x);
  for (size_t i = 0; i < wide.spans.size(); ++i) {
    const size_t d = 1 + first + i;
    low[d] = attrs.ints("low")[first + i];
    const int64_t size = ceil_div(wide.spans[i].needed, wide.spans[i].pixels) * wide.spans[i].pixels - low[d];
    limits[d] = std::min(limits[d], size);
    high[d] = size - limits[d];
  }
  high.back() = wide.channels - limits.back();
  const ValueId cut = e.slice(x, Ints(rank, 0), limits, Ints(rank, 1));
  return joined(e, padded(e, cut, low, high), wide, 1 + first, rank - 1);
}

// [O, C, ...] -> [O, wide channels, ...]
ValueId widen_filters(Emitter& e, ValueId w, const Widening& wide, size_t first) {
  const Shape shape = e.shape(w);
  Ints high(shape.size(), 0);
  high[1] = wide.channels - shape[1];
  for (size_t i = 0; i < wide.spans.size(); ++i) {
    high[2 + first + i] = wide.spans[i].window * wide.spans[i].pixels - shape[2 + first + i];
  }
  return joined(e, padded(e, w, Ints(shape.size(), 0), high), wide, 2 + first, 1);
}

// Constant filters are widened when the model is compiled. Computed filters are widened in each run, so the image must
// be so much larger that their cost does not matter.
bool may_widen(Emitter& e, ValueId filters, ValueId image) {
  constexpr int64_t kLarger = 8;
  return is_constant_view(e.graph(), filters) || kLarger * e.count(filters) <= e.count(image);
}

bool serves(Emitter& e, const std::vector<ValueId>& in, const Node& node, const Shape& y) {
  constexpr int64_t kFewest = 2;  // images of one channel lie as they should already
  const auto& attrs = node.attrs;
  const DType type = e.dtype(in[0]);
  const bool halves = type == DType::kF16 || type == DType::kBF16;
  const bool tf32 = type == DType::kF32 && attrs.has("tf32") && attrs.integer("tf32") != 0;
  const bool same = e.dtype(in[1]) == type, halves_or_tf32 = same && (halves || tf32);
  const bool bytes = (type == DType::kU8 || type == DType::kI8) && e.dtype(in[1]) == DType::kI8;
  if (!(halves_or_tf32 || bytes) || attrs.text("layout") != "nhwc") return false;
  if (attrs.integer("groups") != 1 || !may_widen(e, in[1], in[0])) return false;
  const Ints& holes = attrs.ints("lhs_dilations");
  if (std::any_of(holes.begin(), holes.end(), [](int64_t d) { return d != 1; })) return false;
  const Ints& low = attrs.ints("low");
  if (std::any_of(low.begin(), low.end(), [](int64_t l) { return l < 0; })) return false;
  const Shape& x = e.shape(in[0]);
  const auto element = static_cast<int64_t>(size_of(type));
  const Shape& w = e.shape(in[1]);
  // Products read lines of any length.
  const bool is_product = element_count(w) == w[0] * w[1] && element_count(y) * x.back() == element_count(x) * y.back();
  return x.back() >= kFewest && x.back() * element % kPieceBytes != 0 && !is_product && element_count(y) > 0 &&
         element_count(x) > 0 && element_count(w) > 0;
}

std::optional<ValueId> widened(Emitter& e, const std::vector<ValueId>& in, const Node& node, const Shape& y,
                               bool copy_engine) {
  if (!serves(e, in, node, y)) return {};
  const Attrs& attrs = node.attrs;
  const Shape &x = e.shape(in[0]), &w = e.shape(in[1]);
  const auto wide = widening(node, x, w, y, static_cast<int64_t>(size_of(e.dtype(in[0]))), copy_engine);
  if (!wide) return {};
  const size_t spatial = x.size() - 2, first = spatial - wide->spans.size();
  Attrs changed = attrs;
  Ints strides = attrs.ints("strides"), low = attrs.ints("low"), high = attrs.ints("high");
  for (size_t i = 0; i < wide->spans.size(); ++i) {
    strides[first + i] /= wide->spans[i].pixels;
    low[first + i] = high[first + i] = 0;
  }
  changed.set("strides", strides), changed.set("low", low), changed.set("high", high);
  const ValueId image = widen_image(e, in[0], attrs, *wide, first), filters = widen_filters(e, in[1], *wide, first);
  return e.emit(Op::kConv, {image, filters}, changed);
}

}  // namespace

ir::Graph space_to_depth(const ir::Graph& graph, const PassContext& context) {
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kConv) return std::nullopt;
    const auto result = widened(e, r(node.inputs), node, graph.shape(node.outputs[0]), context.target.gpu().has_tma());
    if (!result) return std::nullopt;
    return std::vector{*result};
  });
}

}  // namespace heddle::passes
