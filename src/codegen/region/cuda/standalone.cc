#include "codegen/region/cuda/standalone.h"

#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/region/cuda/launch.h"

namespace heddle::codegen {
namespace {

using ir::Op;
using schedule::Config;
using schedule::StandaloneDesc;

constexpr const char* kName = "KERNEL_NAME";

// Elements that are only moved are moved as bits.
std::string moved_type(int64_t bytes) {
  constexpr int64_t kWords = 16;
  return bytes == kWords ? "tile::cuda::Neighbours<uint32_t, 4>" : fmt::format("uint{}_t", 8 * bytes);
}

std::string combiner(const std::string& reduction) {
  if (reduction == "none") return "tile::cuda::replaced";
  if (reduction == "add") return "tile::sum_of";
  if (reduction == "mul") return "tile::prod_of";
  return fmt::format("tile::{}_of", reduction);
}

void write_kernel(KernelSource& source, const std::string& args, const std::string& call, int64_t threads) {
  Writer out;
  out.line("extern \"C\" __global__ void __launch_bounds__({})", threads);
  out.open(fmt::format("    {}(const __grid_constant__ tile::{} args) {{", kName, args));
  out.line("tile::cuda::{}(args);", call);
  out.close();
  source.text = out.text();
}

void write_scatter(KernelSource& source, const StandaloneDesc& body, const Config& config) {
  const bool nd = body.op == Op::kScatterNd, moved = body.reduction == "none";
  const std::string type = moved ? moved_type(body.columns().bytes) : std::string(storage_type(body.dtype));
  const std::string call = fmt::format("{}<{}, {}, {}>", nd ? "scatter_nd" : "scatter_elements",
                                       combiner(body.reduction), type, storage_type(body.index_dtype));
  source.includes = {"tile/kernel/cuda/row.h", "tile/kernel/cuda/standalone/scatter.h", "tile/op/cuda/stitch.h"};
  write_kernel(source, nd ? "ScatterNdArgs" : "ScatterElementsArgs", call,
               nd ? schedule::ScatterSlicesConfig::kThreads : config.as<schedule::ScatterElementsConfig>().threads);
}

void write_selection(KernelSource& source, const StandaloneDesc& body, const Config& config) {
  source.includes = {"tile/kernel/cuda/standalone/select.h", "tile/op/cuda/stitch.h"};
  const int64_t threads = config.as<schedule::SelectConfig>().threads;
  write_kernel(source, "SelectArgs", fmt::format("select<{}, {}, {}>", threads, body.largest, storage_type(body.dtype)),
               threads);
}

}  // namespace

KernelSource emit_cuda_standalone(const schedule::KernelDesc& desc, const StandaloneDesc& body, const Config& config) {
  const bool selects = body.op == Op::kTopK;
  KernelSource source;
  selects ? write_selection(source, body, config) : write_scatter(source, body, config);
  source.symbol = name_kernel(source.text, selects ? "select" : "scatter", kName);
  schedule::LaunchPlan plan = schedule::plan_launch(body, config, desc.operands.size());
  plan.launch.symbol = source.symbol;
  source.launches = {std::move(plan.launch)};
  source.workspace_bytes = plan.workspace_bytes;
  return source;
}

}  // namespace heddle::codegen
