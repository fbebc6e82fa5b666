// Modules and launches.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

// Layouts of the driver's interface.
struct Attribute {
  int id;
  int padding;
  union {
    char room[64];
    int number;
    emulated::Dim dim;
  } value;
};
static_assert(sizeof(Attribute) == 72);
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void* stream;
  Attribute* attributes;
  unsigned count;
};
constexpr int kAttributeCooperative = 2, kAttributeClusterDim = 4, kAttributeEarly = 6;
constexpr int kMaxThreadsPerBlock = 0, kMaxDynamicShared = 8;

// Arguments of a launch, copied when it is asked for.
struct Arguments {
  std::vector<std::unique_ptr<uint8_t[]>> values;
  std::vector<void*> pointers;
};

// A kernel's arguments are aligned to at most 64 bytes (tensor maps).
std::shared_ptr<Arguments> copy_arguments(const Kernel& kernel, void** arguments) {
  constexpr size_t kAlignment = 64;
  auto kept = std::make_shared<Arguments>();
  for (uint32_t i = 0; i < kernel.info->arguments; ++i) {
    const size_t bytes = kernel.info->argument_bytes[i];
    auto& value = kept->values.emplace_back(new uint8_t[bytes + kAlignment]);
    uint8_t* at = value.get() + (-reinterpret_cast<uintptr_t>(value.get()) & (kAlignment - 1));
    std::memcpy(at, arguments[i], bytes);
    kept->pointers.push_back(at);
  }
  return kept;
}

uint32_t blocks_per_sm(const Settings& s, uint32_t threads, uint32_t shared_bytes) {
  constexpr uint32_t kReserved = 1024;
  const uint32_t warps = (threads + 31) / 32;
  return std::min(
      {32u, 64 / std::max(warps, 1u), static_cast<uint32_t>(s.shared_bytes_per_sm()) / (shared_bytes + kReserved)});
}

uint64_t volume(const emulated::Dim& d) {
  return uint64_t{d.x} * d.y * d.z;
}

// What the hardware refuses, with its codes.
Result check_launch(Driver& driver, const Kernel& kernel, const LaunchShape& shape, const Settings& s) {
  const uint64_t threads = volume(shape.block), cluster = volume(shape.cluster);
  const auto refuse = [&](Result result, const std::string& why) {
    return driver.error(result, fmt::format("kernel {}: {}", kernel.name, why));
  };
  if (volume(shape.grid) == 0 || threads == 0) return refuse(kInvalidValue, "an empty grid or block");
  if (shape.grid.x > 0x7fffffff || shape.grid.y > 65535 || shape.grid.z > 65535) {
    return refuse(kInvalidValue, "the grid is too large");
  }
  if (threads > 1024 || shape.block.z > 64) return refuse(kInvalidValue, fmt::format("{} threads in a block", threads));
  if (kernel.info->max_threads != 0 && threads > kernel.info->max_threads) {
    return refuse(kInvalidValue,
                  fmt::format("{} threads, its __launch_bounds__ say {}", threads, kernel.info->max_threads));
  }
  if (shape.shared_bytes > static_cast<uint32_t>(kernel.most_shared)) {
    return refuse(kInvalidValue,
                  fmt::format("{} bytes of shared memory, allowed are {}", shape.shared_bytes, kernel.most_shared));
  }
  if (cluster > 1 && s.sm < 90) return refuse(kInvalidValue, "this device has no clusters");
  if (cluster > 16) return refuse(kInvalidValue, fmt::format("a cluster of {} blocks", cluster));
  if (shape.grid.x % shape.cluster.x != 0 || shape.grid.y % shape.cluster.y != 0 ||
      shape.grid.z % shape.cluster.z != 0) {
    return refuse(kInvalidValue, "the grid is no multiple of the cluster");
  }
  if (shape.resident < cluster) return refuse(kOutOfResources, "not one cluster fits on the device");
  if (shape.cooperative && volume(shape.grid) > shape.resident) {
    return refuse(kCooperativeTooLarge, fmt::format("{} blocks, {} fit", volume(shape.grid), shape.resident));
  }
  return kSuccess;
}

bool loses_device(const Driver& driver, const Settings& s) {
  if (s.fault == "lost") return true;
  return s.fault.starts_with("lost:") && driver.launches >= std::atoi(s.fault.c_str() + 5);
}

uint64_t next_seed(Driver& driver) {
  return Settings::now().seed + 0x10000 * driver.seeds++;
}

Result execute(Driver& driver, Kernel& kernel, const LaunchShape& shape, Arguments& arguments, bool begun) {
  const Settings s = Settings::now();
  if (loses_device(driver, s)) driver.lost = true;
  if (driver.lost) return driver.error(kLaunchFailed, "the device is lost");
  ++driver.launches;
  Scheduler& scheduler = driver.schedulers[driver.turn];
  std::string failure = begun
                            ? scheduler.finish()
                            : scheduler.run(kernel, shape, arguments.pointers.data(), driver.memory, next_seed(driver));
  const std::string zone = driver.memory.check_zones();
  if (failure.empty()) failure = zone;
  if (failure.empty()) return kSuccess;
  return driver.error(kLaunchFailed,
                      fmt::format("kernel {}: {} (HEDDLE_EMULATOR_SEED={})", kernel.name, failure, s.seed));
}

Result launch(void* function, LaunchShape shape, void* stream, void** arguments, void** extra) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  if (function == nullptr) return call.driver.error(kInvalidHandle, "no kernel");
  Kernel& kernel = *static_cast<Kernel*>(function);
  if (extra != nullptr || (arguments == nullptr && kernel.info->arguments > 0)) {
    return call.driver.error(kInvalidValue, "arguments are given one by one");
  }
  const emulated::Dim& fixed = kernel.info->cluster;
  if (fixed.x != 0) {
    if (volume(shape.cluster) > 1 && std::memcmp(&fixed, &shape.cluster, sizeof fixed) != 0) {
      return call.driver.error(kInvalidValue, "the cluster is not the one of __cluster_dims__");
    }
    shape.cluster = fixed;
  }
  shape.warp_lanes = kernel.module->info().lanes;
  const Settings s = Settings::now();
  const auto threads = static_cast<uint32_t>(std::min<uint64_t>(volume(shape.block), 2048));
  shape.resident = static_cast<uint32_t>(s.sms) * blocks_per_sm(s, threads, shape.shared_bytes);
  if (const Result result = check_launch(call.driver, kernel, shape, s); result != kSuccess) return result;
  std::shared_ptr<Arguments> kept = copy_arguments(kernel, arguments);
  Driver& driver = call.driver;
  Operation operation;
  operation.launch = [&driver, &kernel, shape, kept](bool begun) {
    return execute(driver, kernel, shape, *kept, begun);
  };
  Work& work = operation.work;
  work.kind = Work::Kind::kKernel;
  work.name = kernel.name.c_str();
  work.grid = {shape.grid.x, shape.grid.y, shape.grid.z};
  work.block = {shape.block.x, shape.block.y, shape.block.z};
  work.cluster = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  work.shared_bytes = shape.shared_bytes;
  if (shape.early) {
    operation.begin = [&driver, &kernel, shape, kept] {
      driver.schedulers[1 - driver.turn].begin(kernel, shape, kept->pointers.data(), driver.memory, next_seed(driver));
    };
  }
  return driver.submit(stream, std::move(operation));
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT Result cuModuleLoadData(void** module, const void* image) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  std::string why;
  std::unique_ptr<Module> loaded = Module::load(image, &why);
  if (loaded == nullptr) return call.driver.error(kInvalidImage, why);
  *module = loaded.release();
  return kSuccess;
}
HEDDLE_EXPORT Result cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}
HEDDLE_EXPORT Result cuModuleUnload(void* module) {
  const Call call;
  call.driver.drain_all();
  races().end_all();
  delete static_cast<Module*>(module);
  return kSuccess;
}
HEDDLE_EXPORT Result cuModuleGetFunction(void** function, void* module, const char* name) {
  const Call call;
  if (module == nullptr) return call.driver.error(kInvalidHandle, "no module");
  *function = static_cast<Module*>(module)->find(name);
  return *function == nullptr ? call.driver.error(kNotFound, name) : kSuccess;
}
HEDDLE_EXPORT Result cuFuncSetAttribute(void* function, int attribute, int value) {
  const Call call;
  if (function == nullptr) return call.driver.error(kInvalidHandle, "no kernel");
  if (attribute != kMaxDynamicShared) return kSuccess;  // hints
  if (value < 0 || value > Settings::now().shared_bytes_per_block()) {
    return call.driver.error(kInvalidValue, fmt::format("{} bytes of shared memory in a block", value));
  }
  static_cast<Kernel*>(function)->most_shared = std::max(value, 48 << 10);
  return kSuccess;
}
// Registers and local memory are unknown here: 0.
HEDDLE_EXPORT Result cuFuncGetAttribute(int* value, int attribute, void* function) {
  const Call call;
  if (function == nullptr) return call.driver.error(kInvalidHandle, "no kernel");
  const Kernel& kernel = *static_cast<Kernel*>(function);
  *value = 0;
  if (attribute == kMaxDynamicShared) *value = kernel.most_shared;
  if (attribute == kMaxThreadsPerBlock)
    *value = kernel.info->max_threads == 0 ? 1024 : static_cast<int>(kernel.info->max_threads);
  return kSuccess;
}
HEDDLE_EXPORT Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t shared_bytes) {
  *blocks = static_cast<int>(
      blocks_per_sm(Settings::now(), static_cast<uint32_t>(threads), static_cast<uint32_t>(shared_bytes)));
  return kSuccess;
}
HEDDLE_EXPORT Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* function, int threads,
                                                                          size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}

HEDDLE_EXPORT Result cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                    unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                                    void** arguments, void** extra) {
  const ApiCall api(307);
  LaunchShape shape;
  shape.grid = {grid_x, grid_y, grid_z};
  shape.block = {block_x, block_y, block_z};
  shape.shared_bytes = shared_bytes;
  return launch(function, shape, stream, arguments, extra);
}
HEDDLE_EXPORT Result cuLaunchCooperativeKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, void* stream, void** arguments) {
  const ApiCall api(477);
  LaunchShape shape;
  shape.grid = {grid_x, grid_y, grid_z};
  shape.block = {block_x, block_y, block_z};
  shape.shared_bytes = shared_bytes;
  shape.cooperative = true;
  return launch(function, shape, stream, arguments, nullptr);
}
// Of the attributes, cluster, cooperation and an early beginning decide what runs; others are about time.
HEDDLE_EXPORT Result cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  const ApiCall api(652);
  const auto& c = *static_cast<const LaunchConfig*>(config);
  LaunchShape shape;
  shape.grid = {c.grid[0], c.grid[1], c.grid[2]};
  shape.block = {c.block[0], c.block[1], c.block[2]};
  shape.shared_bytes = c.shared_bytes;
  for (unsigned i = 0; i < c.count; ++i) {
    const Attribute& attribute = c.attributes[i];
    if (attribute.id == kAttributeCooperative) shape.cooperative = attribute.value.number != 0;
    if (attribute.id == kAttributeClusterDim) shape.cluster = attribute.value.dim;
    if (attribute.id == kAttributeEarly) shape.early = attribute.value.number != 0;
  }
  if (volume(shape.cluster) == 0) return Driver::get().error(kInvalidValue, "an empty cluster");
  return launch(function, shape, c.stream, arguments, extra);
}
