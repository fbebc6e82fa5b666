#include "codegen/product/cuda/window.h"

#include <algorithm>
#include <cstddef>

#include "base/divide.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/text/writer.h"
#include "target/argument_block.h"
#include "tile/core/cuda_window.h"

namespace heddle::codegen {
namespace {

using schedule::Config;
using schedule::ContractionDesc;
using schedule::KernelDesc;
using schedule::RegisterTiledWindowConfig;
using schedule::WindowConfig;
using schedule::WindowDesc;

// In what a window is folded: integers in 32 bits at least, their result wraps where it is stored.
std::string_view folded_type(DType dtype) {
  if (is_float(dtype) || size_of(dtype) == 8) return computed_type(dtype);
  return computed_type(dtype).starts_with('u') ? "uint32_t" : "int32_t";
}

std::string_view fold_name(const WindowDesc& w) {
  if (w.filters) return "kDot";
  return w.kind == "sum" ? "kSum" : w.kind == "prod" ? "kProd" : w.kind == "max" ? "kMax" : "kMin";
}

// What of a thread's pixels along dimension d may lie outside of the image, at most all.
struct SlideEdges {
  int64_t before = 0, after = 0;
  bool whole = true;
};
SlideEdges slide_edges(const tile::WindowShape& s, int d, int64_t outputs) {
  const int64_t threads = ceil_div(s.out[d], outputs), pixels = (outputs - 1) * s.stride[d] + s.kernel[d];
  const int64_t last = (threads - 1) * outputs * s.stride[d] - s.low[d];  // the last thread's first pixel
  SlideEdges edges;
  edges.before = std::clamp<int64_t>(s.low[d], 0, pixels);
  edges.after = std::clamp<int64_t>(last + pixels - s.in[d], 0, pixels);
  edges.whole = s.out[d] % outputs == 0;
  return edges;
}

// A kernel of tile/kernel/cuda/window/register_tiled.h (`tiled`) knows its windows and what a thread makes; sizes are
// arguments, so that layers share it.
std::string kernel_text(const ContractionDesc& c, const WindowDesc& w, int64_t channels, int64_t threads,
                        const RegisterTiledWindowConfig* tiled, const std::string& epilogue,
                        const std::string& symbol) {
  const tile::WindowShape& s = w.shape;
  Writer out;
  out.raw(fmt::format("namespace {}_parts {{", symbol));
  out.raw(epilogue);
  out.open("struct Config {");
  out.line("using X = {};", storage_type(w.x));
  out.line("using Filter = {};", storage_type(w.filters ? w.w : w.x));
  out.line("using Acc = {};", w.filters ? computed_type(c.compute) : folded_type(w.x));
  out.line("using Limits = {};", computed_type(w.x));
  out.line("static constexpr int kWidth = {};", channels);
  out.line("static constexpr auto kFold = tile::WindowFold::{};", fold_name(w));
  if (tiled != nullptr) {
    out.line("static constexpr int kWindow[2] = {{{}, {}}}, kStride[2] = {{{}, {}}};", s.kernel[1], s.kernel[2],
             s.stride[1], s.stride[2]);
    const SlideEdges edges[2] = {slide_edges(s, 1, tiled->down), slide_edges(s, 2, tiled->across)};
    out.line("static constexpr int kDown = {}, kAcross = {};", tiled->down, tiled->across);
    out.line("static constexpr int kBefore[2] = {{{}, {}}}, kAfter[2] = {{{}, {}}};", edges[0].before, edges[1].before,
             edges[0].after, edges[1].after);
    out.line("static constexpr bool kWhole[2] = {{{}, {}}}, kPacked = {};", edges[0].whole, edges[1].whole, w.packed);
  }
  out.close("};");
  out.raw(fmt::format("}}  // namespace {}_parts", symbol));
  out.line("extern \"C\" __global__ void __launch_bounds__({}, 1)", threads);
  out.line("    {}(const __grid_constant__ tile::{} args,", symbol, tiled != nullptr ? "SlideArgs" : "WindowArgs");
  out.open(fmt::format("    const __grid_constant__ {}_parts::Epilogue epilogue) {{", symbol));
  out.line("tile::cuda::{}<{}_parts::Config>(args, epilogue);", tiled != nullptr ? "slide" : "window", symbol);
  out.close();
  return out.text();
}

tile::WindowArgs window_args(const WindowDesc& w, const WindowConfig& config) {
  const tile::WindowShape& s = w.shape;
  tile::WindowArgs args{};
  const int64_t pieces = s.c / config.channels;
  args.items = s.batch * s.out[0] * s.out[1] * s.out[2] * pieces;
  args.channels = static_cast<int32_t>(s.c), args.pieces = static_cast<int32_t>(pieces);
  for (int d = 0; d < 3; ++d) {
    args.in[d] = static_cast<int32_t>(s.in[d]), args.out[d] = static_cast<int32_t>(s.out[d]);
    args.window[d] = static_cast<int32_t>(s.kernel[d]), args.stride[d] = static_cast<int32_t>(s.stride[d]);
    args.dilation[d] = static_cast<int32_t>(s.dilation[d]), args.low[d] = static_cast<int32_t>(s.low[d]);
  }
  return args;
}

tile::SlideArgs slide_args(const WindowDesc& w, const RegisterTiledWindowConfig& config) {
  const tile::WindowShape& s = w.shape;
  tile::SlideArgs args{};
  args.channels = static_cast<int32_t>(s.c), args.pieces = static_cast<int32_t>(s.c / config.channels);
  args.down = static_cast<int32_t>(ceil_div(s.out[1], config.down));
  args.across = static_cast<int32_t>(ceil_div(s.out[2], config.across));
  args.items = static_cast<int32_t>(s.batch) * args.down * args.across * args.pieces;
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
CudaLaunch launch_of(Args args, const WindowDesc& w, int64_t threads, const std::string& symbol) {
  const int64_t taps = w.shape.kernel[0] * w.shape.kernel[1] * w.shape.kernel[2];
  args.filter_tap = w.packed ? w.shape.c : 1, args.filter_channel = w.packed ? 1 : taps;
  CudaLaunch launch;
  launch.symbol = symbol;
  launch.block = static_cast<uint32_t>(threads);
  launch.grid[0] = static_cast<uint32_t>(ceil_div(args.items, threads));
  launch.arguments = {argument_bytes(args)};
  launch.pointers = {{0, offsetof(Args, x), 0}};
  if (w.filters) launch.pointers.push_back({0, offsetof(Args, filters), static_cast<int>(w.filter_operand)});
  return launch;
}

}  // namespace

KernelSource cuda_window_source(const KernelDesc& desc, const ContractionDesc& c, const WindowDesc& w,
                                const Config& config, const std::string& symbol) {
  const CudaFunctor epilogue = cuda_epilogue(c.epilogue, desc.operands);
  KernelSource source;
  source.includes = {"tile/kernel/cuda/row.h", "tile/kernel/cuda/window/generic.h", "tile/op/cuda/stitch.h"};
  const auto* tiled = config.get<RegisterTiledWindowConfig>();
  const auto* plain = config.get<WindowConfig>();
  if (tiled != nullptr) source.includes.push_back("tile/kernel/cuda/window/register_tiled.h");
  const int64_t channels = tiled != nullptr ? tiled->channels : plain->channels;
  const int64_t threads = tiled != nullptr ? tiled->kThreads : plain->kThreads;
  source.text = kernel_text(c, w, channels, threads, tiled, epilogue.text, symbol);
  CudaLaunch launch = tiled != nullptr ? launch_of(slide_args(w, *tiled), w, threads, symbol)
                                       : launch_of(window_args(w, *plain), w, threads, symbol);
  for (PointerPatch patch : epilogue.pointers) {
    patch.argument = static_cast<int>(launch.arguments.size());
    launch.pointers.push_back(patch);
  }
  launch.arguments.push_back(epilogue.block);
  source.launches.push_back(std::move(launch));
  return source;
}

}  // namespace heddle::codegen
