#include "schedule/back_to_back/cpu_cost.h"

#include <algorithm>

#include "base/divide.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/cost.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kCostElement = sizeof(float);

// Bytes that a core's second-level cache, the last-level cache and memory move in the time in which memory copies one.
constexpr double kCachedRate = 1.25;

// A dense window that makes few rows at a time for the next link takes so many times its cycles as a kernel of its own
// (Bolt's chains on 16 cores with 2 MiB of second-level cache each).
constexpr double kRowByRow = 2;

bool is_dense_window(const CpuLink& link) {
  const auto* const conv = link.body().get<ConvDesc>();
  return conv != nullptr && conv->shape.taps() > 1;
}

}  // namespace

CpuChainCosts::CpuChainCosts(const CpuBackToBackDesc& desc, const Target& target)
    : d_(desc), cpu_(target.cpu), micro_(target) {}

double CpuChainCosts::gemm_cycles(const GemmDesc& gemm, const CpuGemmConfig& config, int64_t rows) const {
  const tile::GemmShape& s = gemm.shape;
  const int64_t tiles = ceil_div(rows, config.micro_m);
  const double average = static_cast<double>(rows) / static_cast<double>(tiles);
  double cycles = micro_.tiles(ceil_div(rows, tiles), s.n, config.micro_n, s.k) * average /
                  static_cast<double>(ceil_div(rows, tiles)) * static_cast<double>(tiles);
  if (gemm.a.form != GemmOperand::Form::kDirect) cycles += micro_.packing(rows * s.k);
  return cycles;
}

double CpuChainCosts::conv_cycles(const ConvDesc& conv, const CpuConvConfig& config, int64_t rows) const {
  const tile::ConvShape& s = conv.shape;
  const int64_t tiles = ceil_div(s.out[2], config.micro_m), height = ceil_div(s.out[2], tiles);
  double cycles = static_cast<double>(rows * tiles * s.groups) * micro_.tiles(height, s.o, config.micro_n, s.k());
  if (!conv.direct) cycles += micro_.packing(s.groups * s.block_elements(rows, kCostElement));
  return cycles;
}

double CpuChainCosts::winograd_cycles(const WinogradDesc& winograd, const CpuWinogradConfig& config,
                                      int64_t rows) const {
  const tile::WinogradShape& s = winograd.shape;
  const int64_t tiles = ceil_div(rows, tile::kWinogradOut) * s.tiles_x();
  const int64_t block = std::min(tiles, config.tiles), of_block = ceil_div(block, config.micro_m);
  const double products = tile::kWinogradPoints * static_cast<double>(ceil_div(tiles, block) * of_block) *
                          micro_.tiles(ceil_div(block, of_block), s.o, config.micro_n, s.words());
  return products + micro_.transforms(static_cast<double>(tiles), s.words(), s.o);
}

double CpuChainCosts::window_cycles(const WindowDesc& window, int64_t rows) const {
  const tile::WindowShape& s = window.shape;
  const auto taps = static_cast<double>(s.kernel[0] * s.kernel[1] * s.kernel[2]);
  const double vectors = static_cast<double>(rows * s.out[2] * ceil_div(s.c, micro_.lanes()));
  return vectors * (taps + cpu_.model.access_cycles);
}

// So many rows of a link's map.
double CpuChainCosts::link_cycles(const CpuLink& link, const Config& config, int64_t rows) const {
  const ContractionDesc& c = link.body();
  const int64_t pixels = rows * link.pixels;
  const double cycles = c.visit(
      [&](const GemmDesc& gemm) { return gemm_cycles(gemm, config.as<CpuGemmConfig>(), pixels); },
      [&](const ConvDesc& conv) { return conv_cycles(conv, config.as<CpuConvConfig>(), rows); },
      [&](const WinogradDesc& winograd) { return winograd_cycles(winograd, config.as<CpuWinogradConfig>(), rows); },
      [&](const WindowDesc& window) { return window_cycles(window, rows); }, [](const auto&) { return 0.0; });
  double epilogue = cpu_.model.access_cycles;
  std::vector<ExprId> results;
  for (const auto& store : c.epilogue.stores) results.push_back(store.value);
  visit_exprs(c.epilogue.pool, results, [&](ExprId e) { epilogue += node_cycles(c.epilogue.pool, e); });
  const DType stored = link.desc.operands.at(c.epilogue.stores.at(0).operand).dtype;
  return cycles + micro_.vectors(rows * link.rows.row_bytes / static_cast<int64_t>(size_of(stored))) * epilogue;
}

double CpuChainCosts::weight_bytes(const CpuLink& link) const {
  double bytes = 0;
  for (const Operand& o : link.desc.operands) {
    if (o.constant) bytes += static_cast<double>(element_count(o.shape)) * static_cast<double>(size_of(o.dtype));
  }
  return bytes;
}

double CpuChainCosts::map_bytes(size_t link) const {
  return static_cast<double>(d_.images * d_.links[link].rows.rows * d_.links[link].rows.row_bytes);
}

double CpuChainCosts::saved_bytes() const {
  double bytes = 0;
  for (size_t i = 0; i + 1 < d_.links.size(); ++i) bytes += 2 * map_bytes(i);
  return bytes;
}

double CpuChainCosts::barriers_us(size_t kernels) const {
  return cpu_.threads > 1 ? static_cast<double>(kernels) * cpu_.barrier_us : 0;
}

// Weights that do not stay in the second-level cache are read again in each step.
double CpuChainCosts::one_kernel_us(const CpuChain& chain) const {
  const tile::ChainShape& s = chain.shape;
  double cycles = 0;
  int64_t steps = 0;
  for (int64_t strip = 0; strip < s.strips; ++strip) {
    s.for_parts(strip, [&](int link, auto, auto, tile::RowRange make) {
      if (make.count() <= 0) return;
      const auto i = static_cast<size_t>(link);
      const bool row_by_row = link < s.links - 1 && is_dense_window(d_.links[i]);
      cycles += (row_by_row ? kRowByRow : 1) * link_cycles(d_.links[i], chain.links[i], make.count());
      if (link == s.links - 1) ++steps;
    });
  }
  const auto tasks = static_cast<double>(s.tasks()), threads = static_cast<double>(cpu_.threads);
  const double turns = static_cast<double>(ceil_div(s.tasks(), cpu_.threads));
  double weights = 0;
  for (const CpuLink& link : d_.links) weights += weight_bytes(link);
  const double again =
      weights > static_cast<double>(cpu_.l2_bytes / 2) ? weights * static_cast<double>(s.images * steps) / threads : 0;
  return micro_.microseconds(cycles * static_cast<double>(s.images)) * turns / tasks +
         again / (kCachedRate * cpu_.copy_gbps * 1e3) + barriers_us(1);
}

// What one kernel leaves, the next one reads from as far away as it is large.
double CpuChainCosts::apart_us() const {
  double us = barriers_us(d_.links.size());
  for (size_t i = 0; i < d_.links.size(); ++i) {
    const CpuLink& link = d_.links[i];
    const double cycles = static_cast<double>(d_.images) * link_cycles(link, link.config, link.rows.rows);
    const auto turns = static_cast<double>(ceil_div(link.config.tasks, cpu_.threads));
    us += micro_.microseconds(cycles) * turns / static_cast<double>(std::max<int64_t>(link.config.tasks, 1));
    if (i + 1 == d_.links.size()) break;
    const double bytes = 2 * map_bytes(i);
    const bool is_near = bytes / 2 <= static_cast<double>(cpu_.l2_bytes / 2);
    const bool is_cached = bytes / 2 <= static_cast<double>(cached_bytes(cpu_));
    if (!is_near) us += bytes / ((is_cached ? kCachedRate : 1) * cpu_.copy_gbps * 1e3);
  }
  return us;
}

}  // namespace heddle::schedule
