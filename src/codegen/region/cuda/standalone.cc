#include "codegen/region/cuda/standalone.h"

#include <cstddef>

#include "base/check.h"
#include "base/divide.h"
#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "target/argument_block.h"
#include "tile/core/cuda_separate.h"

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

template <typename Args>
CudaLaunch launch_of(const Args& args, const Config& config) {
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(config.tasks);
  launch.block = static_cast<uint32_t>(config.tile_m);
  launch.arguments = {argument_bytes(args)};
  return launch;
}

tile::ScatterArgs common_args(const StandaloneDesc::Columns& columns) {
  tile::ScatterArgs args{};
  args.rows = columns.rows, args.inner = columns.inner;
  args.count = columns.updates;
  return args;
}

// The dimensions of the columns, last first; those that both shapes have whole are one with the one before.
tile::ScatterElementsArgs elements_args(const StandaloneDesc& body, const Config& config) {
  tile::ScatterElementsArgs args{};
  const StandaloneDesc::Columns columns = body.columns();
  args.common = common_args(columns);
  args.threads = columns.outer * config.splits * columns.inner;
  while (int64_t{1} << args.shares < config.splits) ++args.shares;
  HEDDLE_CHECK(int64_t{1} << args.shares == config.splits, "{} threads share a column", config.splits);
  const auto scattered = static_cast<size_t>(body.dim);
  int64_t stride = 1;
  bool joins = false;
  for (size_t d = body.data.size(); d-- > 0; stride *= body.indices[d]) {
    if (d == scattered) {
      args.step = stride;
      args.inner_dims = args.dims;
      joins = false;
      continue;
    }
    const bool whole = body.indices[d] == body.data[d];
    if (joins) {
      tile::ScatterDim& last = args.dim[args.dims - 1];
      last.indexed *= body.indices[d];
      last.extent *= body.data[d];
    } else {
      args.dim[args.dims++] = {body.data[d], body.indices[d], stride};
    }
    joins = whole;
  }
  return args;
}

tile::ScatterNdArgs nd_args(const StandaloneDesc& body, const Config& config) {
  tile::ScatterNdArgs args{};
  args.common = common_args(body.columns());
  args.block_rows = config.micro_m, args.chunk = config.micro_n;
  args.chunks = ceil_div(args.common.inner, args.chunk);
  args.depth = static_cast<int32_t>(body.indices.back());
  for (size_t d = 0; d < static_cast<size_t>(args.depth); ++d) args.extent[d] = body.data[d];
  return args;
}

void write_kernel(KernelSource& source, const std::string& args, const std::string& call, int64_t threads) {
  Writer out;
  out.line("extern \"C\" __global__ void __launch_bounds__({})", threads);
  out.open(fmt::format("    {}(const __grid_constant__ tile::{} args) {{", kName, args));
  out.line("tile::cuda::{}(args);", call);
  out.close();
  source.text = out.text();
}

KernelSource scatter_source(const StandaloneDesc& body, const Config& config) {
  const StandaloneDesc::Columns columns = body.columns();
  const bool nd = body.op == Op::kScatterNd, moved = body.reduction == "none";
  const std::string type = moved ? moved_type(columns.bytes) : std::string(storage_type(body.dtype));
  const std::string parameters =
      fmt::format("{}, {}, {}", combiner(body.reduction), type, storage_type(body.index_dtype));
  KernelSource source;
  source.includes = {"tile/kernel/cuda/row.h", "tile/kernel/cuda/standalone/scatter.h", "tile/op/cuda/stitch.h"};
  CudaLaunch launch;
  if (nd) {
    write_kernel(source, "ScatterNdArgs", fmt::format("scatter_nd<{}>", parameters), config.tile_m);
    launch = launch_of(nd_args(body, config), config);
    launch.shared_bytes = static_cast<uint32_t>(tile::kScatterChunk * sizeof(int64_t));
  } else {
    write_kernel(source, "ScatterElementsArgs", fmt::format("scatter_elements<{}>", parameters), config.tile_m);
    launch = launch_of(elements_args(body, config), config);
  }
  launch.pointers = {{0, offsetof(tile::ScatterArgs, data), 0},
                     {0, offsetof(tile::ScatterArgs, indices), 1},
                     {0, offsetof(tile::ScatterArgs, updates), 2},
                     {0, offsetof(tile::ScatterArgs, y), 3}};
  source.launches = {std::move(launch)};
  return source;
}

KernelSource selection_source(const StandaloneDesc& body, const Config& config, int own) {
  const StandaloneDesc::Columns columns = body.columns();
  const auto item = tile::select_item_bytes(columns.bytes);
  tile::SelectArgs args{};
  args.n = columns.rows, args.k = body.k, args.inner = columns.inner;
  KernelSource source;
  source.includes = {"tile/kernel/cuda/standalone/select.h", "tile/op/cuda/stitch.h"};
  write_kernel(source, "SelectArgs",
               fmt::format("select<{}, {}, {}>", config.tile_m, body.largest, storage_type(body.dtype)), config.tile_m);
  CudaLaunch launch = launch_of(args, config);
  launch.shared_bytes = static_cast<uint32_t>(tile::kSelectTile * item + tile::kSelectCountBytes);
  launch.pointers = {{0, offsetof(tile::SelectArgs, x), 0},
                     {0, offsetof(tile::SelectArgs, values), 1},
                     {0, offsetof(tile::SelectArgs, positions), 2}};
  if (body.k > tile::kSelectTile) {
    source.workspace_bytes = columns.outer * columns.inner * body.k * item;
    launch.pointers.push_back({0, offsetof(tile::SelectArgs, list), own});
  }
  source.launches = {std::move(launch)};
  return source;
}

}  // namespace

KernelSource emit_cuda_standalone(const schedule::KernelDesc& desc, const StandaloneDesc& body, const Config& config) {
  const bool selects = body.op == Op::kTopK;
  KernelSource source =
      selects ? selection_source(body, config, static_cast<int>(desc.operands.size())) : scatter_source(body, config);
  source.symbol = name_kernel(source.text, selects ? "select" : "scatter", kName);
  source.launches.front().symbol = source.symbol;
  return source;
}

}  // namespace heddle::codegen
