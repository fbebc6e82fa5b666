#include "driver/kernel_set.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/thread_pool.h"
#include "jit/compiler.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::driver {
namespace {

// Kernels that spill are compiled again with relaxed bounds, without their neighbours. What spills may also be a
// subroutine of the compiler's library (division of doubles), which no second attempt changes.
void add_cubins(const KernelSet& kernels, KernelUnit unit, const Target& target, bool use_cache,
                std::vector<runtime::Cubin>& cubins, bool& from_cache) {
  const std::string architecture = target.cuda.architecture();
  jit::CompiledCubin compiled = jit::compile_cubin(unit.text, architecture, use_cache, jit::Slow::kAcceptAtOnce);
  from_cache = compiled.from_cache;
  const KernelUnit alone = kernels.unit_of(jit::spilling_kernels(compiled.log));
  const std::string relaxed = jit::relax_bounds(alone.text, compiled.log);
  jit::CompiledCubin again;
  if (relaxed != alone.text) {
    again = jit::compile_cubin(relaxed, architecture, use_cache, jit::Slow::kAcceptAtOnce);
    from_cache = from_cache && again.from_cache;
  }
  if (!again.bytes.empty() && jit::spilled_bytes(again.log) < jit::spilled_bytes(compiled.log)) {
    std::erase_if(unit.symbols, [&](const std::string& symbol) {
      return std::find(alone.symbols.begin(), alone.symbols.end(), symbol) != alone.symbols.end();
    });
    cubins.push_back({std::move(again.bytes), alone.symbols});
  }
  if (!unit.symbols.empty()) cubins.push_back({std::move(compiled.bytes), std::move(unit.symbols)});
}

std::vector<runtime::Cubin> compile_cubins(const KernelSet& kernels, int count, const Target& target, int jobs,
                                           bool use_cache, bool& from_cache) {
  std::vector<KernelUnit> units = kernels.units(count);
  std::vector<std::vector<runtime::Cubin>> parts(units.size());
  std::vector<uint8_t> cached(units.size());
  ThreadPool pool(std::clamp(jobs, 1, static_cast<int>(units.size())));
  pool.run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      bool hit = false;
      add_cubins(kernels, std::move(units[i]), target, use_cache, parts[i], hit);
      cached[i] = hit;
    }
  });
  from_cache = std::all_of(cached.begin(), cached.end(), [](uint8_t hit) { return hit != 0; });
  std::vector<runtime::Cubin> cubins;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(cubins));
  return cubins;
}

}  // namespace

const std::string& KernelSet::add(codegen::KernelSource source) {
  std::vector<Kernel*> kernels;
  const auto take = [&](codegen::KernelText text) {
    const std::string symbol = text.symbol;
    const auto found = kernels_.try_emplace(symbol, Kernel{std::move(text), {}}).first;
    kernels.push_back(&found->second);
  };
  for (codegen::KernelText& other : source.others) take(std::move(other));
  take(std::move(static_cast<codegen::KernelText&>(source)));
  const std::string& symbol = kernels.back()->text.symbol;
  for (const CudaLaunch& launch : source.launches) {
    const auto defines = [&](const Kernel* kernel) {
      return launch.symbol == kernel->text.symbol || launch.symbol.starts_with(kernel->text.symbol + "_");
    };
    const auto kernel = std::find_if(kernels.begin(), kernels.end(), defines);
    HEDDLE_CHECK(kernel != kernels.end(), "{} launches {}", symbol, launch.symbol);
    (*kernel)->symbols.insert(launch.symbol);
  }
  return symbol;
}

std::vector<KernelUnit> KernelSet::units(int count) const {
  std::vector<const Kernel*> order;
  for (const auto& [symbol, kernel] : kernels_) order.push_back(&kernel);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->text.text.size() > b->text.text.size(); });
  // The largest first, each to the unit that is the smallest so far.
  const auto cut = static_cast<size_t>(std::clamp<int64_t>(count, 1, static_cast<int64_t>(order.size())));
  std::vector<std::vector<const codegen::KernelText*>> parts(cut);
  std::vector<KernelUnit> units(cut);
  std::vector<size_t> sizes(cut);
  for (const Kernel* kernel : order) {
    const auto smallest = static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
    parts[smallest].push_back(&kernel->text);
    units[smallest].symbols.insert(units[smallest].symbols.end(), kernel->symbols.begin(), kernel->symbols.end());
    sizes[smallest] += kernel->text.text.size();
  }
  for (size_t i = 0; i < cut; ++i) units[i].text = codegen::join_texts(parts[i]);
  return units;
}

KernelUnit KernelSet::unit_of(const std::set<std::string>& symbols) const {
  KernelUnit unit;
  std::vector<const codegen::KernelText*> texts;
  for (const auto& [name, kernel] : kernels_) {
    const bool named = std::any_of(kernel.symbols.begin(), kernel.symbols.end(),
                                   [&](const std::string& symbol) { return symbols.contains(symbol); });
    if (!named) continue;
    texts.push_back(&kernel.text);
    unit.symbols.insert(unit.symbols.end(), kernel.symbols.begin(), kernel.symbols.end());
  }
  unit.text = codegen::join_texts(texts);
  return unit;
}

MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache) {
  MachineCode code;
  if (kernels.size() == 0) return code;
  if (target.kind == TargetKind::kCuda) {
    // NVRTC spends its time in each kernel, the host's compiler (for the emulator) in the headers of each unit.
    constexpr int kUnitsPerJob = 2;
    const int count = target.cuda.emulated ? jobs : jobs * kUnitsPerJob;
    code.cubins = compile_cubins(kernels, count, target, jobs, use_cache, code.from_cache);
    return code;
  }
  std::vector<std::string> texts;
  for (KernelUnit& unit : kernels.units(jobs)) texts.push_back(std::move(unit.text));
  jit::CompiledLibrary library = jit::compile(texts, target, jobs, use_cache);
  code.library = std::move(library.bytes);
  code.from_cache = library.from_cache;
  return code;
}

}  // namespace heddle::driver
