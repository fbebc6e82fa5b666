#include "driver/kernel_set.h"

#include <algorithm>

#include "base/check.h"
#include "base/thread_pool.h"
#include "jit/compiler.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::driver {
namespace {

std::vector<runtime::Cubin> compile_cubins(const std::vector<KernelUnit>& units, const CudaTarget& target, int jobs,
                                           bool use_cache, bool& from_cache) {
  std::vector<runtime::Cubin> cubins(units.size());
  std::vector<uint8_t> cached(units.size());
  ThreadPool pool(std::clamp(jobs, 1, static_cast<int>(units.size())));
  pool.run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      jit::CompiledCubin compiled = jit::compile_cubin(units[i].text, target.architecture(), use_cache, true);
      cubins[i] = {std::move(compiled.bytes), units[i].symbols};
      cached[i] = compiled.from_cache;
    }
  });
  from_cache = std::all_of(cached.begin(), cached.end(), [](uint8_t hit) { return hit != 0; });
  return cubins;
}

}  // namespace

const std::string& KernelSet::add(codegen::KernelSource source) {
  const std::string symbol = source.symbol;
  std::set<std::string> names;
  for (const CudaLaunch& launch : source.launches) {
    HEDDLE_CHECK(launch.symbol == symbol || launch.symbol.starts_with(symbol + "_"), "{} launches {}", symbol,
                 launch.symbol);
    names.insert(launch.symbol);
  }
  const auto found = kernels_.try_emplace(symbol, Kernel{std::move(source), {}}).first;
  found->second.symbols.merge(names);
  return found->first;
}

std::vector<KernelUnit> KernelSet::units(int count, const Target& target) const {
  std::vector<const Kernel*> order;
  for (const auto& [symbol, kernel] : kernels_) order.push_back(&kernel);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->source.text.size() > b->source.text.size(); });
  // The largest first, each to the unit that is the smallest so far.
  const auto cut = static_cast<size_t>(std::clamp<int64_t>(count, 1, static_cast<int64_t>(order.size())));
  std::vector<std::vector<const codegen::KernelSource*>> parts(cut);
  std::vector<KernelUnit> units(cut);
  std::vector<size_t> sizes(cut);
  for (const Kernel* kernel : order) {
    const auto smallest = static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
    parts[smallest].push_back(&kernel->source);
    units[smallest].symbols.insert(units[smallest].symbols.end(), kernel->symbols.begin(), kernel->symbols.end());
    sizes[smallest] += kernel->source.text.size();
  }
  for (size_t i = 0; i < cut; ++i) units[i].text = codegen::translation_unit(parts[i], target);
  return units;
}

MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache) {
  MachineCode code;
  if (kernels.size() == 0) return code;
  if (target.kind == TargetKind::kCuda) {
    // NVRTC spends its time in each kernel, the host's compiler (for the emulator) in the headers of each unit.
    constexpr int kUnitsPerJob = 2;
    const int count = target.cuda.emulated ? jobs : jobs * kUnitsPerJob;
    code.cubins = compile_cubins(kernels.units(count, target), target.cuda, jobs, use_cache, code.from_cache);
    return code;
  }
  std::vector<std::string> texts;
  for (KernelUnit& unit : kernels.units(jobs, target)) texts.push_back(std::move(unit.text));
  jit::CompiledLibrary library = jit::compile(texts, target, jobs, use_cache);
  code.library = std::move(library.bytes);
  code.from_cache = library.from_cache;
  return code;
}

}  // namespace heddle::driver
