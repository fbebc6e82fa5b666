#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A blocking in the units of the kernels. Rows are micro tiles of a GEMM, output rows of a convolution, 4x4 tiles of
// Winograd. Panels are micro_n columns wide. Micro tiles have at most micro_m rows.
struct Blocking {
  int64_t micro_m, micro_n, rows, panels;
};
Config gemm_config(const GemmDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config conv_config(const ConvDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config planar_config(const ConvDesc& desc, DType compute, const Target& target, const CpuPlanarConfig& choice);
Config winograd_config(const WinogradDesc& desc, const Target& target, const Blocking& blocking);

// Steps of k that are summed in registers before they are added to compensated sums. 0 if k is short or its sums are
// exact, so that no compensation is needed: it would slow short products by a few percent.
int64_t summed_steps(DType compute, int64_t k);

// Heights of micro tiles, the highest first, that together can divide any number of rows.
std::vector<int64_t> common_heights(const Target& target);
// The configuration (product or direct convolution) with a common height of micro tiles that divides `rows`.
Config with_common_height(Config config, int64_t rows, const Target& target);
// The configuration with panels of two vectors, the last of which may be narrow: supports any number of columns.
Config with_wide_panels(Config config, const Target& target, DType compute);

// The configuration (convolution with lanes along pixels) with as many pixels per micro tile as registers hold:
// supports rows of any number of pixels.
Config with_widest_tile(Config config, DType compute, const Target& target);

// Blockings by the cost model; they set `reason`.
Config block_gemm(const GemmDesc& desc, DType compute, const Target& target);
Config block_conv(const ConvDesc& desc, DType compute, const Target& target);
Config block_planar(const ConvDesc& desc, DType compute, const Target& target);
Config block_winograd(const WinogradDesc& desc, const Target& target);

// True if F(4x4, 3x3) is allowed at all.
bool allows_winograd(const tile::WinogradShape& shape);
// True if F(4x4, 3x3) is expected to beat the direct form by a margin; `reason` gives the numbers.
bool prefer_winograd(const tile::WinogradShape& shape, const Target& target, std::string* reason);

}  // namespace heddle::schedule
