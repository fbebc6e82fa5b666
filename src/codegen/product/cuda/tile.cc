#include "codegen/product/cuda/tile.h"

#include <fmt/format.h>

#include "schedule/product/cuda/engine.h"

namespace heddle::codegen {
namespace {

using schedule::CudaInstance;
using schedule::CudaTileConfig;
using schedule::CudaTileProblem;

std::string config_text(const CudaInstance& instance, bool partial) {
  std::string text = "struct Config {\n";
  for (const auto& [name, type] : instance.types) text += fmt::format("  using {} = {};\n", name, type);
  const auto values = [&](const char* type, const auto& list) {
    if (list.empty()) return;
    text += fmt::format("  static constexpr {} ", type);
    const char* between = "";
    for (const auto& [name, value] : list) {
      text += fmt::format("{}{} = {}", between, name, value);
      between = ", ";
    }
    text += ";\n";
  };
  values("int", instance.sizes);
  values("bool", instance.flags);
  if (!instance.arguments.empty()) {  // they say where partial sums go
    text += fmt::format("  static constexpr auto kStore = tile::GemmStore::{};\n", partial ? "kPartial" : "kEpilogue");
  }
  return text + "};\n";
}

std::string multiply_text(const CudaInstance& instance, const CudaTileConfig& c, const std::string& symbol) {
  const bool partial = c.splits > 1, clusters = c.parts > 1 && !engine_of(c).parts_are_warps;
  const std::string_view arguments = instance.arguments;
  return fmt::format(
      "extern \"C\" __global__ void {cluster}__launch_bounds__({threads}, {resident})\n"
      "    {symbol}({args}const __grid_constant__ {symbol}_parts::A a, "
      "const __grid_constant__ {symbol}_parts::B b{epilogue}) {{\n"
      "  {kernel}<{symbol}_parts::Config>({pass}a, b, {store});\n"
      "}}\n",
      fmt::arg("cluster", clusters ? fmt::format("__cluster_dims__({}, 1, 1) ", c.parts) : ""),
      fmt::arg("threads", c.threads()), fmt::arg("resident", instance.resident), fmt::arg("symbol", symbol),
      fmt::arg("args", arguments.empty() ? "" : fmt::format("const __grid_constant__ tile::{} args, ", arguments)),
      fmt::arg("epilogue", partial ? "" : fmt::format(", const __grid_constant__ {}_parts::Epilogue epilogue", symbol)),
      fmt::arg("kernel", instance.kernel), fmt::arg("pass", arguments.empty() ? "" : "args, "),
      fmt::arg("store", partial ? "tile::cuda::NoEpilogue{}" : "epilogue"));
}

}  // namespace

CudaGemmUnit tile_unit(const CudaTileProblem& p, const CudaTileConfig& c, const schedule::Epilogue& epilogue,
                       const std::vector<schedule::Operand>& operands, const std::string& symbol) {
  const CudaInstance instance = schedule::engine_of(c).instance(p, c);
  CudaGemmUnit unit;
  unit.epilogue = cuda_epilogue(epilogue, operands);
  if (p.k > 0) {
    KernelText& kernel = unit.kernels.emplace_back();
    kernel.symbol = symbol;
    kernel.includes = {std::string(instance.header), "tile/kernel/cuda/operand/operand.h", "tile/kernel/cuda/row.h",
                       "tile/op/cuda/stitch.h"};
    std::string& text = kernel.text;
    text = fmt::format("namespace {}_parts {{\n", symbol) + (c.splits > 1 ? "" : unit.epilogue.text);
    const schedule::CudaTileView view = schedule::view_of(p, c.swapped);
    const schedule::CudaOperand &a = *view.a, &b = *view.b;
    text += p.a.text + p.b.text + fmt::format("using A = {};\n", a.type);
    text += instance.stream ? fmt::format("struct B : {} {{\n  static constexpr bool kStream = true;\n}};\n", b.type)
                            : fmt::format("using B = {};\n", b.type);
    text += config_text(instance, c.splits > 1) + fmt::format("}}  // namespace {}_parts\n", symbol) +
            multiply_text(instance, c, symbol);
  }
  if (c.splits > 1 || p.k == 0) {
    unit.kernels.push_back(reduce_kernel(schedule::cuda_storage(p.accumulator()), unit.epilogue, symbol));
  }
  return unit;
}

}  // namespace heddle::codegen
