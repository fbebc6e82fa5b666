#include "schedule/product/cuda/filter_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/divide.h"
#include "schedule/product/conv_problem.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::schedule {
namespace {

using Form = OperandView::Form;

constexpr int64_t kStrip = tile::kGemmRowBytes / 2;  // channels of a box of 16-bit numbers

// The other convolution, whose filters have the gradient. Its strides are the dilations of the given one, whose results
// are its taps.
tile::ConvShape other_convolution(const ir::Graph& graph, const ir::Node& conv, const ir::FilterGradient& gradient) {
  tile::ConvShape s = conv_shape(graph, conv);
  std::swap(s.batch, s.c);
  std::swap(s.kernel, s.out);
  std::swap(s.stride, s.dilation);
  s.groups = gradient.groups;
  return s;
}

bool has_depthwise_filters(const tile::ConvShape& s) {
  return s.groups > 1 && s.c == 1 && s.o == 1;
}

// Products in the text of a depthwise kernel, for each channel of a thread: all taps in each turn of its ring.
int64_t unrolled(const tile::ConvShape& s) {
  return s.taps() * ceil_div(s.kernel[2] + s.stride[2] - 1, s.stride[2]);
}

std::string depthwise_obstacle(const tile::ConvShape& s, DType type) {
  constexpr int64_t kMostTaps = 49, kMostStride = 4, kMostUnrolled = 1300;
  if (type != DType::kF16 && type != DType::kBF16 && type != DType::kF32) return "a type that is not f32, f16 or bf16";
  if (s.taps() > kMostTaps) return "more taps than a thread has registers for";
  if (unrolled(s) > kMostUnrolled) return "a text that is too long";
  if (std::max(s.stride[1], s.stride[2]) > kMostStride) return "strides above 4";
  if (s.dilation[1] != 1 || s.dilation[2] != 1) return "dilated filters";
  return {};
}

// What TMA and wgmma need.
std::string dense_obstacle(const tile::ConvShape& s, DType type, const GpuTarget& target) {
  constexpr int64_t kMostPlace = 127, kMostStride = 8, kLeastChannels = 32, kPiece = kCopyBytes / 2;
  if (!target.has_wgmma()) return "the device has no wgmma";
  if (type != DType::kF16 && type != DType::kBF16) return "windows are gathered of 16-bit numbers";
  if (s.c < kLeastChannels) return "few channels leave most of a box empty";
  if (s.c % kPiece != 0 || s.o % kPiece != 0) return "pixels are no whole 16 bytes long";
  if (s.groups > 1 && s.c % kStrip != 0) return "groups of channels that are no whole boxes";
  for (size_t d = 1; d < kSpatial; ++d) {
    const int64_t last = (s.out[d] - 1) * s.stride[d] - s.low[d] - (s.in[d] - 1);
    if (s.low[d] > kMostPlace || std::abs(last) > kMostPlace || s.stride[d] > kMostStride ||
        (s.kernel[d] - 1) * s.dilation[d] > kMostPlace) {
      return "strides, padding or windows beyond TMA's";
    }
  }
  return {};
}

tile::GemmImageArgs image_of(const tile::ConvShape& s, int64_t pixel) {
  const auto i = [](int64_t v) { return static_cast<int32_t>(v); };
  tile::GemmImageArgs a{};
  a.group = s.c;
  a.images = i(s.batch), a.channels = i(s.c), a.pixel = i(pixel);
  for (size_t d = 0; d < kSpatial; ++d) {
    a.size[d] = i(s.in[d]), a.out[d] = i(s.out[d]), a.window[d] = i(s.kernel[d]);
    a.stride[d] = i(s.stride[d]), a.dilation[d] = i(s.dilation[d]), a.before[d] = i(s.low[d]);
  }
  return a;
}

std::optional<ir::FilterGradient> gradient_in(const ir::Graph& graph, const ir::Group& group) {
  const auto inside = [&](ir::NodeId view, ir::NodeId) {
    return std::find(group.nodes.begin(), group.nodes.end(), view) != group.nodes.end();
  };
  return ir::filter_gradient(graph, group.anchor, inside);
}

std::optional<ImageMemory> memory_of_pixels(const ir::Graph& graph, ir::ValueId value, const ValueMemory& memory) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const Shape& shape = graph.shape(value);
  if (element_count(memory.shape) > kMost) return std::nullopt;
  return image_memory(shape, memory, shape.size() - 1);
}

}  // namespace

std::string filter_gradient_obstacle(const ir::Graph& graph, const ir::Node& conv, const ir::FilterGradient& gradient,
                                     const GpuTarget& target) {
  const DType type = graph.dtype(gradient.image);
  if (graph.dtype(gradient.gradient) != type) return "operands of two types";
  const tile::ConvShape s = other_convolution(graph, conv, gradient);
  if (s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return "windows of three dimensions";
  if (*std::min_element(std::begin(s.low), std::end(s.low)) < 0) return "a cropped image";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t image = element_count(graph.shape(gradient.image)),
                results = element_count(graph.shape(gradient.gradient));
  if (image == 0 || results == 0 || std::max(image, results) > kMost) return "operands beyond 2^31 elements, or empty";
  return has_depthwise_filters(s) ? depthwise_obstacle(s, type) : dense_obstacle(s, type, target);
}

std::string filter_gradient_placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                                               const ir::Placement& place) {
  const auto found = gradient_in(graph, group);
  if (!found || (value != found->image && value != found->gradient)) return {};
  return memory_of_pixels(graph, value, {place.shape, &place}) ? ""
                                                               : "its pixels would lie at different distances there";
}

std::optional<ir::FilterGradient> filter_gradient_of(const ContractionBuilder& builder) {
  const ir::Graph& graph = builder.graph();
  const auto found = gradient_in(graph, builder.group());
  if (!found) return found;
  for (const ir::ValueId value : {found->image, found->gradient}) {
    if (!memory_of_pixels(graph, value, builder.memory_of(value))) return std::nullopt;
  }
  const std::string why = filter_gradient_obstacle(graph, builder.anchor(), *found, builder.target().gpu());
  return why.empty() ? found : std::nullopt;
}

ScheduledGroup schedule_cuda_filter_gradient(ContractionBuilder& builder, const ir::FilterGradient& gradient) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  const tile::ConvShape s = other_convolution(graph, node, gradient);
  const DType type = graph.dtype(gradient.image);
  const bool depthwise = has_depthwise_filters(s);
  builder.desc().compute = *contraction_compute(type, type, graph.dtype(node.outputs[0]));
  const int64_t pixels = s.batch * s.out[1] * s.out[2], channels = s.groups * s.o;
  // Rows of a dense gradient are padded to whole boxes of channels.
  const int64_t padded = depthwise ? 1 : round_up(s.c, kStrip);

  Product p;
  p.m = s.taps() * padded, p.n = depthwise ? channels : s.o, p.k = pixels, p.batch = depthwise ? 1 : s.groups;
  p.multiply_a = p.multiply_b = type;
  p.a.form = depthwise ? Form::kChannelWindows : Form::kSummedWindows;
  p.a.dtype = p.b.dtype = type;
  const ImageMemory image = *memory_of_pixels(graph, gradient.image, builder.memory_of(gradient.image)),
                    results = *memory_of_pixels(graph, gradient.gradient, builder.memory_of(gradient.gradient));
  p.a.image = image_of(s, image.pixel);
  p.a.offset = image.offset, p.b.offset = results.offset;
  p.a.operand = builder.input(gradient.image);
  p.b.operand = builder.input(gradient.gradient);
  p.b.row = 1, p.b.k = results.pixel, p.b.depth = pixels;
  if (p.batch > 1) p.b.batch = {{p.batch, s.o}};

  const Shape& y = graph.shape(node.outputs[0]);
  const Shape taps = sub_shape(y, 1, y.size() - 1);
  std::optional<Index> channel;
  builder.make_epilogue(p.batch, p.m, p.n, 8,
                        [&](IndexPool& pool, const Index& group, const Index& row, const Index& column) {
                          const Index tap = pool.div(row, padded);
                          channel = pool.mod(row, padded);
                          std::vector<Index> at = {*channel};
                          for (const Index& i : pool.delinear(tap, taps)) at.push_back(i);
                          at.push_back(pool.add(pool.scale(group, s.o), column));
                          return at;
                        });
  if (padded != s.c && !depthwise) builder.desc().epilogue.bounds.push_back({*channel, s.c});
  const double operations = 2.0 * static_cast<double>(pixels) * static_cast<double>(s.taps() * s.c * channels);
  return finish_cuda_gemm(builder, std::move(p), "filter gradient " + conv_label(s), operations);
}

}  // namespace heddle::schedule
