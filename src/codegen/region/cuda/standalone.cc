#include "codegen/region/cuda/standalone.h"

#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/region/standalone.h"

namespace heddle::codegen {
namespace {

using ir::Op;
using schedule::StandaloneDesc;

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

// What differs between the kernels.
struct Call {
  std::string_view arguments;  // their type
  std::string function;
  int64_t threads;
};

std::string kernel_text(const Call& call, const KernelHead& head) {
  Writer out;
  out.line("extern \"C\" __global__ void __launch_bounds__({})", call.threads);
  out.open(fmt::format("    {}(const __grid_constant__ tile::{} args) {{", head.symbol, call.arguments));
  if (head.waits) out.raw(kWait);
  out.line("tile::cuda::{}(args);", call.function);
  out.close();
  return out.text();
}

Call scatter_call(const StandaloneDesc& body, const Config& config) {
  const bool nd = body.op == Op::kScatterNd, moved = body.reduction == "none";
  const std::string type = moved ? moved_type(body.columns().bytes) : std::string(storage_type(body.dtype));
  std::string call = fmt::format("{}<{}, {}, {}", nd ? "scatter_nd" : "scatter_elements", combiner(body.reduction),
                                 type, storage_type(body.index_dtype));
  if (body.in_place || body.drop) call += fmt::format(", {}", body.in_place);
  call += body.drop ? ", true>" : ">";
  return {nd ? "ScatterNdArgs" : "ScatterElementsArgs", call,
          nd ? schedule::ScatterSlicesConfig::kThreads : config.as<schedule::ScatterElementsConfig>().threads};
}

Call selection_call(const StandaloneDesc& body, const Config& config) {
  const int64_t threads = config.as<schedule::SelectConfig>().threads;
  return {"SelectArgs", fmt::format("select<{}, {}, {}>", threads, body.largest, storage_type(body.dtype)), threads};
}

}  // namespace

KernelSource emit_cuda_standalone(const schedule::KernelPlan& plan, const StandaloneDesc& body) {
  const bool selects = body.op == Op::kTopK;
  const Call call = selects ? selection_call(body, plan.config) : scatter_call(body, plan.config);
  KernelSource source;
  source.includes = {"tile/op/cuda/stitch.h"};
  if (selects) {
    source.includes.emplace_back("tile/kernel/cuda/standalone/select.h");
  } else {
    source.includes.insert(source.includes.end(), {"tile/kernel/cuda/row.h", "tile/kernel/cuda/standalone/scatter.h"});
  }
  const auto write = [&](const KernelHead& head) { return kernel_text(call, head); };
  name_kernel(source, selects ? "select" : "scatter", write, plan.waits);
  source.launches = plan.launches;
  source.launches.front().symbol = source.symbol;
  source.workspace_bytes = plan.workspace_bytes;
  return source;
}

}  // namespace heddle::codegen
