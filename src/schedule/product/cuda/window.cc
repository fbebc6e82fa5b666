// Depthwise convolutions and pooling on a GPU: kernels that slide over channels-last images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/divide.h"
#include "schedule/floor.h"
#include "schedule/product/conv_problem.h"
#include "schedule/product/cuda/contraction.h"
#include "target/argument_block.h"
#include "tile/core/cuda_window.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kMostChannels = 8;

constexpr int64_t kThreads = RegisterTiledWindowConfig::kThreads;
static_assert(RegisterRingWindowConfig::kThreads == kThreads);
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kRegistersOfSm = 65536;  // of an SM

// Instructions of a load but for its conversions, of an epilogue for each element, of a store, and of all else.
constexpr double kWindowLoad = 4.5, kWindowEpilogue = 3.5, kWindowStore = 3, kWindowOverhead = 60;

// Cycles of a SM, or infinity where a thread would need too many registers or too long a text.
double slide_cycles(const WindowDesc& desc, const RegisterTiledWindowConfig& slide, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(desc.x), 1));
  const int64_t taps = s.kernel[1] * s.kernel[2], outputs = slide.down * slide.across;
  const int64_t rows = (slide.down - 1) * s.stride[1] + s.kernel[1];
  const int64_t columns = (slide.across - 1) * s.stride[2] + s.kernel[2];
  const int64_t words = std::max<int64_t>(element / 4, 1);  // registers of a folded value

  constexpr int64_t kMostSteps = 1300, kMostRegisters = 168, kAddresses = 40, kAhead = 2;
  if (outputs * taps * slide.channels > kMostSteps) return kNever;
  const int64_t open = std::min(slide.down, ceil_div(s.kernel[1], s.stride[1]));  // rows of outputs under way
  const int64_t filters = !desc.filters ? 0 : slide.down > 1 ? taps : s.kernel[2];
  const int64_t raw = (kAhead + 1) * columns * std::max<int64_t>(slide.channels * element / 4, 1);
  const int64_t registers = (open * slide.across + filters + 1) * slide.channels * words + raw + kAddresses;
  if (registers > kMostRegisters) return kNever;

  // Issue: loads, conversions, folding, epilogues; a thread alone waits for its own instructions; loads wait for each
  // other as the registers of resident threads allow. Fitted to 170 measured configurations.
  constexpr double kEfficiency = 0.79, kAlone = 3.6, kTail = 0.1, kSchedulers = 4, kLanes = 32;
  const auto& model = target.model.window;
  const auto each = static_cast<double>(slide.channels), pixels = static_cast<double>(rows * columns);
  const double taps_loaded = static_cast<double>(desc.filters ? taps : 0) * (kWindowLoad + each);
  const double folded =
      static_cast<double>(outputs) * (each * (static_cast<double>(taps * words) + kWindowEpilogue) + kWindowStore);
  const double instructions = kWindowOverhead + pixels * (kWindowLoad + each) + taps_loaded + folded;
  const auto threads = static_cast<double>(s.batch * ceil_div(s.out[1], slide.down) * ceil_div(s.out[2], slide.across) *
                                           (s.c / slide.channels)) /
                       target.sms;  // of one SM
  const double issue = threads / kLanes * instructions / kSchedulers / kEfficiency;
  // What rows share comes from the L2, what columns share mostly from the L1.
  const double moved = threads *
                       static_cast<double>((rows * slide.across * s.stride[2] + outputs) * slide.channels * element) /
                       model.l2_per_cycle;
  constexpr int64_t kMostBlocks = 16;
  const auto resident = static_cast<double>(kThreads * std::min(kRegistersOfSm / (registers * kThreads), kMostBlocks));
  const double waves = std::ceil(threads / resident) * resident / threads;  // 1 where the last one is full
  const double flight = threads * pixels / (std::min(resident, threads) * static_cast<double>(kAhead * columns));
  return std::max(issue, moved) * (1 + kTail * (waves - 1)) + flight * model.latency_cycles + model.launch_cycles +
         kAlone * instructions;
}

double ring_cycles(const WindowDesc& desc, const RegisterRingWindowConfig& ring, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(desc.x), 1));
  const int64_t words = std::max<int64_t>(element / 4, 1), pixels = s.stride[2] * (ring.across - 1) + 1;
  constexpr int64_t kMostSteps = 1300, kMostRegisters = 208, kOther = 90, kAhead = 4;
  const int64_t slots = round_up(pixels, kAhead);
  if (2 * slots * ring.across * ring.channels > kMostSteps) return kNever;
  const int64_t registers = (ring.across + slots) * ring.channels * words +
                            kAhead * std::max<int64_t>(ring.channels * element / 4, 1) + kOther;
  if (registers > kMostRegisters) return kNever;

  const auto each = static_cast<double>(ring.channels), across = static_cast<double>(ring.across);
  const auto rows = static_cast<double>(s.kernel[1]), taps = static_cast<double>(s.kernel[2]);
  const double entering = taps + static_cast<double>(pixels + kAhead - 1);  // pixels of a row
  const double tap = (desc.filters ? kWindowLoad + each : 0) + across * each * static_cast<double>(words);
  const double instructions = kWindowOverhead +
                              rows * (kWindowOverhead / 4 + entering * (kWindowLoad + each) + taps * tap) +
                              across * (each * kWindowEpilogue + kWindowStore);
  const auto threads =
      static_cast<double>(s.batch * s.out[1] * ceil_div(s.out[2], ring.across) * (s.c / ring.channels)) /
      target.sms;  // of one SM
  // Pixels are asked for four taps ahead, so that a scheduler has an instruction to issue as often as it has warps:
  // measured with eleven configurations.
  constexpr double kMostEfficiency = 0.79, kEfficiencyOfWarp = 0.055, kSchedulers = 4, kLanes = 32;
  const auto resident = static_cast<double>(kThreads * (kRegistersOfSm / (registers * kThreads)));
  const double efficiency = std::min(kMostEfficiency, kEfficiencyOfWarp * std::min(resident, threads) / kLanes);
  // Neighbouring threads along a row have their common pixels from the L1 where they are in one block.
  const double bytes =
      (rows * across * static_cast<double>(s.stride[2]) + across) * each * static_cast<double>(element);
  return std::max(threads / kLanes * instructions / kSchedulers / efficiency,
                  threads * bytes / target.model.window.l2_per_cycle) +
         target.model.window.launch_cycles;
}

// Pixels that a thread loads for planar.taps taps.
int64_t planar_span(const PlanarWindowConfig& planar, const tile::WindowShape& s) {
  return planar.lead(s.low[2]) + (planar.across - 1) * s.stride[2] + (planar.taps - 1) * s.dilation[2] + 1;
}

// Cycles of an SM for a configuration of tile/kernel/cuda/window/planar.h, or infinity.
double planar_cycles(const WindowDesc& desc, const PlanarWindowConfig& planar, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(desc.x), 1));
  const int64_t words = std::max<int64_t>(element / 4, 1);
  const int64_t pixels = planar_span(planar, s), vectors = ceil_div(pixels, planar.vector);
  constexpr int64_t kMostRegisters = 168, kOther = 40, kMostSteps = 1300;
  const int64_t loaded = vectors * std::max<int64_t>(planar.vector * element / 4, 1);
  const int64_t registers = (planar.across + pixels) * words + (element < 4 ? loaded : 0) + kOther;
  if (planar.across > 1 && (registers > kMostRegisters || planar.across * planar.taps > kMostSteps)) return kNever;

  const auto across = static_cast<double>(planar.across),
             parts = static_cast<double>(ceil_div(s.kernel[2], planar.taps));
  const auto taps = static_cast<double>(s.kernel[2]), rows = static_cast<double>(s.kernel[1]);
  const double loads = rows * parts * static_cast<double>(vectors);
  const double folded = rows * taps * ((desc.filters ? kWindowLoad : 0) + across * static_cast<double>(words));
  const double instructions = kWindowOverhead + loads * kWindowLoad +
                              rows * parts * (static_cast<double>(pixels) + kWindowOverhead / 4) + folded +
                              across * kWindowEpilogue + kWindowStore * ceil_div(planar.across, planar.width());
  const auto threads =
      static_cast<double>(s.batch * s.out[1] * ceil_div(s.out[2], planar.across)) / target.sms;  // of one SM
  constexpr double kMostEfficiency = 0.79, kEfficiencyOfWarp = 0.055, kSchedulers = 4, kLanes = 32, kLine = 128;
  const auto resident = static_cast<double>(kThreads * (kRegistersOfSm / (registers * kThreads)));
  const double efficiency = std::min(kMostEfficiency, kEfficiencyOfWarp * std::min(resident, threads) / kLanes);
  const double issue = threads / kLanes * instructions / kSchedulers / efficiency;
  // The lanes of a load lie as far apart as their outputs, and the L1 gives a line a cycle.
  const auto apart = static_cast<double>(planar.across * s.stride[2] * element);
  const double lines = threads / kLanes * (loads + 1) * std::min(kLanes, std::max(1.0, kLanes * apart / kLine));
  const double read = static_cast<double>(s.stride[2]) * std::min<double>(static_cast<double>(s.stride[1]), rows);
  // A store moves what its lanes write, and where they lie apart the whole sectors: rows of odd length are stored
  // element by element.
  constexpr int64_t kSector = 32;
  const int64_t piece = std::gcd(std::gcd(s.out[2], planar.across), kCopyBytes / element) * element;
  const int64_t stored = planar.across * element / piece * std::max(piece, std::min(kSector, planar.across * element));
  const double moved = threads * (across * read * static_cast<double>(element) + static_cast<double>(stored)) /
                       target.model.window.l2_per_cycle;
  // A thread that is alone waits for one load after the other where a part is rolled, and for its own instructions.
  constexpr double kAlone = 1;
  return std::max({issue, lines, moved}) + target.model.window.latency_cycles + kAlone * instructions +
         target.model.window.launch_cycles;
}

// Whether kernels that count in 32 bits and have two dimensions apply.
bool is_flat(const WindowDesc& desc) {
  const tile::WindowShape& s = desc.shape;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool flat = s.in[0] == 1 && s.out[0] == 1 && s.kernel[0] == 1 && s.low[0] == 0;
  if (!flat) return false;
  const int64_t results = s.batch * s.out[1] * s.out[2] * s.c, read = s.batch * s.in[1] * s.in[2] * s.pitch();
  return results != 0 && read != 0 && results <= kMost && read <= kMost;
}

// Whether kernels that know their windows apply.
bool knows_window(const WindowDesc& desc) {
  return is_flat(desc) && desc.shape.dilation[1] == 1 && desc.shape.dilation[2] == 1;
}

// Whether a thread can load `width` channels at a time.
bool takes_width(const WindowDesc& desc, int64_t width) {
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(desc.x), 1));
  const tile::WindowShape& s = desc.shape;
  const bool begins = s.c % width == 0 && s.pitch() % width == 0 && desc.offset % width == 0;
  return begins && width * element <= kCopyBytes;
}

// Adds a configuration, unless it needs too many registers or too long a text.
void add_config(std::vector<Config>& list, Config config, double cycles, const GpuTarget& target) {
  if (cycles == kNever) return;
  config.predicted_us = cycles / (target.model.chip.clock_ghz * 1e3);
  config.reason += fmt::format(", {:.1f} us predicted", config.predicted_us);
  list.push_back(std::move(config));
}

// Configurations of tile/kernel/cuda/window/register_tiled.h, none where the kernel does not apply.
void add_slides(std::vector<Config>& list, const WindowDesc& desc, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  for (const int64_t width : {8, 4, 2, 1}) {
    if (!takes_width(desc, width)) continue;
    for (const int64_t down : {1, 2, 4, 7}) {
      for (const int64_t across : {1, 2, 4, 7}) {
        if (down >= 2 * s.out[1] || across >= 2 * s.out[2]) continue;
        const RegisterTiledWindowConfig slide{width, down, across};
        Config config{slide};
        config.reason = fmt::format("{} channels of {}x{} outputs a thread", width, down, across);
        add_config(list, std::move(config), slide_cycles(desc, slide, target), target);
      }
    }
  }
}

// The same of tile/kernel/cuda/window/register_ring.h, for windows long enough that pixels serve several turns.
void add_rings(std::vector<Config>& list, const WindowDesc& desc, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  constexpr int64_t kLeastTaps = 5;
  if (s.kernel[2] < kLeastTaps) return;
  for (const int64_t width : {8, 4, 2, 1}) {
    if (!takes_width(desc, width)) continue;
    for (const int64_t across : {4, 8, 12, 16}) {
      if (across >= 2 * s.out[2]) continue;
      const RegisterRingWindowConfig ring{width, across};
      Config config{ring};
      config.reason = fmt::format("{} channels of {} outputs a thread, pixels in a ring", width, across);
      add_config(list, std::move(config), ring_cycles(desc, ring, target), target);
    }
  }
}

// The same of tile/kernel/cuda/window/planar.h: vectors as wide as rows allow, as many taps as registers hold.
void add_planar(std::vector<Config>& list, const WindowDesc& desc, const GpuTarget& target) {
  const tile::WindowShape& s = desc.shape;
  const auto element = static_cast<int64_t>(std::max<size_t>(size_of(desc.x), 1));
  constexpr int64_t kMostPixels = 64;
  for (const int64_t across : {16, 8, 4, 2, 1}) {
    if (across > 1 && across >= 2 * s.out[2]) continue;
    PlanarWindowConfig planar{across, s.kernel[2], kCopyBytes / element};
    const auto divides = [&] { return s.in[2] % planar.vector == 0 && across * s.stride[2] % planar.vector == 0; };
    while (!divides()) planar.vector /= 2;
    // Taps of all parts but the last reach whole vectors.
    const auto step = [&] { return planar.vector / std::gcd(planar.vector, s.dilation[2]); };
    if (planar_span(planar, s) > kMostPixels) {
      const int64_t fit = 1 + (kMostPixels - planar.vector - (across - 1) * s.stride[2]) / s.dilation[2];
      while (planar.vector > 1 && fit < step()) planar.vector /= 2;
      planar.taps = std::max<int64_t>(fit / step() * step(), 1);
    }
    Config config{planar};
    config.reason = fmt::format("{} outputs of a row a thread, {} taps at a time, {} pixels a load", across,
                                planar.taps, planar.vector);
    add_config(list, std::move(config), planar_cycles(desc, planar, target), target);
  }
}

// Every configuration, the model's pick first, and last one output of as many channels as 16 bytes hold and their
// number divides.
std::vector<Config> window_configs(const WindowDesc& desc, const GpuTarget& target) {
  std::vector<Config> configs;
  if (desc.rows) add_planar(configs, desc, target);
  if (!desc.rows && knows_window(desc)) {
    add_slides(configs, desc, target);
    add_rings(configs, desc, target);
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
  if (desc.rows) return configs;
  int64_t width = kMostChannels;
  while (!takes_width(desc, width)) width /= 2;
  Config config{CudaWindowConfig{width}};
  config.reason = fmt::format("{} channels a thread, neighbouring threads along the channels", width);
  configs.push_back(std::move(config));
  return configs;
}

Problem problem_of(const WindowDesc& desc, ContractionBuilder& builder, const std::string& label) {
  const tile::WindowShape& s = desc.shape;
  const std::string text =
      fmt::format("depth {} out {}x{} low {} {} dilation {} {} {} {} {} packed {} expressions {}", s.in[0], s.out[1],
                  s.out[2], s.low[1], s.low[2], s.dilation[0], s.dilation[1], s.dilation[2], to_string(desc.x),
                  to_string(desc.w), desc.packed, builder.desc().epilogue.pool.size());
  return {fmt::format("cuda {} batch {} {}", label, s.batch, text), fmt::format("cuda {} {}", label, text)};
}

tile::WindowArgs window_args(const WindowDesc& w, const CudaWindowConfig& config) {
  const tile::WindowShape& s = w.shape;
  tile::WindowArgs args{};
  const int64_t pieces = s.c / config.channels;
  args.items = s.batch * s.out[0] * s.out[1] * s.out[2] * pieces;
  args.pixel = static_cast<int32_t>(s.pitch()), args.pieces = static_cast<int32_t>(pieces);
  for (int d = 0; d < 3; ++d) {
    args.in[d] = static_cast<int32_t>(s.in[d]), args.out[d] = static_cast<int32_t>(s.out[d]);
    args.window[d] = static_cast<int32_t>(s.kernel[d]), args.stride[d] = static_cast<int32_t>(s.stride[d]);
    args.dilation[d] = static_cast<int32_t>(s.dilation[d]), args.low[d] = static_cast<int32_t>(s.low[d]);
  }
  return args;
}

// For threads that make down x across outputs of one of some pieces of the channels.
tile::SlideArgs slide_args(const WindowDesc& w, int64_t pieces, int64_t down, int64_t across) {
  const tile::WindowShape& s = w.shape;
  tile::SlideArgs args{};
  args.pixel = static_cast<int32_t>(s.pitch()), args.pieces = static_cast<int32_t>(pieces);
  args.down = static_cast<int32_t>(ceil_div(s.out[1], down));
  args.across = static_cast<int32_t>(ceil_div(s.out[2], across));
  args.items = static_cast<int32_t>(s.batch * pieces / w.channels) * args.down * args.across;
  for (int d = 0; d < 2; ++d) {
    args.in[d] = static_cast<int32_t>(s.in[d + 1]), args.out[d] = static_cast<int32_t>(s.out[d + 1]);
    args.low[d] = static_cast<int32_t>(s.low[d + 1]);
  }
  args.by_pieces = tile::GemmDivisor::of(args.pieces), args.by_across = tile::GemmDivisor::of(args.across);
  args.by_down = tile::GemmDivisor::of(args.down);
  return args;
}

// The launch of a kernel with one thread an item, without the epilogue.
template <typename Args>
CudaLaunch launch_of(Args args, const WindowDesc& w, int64_t threads) {
  const int64_t taps = w.shape.kernel[0] * w.shape.kernel[1] * w.shape.kernel[2];
  args.filter_tap = w.packed ? w.shape.c : 1, args.filter_channel = w.packed ? 1 : taps;
  CudaLaunch launch;
  launch.block = static_cast<uint32_t>(threads);
  launch.grid[0] = static_cast<uint32_t>(ceil_div(args.items, threads));
  launch.arguments = {argument_bytes(args)};
  launch.pointers = {{0, offsetof(Args, x), 0, w.offset * static_cast<int64_t>(size_of(w.x))}};
  if (w.filters) launch.pointers.push_back({0, offsetof(Args, filters), static_cast<int>(w.filter_operand)});
  return launch;
}

}  // namespace

CudaLaunch plan_launch(const WindowDesc& window, const Config& config) {
  if (const auto* tiled = config.get<RegisterTiledWindowConfig>())
    return launch_of(slide_args(window, window.shape.c / tiled->channels, tiled->down, tiled->across), window,
                     tiled->kThreads);
  if (const auto* ring = config.get<RegisterRingWindowConfig>())
    return launch_of(slide_args(window, window.shape.c / ring->channels, 1, ring->across), window, ring->kThreads);
  if (const auto* planar = config.get<PlanarWindowConfig>())
    return launch_of(slide_args(window, window.channels, 1, planar->across), window, planar->kThreads);
  const auto& plain = config.as<CudaWindowConfig>();
  return launch_of(window_args(window, plain), window, plain.kThreads);
}

ScheduledGroup schedule_cuda_window(ContractionBuilder& builder) {
  const ir::Graph& graph = builder.graph();
  const ir::Node& node = builder.anchor();
  const Shape& y = graph.shape(node.outputs[0]);
  WindowProblem problem = window_problem(graph, node);
  problem.desc.rows =
      problem.desc.shape.c == 1 && builder.memory_of(node.inputs[0]).place == nullptr && is_flat(problem.desc);
  const auto image = image_memory(graph.shape(node.inputs[0]), builder.memory_of(node.inputs[0]), problem.last);
  if (!image) fail(ErrorCode::kUnsupportedOperator, "window", "the lines of its images lie apart");
  problem.desc.offset = image->offset, problem.desc.shape.pixel = image->pixel;
  builder.desc().compute = compute_dtype(problem.desc.x);
  builder.input(node.inputs[0]);
  const std::string label = problem.label();
  const double operations = least_folds(problem.desc.shape);
  return finish_cuda_window(builder, problem.desc, label, operations,
                            [&](IndexPool& pool, const Index& image, const Index& pixel, const Index& channel) {
                              return problem.coordinates(pool, y, image, pixel, channel);
                            });
}

ScheduledGroup finish_cuda_window(ContractionBuilder& builder, WindowDesc desc, std::string label, double operations,
                                  const ContractionBuilder::Coordinates& coordinates) {
  const tile::WindowShape& s = desc.shape;
  if (desc.rows) {
    builder.make_epilogue(s.batch, s.out[1], s.out[2], kMostChannels, coordinates);
  } else {
    builder.make_epilogue(s.batch, s.out[0] * s.out[1] * s.out[2], s.c, kMostChannels, coordinates);
  }
  const auto all = [&] { return window_configs(desc, builder.target().gpu()); };
  const Config config = choose_config(builder.configs(), problem_of(desc, builder, label), all);
  label += builder.epilogue_label();
  ScheduledGroup result;
  result.notes.push_back(label + ": " + config.reason);
  builder.desc().problem = std::move(desc);
  result.kernels.push_back(builder.finish(config, std::move(label), operations));
  return result;
}

}  // namespace heddle::schedule
