#include "lang/cuda/unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "codegen/text/kernel_name.h"
#include "heddle/error.h"
#include "lang/cuda/assign.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/prepare.h"
#include "lang/cuda/scalar_text.h"
#include "lang/cuda/scaled.h"

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kMostWarps = 32;

int64_t warps_of(const Kernel& kernel) {
  const int64_t warps = kernel.attributes.integer("num_warps", 4);
  if (warps < 1 || warps > kMostWarps || (warps & (warps - 1)) != 0) {
    throw Error(ErrorCode::kInvalidArgument, "kernel " + kernel.name,
                fmt::format("num_warps = {} is no power of two of at most {}", warps, kMostWarps));
  }
  return warps;
}

std::string symbol_of(const std::string& name) {
  std::string symbol;
  for (const char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return symbol;
}

// The text of a kernel.
CudaUnit written(Emitter& emitter) {
  const Kernel& kernel = emitter.kernel;
  std::vector<std::string> parameters;
  for (const Kernel::Parameter& p : kernel.parameters) {
    const std::string name = emitter.name(p.value);
    emitter.bind(p.value, name);
    parameters.push_back(fmt::format("{} {}", scalar_type(kernel.type(p.value)), name));
  }
  emitter.emit(kernel.body);

  CudaUnit unit;
  unit.symbol = symbol_of(kernel.name);
  unit.threads = 32 * emitter.warps;
  unit.shared_bytes = std::max(emitter.most_kept_bytes + emitter.shared_bytes, emitter.free_bytes);
  unit.shared_bytes = (unit.shared_bytes + 15) / 16 * 16;
  unit.includes = {"tile/block/block.h"};
  if (emitter.uses_groups) unit.includes.emplace_back("tile/block/wgmma.h");
  std::string& text = unit.definitions;
  text = "namespace block = heddle::tile::block;\nusing tile::dims;\n\n";
  text += fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", unit.threads, unit.symbol,
                      fmt::join(parameters, ", "));
  for (const std::string& alias : emitter.aliases) text += "  " + alias + "\n";
  constexpr int kAlignment = 1024;  // of operands that are swizzled
  const std::string rest = emitter.uses_groups ? fmt::format(", true, {}", kAlignment) : "";
  if (emitter.uses_groups) unit.shared_bytes += kAlignment;
  const std::string body = emitter.out.text();
  for (const auto& [name, offset] : {std::pair("kFree", int64_t{0}), std::pair("kShared", emitter.most_kept_bytes)}) {
    if (body.find(name) == std::string::npos) continue;
    text += fmt::format("  constexpr block::scratch<{}{}> {}{{}};\n", offset, rest, name);
  }
  text += "\n" + body + "}\n";
  for (const std::string& path : unit.includes) unit.text += "#include \"" + path + "\"\n";
  unit.text += "\nnamespace tile = heddle::tile;\n" + text;
  return unit;
}

}  // namespace

CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target) {
  const int64_t warps = warps_of(kernel);
  expand_scaled_products(kernel);
  clone_indices(kernel);
  const std::vector<AxisFacts> facts = axis_facts(kernel);
  const Assignment layouts = assign_layouts(kernel, facts, {warps, target.has_wgmma()});
  // Fewer loads run ahead where tiles need much shared memory otherwise.
  for (auto stages = static_cast<int>(kernel.attributes.integer("num_stages", 3));; --stages) {
    Emitter emitter(kernel, facts, layouts, {warps, stages, target.shared_bytes_per_block});
    CudaUnit unit = written(emitter);
    if (unit.shared_bytes <= target.shared_bytes_per_block) return unit;
    if (stages > 1) continue;
    throw Error(ErrorCode::kOutOfMemory, "kernel " + kernel.name,
                fmt::format("its tiles go through {} bytes of shared memory, a block has {}", unit.shared_bytes,
                            target.shared_bytes_per_block),
                "Make the tiles smaller");
  }
}

codegen::KernelSource cuda_launch(Kernel kernel, const Launch& launch, const CudaTarget& target) {
  constexpr int64_t kMostX = 0x7fffffff, kMostYZ = 65535;
  const auto& grid = launch.grid;
  if (grid[0] > kMostX || grid[1] > kMostYZ || grid[2] > kMostYZ) {
    throw Error(ErrorCode::kUnsupportedOperator, "kernel " + kernel.name,
                fmt::format("a grid of {}x{}x{} programs is none of a GPU", grid[0], grid[1], grid[2]),
                "Count programs along axis 0");
  }
  std::vector<Argument> numbers;
  for (const LaunchArgument& argument : launch.arguments) numbers.push_back(argument.number);
  const std::vector<uint64_t> words = argument_words(kernel, numbers);
  const std::string name = std::exchange(kernel.name, codegen::kStandIn);
  CudaUnit unit = cuda_unit(std::move(kernel), target);

  codegen::KernelSource source;
  source.includes = std::move(unit.includes);
  source.text = std::move(unit.definitions);
  source.symbol = codegen::name_kernel(source.text, symbol_of(name));
  CudaLaunch made;
  made.symbol = source.symbol;
  for (size_t d = 0; d < 3; ++d) made.grid[d] = static_cast<uint32_t>(grid[d]);
  made.block = static_cast<uint32_t>(unit.threads);
  made.shared_bytes = static_cast<uint32_t>(unit.shared_bytes);
  const std::vector<LaunchArgument> memory = memory_of(launch);
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<uint8_t>& block = made.arguments.emplace_back(sizeof(uint64_t));
    std::memcpy(block.data(), &words[i], sizeof(uint64_t));
    if (!launch.arguments[i].is_memory()) continue;
    made.pointers.push_back({static_cast<int>(i), 0, static_cast<int>(position_of(launch.arguments[i], memory))});
  }
  source.launches.push_back(std::move(made));
  return source;
}

}  // namespace heddle::lang::cuda
