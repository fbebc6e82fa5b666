#include "codegen/region/cuda/standalone.h"

#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/region/cuda/scatter.h"
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

// A function of a kernel.
struct Call {
  std::string suffix;
  std::string_view arguments;  // their type
  std::string function;
  int64_t threads;
};

std::string call_text(const Call& call, const KernelHead& head) {
  Writer out;
  out.line("extern \"C\" __global__ void __launch_bounds__({})", call.threads);
  out.open(fmt::format("    {}{}(const __grid_constant__ tile::{} args) {{", head.symbol, call.suffix, call.arguments));
  if (head.waits) out.raw(kWait);
  out.line("tile::cuda::{}(args);", call.function);
  out.close();
  return out.text();
}

std::string from_text(const StandaloneDesc& body) {
  switch (schedule::starts_from(body)) {
    case tile::ScatterFrom::kData:
      return "tile::ScatterFrom::kData";
    case tile::ScatterFrom::kValue:
      return "tile::ScatterFrom::kValue";
    case tile::ScatterFrom::kPlace:
      return "tile::ScatterFrom::kPlace";
  }
  return "";
}

// The functions of a scatter's launches, in order.
class ScatterCalls {
 public:
  ScatterCalls(const StandaloneDesc& body, const schedule::KernelPlan& plan)
      : body_(body), config_(plan.config), from_(from_text(body)), index_(storage_type(body.index_dtype)) {
    const bool moved = body.reduction == "none";
    type_ = moved ? moved_type(body.columns().bytes) : std::string(storage_type(body.dtype));
    for (const CudaLaunch& launch : plan.launches) {
      calls_.push_back(call(launch.symbol.substr(std::string_view("scatter").size()), launch.block));
    }
  }
  const std::vector<Call>& calls() const { return calls_; }
  std::string_view header() const {
    if (config_.get<schedule::ScatterAtomicConfig>() != nullptr) return "scatter_atomic.h";
    return config_.get<schedule::ScatterSortedConfig>() != nullptr ? "scatter_sorted.h" : "scatter.h";
  }

 private:
  Call call(std::string suffix, int64_t threads) const {
    const bool nd = body_.op == Op::kScatterNd;
    const std::string combine = combiner(body_.reduction);
    if (config_.get<schedule::ScatterSlicesConfig>() != nullptr) {
      return {suffix, "ScatterNdArgs", fmt::format("scatter_nd<{}, {}, {}, {}>", from_, combine, type_, index_),
              threads};
    }
    if (config_.get<schedule::ScatterElementsConfig>() != nullptr) {
      return {suffix, "ScatterElementsArgs",
              fmt::format("scatter_elements<{}, {}, {}, {}, {}>", from_, combine, type_, index_, body_.drop), threads};
    }
    const std::string rows = nd ? fmt::format("tile::cuda::SliceRows<{}>", index_)
                                : fmt::format("tile::cuda::ElementRows<{}, {}>", index_, body_.drop);
    return {suffix, "ScatterUpdatesArgs", by_updates(suffix, combine, rows), threads};
  }
  // Of the forms that share the updates.
  std::string by_updates(const std::string& suffix, const std::string& combine, const std::string& rows) const {
    if (const auto* c = config_.get<schedule::ScatterAtomicConfig>()) {
      return suffix == "_begin" ? fmt::format("scatter_begin<{}>", from_)
                                : fmt::format("scatter_add<{}, {}, {}, {}>", c->vector, c->run, type_, rows);
    }
    const auto& c = config_.as<schedule::ScatterSortedConfig>();
    if (suffix == "_sort") return fmt::format("scatter_sort<{}, {}>", from_, rows);
    if (suffix == "_merge") return "scatter_merge";
    return fmt::format("scatter_combine_{}<{}, {}, {}, {}>", suffix == "_rows" ? "rows" : "runs", combine, type_,
                       c.vector, c.run);
  }

  const StandaloneDesc& body_;
  const Config& config_;
  std::string from_, index_, type_;
  std::vector<Call> calls_;
};

Call selection_call(const StandaloneDesc& body, const Config& config) {
  const int64_t threads = config.as<schedule::SelectConfig>().threads;
  return {"", "SelectArgs", fmt::format("select<{}, {}, {}>", threads, body.largest, storage_type(body.dtype)),
          threads};
}

}  // namespace

KernelSource emit_cuda_standalone(const schedule::KernelPlan& plan, const StandaloneDesc& body) {
  const bool selects = body.op == Op::kTopK;
  std::vector<Call> calls;
  std::string header = "select.h";
  if (selects) {
    calls = {selection_call(body, plan.config)};
  } else {
    const ScatterCalls scatter(body, plan);
    calls = scatter.calls(), header = scatter.header();
  }
  KernelSource source;
  source.includes = {"tile/op/cuda/stitch.h", "tile/kernel/cuda/row.h", "tile/kernel/cuda/standalone/" + header};
  const auto write = [&](const KernelHead& head) {
    std::string text;
    for (const Call& call : calls) text += call_text(call, head);
    return text;
  };
  name_kernel(source, selects ? "select" : "scatter", write, plan.waits);
  source.launches = plan.launches;
  for (size_t i = 0; i < calls.size(); ++i) source.launches[i].symbol = source.symbol + calls[i].suffix;
  source.workspace_bytes = plan.workspace_bytes;
  return source;
}

}  // namespace heddle::codegen
