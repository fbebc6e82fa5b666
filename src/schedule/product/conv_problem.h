#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Facts that the schedules of convolutions and windows for all targets read off the graph.

inline constexpr size_t kSpatial = 3;

// Copies per-dimension attributes to the last places of a template's three dimensions.
void place_spatial(const std::vector<int64_t>& from, int64_t (&to)[kSpatial]);
Shape sub_shape(const Shape& shape, size_t first, size_t last);

// True if a convolution's image has the channels before the pixels.
bool is_channels_first(const ir::Node& conv);
// True if each filter has its channels behind its taps.
bool has_channels_last_filters(const ir::Node& conv);
tile::ConvShape conv_shape(const ir::Graph& graph, const ir::Node& node);
// True if every window is one pixel: a plain matrix product.
bool is_pointwise(const tile::ConvShape& shape);
// "56x56 64->64 k3x3 s2 d2"
std::string conv_label(const tile::ConvShape& shape);

// The indices of [N, spatial..., C] at (image, pixel, channel).
std::vector<Index> image_index(IndexPool& pool, const Shape& shape, const Index& image, const Index& pixel,
                               const Index& channel);

// Memory of the images of a convolution or window: pixels at equal distances, each with contiguous channels.
struct ImageMemory {
  int64_t offset = 0, pixel = 0;  // of the first element; distance between pixels
  bool dense(int64_t channels) const { return offset == 0 && pixel == channels; }
};
// `channels` is the first dimension of the channels. Returns nullopt if the distances differ.
std::optional<ImageMemory> image_memory(const Shape& shape, const ValueMemory& memory, size_t channels);

// A window_reduce with the roles of its dimensions: images [0, first), windows [first, last), then channels.
struct WindowProblem {
  WindowDesc desc;
  size_t first = 0, last = 0;

  // The indices of the result at (image, pixel, channel); with desc.rows at (image, line, pixel and channel).
  std::vector<Index> coordinates(IndexPool& pool, const Shape& result, const Index& image, const Index& row,
                                 const Index& col) const;
  std::string label() const;
};
WindowProblem window_problem(const ir::Graph& graph, const ir::Node& node);
// A depthwise convolution as windows over images of all channels; if the channels come first, over images of one
// channel whose rows are pixels.
WindowDesc depthwise_window(const ir::Graph& graph, const ir::Node& node, const tile::ConvShape& shape);

}  // namespace heddle::schedule
