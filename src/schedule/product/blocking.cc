#include "schedule/product/blocking.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "schedule/product/micro_cost.h"

namespace heddle::schedule {
namespace {

// Tasks that let every thread finish at about the same time; one thread needs one.
int64_t wanted_tasks(const Target& target) {
  return target.cpu.threads <= 1 ? 1 : 4 * target.cpu.threads;
}

// The size of a block when `count` units are cut into about `blocks` equal ones.
int64_t even_block(int64_t count, int64_t blocks) {
  return ceil_div(count, std::clamp<int64_t>(blocks, 1, std::max<int64_t>(count, 1)));
}

// Steps of a long k: a block of A and the sums of a task, with their errors, share half of the second-level cache; a
// panel of B stays in the first-level cache while the block passes over it.
Config block_long_gemm(const GemmDesc& desc, DType compute, const Target& target, int64_t steps) {
  const tile::GemmShape& s = desc.shape;
  const int64_t element = static_cast<int64_t>(size_of(compute)), room = target.cpu.l2_bytes / 4;
  const int64_t micro_n = panel_width(target, compute, s.n), panels = tile::panel_count(s.n, micro_n);
  const tile::RowSplit rows = tile::split_rows(s.m, micro_rows(target, desc.words, s.m));
  const int64_t fit = std::max<int64_t>(1, room / (rows.mr * steps * element));
  int64_t block_tiles = even_block(rows.tiles, ceil_div(rows.tiles, fit));
  const int64_t most = std::max<int64_t>(1, room / (2 * block_tiles * rows.mr * micro_n * element));
  const int64_t wanted = wanted_tasks(target), blocks = s.batches() * ceil_div(rows.tiles, block_tiles);
  const int64_t block_panels = even_block(panels, std::max(ceil_div(panels, most), ceil_div(wanted, blocks)));
  if (blocks * ceil_div(panels, block_panels) < wanted) {
    block_tiles = std::min(block_tiles, even_block(rows.tiles, ceil_div(wanted, s.batches() * panels)));
  }
  return gemm_config(desc, compute, target, {rows.mr, micro_n, block_tiles, block_panels});
}

}  // namespace

int64_t summed_steps(DType compute, int64_t k) {
  constexpr int64_t kLongest = 8192, kSteps = 2 * tile::kLongSum;
  return is_float(compute) && k > kLongest ? kSteps : 0;
}

// A block of A is read once for every panel of B, and B once for every block. Where B stays in half of the second-level
// cache, so does the block; where B comes from further away it is to be read once, and A may come from the third-level
// cache (about 2 bytes a cycle; measured 5% better on 128x768x3072 than blocks of half the second level). Tasks are
// made by cutting columns first (weights are then read once in all), rows after that.
Config block_gemm(const GemmDesc& desc, DType compute, const Target& target) {
  const tile::GemmShape& s = desc.shape;
  const int64_t steps = summed_steps(compute, s.k);
  if (steps > 0) return block_long_gemm(desc, compute, target, steps);
  const int64_t element = static_cast<int64_t>(size_of(compute));
  const int64_t micro_n = panel_width(target, compute, s.n);
  const tile::RowSplit rows = tile::split_rows(s.m, micro_rows(target, desc.words, s.m));
  const int64_t panels = tile::panel_count(s.n, micro_n);
  const int64_t tile_bytes = std::max<int64_t>(1, rows.mr * s.k * element);
  const bool small_b = s.k * s.n * element <= target.cpu.l2_bytes / 2;
  const int64_t room = small_b ? target.cpu.l2_bytes / 2 : target.cpu.l2_bytes * 5 / 2;
  const int64_t fit = std::max<int64_t>(1, room / tile_bytes);
  int64_t block_tiles = even_block(rows.tiles, ceil_div(rows.tiles, fit));
  const int64_t wanted = wanted_tasks(target), blocks = s.batches() * ceil_div(rows.tiles, block_tiles);
  int64_t block_panels = even_block(panels, ceil_div(wanted, blocks));
  if (blocks * ceil_div(panels, block_panels) < wanted) {
    block_tiles = even_block(rows.tiles, ceil_div(wanted, s.batches() * panels));
  }
  return gemm_config(desc, compute, target, {rows.mr, micro_n, block_tiles, block_panels});
}

Config gemm_config(const GemmDesc& desc, DType compute, const Target& target, const Blocking& blocking) {
  const tile::GemmShape& s = desc.shape;
  const tile::RowSplit rows = tile::split_rows(s.m, blocking.micro_m);
  constexpr int64_t kFewRows = 4;
  CpuGemmConfig c;
  c.micro_m = rows.mr, c.micro_n = blocking.micro_n;
  tile::GemmShape blocked = s;
  blocked.tiles = rows.tiles, blocked.tall = rows.tall;
  blocked.block_tiles = blocking.rows, blocked.block_panels = blocking.panels;
  c.tile_m = blocking.rows * rows.mr;
  c.tile_n = blocking.panels * c.micro_n;
  Config config;
  config.tasks = blocked.tasks(c.micro_n);
  config.reason = fmt::format("{} rows of A ({} KiB) a block, micro tile {}x{}, {} tasks for {} threads", c.tile_m,
                              c.tile_m * s.k * static_cast<int64_t>(size_of(compute)) >> 10, c.micro_m, c.micro_n,
                              config.tasks, target.cpu.threads);
  config.choice = s.m <= kFewRows ? Choice(CpuGemvConfig{c}) : c;
  return config;
}

int64_t packed_steps(const GemmDesc& desc) {
  constexpr int64_t kSteps = 2 * tile::kLongSum;  // whole words and, widened, a panel of half the first-level cache
  return desc.packed && !desc.packed->in_registers ? kSteps : 0;
}

Config block_packed(const GemmDesc& desc, const Target& target) {
  constexpr int64_t kRows = 8, kRowsOfBytes = 4;
  const PackedWeights& packed = *desc.packed;
  const tile::GemmShape& s = desc.shape;
  Config config;
  if (packed.in_registers) {
    const int64_t width = 2 * micro_limits(target).vector_bytes / static_cast<int64_t>(sizeof(float));
    // Each digit of a row has separate sums in registers.
    const int64_t rows_of_bytes =
        packed.digits > 1 && target.cpu.isa < CpuIsa::kAvx512 ? kRowsOfBytes / 2 : kRowsOfBytes;
    const int64_t most = std::min(packed.digits > 0 ? rows_of_bytes : kRows, micro_limits(target).rows);
    const tile::RowSplit rows = tile::split_rows(s.m, most);
    const int64_t block_panels = even_block(tile::panel_count(s.n, width), ceil_div(wanted_tasks(target), s.batches()));
    config = gemm_config(desc, DType::kF32, target, {rows.mr, width, std::max<int64_t>(rows.tiles, 1), block_panels});
  } else {
    config = block_long_gemm(desc, DType::kF32, target, packed_steps(desc));
  }
  const auto megabytes = [](double bits) { return bits / 8e6; };
  const double elements = static_cast<double>(s.n) * static_cast<double>(s.k);
  config.reason = fmt::format(
      "weights of {} bits in blocks of {} are widened {}: {:.1f} MB are read instead of {:.1f} MB in f32{}; {}",
      packed.bits, packed.block, packed.in_registers ? "in registers" : "a part of a panel at a time",
      megabytes(elements * (static_cast<double>(packed.bits) + 32 / static_cast<double>(packed.block))),
      megabytes(elements * 32),
      packed.digits == 0 ? "" : fmt::format(", rows are rounded to {} bits", 8 * packed.digits), config.reason);
  return config;
}

std::vector<int64_t> common_heights(int64_t most) {
  constexpr int64_t kLow = 12;
  std::vector<int64_t> heights = {most};
  for (int64_t height = std::min(most - 2, kLow); height >= 2; height -= 2) heights.push_back(height);
  return heights;
}

Config with_common_height(Config config, int64_t rows, int64_t most) {
  if (rows <= 1) return config;  // a decoder's step, whose rows do not change
  const std::vector<int64_t> heights = common_heights(most);
  const int64_t height =
      *std::find_if(heights.begin(), heights.end(), [&](int64_t h) { return rows >= ceil_div(rows, h) * (h - 1); });
  if (const auto* found = config.get<CpuConvConfig>()) {
    CpuConvConfig conv = *found;
    conv.micro_m = height;
    config.choice = conv;
  } else {
    CpuGemmConfig gemm = config.as<CpuGemmConfig>();
    gemm.tile_m = ceil_div(gemm.tile_m, height) * height;  // fewer rows could read B once more
    gemm.micro_m = height;
    config.choice = gemm;
  }
  return config;
}

Config with_wide_panels(Config config, const Target& target, DType compute) {
  const int64_t width = 2 * micro_limits(target).vector_bytes / static_cast<int64_t>(size_of(compute));
  const auto widen = [&](auto c) {
    c.micro_n = width;
    c.tile_n = ceil_div(c.tile_n, width) * width;
    config.choice = c;
  };
  if (const auto* gemv = config.get<CpuGemvConfig>()) {
    widen(*gemv);
  } else if (const auto* gemm = config.get<CpuGemmConfig>()) {
    widen(*gemm);
  }
  return config;
}

// The input under a block of output rows stays in a quarter of the second-level cache while the filters stream past it.
Config block_conv(const ConvDesc& desc, DType compute, const Target& target) {
  const tile::ConvShape& s = desc.shape;
  const int64_t element = static_cast<int64_t>(size_of(compute));
  const int64_t micro_n = panel_width(target, compute, s.o);
  const tile::RowSplit rows = tile::split_rows(s.out[2], micro_rows(target, desc.words, s.out[2]));
  const int64_t panels = tile::panel_count(s.o, micro_n);
  int64_t block_rows = s.out[1];
  while (block_rows > 1 && s.block_elements(block_rows, element) * element > target.cpu.l2_bytes / 4) {
    block_rows = ceil_div(block_rows, 2);
  }
  const int64_t wanted = wanted_tasks(target), planes = s.batch * s.groups * s.out[0];
  if (planes * ceil_div(s.out[1], block_rows) < wanted) {
    // Rows of a window's height at least: the rows around a block are copied twice.
    const int64_t least = std::min(s.out[1], 2 * s.kernel[1]);
    block_rows = std::min(block_rows, std::max(least, even_block(s.out[1], ceil_div(wanted, planes))));
  }
  const int64_t blocks = planes * ceil_div(s.out[1], block_rows);
  const int64_t block_panels = even_block(panels, ceil_div(wanted, blocks));
  return conv_config(desc, compute, target, {rows.mr, micro_n, block_rows, block_panels});
}

Config conv_config(const ConvDesc& desc, DType compute, const Target& target, const Blocking& blocking) {
  const tile::ConvShape& s = desc.shape;
  const int64_t element = static_cast<int64_t>(size_of(compute));
  const tile::RowSplit rows = tile::split_rows(s.out[2], blocking.micro_m);
  tile::ConvShape blocked = s;
  blocked.tiles = rows.tiles, blocked.tall = rows.tall;
  blocked.block_rows = blocking.rows, blocked.block_panels = blocking.panels;
  Config config;
  config.choice = CpuConvConfig{blocking.rows, blocking.panels * blocking.micro_n, rows.mr, blocking.micro_n};
  config.tasks = blocked.tasks(blocking.micro_n);
  config.reason = fmt::format("{} output rows ({} KiB of input) stay in L2, micro tile {}x{}, {} tasks for {} threads",
                              blocking.rows, s.block_elements(blocking.rows, element) * element >> 10, rows.mr,
                              blocking.micro_n, config.tasks, target.cpu.threads);
  return config;
}

namespace {

// Vectors of pixels of a micro tile at most. Rows that share lines use a filter several times, so that some filters
// stay in registers.
int64_t most_vectors(const CpuPlanarConfig& c, const MicroLimits& limits) {
  constexpr int64_t kMost = 8, kMostOfRows = 4, kFilters = 4;
  if (c.micro_rows == 1) return std::min(kMost, 2 * limits.rows / c.micro_m);
  return std::min(kMostOfRows, (2 * limits.rows - kFilters) / (c.micro_m * c.micro_rows));
}

// Cycles of a step of k: multiply-adds, their latency, or loads, of which those of pixels span two cache lines and may
// miss the first-level cache.
double planar_step_cycles(int64_t channels, int64_t vectors, const Target& target) {
  constexpr double kLatency = 4, kLoads = 2, kLoop = 1, kMiss = 0.25;
  const double rate = MicroCosts(target).rate();
  const auto m = static_cast<double>(channels), n = static_cast<double>(vectors);
  return std::max({m * n / rate, kLatency, (m + 2 * n + 1) / kLoads}) + kLoop + kMiss * n;
}

// The registers' tile that computes the fewest channels and pixels in vain. One channel has few sums to each load of
// the input, so rows that read the same lines share them.
CpuPlanarConfig planar_micro_tile(const tile::ConvShape& s, int64_t lanes, const Target& target) {
  constexpr int64_t kMostUnrolled = 64;
  const MicroLimits limits = micro_limits(target);
  CpuPlanarConfig best;
  double least = 0;
  for (int64_t m = 1; m <= std::min(s.o, 2 * limits.rows); ++m) {
    CpuPlanarConfig c;
    c.micro_m = m;
    const bool shares = s.o == 1 && s.kernel[1] > 1 && s.dilation[1] == 1 && s.out[1] > 1;
    if (shares && s.kernel[1] * s.kernel[2] <= kMostUnrolled) c.micro_rows = tile::ConvShape::kPlanarRows;
    for (int64_t n = 1; n <= most_vectors(c, limits); ++n) {
      c.micro_n = n * lanes;
      const int64_t tiles = ceil_div(s.o, m) * ceil_div(s.out[2], c.micro_n);
      const double cycles = static_cast<double>(tiles) * planar_step_cycles(m * c.micro_rows, n, target);
      if (best.micro_m == 0 || cycles < least || (cycles == least && m <= limits.rows)) best = c, least = cycles;
    }
  }
  return best;
}

}  // namespace

Config with_widest_tile(Config config, DType compute, const Target& target) {
  const MicroLimits limits = micro_limits(target);
  CpuPlanarConfig c = config.as<CpuPlanarConfig>();
  c.micro_n = most_vectors(c, limits) * limits.vector_bytes / static_cast<int64_t>(size_of(compute));
  config.choice = c;
  return config;
}

// The copy of a block's lines stays in the first-level cache, beside the lines that it comes from, if every line is
// read once, else in a part of the second.
// Blocks are several windows high, since the lines around a block are copied twice.
Config block_planar(const ConvDesc& desc, DType compute, const Target& target) {
  const tile::ConvShape& s = desc.shape;
  const MicroLimits limits = micro_limits(target);
  const int64_t element = static_cast<int64_t>(size_of(compute));
  CpuPlanarConfig c = planar_micro_tile(s, limits.vector_bytes / element, target);
  const bool once = s.o == c.micro_m;
  const int64_t large = target.cpu.l2_bytes / 4, room = once ? target.cpu.l1_bytes * 3 / 8 : target.cpu.l2_bytes / 8;
  const int64_t line = s.c * s.kernel[0] * s.stride[2] * element;  // bytes of the lines above a pixel
  const int64_t least = std::min(s.out[1], s.kernel[1] == 1 ? 1 : 2 * s.kernel[1]);
  const int64_t wanted = wanted_tasks(target), planes = s.batch * s.groups * s.out[0];
  int64_t blocks = ceil_div(s.out[2] * line * s.copied_lines(least), least > 1 ? large : room);
  if (planes * ceil_div(s.out[1], least) * blocks < wanted) blocks = ceil_div(wanted, planes * s.out[1]);
  c.pixels = std::min(s.out[2], ceil_div(even_block(s.out[2], blocks), c.micro_n) * c.micro_n);
  const auto copied = [&](int64_t rows) {
    return s.c * s.kernel[0] * s.copied_lines(rows) * s.reach(2, c.pixels) * element;
  };
  c.rows = s.out[1];
  while (c.rows > least && copied(c.rows) > room) c.rows = std::max(least, ceil_div(c.rows, 2));
  while (c.rows > 1 && copied(c.rows) > large) c.rows = ceil_div(c.rows, 2);
  blocks = planes * ceil_div(s.out[2], c.pixels);
  if (blocks * ceil_div(s.out[1], c.rows) < wanted) {
    c.rows = std::min(c.rows, std::max(least, even_block(s.out[1], ceil_div(wanted, blocks))));
  }
  if (c.micro_rows > 1) c.rows = std::min(s.out[1], ceil_div(c.rows, c.micro_rows) * c.micro_rows);
  return planar_config(desc, compute, target, c);
}

Config planar_config(const ConvDesc& desc, DType compute, const Target& target, const CpuPlanarConfig& choice) {
  tile::ConvShape blocked = desc.shape;
  blocked.block_rows = choice.rows, blocked.block_pixels = choice.pixels;
  Config config;
  config.choice = choice;
  config.tasks = blocked.planar_tasks();
  const int64_t element = static_cast<int64_t>(size_of(compute));
  config.reason = fmt::format(
      "lanes along pixels, {} rows of {} pixels a block ({}), micro tile {}x{}, {} tasks for {} threads", choice.rows,
      choice.pixels,
      desc.direct ? "read in place" : fmt::format("{} KiB copied", blocked.planar_elements(element) * element >> 10),
      choice.micro_m, choice.micro_n * choice.micro_rows, config.tasks, target.cpu.threads);
  return config;
}

// Filters grow fourfold in memory too; past this size a model of such layers would not fit where it did before.
bool allows_winograd(const tile::WinogradShape& s) {
  constexpr int64_t kMaxFilterBytes = 64 << 20;
  return s.c >= 8 && summed_steps(DType::kF32, s.c) == 0 && s.o >= 8 &&
         tile::kWinogradPoints * s.words() * s.o * 4 <= kMaxFilterBytes;
}

// Filters come from memory once a run, which all threads share, and grow fourfold in Winograd's form. So the form pays
// less for threads that share memory, and for cores that start two multiply-adds in a cycle.
bool prefer_winograd(const tile::WinogradShape& s, int64_t elements, const Target& target, std::string* reason) {
  const MicroCosts costs(target);
  const double threads = target.cpu.threads, features = costs.vectors(s.o) / costs.rate();
  const double tiles = static_cast<double>(s.tiles());
  const double pixels = static_cast<double>(s.batch * s.out[0] * s.out[1]);
  const double depth = static_cast<double>(s.c) / static_cast<double>(elements),
               transformed = static_cast<double>(s.words());
  const double word_bytes = 4 * static_cast<double>(s.o);
  const double bytes_per_cycle = target.cpu.model.read_over_copy * target.cpu.copy_gbps / target.cpu.ghz;
  const double direct = 9 * depth * std::max(pixels * features / threads, word_bytes / bytes_per_cycle);
  const double products = tile::kWinogradPoints * tiles * transformed * features;
  const double winograd = std::max((1.08 * products + costs.transforms(tiles, s.words(), s.o)) / threads,
                                   tile::kWinogradPoints * transformed * word_bytes / bytes_per_cycle);
  *reason = fmt::format("{:.2f} of the direct form's {:.0f} kcycles", winograd / direct, direct * 1e-3);
  return allows_winograd(s) && winograd < 0.8 * direct;
}

// The transformed input and the products of a block stay in the second-level cache. Filters that do not stay in the
// third-level cache are read once a block, so blocks are larger then.
Config block_winograd(const WinogradDesc& desc, const Target& target) {
  const tile::WinogradShape& s = desc.shape;
  const int64_t micro_n = panel_width(target, DType::kF32, s.o);
  const int64_t panels = tile::panel_count(s.o, micro_n), max_rows = micro_limits(target).rows;
  const int64_t tile_bytes = tile::kWinogradPoints * 4 * (micro_n + s.channel_stride());
  const int64_t filter_bytes = tile::kWinogradPoints * 4 * s.words() * panels * micro_n;
  const int64_t least = filter_bytes > target.cpu.l3_bytes / 4 ? 48 : 14;
  int64_t block = std::max(least, target.cpu.l2_bytes * 6 / 10 / tile_bytes);
  block = even_block(s.tiles(), ceil_div(s.tiles(), std::min<int64_t>(block, 64)));
  const int64_t wanted = wanted_tasks(target);
  if (ceil_div(s.tiles(), block) * panels < wanted) block = even_block(s.tiles(), ceil_div(wanted, panels));
  const int64_t block_panels = even_block(panels, ceil_div(wanted, ceil_div(s.tiles(), block)));
  return winograd_config(desc, target, {max_rows, micro_n, block, block_panels});
}

Config winograd_config(const WinogradDesc& desc, const Target& target, const Blocking& blocking) {
  const tile::WinogradShape& s = desc.shape;
  const int64_t tile_bytes = tile::kWinogradPoints * 4 * (blocking.micro_n + s.channel_stride());
  const int64_t micro_m = tile::split_rows(blocking.rows, blocking.micro_m).mr;
  tile::WinogradShape blocked = s;
  blocked.block_tiles = blocking.rows, blocked.block_panels = blocking.panels;
  Config config;
  config.choice = CpuWinogradConfig{blocking.rows, blocking.panels * blocking.micro_n, micro_m, blocking.micro_n};
  config.tasks = blocked.tasks(blocking.micro_n);
  config.reason =
      fmt::format("{} tiles of 4x4 a block ({} KiB), micro tile {}x{}, {} tasks for {} threads", blocking.rows,
                  blocking.rows * tile_bytes >> 10, micro_m, blocking.micro_n, config.tasks, target.cpu.threads);
  return config;
}

}  // namespace heddle::schedule
