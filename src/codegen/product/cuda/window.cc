#include "codegen/product/cuda/window.h"

#include <algorithm>

#include "base/divide.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/gemm.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {
namespace {

using schedule::CudaWindowConfig;
using schedule::PlanarWindowConfig;
using schedule::RegisterRingWindowConfig;
using schedule::RegisterTiledWindowConfig;

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

// The kernel of a configuration: its function, the type of its arguments, its header, its threads and how many
// neighbouring outputs the epilogue gets at a time.
struct WindowKernel {
  std::string_view function, args, header;
  int64_t threads = 0, width = 0;
};
WindowKernel kernel_of(const Config& config) {
  if (const auto* tiled = config.get<RegisterTiledWindowConfig>())
    return {"slide", "SlideArgs", "tile/kernel/cuda/window/register_tiled.h", tiled->kThreads, tiled->channels};
  if (const auto* ring = config.get<RegisterRingWindowConfig>())
    return {"register_ring", "SlideArgs", "tile/kernel/cuda/window/register_ring.h", ring->kThreads, ring->channels};
  if (const auto* planar = config.get<PlanarWindowConfig>())
    return {"planar_window", "SlideArgs", "tile/kernel/cuda/window/planar.h", planar->kThreads, planar->width()};
  const auto& plain = config.as<CudaWindowConfig>();
  return {"window", "WindowArgs", "tile/kernel/cuda/window/generic.h", plain.kThreads, plain.channels};
}

// What a kernel that knows its window is told of it; sizes are arguments, so that layers share it.
void write_window(Writer& out, const WindowDesc& w, const Config& config) {
  const tile::WindowShape& s = w.shape;
  const auto* tiled = config.get<RegisterTiledWindowConfig>();
  const auto* ring = config.get<RegisterRingWindowConfig>();
  const auto* planar = config.get<PlanarWindowConfig>();
  if (tiled == nullptr && ring == nullptr && planar == nullptr) return;
  out.line("static constexpr int kWindow[2] = {{{}, {}}}, kStride[2] = {{{}, {}}};", s.kernel[1], s.kernel[2],
           s.stride[1], s.stride[2]);
  if (ring != nullptr) {
    out.line("static constexpr int kAcross = {};", ring->across);
    out.line("static constexpr bool kWhole = {}, kPacked = {};", s.out[2] % ring->across == 0, w.packed);
    return;
  }
  if (planar != nullptr) {
    out.line("static constexpr int kDilation[2] = {{{}, {}}}, kAcross = {}, kTaps = {};", s.dilation[1], s.dilation[2],
             planar->across, planar->taps);
    out.line("static constexpr int kVector = {}, kLead = {};", planar->vector, planar->lead(s.low[2]));
    return;
  }
  const SlideEdges edges[2] = {slide_edges(s, 1, tiled->down), slide_edges(s, 2, tiled->across)};
  out.line("static constexpr int kDown = {}, kAcross = {};", tiled->down, tiled->across);
  out.line("static constexpr int kBefore[2] = {{{}, {}}}, kAfter[2] = {{{}, {}}};", edges[0].before, edges[1].before,
           edges[0].after, edges[1].after);
  out.line("static constexpr bool kWhole[2] = {{{}, {}}}, kPacked = {};", edges[0].whole, edges[1].whole, w.packed);
}

std::string kernel_text(const ContractionDesc& c, const WindowDesc& w, const Config& config,
                        const std::string& epilogue, const KernelHead& head, std::vector<std::string>& includes) {
  const WindowKernel kernel = kernel_of(config);
  const std::string& symbol = head.symbol;
  Writer out;
  out.line("namespace {}_parts {{", symbol);
  out.raw(epilogue);
  out.open("struct Config {");
  out.line("using X = {};", storage_type(w.x));
  out.line("using Filter = {};", storage_type(w.filters ? w.w : w.x));
  out.line("using Acc = {};", w.filters ? computed_type(c.compute) : folded_type(w.x));
  out.line("using Limits = {};", computed_type(w.x));
  out.line("static constexpr int kWidth = {};", kernel.width);
  out.line("static constexpr auto kFold = tile::WindowFold::{};", fold_name(w));
  write_window(out, w, config);
  out.close("};");
  out.line("}}  // namespace {}_parts", symbol);
  out.line("extern \"C\" __global__ void __launch_bounds__({}, 1)", kernel.threads);
  out.line("    {}(const __grid_constant__ tile::{} args,", symbol, kernel.args);
  out.open(fmt::format("    const __grid_constant__ {}_parts::Epilogue epilogue) {{", symbol));
  if (head.waits) out.raw(kWait);
  out.line("tile::cuda::{}<{}_parts::Config>(args, epilogue);", kernel.function, symbol);
  out.close();
  return out.text(includes);
}

}  // namespace

KernelSource cuda_window_source(const schedule::KernelPlan& plan, const ContractionDesc& c, const WindowDesc& w) {
  const CudaFunctor epilogue = cuda_epilogue(c.epilogue, plan.desc.operands);
  KernelSource source;
  source.includes = {"tile/kernel/cuda/row.h", std::string(kernel_of(plan.config).header), "tile/op/cuda/stitch.h"};
  const auto write = [&](const KernelHead& head) {
    return kernel_text(c, w, plan.config, epilogue.text, head, source.includes);
  };
  name_kernel(source, w.filters ? "depthwise" : "window", write, plan.waits);
  source.launches = plan.launches;
  source.launches.front().symbol = source.symbol;
  add_argument(source.launches.front(), epilogue.block, epilogue.pointers);
  return source;
}

}  // namespace heddle::codegen
