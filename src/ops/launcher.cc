#include "ops/launcher.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace heddle::ops {
namespace {

constexpr size_t kLine = 64;
// Of a kernel's arguments: the driver's limit, and what aligning each to a line adds at most.
constexpr size_t kMostBlock = 8192;
constexpr size_t kMostArguments = 16;

size_t round_up(size_t x) {
  return (x + kLine - 1) / kLine * kLine;
}

}  // namespace

Launcher::Launcher(const runtime::CudaContext& context, const runtime::CudaModule& module,
                   const std::vector<CudaLaunch>& launches)
    : context_(context) {
  launches_.reserve(launches.size());
  for (const CudaLaunch& launch : launches) add(module, launch);
}

void Launcher::add(const runtime::CudaModule& module, const CudaLaunch& launch) {
  Launch& to = launches_.emplace_back();
  to.symbol = launch.symbol;
  to.function = module.function(launch.symbol, launch.shared_bytes, launch.cluster);
  std::copy(launch.grid.begin(), launch.grid.end(), to.config.grid);
  to.config.block[0] = launch.block;
  to.config.shared_bytes = launch.shared_bytes;
  // The first one may be behind any launch of the caller's.
  const bool overlap = launches_.size() > 1 && runtime::may_overlap(context_);
  to.config.attribute_count = runtime::launch_attributes(launch, to.attributes.data(), overlap);
  to.maps = launch.maps;
  to.cache = std::make_unique<runtime::TensorMapCache>(launch.maps.size());
  for (size_t i = 0; i < launch.maps.size(); ++i) to.offsets.push_back(static_cast<uint32_t>(i * sizeof(runtime::TensorMap)));
  to.block.resize(launch.maps.size() * sizeof(runtime::TensorMap));
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    to.offsets.push_back(static_cast<uint32_t>(to.block.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(argument.data());
    to.block.insert(to.block.end(), bytes, bytes + argument.size());
    to.block.resize(round_up(to.block.size()));
  }
  for (const PointerPatch& patch : launch.pointers) {
    const auto argument = launch.maps.size() + static_cast<size_t>(patch.argument);
    to.patches.push_back({to.offsets.at(argument) + static_cast<uint32_t>(patch.offset), patch.operand});
  }
  HEDDLE_CHECK(to.block.size() <= kMostBlock && to.offsets.size() <= kMostArguments, "{}: {} bytes, {} arguments",
               to.symbol, to.block.size(), to.offsets.size());
}

void Launcher::launch(std::span<const uint64_t> addresses, CudaDriver::Handle stream) const {
  alignas(kLine) std::byte block[kMostBlock];
  void* arguments[kMostArguments];
  for (const Launch& launch : launches_) {
    const size_t maps = launch.maps.size() * sizeof(runtime::TensorMap);
    std::memcpy(block + maps, launch.block.data() + maps, launch.block.size() - maps);
    for (size_t i = 0; i < launch.maps.size(); ++i) {
      const TensorMapDesc& desc = launch.maps[i];
      const uint64_t base = addresses[static_cast<size_t>(desc.operand)];
      const runtime::TensorMap map = launch.cache->get(context_, i, desc, base, launch.symbol.c_str());
      std::memcpy(block + i * sizeof(map), &map, sizeof(map));
    }
    for (const Patch& patch : launch.patches) {
      std::memcpy(block + patch.offset, &addresses[static_cast<size_t>(patch.operand)], sizeof(uint64_t));
    }
    for (size_t i = 0; i < launch.offsets.size(); ++i) arguments[i] = block + launch.offsets[i];
    CudaLaunchConfig config = launch.config;
    config.stream = stream;
    config.attributes = const_cast<CudaLaunchAttribute*>(launch.attributes.data());
    runtime::launch_kernel(context_, config, launch.function, arguments, launch.symbol.c_str());
  }
}

}  // namespace heddle::ops
