#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// A channels-last convolution that computes the gradient of another convolution's filters. Its channels are the images
// of the batch, its images are the channels of `image`, and its filters are `gradient`. Layout changes bring both
// operands into this form.
struct FilterGradient {
  ValueId image = 0, gradient = 0;  // [image, spatial..., channel], the latter with the channels of the outputs
  int64_t groups = 1;               // of the other convolution, as of this one
  std::vector<NodeId> views;        // the layout changes, from the operands up
};

// Returns nullopt if `conv` is no such convolution. `may_view(view, reader)` tells whether the kernel of the
// convolution may apply the layout change `view`, which `reader` reads.
std::optional<FilterGradient> filter_gradient(const Graph& graph, NodeId conv,
                                              const std::function<bool(NodeId view, NodeId reader)>& may_view);

}  // namespace heddle::ir
