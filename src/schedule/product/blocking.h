#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A blocking in the units of the kernels: rows are micro tiles of a GEMM, output rows of a convolution, tiles of 4x4 of
// Winograd's form; panels are micro_n columns wide. Micro tiles have at most micro_m rows.
struct Blocking {
  int64_t micro_m, micro_n, rows, panels;
};
Config gemm_config(const GemmDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config conv_config(const ConvDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config planar_config(const ConvDesc& desc, DType compute, const Target& target, const CpuPlanarConfig& choice);
Config winograd_config(const WinogradDesc& desc, const Target& target, const Blocking& blocking);

// Steps of k that registers sum before these sums join compensated ones; 0 if k is so short, or its sums so exact, that
// no compensation is needed. It would slow shorter products by a few percent.
int64_t summed_steps(DType compute, int64_t k);

// Heights of micro tiles, the highest first, of which one or another cuts any number of rows.
std::vector<int64_t> common_heights(const Target& target);
// The configuration, of a product or a direct convolution, with micro tiles of one of few heights into which `rows` can
// be cut.
Config with_common_height(Config config, int64_t rows, const Target& target);
// The configuration with panels of two vectors, the last of which may be narrow: for any number of columns.
Config with_wide_panels(Config config, const Target& target, DType compute);

// The configuration, of a convolution with lanes along pixels, with as many pixels a micro tile as registers hold: for
// rows of any number of pixels.
Config with_widest_tile(Config config, DType compute, const Target& target);

// Blockings by the cost model; they set `reason`.
Config block_gemm(const GemmDesc& desc, DType compute, const Target& target);
Config block_conv(const ConvDesc& desc, DType compute, const Target& target);
Config block_planar(const ConvDesc& desc, DType compute, const Target& target);
Config block_winograd(const WinogradDesc& desc, const Target& target);

// Whether F(4x4, 3x3) may be tried at all.
bool allows_winograd(const tile::WinogradShape& shape);
// Whether F(4x4, 3x3) is expected to beat the direct form by a margin; `reason` says by which numbers.
bool prefer_winograd(const tile::WinogradShape& shape, const Target& target, std::string* reason);

}  // namespace heddle::schedule
