#include "schedule/product/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "schedule/product/blocking.h"

namespace heddle::schedule {
namespace {

// How far the blocks of a problem reach, in the units of Blocking.
struct Limits {
  int64_t rows, columns;     // of blocks; columns of the problem
  int64_t micro_rows, wide;  // of the target: rows of a micro tile, columns of two vectors
  bool narrow_panels;        // whether a panel of one vector is an alternative
};

// The pick, then each of its choices changed. Whatever the kernels compute stays equal, except the order in which they
// read memory.
std::vector<Blocking> around(const Blocking& pick, const Limits& limits) {
  std::vector<Blocking> found = {pick};
  const auto add = [&](Blocking b) {
    b.rows = std::clamp<int64_t>(b.rows, 1, std::max<int64_t>(limits.rows, 1));
    b.panels = std::clamp<int64_t>(b.panels, 1, std::max<int64_t>(ceil_div(limits.columns, b.micro_n), 1));
    const bool known = std::any_of(found.begin(), found.end(), [&](const Blocking& x) {
      return x.micro_m == b.micro_m && x.micro_n == b.micro_n && x.rows == b.rows && x.panels == b.panels;
    });
    if (!known) found.push_back(b);
  };
  const int64_t all_panels = ceil_div(limits.columns, pick.micro_n);
  for (const int64_t rows : {pick.rows * 2, ceil_div(pick.rows, 2), pick.rows * 4, ceil_div(pick.rows, 4)}) {
    add({pick.micro_m, pick.micro_n, rows, pick.panels});
  }
  for (const int64_t panels : {ceil_div(pick.panels, 2), pick.panels * 2, all_panels, ceil_div(all_panels, 4)}) {
    add({pick.micro_m, pick.micro_n, pick.rows, panels});
  }
  const int64_t width = pick.micro_n == limits.wide ? limits.wide / 2 : limits.wide;
  if (width > pick.micro_n || limits.narrow_panels) {
    add({pick.micro_m, width, pick.rows, ceil_div(pick.panels * pick.micro_n, width)});
  }
  for (const int64_t less : {int64_t{2}, int64_t{4}, limits.micro_rows / 2}) {
    const int64_t micro = limits.micro_rows - less;
    if (micro >= 4 && micro < pick.micro_m) {
      add({micro, pick.micro_n, ceil_div(pick.rows * pick.micro_m, micro), pick.panels});
    }
  }
  add({pick.micro_m, pick.micro_n, pick.rows * 2, all_panels});
  add({pick.micro_m, pick.micro_n, ceil_div(pick.rows, 2), all_panels});
  return found;
}

Limits limits_of(const Target& target, DType compute, int64_t rows, int64_t columns) {
  const MicroLimits micro = micro_limits(target);
  const int64_t lanes = micro.vector_bytes / static_cast<int64_t>(size_of(compute));
  return {rows, columns, micro.rows, 2 * lanes, columns > lanes};
}

template <typename Make>
std::vector<Config> configs_of(const std::vector<Blocking>& blockings, const Make& make) {
  std::vector<Config> configs;
  for (const Blocking& blocking : blockings) {
    Config config = make(blocking);
    const bool known =
        std::any_of(configs.begin(), configs.end(), [&](const Config& other) { return other.choice == config.choice; });
    if (!known) configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace

std::string gemm_operand_text(const ir::Graph& graph, ir::ValueId value, int64_t row, int64_t column) {
  const std::string_view dtype = to_string(graph.dtype(value));
  if (graph.constant_of(value) != nullptr) return fmt::format("{} constant", dtype);
  return fmt::format("{} {}:{}", dtype, row, column);
}

std::string gemm_problem_text(const tile::GemmShape& s, DType compute, const std::string& a, const std::string& b) {
  std::string batch;
  for (const int64_t extent : s.batch) {
    if (extent != 1) batch += fmt::format("{}x", extent);
  }
  return fmt::format("cpu gemm {} {}{}x{}x{}, a {}, b {}", to_string(compute), batch, s.m, s.n, s.k, a, b);
}

std::vector<Config> gemm_candidates(const GemmDesc& desc, DType compute, const Target& target) {
  const Config config = block_gemm(desc, compute, target);
  const auto& pick = config.as<CpuGemmConfig>();
  const Blocking blocking = {pick.micro_m, pick.micro_n, pick.tile_m / pick.micro_m, pick.tile_n / pick.micro_n};
  const int64_t tiles = ceil_div(desc.shape.m, pick.micro_m);
  return configs_of(around(blocking, limits_of(target, compute, tiles, desc.shape.n)),
                    [&](const Blocking& b) { return gemm_config(desc, compute, target, b); });
}

std::vector<Config> conv_candidates(const ConvDesc& desc, DType compute, const Target& target) {
  const Config config = block_conv(desc, compute, target);
  const auto& pick = config.as<CpuConvConfig>();
  const Blocking blocking = {pick.micro_m, pick.micro_n, pick.rows, pick.tile_n / pick.micro_n};
  std::vector<Blocking> found = around(blocking, limits_of(target, compute, desc.shape.out[1], desc.shape.o));
  // Rows of a block are rows of the image, whatever the micro tile's height.
  for (Blocking& b : found) {
    if (b.micro_m != blocking.micro_m) b.rows = blocking.rows;
  }
  return configs_of(found, [&](const Blocking& b) { return conv_config(desc, compute, target, b); });
}

std::vector<Config> planar_candidates(const ConvDesc& desc, DType compute, const Target& target) {
  std::vector<Config> configs = {block_planar(desc, compute, target)};
  const auto pick = configs.front().as<CpuPlanarConfig>();
  const MicroLimits limits = micro_limits(target);
  const int64_t lanes = limits.vector_bytes / static_cast<int64_t>(size_of(compute));
  const auto add = [&](CpuPlanarConfig c) {
    c.rows = std::clamp<int64_t>(c.rows, 1, desc.shape.out[1]);
    c.pixels = std::clamp<int64_t>(c.pixels, 1, desc.shape.out[2]);
    Config config = planar_config(desc, compute, target, c);
    const bool known =
        std::any_of(configs.begin(), configs.end(), [&](const Config& x) { return x.choice == config.choice; });
    if (!known) configs.push_back(std::move(config));
  };
  for (const int64_t rows : {pick.rows * 2, ceil_div(pick.rows, 2)}) {
    CpuPlanarConfig c = pick;
    c.rows = rows;
    add(c);
  }
  CpuPlanarConfig c = pick;
  c.pixels = ceil_div(pick.pixels, 2 * pick.micro_n) * pick.micro_n;
  add(c);
  // Fewer channels and more pixels a micro tile.
  c = pick;
  c.micro_m = ceil_div(pick.micro_m, 2), c.micro_n = std::min<int64_t>(8, 2 * limits.rows / c.micro_m) * lanes;
  if (c.micro_m < pick.micro_m && c.micro_n > pick.micro_n) add(c);
  return configs;
}

std::vector<Config> winograd_candidates(const WinogradDesc& desc, const Target& target) {
  const Config config = block_winograd(desc, target);
  const auto& pick = config.as<CpuWinogradConfig>();
  const int64_t micro_m = micro_limits(target).rows;
  std::vector<Blocking> found = around({micro_m, pick.micro_n, pick.tiles, pick.tile_n / pick.micro_n},
                                       limits_of(target, DType::kF32, desc.shape.tiles(), desc.shape.o));
  // Products of a block that outgrow the second-level cache are worth no trial; half a panel halves the reuse.
  std::erase_if(found, [&](const Blocking& b) { return b.rows > 2 * pick.tiles || b.micro_n < pick.micro_n; });
  return configs_of(found, [&](const Blocking& b) { return winograd_config(desc, target, b); });
}

}  // namespace heddle::schedule
