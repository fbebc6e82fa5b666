#include "schedule/product/cuda/depthwise_wgrad.h"

#include <algorithm>
#include <cstddef>

#include "base/divide.h"
#include "schedule/product/cuda/reduce.h"
#include "schedule/product/cuda/tile.h"
#include "target/argument_block.h"
#include "tile/core/cuda_window.h"

namespace heddle::schedule {
namespace {

using Wgrad = DepthwiseWgradConfig;

constexpr int kWgradThreads = 192, kWgradBlocks = 2;  // of a block; blocks of an SM

struct Extents {
  int64_t taps_y, taps_x, columns, lines;  // columns: of an image; lines: rows of outputs of all images
};
Extents extents_of(const ProductTask& task) {
  const tile::GemmImageArgs& i = task.product.a.image;
  return {i.window[1], i.window[2], i.size[2], int64_t{i.images} * i.out[1]};
}

int shared_bytes(const ProductTask& task, const Wgrad& c) {
  const Extents e = extents_of(task);
  return static_cast<int>(e.taps_y * e.taps_x * c.width * c.pieces * c.rows * int64_t{sizeof(float)});
}

// Whether threads with so many channels have too many values (sums, ring, a column of pixels, loads under way) or too
// long a text: all taps in each turn of the ring. What ptxas compiles without spilling.
bool too_wide(const ProductTask& task, int64_t width) {
  constexpr int64_t kMostValues = 142, kMostUnrolled = 1300;
  const Extents e = extents_of(task);
  const int64_t stride = task.product.a.image.stride[2], ring = ceil_div(e.taps_x + stride - 1, stride);
  const int64_t words = ceil_div(width * static_cast<int64_t>(size_of(task.product.multiply_a)), 4);
  const int64_t values = width * (task.product.m + ring + e.taps_y) + words * (e.taps_y * stride + 1);
  return values > kMostValues || task.product.m * width * ring > kMostUnrolled;
}

// The rows of outputs of one part of k, at most.
int64_t part_of(const Extents& e, const Wgrad& c) {
  return ceil_div(e.lines, c.splits);
}

double predict_us(const ProductTask& task, const Wgrad& c, const GpuTarget& target) {
  const Product& p = task.product;
  const Extents e = extents_of(task);
  const auto stride = static_cast<double>(p.a.image.stride[2]), width = static_cast<double>(c.width);
  const auto taps_y = static_cast<double>(e.taps_y), taps_x = static_cast<double>(e.taps_x);
  // Instructions of a thread for one column of pixels: products, conversions and loads.
  constexpr double kLoad = 3, kStep = 10, kSchedulers = 4, kLanes = 32;
  const double products = taps_y * taps_x * width / stride;
  const double column = products + (taps_y + 1 / stride) * (width + kLoad) + kStep / stride;
  const double start = (taps_y * stride + taps_x) * (width + kLoad) + 60;  // of a row
  const double instructions = static_cast<double>(e.columns) * column + start;
  const double blocks = static_cast<double>(ceil_div(p.n, int64_t{c.width} * c.pieces)) * c.splits;
  const double rows = static_cast<double>(ceil_div(part_of(e, c), c.rows));  // of a thread
  const double threads = c.pieces * c.rows;
  // A scheduler with few warps waits for the latency of loads at the start of each row.
  const double waves = std::ceil(blocks / (target.sms * kWgradBlocks));
  const double of_sm = std::min(blocks / target.sms, static_cast<double>(kWgradBlocks)) * threads / kLanes;
  constexpr double kMostEfficiency = 0.8, kEfficiencyOfWarp = 0.25;
  const double efficiency = std::min(kMostEfficiency, kEfficiencyOfWarp * of_sm / kSchedulers);
  const double cycles =
      waves * rows *
      (std::max(1.0, of_sm) * instructions / kSchedulers / efficiency + 2 * target.model.window.latency_cycles);
  const auto element = static_cast<double>(size_of(p.multiply_a));
  const double bytes = (static_cast<double>(e.columns) * p.a.image.size[1] * p.a.image.images + p.k) *
                       static_cast<double>(p.n) * element;
  const double partial = 2.0 * sizeof(float) * static_cast<double>(p.m) * static_cast<double>(p.n) * c.splits;
  const auto& mma = target.model.mma;
  return overlapped_us({cycles / (target.model.chip.clock_ghz * 1e3), bytes / mma.memory_per_us}) +
         target.model.window.launch_cycles / (target.model.chip.clock_ghz * 1e3) + mma.reduce_us +
         partial / mma.partial_per_us;
}

class DepthwiseWgradFamily : public Family {
 public:
  std::string_view name() const override { return Wgrad::kName; }
  std::optional<OperandView::Form> summed_windows() const override { return OperandView::Form::kChannelWindows; }
  std::string refuse(const ProductTask&, const GpuTarget&) const override { return {}; }

  std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const override {
    const Product& p = task.product;
    std::vector<CudaCandidate> found;
    for (const int width : {8, 4, 2, 1}) {
      const int64_t piece_bytes = width * static_cast<int64_t>(size_of(p.multiply_a));
      // A power of two divides all places if it divides the union of their bits.
      const int64_t places = p.n | p.a.image.pixel | p.b.k | p.a.offset | p.b.offset;
      if (places % width != 0 || piece_bytes > kCopyBytes || (width > 1 && too_wide(task, width))) continue;
      const int64_t pieces = p.n / width;
      for (const int64_t most : {16, 32, 64}) {
        Wgrad c;
        c.width = width;
        c.pieces = static_cast<int>(ceil_div(pieces, ceil_div(pieces, most)));
        for (const int threads : {kWgradThreads / 2, kWgradThreads}) {
          c.rows = static_cast<int>(std::clamp<int64_t>(threads / c.pieces, 1, p.k));
          add_splits(found, task, c, target);
        }
      }
    }
    return found;
  }

  KernelLaunches launches(const ProductTask& task, const Config& config, const GpuTarget& target) const override {
    const Product& p = task.product;
    const Wgrad& c = config.as<Wgrad>();
    const PartialSums sums{p.m, p.n, 1};
    const tile::GemmImageArgs& i = p.a.image;
    const Extents e = extents_of(task);
    tile::DepthwiseWgradArgs args{};
    args.p_row = sums.row(), args.p_split = sums.part();
    args.channels = static_cast<int32_t>(p.n);
    args.image_pixel = i.pixel, args.gradient_pixel = static_cast<int32_t>(p.b.k);
    for (int d = 0; d < 2; ++d) args.in[d] = i.size[d + 1], args.out[d] = i.out[d + 1];
    args.stride_y = i.stride[1], args.low_y = i.before[1];
    args.lines = static_cast<int32_t>(e.lines), args.part = static_cast<int32_t>(part_of(e, c));
    args.steps = static_cast<int32_t>(ceil_div(e.columns, int64_t{i.stride[2]}));
    args.pieces = c.pieces, args.rows = c.rows;
    args.by_rows = tile::GemmDivisor::of(i.out[1]);
    const auto element = static_cast<int64_t>(size_of(p.multiply_a));
    CudaLaunch launch;
    launch.symbol = "gemm";
    launch.block = static_cast<uint32_t>(c.pieces * c.rows);
    launch.grid[0] = static_cast<uint32_t>(ceil_div(p.n, int64_t{c.width} * c.pieces));
    launch.grid[1] = static_cast<uint32_t>(c.splits);
    launch.shared_bytes = static_cast<uint32_t>(shared_bytes(task, c));
    launch.arguments = {argument_bytes(args)};
    launch.pointers = {
        {0, offsetof(tile::DepthwiseWgradArgs, image), static_cast<int>(p.a.operand), p.a.offset * element},
        {0, offsetof(tile::DepthwiseWgradArgs, gradient), static_cast<int>(p.b.operand), p.b.offset * element},
        {0, offsetof(tile::DepthwiseWgradArgs, partial), task.workspace()},
    };
    KernelLaunches result;
    result.workspace_bytes = round_up(int64_t{sizeof(float)} * sums.part() * c.splits, 256);
    result.launches = {std::move(launch), reduce_launch(sums, c.splits, target, task.workspace())};
    return result;
  }

  CudaInstance instance(const ProductTask& task, const Config& config) const override {
    const Product& p = task.product;
    const Wgrad& c = config.as<Wgrad>();
    const tile::GemmImageArgs& i = p.a.image;
    CudaInstance instance;
    instance.headers = {"cuda/window/depthwise_wgrad.h"};
    instance.kernel = "cuda::depthwise_wgrad";
    instance.threads = kWgradThreads, instance.resident = kWgradBlocks;
    instance.tile_m = static_cast<int>(p.m), instance.tile_n = c.width;
    instance.types = {{"In", p.multiply_a, false}};
    instance.sizes = {{{"kWidth", c.width}},
                      {{"kTapsY", i.window[1]}, {"kTapsX", i.window[2]}},
                      {{"kStrideX", i.stride[2]}, {"kLowX", i.before[2]}}};
    instance.arguments = {{CudaInstance::Parameter::kBlock, "args", "DepthwiseWgradArgs"}};
    instance.partial = true;
    return instance;
  }

 private:
  // As many parts as fill the device once or twice, or as a long sum needs.
  static void add_splits(std::vector<CudaCandidate>& found, const ProductTask& task, Wgrad c, const GpuTarget& target) {
    const Product& p = task.product;
    const Extents e = extents_of(task);
    const int64_t blocks = ceil_div(p.n, int64_t{c.width} * c.pieces);
    for (const int waves : {1, 2}) {
      const int64_t wanted = std::max<int64_t>(int64_t{target.sms} * kWgradBlocks * waves / blocks, 1);
      const int64_t part = round_up(ceil_div(e.lines, wanted), c.rows);
      c.splits = static_cast<int>(ceil_div(e.lines, part));
      CudaCandidate candidate{Config{c}};
      candidate.additions = ceil_div(part_of(e, c), c.rows) * p.a.image.out[2];
      if (shared_bytes(task, c) * kWgradBlocks > target.shared_bytes_per_block) {
        candidate.rejected = "its shared memory exceeds the device's";
      } else {
        candidate.config.predicted_us = predict_us(task, c, target);
      }
      found.push_back(std::move(candidate));
    }
  }
};

}  // namespace

const Family& depthwise_wgrad_family() {
  static const DepthwiseWgradFamily family;
  return family;
}

}  // namespace heddle::schedule
