#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Properties of convolutions and windows that the schedules for all targets derive from the graph.

inline constexpr size_t kSpatial = 3;

// Copies per-dimension attributes to the last entries of `to`: templates always have three spatial dimensions.
void place_spatial(const std::vector<int64_t>& from, int64_t (&to)[kSpatial]);
Shape sub_shape(const Shape& shape, size_t first, size_t last);

// True if the channels of a convolution's input image come before the spatial dimensions.
bool is_channels_first(const ir::Node& conv);
// True if the channels of each filter come after its taps.
bool has_channels_last_filters(const ir::Node& conv);
tile::ConvShape conv_shape(const ir::Graph& graph, const ir::Node& node);
// True if every window is a single pixel, so that the convolution is a plain matrix product.
bool is_pointwise(const tile::ConvShape& shape);
// A short label of a convolution: "56x56 64->64 k3x3 s2 d2".
std::string conv_label(const tile::ConvShape& shape);

// The indices of element (image, pixel, channel) in a tensor [N, spatial..., C].
std::vector<Index> image_index(IndexPool& pool, const Shape& shape, const Index& image, const Index& pixel,
                               const Index& channel);

// The memory layout of the images of a convolution or window: pixels at equal distances, each with contiguous channels.
struct ImageMemory {
  int64_t offset = 0, pixel = 0;  // offset of the first element; distance between pixels, in elements
  bool dense(int64_t channels) const { return offset == 0 && pixel == channels; }
};
// `channels` is the first of the channel dimensions. Returns nullopt if the distances between pixels are not all equal.
std::optional<ImageMemory> image_memory(const Shape& shape, const ValueMemory& memory, size_t channels);

// A window_reduce and the roles of its dimensions: [0, first) are images, [first, last) are windows, the others are
// channels.
struct WindowProblem {
  WindowDesc desc;
  size_t first = 0, last = 0;

  // The indices of an element of the result. `row` and `col` are (pixel, channel); with desc.rows, they are (line,
  // pixel and channel).
  std::vector<Index> coordinates(IndexPool& pool, const Shape& result, const Index& image, const Index& row,
                                 const Index& col) const;
  std::string label() const;
};
WindowProblem window_problem(const ir::Graph& graph, const ir::Node& node);
// Describes a depthwise convolution as a window over images with all channels. If channels come first, describes it as
// a window over images of one channel each, whose rows are treated as pixels.
WindowDesc depthwise_window(const ir::Graph& graph, const ir::Node& node, const tile::ConvShape& shape);

}  // namespace heddle::schedule
