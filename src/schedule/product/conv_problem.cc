#include "schedule/product/conv_problem.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::schedule {

void place_spatial(const std::vector<int64_t>& from, int64_t (&to)[kSpatial]) {
  for (size_t i = 0; i < from.size(); ++i) to[kSpatial - from.size() + i] = from[i];
}

Shape sub_shape(const Shape& shape, size_t first, size_t last) {
  return {shape.begin() + static_cast<int64_t>(first), shape.begin() + static_cast<int64_t>(last)};
}

bool is_channels_first(const ir::Node& conv) {
  return conv.attrs.text("layout") == "nchw";
}

bool has_channels_last_filters(const ir::Node& conv) {
  return conv.attrs.has("filters") && conv.attrs.text("filters") == "ohwi";
}

tile::ConvShape conv_shape(const ir::Graph& graph, const ir::Node& node) {
  const Shape &x = graph.shape(node.inputs[0]), &w = graph.shape(node.inputs[1]);
  const Shape& y = graph.shape(node.outputs[0]);
  tile::ConvShape s;
  s.batch = x[0];
  s.groups = node.attrs.integer("groups");
  const bool ohwi = has_channels_last_filters(node);
  s.c = ohwi ? w.back() : w[1];
  s.o = w[0] / s.groups;
  const size_t first = is_channels_first(node) ? 2 : 1;
  place_spatial(sub_shape(x, first, first + x.size() - 2), s.in);
  place_spatial(sub_shape(y, first, first + y.size() - 2), s.out);
  place_spatial(ohwi ? sub_shape(w, 1, w.size() - 1) : sub_shape(w, 2, w.size()), s.kernel);
  place_spatial(node.attrs.ints("strides"), s.stride);
  place_spatial(node.attrs.ints("dilations"), s.dilation);
  place_spatial(node.attrs.ints("low"), s.low);
  place_spatial(node.attrs.ints("lhs_dilations"), s.lhs_dilation);
  return s;
}

bool is_pointwise(const tile::ConvShape& s) {
  for (int d = 0; d < 3; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.low[d] != 0 || s.lhs_dilation[d] != 1 || s.in[d] != s.out[d]) {
      return false;
    }
  }
  return s.groups == 1;
}

std::vector<Index> image_index(IndexPool& pool, const Shape& shape, const Index& image, const Index& pixel,
                               const Index& channel) {
  std::vector<Index> at = {image};
  for (const Index& i : pool.delinear(pixel, sub_shape(shape, 1, shape.size() - 1))) at.push_back(i);
  at.push_back(channel);
  return at;
}

std::string conv_label(const tile::ConvShape& s) {
  const auto dims = [](const int64_t(&d)[3]) {
    return d[0] > 1 ? fmt::format("{}x{}x{}", d[0], d[1], d[2]) : fmt::format("{}x{}", d[1], d[2]);
  };
  std::string text = fmt::format("{} {}->{}", dims(s.in), s.groups * s.c, s.groups * s.o);
  text += " k" + dims(s.kernel);
  if (s.stride[1] > 1 || s.stride[2] > 1) text += fmt::format(" s{}", std::max(s.stride[1], s.stride[2]));
  if (s.dilation[1] > 1 || s.dilation[2] > 1) text += fmt::format(" d{}", std::max(s.dilation[1], s.dilation[2]));
  if (s.groups > 1) text += fmt::format(" g{}", s.groups);
  return text;
}

std::optional<ImageMemory> image_memory(const Shape& shape, const ValueMemory& memory, size_t channels) {
  ImageMemory found;
  int64_t stride = 1, next = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (memory.place != nullptr) found.offset += memory.place->start[d] * stride;
    const bool is_pixel = d < channels && found.pixel == 0 && shape[d] != 1;
    if (is_pixel) found.pixel = next = stride;
    if (shape[d] != 1 && stride != next) return std::nullopt;
    next = shape[d] == 1 ? next : stride * shape[d];
    stride *= memory.shape[d];
  }
  if (found.pixel == 0) found.pixel = element_count(sub_shape(shape, channels, shape.size()));
  return found;
}

WindowDesc depthwise_window(const ir::Graph& graph, const ir::Node& node, const tile::ConvShape& s) {
  WindowDesc desc;
  desc.filters = true;
  desc.x = graph.dtype(node.inputs[0]), desc.w = graph.dtype(node.inputs[1]);
  desc.rows = is_channels_first(node);
  desc.channels = desc.rows ? s.groups : 1;
  desc.shape.batch = s.batch * desc.channels, desc.shape.c = s.groups / desc.channels;
  std::copy(s.in, s.in + 3, desc.shape.in);
  std::copy(s.out, s.out + 3, desc.shape.out);
  std::copy(s.kernel, s.kernel + 3, desc.shape.kernel);
  std::copy(s.stride, s.stride + 3, desc.shape.stride);
  std::copy(s.dilation, s.dilation + 3, desc.shape.dilation);
  std::copy(s.low, s.low + 3, desc.shape.low);
  return desc;
}

WindowProblem window_problem(const ir::Graph& graph, const ir::Node& node) {
  const Shape &x = graph.shape(node.inputs[0]), &y = graph.shape(node.outputs[0]);
  const auto &window = node.attrs.ints("window"), &strides = node.attrs.ints("strides");
  // Dimensions without a window before the windowed ones are images, behind them channels.
  WindowProblem p;
  p.first = x.size();
  for (size_t d = 0; d < x.size(); ++d) {
    if (window[d] != 1 || strides[d] != 1 || x[d] != y[d] || node.attrs.ints("low")[d] != 0) {
      p.first = std::min(p.first, d), p.last = d + 1;
    }
  }
  if (p.first >= p.last) p.first = p.last = x.size();
  p.desc.x = graph.dtype(node.inputs[0]);
  p.desc.kind = node.attrs.text("kind");
  tile::WindowShape& s = p.desc.shape;
  s.batch = element_count(sub_shape(x, 0, p.first));
  s.c = element_count(sub_shape(x, p.last, x.size()));
  place_spatial(sub_shape(x, p.first, p.last), s.in);
  place_spatial(sub_shape(y, p.first, p.last), s.out);
  place_spatial(sub_shape(window, p.first, p.last), s.kernel);
  place_spatial(sub_shape(strides, p.first, p.last), s.stride);
  place_spatial(sub_shape(node.attrs.ints("dilations"), p.first, p.last), s.dilation);
  place_spatial(sub_shape(node.attrs.ints("low"), p.first, p.last), s.low);
  return p;
}

std::vector<Index> WindowProblem::coordinates(IndexPool& pool, const Shape& result, const Index& image,
                                              const Index& row, const Index& col) const {
  const size_t column = desc.rows ? last - 1 : last;
  std::vector<Index> at = pool.delinear(image, sub_shape(result, 0, first));
  for (const Index& i : pool.delinear(row, sub_shape(result, first, column))) at.push_back(i);
  for (const Index& i : pool.delinear(col, sub_shape(result, column, result.size()))) at.push_back(i);
  return at;
}

std::string WindowProblem::label() const {
  const tile::WindowShape& s = desc.shape;
  return fmt::format("{} pool {}x{}x{} k{}x{}", desc.kind, s.in[1], s.in[2], s.c, s.kernel[1], s.kernel[2]);
}

}  // namespace heddle::schedule
