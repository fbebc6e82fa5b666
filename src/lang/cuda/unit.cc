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
#include "lang/passes/fold_accumulation.h"
#include "lang/passes/shorten_offsets.h"
#include "lang/passes/uniform_induction.h"

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kMostWarps = 32;
constexpr int64_t kMostExtent = (int64_t{1} << 31) - 1;  // of a tensor map

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

int parameter_index(const Kernel& kernel, ValueId v) {
  const auto found = std::find_if(kernel.parameters.begin(), kernel.parameters.end(),
                                  [&](const Kernel::Parameter& p) { return p.value == v; });
  return static_cast<int>(found - kernel.parameters.begin());
}

ParameterSum of_parameters(const Kernel& kernel, const Polynomial& p) {
  ParameterSum sum;
  for (const auto& [product, factor] : p.terms()) {
    std::vector<int> parameters;
    for (const ValueId v : product) parameters.push_back(parameter_index(kernel, v));
    sum.emplace_back(std::move(parameters), factor);
  }
  return sum;
}

TensorMapRecipe recipe_of(const Kernel& kernel, const TensorMapPlan& plan) {
  TensorMapRecipe recipe{parameter_index(kernel, plan.base), plan.element, {}, {}, plan.box};
  for (size_t i = 0; i < plan.size.size(); ++i) {
    if (plan.size[i]) recipe.size[i] = of_parameters(kernel, *plan.size[i]);
  }
  for (const Polynomial& stride : plan.strides) recipe.strides.push_back(of_parameters(kernel, stride));
  return recipe;
}

// Whether warpgroups that compute get registers that the one that fills rings does not need.
bool moves_registers(const Emitter& emitter) {
  return !emitter.producer.empty() && emitter.warps == 8;
}

// One more warpgroup, of which a thread fills rings; the others do not wait for it from there on.
std::string producer_text(const Emitter& emitter, int64_t computing) {
  const bool moves = moves_registers(emitter);
  return fmt::format(
      "  __syncthreads();\n  if (threadIdx.x >= {0}) {{\n{1}    if (threadIdx.x > {0}) return;\n{2}    return;\n  "
      "}}\n{3}",
      computing, moves ? "    tile::sm90::warpgroup_reg_dealloc<40>();\n" : "", emitter.producer,
      moves ? "  tile::sm90::warpgroup_reg_alloc<232>();\n" : "");
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
  for (const Kernel::Parameter& p : kernel.parameters) unit.parameters.push_back(kernel.type(p.value));
  for (const TensorMapParameter& map : emitter.maps) {
    parameters.insert(parameters.begin() + static_cast<std::ptrdiff_t>(unit.maps.size()),
                      fmt::format("const __grid_constant__ tile::sm90::TensorMap {}", map.name));
    unit.maps.push_back(recipe_of(kernel, map.plan));
  }
  unit.symbol = symbol_of(kernel.name);
  const int64_t computing = 32 * emitter.warps;
  constexpr int64_t kGroup = 128;
  unit.threads = computing + (emitter.producer.empty() ? 0 : kGroup);
  unit.shared_bytes = std::max(emitter.most_kept_bytes + emitter.shared_bytes, emitter.free_bytes);
  unit.shared_bytes = (unit.shared_bytes + 15) / 16 * 16;
  const int64_t barriers = unit.shared_bytes;
  unit.shared_bytes += (emitter.barrier_bytes + 15) / 16 * 16;
  unit.includes = {"tile/block/block.h"};
  if (emitter.uses_groups) unit.includes.emplace_back("tile/block/wgmma.h");
  if (!emitter.maps.empty()) unit.includes.emplace_back("tile/block/ring.h");
  std::string& text = unit.definitions;
  text = "namespace block = heddle::tile::block;\nusing tile::dims;\n\n";
  // ptxas moves registers only where it knows how many a thread begins with: one block has an SM.
  text += fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{\n", unit.threads,
                      moves_registers(emitter) ? ", 1" : "", unit.symbol, fmt::join(parameters, ", "));
  for (const std::string& alias : emitter.aliases) text += "  " + alias + "\n";
  constexpr int kAlignment = 1024;  // of operands that are swizzled
  const std::string rest = emitter.uses_groups ? fmt::format(", true, {}", kAlignment) : "";
  if (emitter.uses_groups) unit.shared_bytes += kAlignment;
  const std::string body = emitter.out.text();
  for (const auto& [name, offset] : {std::pair("kFree", int64_t{0}), std::pair("kShared", emitter.most_kept_bytes),
                                     std::pair("kBarriers", barriers)}) {
    const bool for_rings = offset == barriers && !emitter.prologue.empty();
    if (body.find(name) == std::string::npos && !for_rings) continue;
    text += fmt::format("  constexpr block::scratch<{}{}> {}{{}};\n", offset, rest, name);
  }
  for (const std::string& line : emitter.prologue) text += "  " + line + "\n";
  if (!emitter.producer.empty()) text += producer_text(emitter, computing);
  text += "\n" + body + "}\n";
  for (const std::string& path : unit.includes) unit.text += "#include \"" + path + "\"\n";
  unit.text += "\nnamespace tile = heddle::tile;\n" + text;
  if (!emitter.producer.empty()) unit.text = fmt::format("#define HEDDLE_BLOCK_THREADS {}\n", computing) + unit.text;
  return unit;
}

}  // namespace

SharedMemoryError::SharedMemoryError(const std::string& kernel, int64_t required, int64_t limit)
    : Error(ErrorCode::kOutOfMemory, "kernel " + kernel,
            fmt::format("its tiles go through {} bytes of shared memory, a block has {}", required, limit),
            "Make the tiles smaller"),
      required_(required),
      limit_(limit) {}

CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target, Loads loads) {
  const int64_t warps = warps_of(kernel);
  expand_scaled_products(kernel);
  fold_accumulation(kernel);
  uniform_induction(kernel);
  shorten_offsets(kernel);
  clone_indices(kernel);
  const std::vector<AxisFacts> facts = axis_facts(kernel);
  const Assignment layouts = assign_layouts(kernel, facts, {warps, target.has_wgmma()});
  // If tiles need too much shared memory, loops keep no operands there, then fewer loads run ahead.
  for (auto stages = static_cast<int>(kernel.attributes.integer("num_stages", 3));; --stages) {
    int64_t required = 0;
    for (const bool keeps : {true, false}) {
      Emitter emitter(
          kernel, facts, layouts,
          {warps, stages, target.shared_bytes_per_block, keeps,
           target.has_wgmma() && loads != Loads::kWithoutTensorMaps, loads == Loads::kAny, target.emulated});
      CudaUnit unit = written(emitter);
      if (unit.shared_bytes <= target.shared_bytes_per_block) return unit;
      required = unit.shared_bytes;
    }
    if (stages <= 1) throw SharedMemoryError(kernel.name, required, target.shared_bytes_per_block);
  }
}

namespace {

// Ends a map with its operand. A dimension that the kernel leaves open has as many lines as there is memory; of open
// rows in a batch nobody knows where they end.
bool fit_map(int64_t bytes, TensorMapDesc& map) {
  const int64_t element = map.element == TensorMapDesc::Element::kBits8    ? 1
                          : map.element == TensorMapDesc::Element::kBits16 ? 2
                                                                           : 4;
  const bool has_batches = map.extents[2] > 1;
  if (map.outer[0] > 0 || map.extents[0] == kMostExtent || (map.extents[1] == kMostExtent && has_batches)) return false;
  int64_t end = static_cast<int64_t>(map.extents[0]) * element;
  const auto fit = [&](uint64_t& extent, uint64_t stride) {
    const auto step = static_cast<int64_t>(stride);
    if (extent == kMostExtent && end <= bytes && step > 0) extent = static_cast<uint64_t>((bytes - end) / step + 1);
    end += static_cast<int64_t>(extent - 1) * step;
  };
  fit(map.extents[1], map.strides[0]);
  fit(map.extents[2], map.strides[1]);
  return end <= bytes;
}

// The unit for these arguments and its maps, each for one of the launch's operands.
std::pair<CudaUnit, std::vector<TensorMapDesc>> unit_of_launch(const Kernel& kernel, const Launch& launch,
                                                               std::span<const uint64_t> words,
                                                               std::span<const int64_t> bytes,
                                                               const CudaTarget& target) {
  CudaUnit unit = cuda_unit(kernel, target, Loads::kByComputing);
  std::optional<std::vector<TensorMapDesc>> maps = describe_maps(unit, words);
  const std::vector<LaunchArgument> memory = memory_of(launch);
  bool fits = maps.has_value();
  for (size_t i = 0; fits && i < maps->size(); ++i) {
    TensorMapDesc& map = (*maps)[i];
    const size_t operand = position_of(launch.arguments[static_cast<size_t>(map.operand)], memory);
    fits = fit_map(bytes[operand], map);
    map.operand = static_cast<int>(operand);
  }
  if (fits) return {std::move(unit), *std::move(maps)};
  return {cuda_unit(kernel, target, Loads::kWithoutTensorMaps), {}};
}

}  // namespace

codegen::KernelSource cuda_launch(Kernel kernel, const Launch& launch, std::span<const int64_t> bytes,
                                  const CudaTarget& target) {
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
  auto [unit, maps] = unit_of_launch(kernel, launch, words, bytes, target);

  codegen::KernelSource source;
  source.includes = std::move(unit.includes);
  source.text = std::move(unit.definitions);
  source.symbol = codegen::name_kernel(source.text, symbol_of(name));
  CudaLaunch made;
  made.symbol = source.symbol;
  for (size_t d = 0; d < 3; ++d) made.grid[d] = static_cast<uint32_t>(grid[d]);
  made.block = static_cast<uint32_t>(unit.threads);
  made.shared_bytes = static_cast<uint32_t>(unit.shared_bytes);
  made.maps = std::move(maps);
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

std::optional<std::vector<TensorMapDesc>> describe_maps(const CudaUnit& unit, std::span<const uint64_t> arguments) {
  constexpr int64_t kMostStride = int64_t{1} << 40;  // in bytes
  const auto argument = [&](int i) {
    const uint64_t word = arguments[static_cast<size_t>(i)];
    const Element element = unit.parameters[static_cast<size_t>(i)].element;
    if (bits_of(element) != 32) return static_cast<int64_t>(word);
    return is_signed_int(element) ? int64_t{static_cast<int32_t>(word)} : int64_t{static_cast<uint32_t>(word)};
  };
  const auto value = [&](const ParameterSum& sum) {
    int64_t total = 0;
    for (const auto& [parameters, factor] : sum) {
      int64_t term = factor;
      for (const int p : parameters) term *= argument(p);
      total += term;
    }
    return total;
  };
  std::vector<TensorMapDesc> maps;
  for (const TensorMapRecipe& recipe : unit.maps) {
    TensorMapDesc map;
    map.element = recipe.element == 1   ? TensorMapDesc::Element::kBits8
                  : recipe.element == 2 ? TensorMapDesc::Element::kBits16
                                        : TensorMapDesc::Element::kBits32;
    map.operand = recipe.base;
    map.box = {static_cast<uint32_t>(recipe.box[0]), static_cast<uint32_t>(recipe.box[1])};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t size = recipe.size[i] ? value(*recipe.size[i]) : kMostExtent;
      if (size <= 0 || size > kMostExtent) return std::nullopt;
      map.extents[i] = static_cast<uint64_t>(size);
    }
    std::array<uint64_t, 3> strides{};
    for (size_t i = 0; i < recipe.strides.size(); ++i) {
      const int64_t stride = value(recipe.strides[i]) * recipe.element;
      if (stride <= 0 || stride >= kMostStride || stride % 16 != 0) return std::nullopt;
      strides[i] = static_cast<uint64_t>(stride);
    }
    map.strides = {strides[0], recipe.strides.size() > 1 ? strides[1] : strides[0]};
    map.extents[2] = recipe.strides.size() > 1 ? kMostExtent : 1;
    if (recipe.strides.size() > 2) map.outer = {kMostExtent, strides[2]};
    maps.push_back(map);
  }
  return maps;
}

}  // namespace heddle::lang::cuda
