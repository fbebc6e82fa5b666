#pragma once

#include <cstddef>
#include <vector>

#include "driver/report/picture_layout.h"

namespace heddle::driver {

constexpr double kPictureGapX = 26, kPictureGapY = 34;  // between boxes of a layer; between layers (minimum)

// The layers of a picture's boxes, and the columns into which the layers are folded.
struct PictureColumns {
  std::vector<std::vector<size_t>> inputs;  // for each box: the boxes that it reads
  std::vector<size_t> layer;                // for each box: its layer
  std::vector<std::vector<size_t>> layers;  // the boxes of each layer
  std::vector<size_t> column;               // for each layer: its column
};

PictureColumns fold_columns(const LayoutRequest& request);

double layer_height(const LayoutRequest& request, const std::vector<size_t>& layer);
double layer_width(const LayoutRequest& request, const std::vector<size_t>& layer);

}  // namespace heddle::driver
