#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Block sizes of a product on a CPU, in the units of its kernel. The unit of `rows` is a micro tile of a GEMM, an
// output row of a convolution, or a 4x4 tile of Winograd. A panel is micro_n columns wide. A micro tile has at most
// micro_m rows.
struct Blocking {
  int64_t micro_m, micro_n, rows, panels;
};
Config gemm_config(const GemmDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config conv_config(const ConvDesc& desc, DType compute, const Target& target, const Blocking& blocking);
Config planar_config(const ConvDesc& desc, DType compute, const Target& target, const CpuPlanarConfig& choice);
Config winograd_config(const WinogradDesc& desc, const Target& target, const Blocking& blocking);

// The number of steps along k that are summed in registers before the result is added to a compensated sum. Returns 0
// if no compensation is needed, because k is short or the sums are exact. Compensation would slow down short products
// by a few percent.
int64_t summed_steps(DType compute, int64_t k);

// The heights of micro tiles that shared kernels support, `most` and less, in descending order. For any number of rows,
// there is a height h in the list such that the rows can be divided into micro tiles of h and h - 1 rows.
std::vector<int64_t> common_heights(int64_t most);
// Returns `config`, of a product or direct convolution, with its micro-tile height replaced by a common height h: the
// largest h for which `rows` can be divided into micro tiles of h and h - 1 rows. If `rows` is 1, returns `config`
// unchanged.
Config with_common_height(Config config, int64_t rows, int64_t most);
// Returns `config` with panels that are two vectors wide. The last panel may be narrow, so that the kernel supports any
// number of columns.
Config with_wide_panels(Config config, const Target& target, DType compute);

// Returns `config` with as many pixels per micro tile as fit in registers. `config` must be for a convolution whose
// vector lanes are pixels. The kernel then supports any number of pixels per row.
Config with_widest_tile(Config config, DType compute, const Target& target);

// The number of steps along k for which a panel of packed weights is widened at a time. Returns 0 if the weights are
// widened in registers.
int64_t packed_steps(const GemmDesc& desc);
// The blocking of a product with packed weights.
Config block_packed(const GemmDesc& desc, const Target& target);

// Choose block sizes by the cost model and set `reason`.
Config block_gemm(const GemmDesc& desc, DType compute, const Target& target);
Config block_conv(const ConvDesc& desc, DType compute, const Target& target);
Config block_planar(const ConvDesc& desc, DType compute, const Target& target);
Config block_winograd(const WinogradDesc& desc, const Target& target);

// True if Winograd F(4x4, 3x3) may be used for this shape.
bool allows_winograd(const tile::WinogradShape& shape);
// True if Winograd F(4x4, 3x3) is expected to be clearly faster than the direct convolution, which multiplies
// `elements` channels at a time. Sets `reason` to the numbers compared.
bool prefer_winograd(const tile::WinogradShape& shape, int64_t elements, const Target& target, std::string* reason);

}  // namespace heddle::schedule
