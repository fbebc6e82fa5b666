#include "lang/cuda/kernel.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <vector>

#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::lang::cuda {
namespace {

constexpr std::string_view kPrefix = "cuda-";

CudaTarget target_of(std::string_view name) {
  std::string_view architecture = name;
  if (architecture.starts_with(kPrefix)) architecture.remove_prefix(kPrefix.size());
  if (const auto target = CudaTarget::of_architecture(architecture)) return *target;
  throw Error(ErrorCode::kInvalidArgument, "target", fmt::format("{} is no GPU that kernels are compiled for", name),
              "Use cuda-sm_80 or a later one, as heddle devices names it");
}

// The most registers of a kernel in ptxas' log.
int registers_of(std::string_view log) {
  constexpr std::string_view kWords = "Used ";
  int most = 0;
  for (size_t at = log.find(kWords); at != std::string_view::npos; at = log.find(kWords, at + 1)) {
    int n = 0;
    std::from_chars(log.data() + at + kWords.size(), log.data() + log.size(), n);
    most = std::max(most, n);
  }
  return most;
}

}  // namespace

std::string target_name(const CudaTarget& target) {
  return std::string(kPrefix) + target.architecture();
}

CudaKernel::CudaKernel(Kernel kernel, std::string_view target, Loads loads)
    : CudaKernel(std::move(kernel), target_of(target), loads) {}

CudaKernel::CudaKernel(Kernel kernel, const CudaTarget& target, Loads loads)
    : kernel_(std::move(kernel)), target_(target), unit_(cuda_unit(kernel_, target, loads)) {
  jit::CompiledCubin compiled = jit::compile_cubin(unit_.text, target.architecture(), true, jit::Slow::kAccept);
  machine_code_ = std::move(compiled.bytes);
  registers_ = registers_of(compiled.log);
  spills_ = jit::spilled_bytes(compiled.log);
}

const CudaKernel& CudaKernel::without_maps() const {
  std::call_once(made_, [&] { without_maps_.reset(new CudaKernel(kernel_, target_, Loads::kWithoutTensorMaps)); });
  return *without_maps_;
}

const CudaKernel::Loaded& CudaKernel::on(int device) const {
  const std::lock_guard lock(mutex_);
  Loaded& loaded = loaded_[device];
  if (loaded.function == nullptr) {
    loaded.context = runtime::CudaContext::of_device(device);
    loaded.module = std::make_unique<runtime::CudaModule>(*loaded.context, machine_code_);
    loaded.function = loaded.module->function(unit_.symbol, static_cast<uint32_t>(unit_.shared_bytes));
    loaded.maps = std::make_unique<runtime::TensorMapCache>(unit_.maps.size());
  }
  return loaded;
}

void CudaKernel::launch(std::array<int64_t, 3> grid, std::span<const uint64_t> arguments, CudaDriver::Handle stream,
                        int device) const {
  if (arguments.size() != unit_.parameters.size()) {
    throw Error(
        ErrorCode::kInvalidArgument, "kernel " + unit_.symbol,
        fmt::format("it has {} parameters, {} arguments were given", unit_.parameters.size(), arguments.size()));
  }
  CudaLaunchConfig config;
  for (size_t d = 0; d < 3; ++d) {
    if (grid[d] == 0) return;
    if (grid[d] < 0 || grid[d] > std::numeric_limits<int32_t>::max()) {
      throw Error(ErrorCode::kInvalidArgument, "kernel " + unit_.symbol,
                  fmt::format("a grid of {} programs along axis {} is none", grid[d], d));
    }
    config.grid[d] = static_cast<unsigned>(grid[d]);
  }
  config.stream = stream;
  const std::optional<std::vector<TensorMapDesc>> maps = describe_maps(unit_, arguments);
  if (maps) return launch_with(*maps, config, arguments, device);
  without_maps().launch_with({}, config, arguments, device);
}

void CudaKernel::launch_with(std::span<const TensorMapDesc> maps, const CudaLaunchConfig& grid,
                             std::span<const uint64_t> arguments, int device) const {
  CudaLaunchConfig config = grid;
  config.block[0] = static_cast<unsigned>(unit_.threads);
  config.shared_bytes = static_cast<unsigned>(unit_.shared_bytes);
  const Loaded& loaded = on(device);
  const runtime::CudaContext& context = *loaded.context;
  context.make_current();
  std::vector<runtime::TensorMap> encoded(maps.size());
  std::vector<void*> pointers;
  pointers.reserve(arguments.size() + maps.size() + 1);
  for (size_t i = 0; i < maps.size(); ++i) {
    const uint64_t base = arguments[static_cast<size_t>(maps[i].operand)];
    encoded[i] = loaded.maps->get(context, i, maps[i], base, unit_.symbol.c_str());
    pointers.push_back(&encoded[i]);
  }
  for (const uint64_t& slot : arguments) pointers.push_back(const_cast<uint64_t*>(&slot));
  pointers.push_back(nullptr);
  runtime::launch_kernel(context, config, loaded.function, pointers.data(), unit_.symbol.c_str());
}

}  // namespace heddle::lang::cuda
