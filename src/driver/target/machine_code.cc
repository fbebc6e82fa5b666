#include "driver/target/machine_code.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "codegen/text/numbers.h"
#include "jit/compiler.h"
#include "jit/cuda/nvrtc.h"
#include "jit/hip/code_object.h"

namespace heddle::driver {
namespace {

// Those that spill although they may have more registers than their bounds leave them. What spills may also be a
// subroutine of the compiler's library (division of doubles), which no second attempt changes, or a kernel that has all
// registers there are.
std::set<std::string> relaxable(const KernelSet& kernels, const std::string& log) {
  std::set<std::string> symbols;
  for (const std::string& spilling : jit::spilling_kernels(log)) {
    const KernelUnit own = kernels.unit_of({spilling});
    if (jit::relax_bounds(own.text, log) != own.text) symbols.insert(own.symbols.begin(), own.symbols.end());
  }
  return symbols;
}

// Kernels that spill are compiled again with relaxed bounds, without their neighbours.
void add_cubins(const KernelSet& kernels, KernelUnit unit, const GpuTarget& target, bool use_cache,
                std::vector<runtime::Cubin>& cubins, bool& from_cache) {
  const std::string architecture = target.architecture();
  jit::CompiledCubin compiled = jit::compile_for_gpu(unit.text, architecture, use_cache, jit::Slow::kAcceptAtOnce);
  from_cache = compiled.from_cache;
  const std::set<std::string> again_symbols = relaxable(kernels, compiled.log);
  if (!again_symbols.empty()) {
    KernelUnit alone = kernels.unit_of(again_symbols);
    const std::string relaxed = jit::relax_bounds(alone.text, compiled.log);
    jit::CompiledCubin again = jit::compile_for_gpu(relaxed, architecture, use_cache, jit::Slow::kAcceptAtOnce);
    from_cache = from_cache && again.from_cache;
    if (jit::spilled_bytes(again.log, again_symbols) < jit::spilled_bytes(compiled.log, again_symbols)) {
      std::erase_if(unit.symbols, [&](const std::string& symbol) { return again_symbols.contains(symbol); });
      cubins.push_back({std::move(again.bytes), std::move(alone.symbols)});
    }
  }
  if (!unit.symbols.empty()) cubins.push_back({std::move(compiled.bytes), std::move(unit.symbols)});
}

// Adds up the units that threads have compiled.
class Tally {
 public:
  Tally(const std::vector<KernelUnit>& units, const KernelProgress& progress) : progress_(progress) {
    for (const KernelUnit& unit : units) {
      units_.emplace_back(unit.kernels, unit.cost);
      count_ += unit.kernels;
      cost_ += unit.cost;
    }
    if (progress_) progress_(0, count_, 0);
  }

  void add(size_t unit) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    const auto [kernels, cost] = std::exchange(units_[unit], {0, 0.0});  // one that is compiled again counts once
    done_ += kernels;
    done_cost_ += cost;
    progress_(done_, count_, cost_ > 0 ? done_cost_ / cost_ : 1);
  }

 private:
  const KernelProgress& progress_;
  std::mutex mutex_;
  std::vector<std::pair<size_t, double>> units_;
  size_t count_ = 0, done_ = 0;
  double cost_ = 0, done_cost_ = 0;
};

// Each unit costs its headers once more: as many as jobs, and more only where one would take some five seconds, so that
// jobs end together and somebody who waits sees them.
std::vector<KernelUnit> library_units(const KernelSet& kernels, int jobs) {
  constexpr double kLargeUnit = 150e3;
  const auto wanted = std::max(static_cast<size_t>(jobs), static_cast<size_t>(kernels.cost() / kLargeUnit));
  std::vector<KernelUnit> units = kernels.units(std::vector<int>(wanted, 1));
  // Comments tell nodes and shapes: other batches of a model have equal kernels, which are in the cache then.
  for (KernelUnit& unit : units) {
    if (kernels.edited().empty()) unit.text = codegen::without_comments(unit.text);
  }
  return units;
}

}  // namespace

MachineCode compile_cubins(const KernelSet& kernels, const GpuTarget& target, int jobs, bool use_cache,
                           const KernelProgress& progress) {
  // NVRTC spends its time in each kernel: a small unit for each job is left for those that are done first. The host's
  // compiler (for the emulator) spends it in the headers of each unit.
  constexpr int kLarge = 4;
  std::vector<int> shares(static_cast<size_t>(jobs), kLarge);
  if (!target.emulated) shares.resize(2 * shares.size(), 1);
  std::vector<KernelUnit> units = kernels.units(shares);
  Tally tally(units, progress);
  std::vector<std::vector<runtime::Cubin>> parts(units.size());
  std::vector<uint8_t> cached(units.size());
  const std::unique_ptr<ThreadPool> pool = pool_of_up_to(std::clamp(jobs, 1, static_cast<int>(units.size())));
  pool->run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      bool hit = false;
      add_cubins(kernels, std::move(units[i]), target, use_cache, parts[i], hit);
      cached[i] = hit;
      tally.add(i);
    }
  });
  MachineCode code;
  code.from_cache = std::all_of(cached.begin(), cached.end(), [](uint8_t hit) { return hit != 0; });
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(code.cubins));
  return code;
}

LinedCubin compile_lined_cubin(const KernelSet& kernels, const std::set<std::string>& symbols, const CudaTarget& target,
                               bool relaxed, bool use_cache) {
  LinedCubin lined{"", kernels.unit_of(symbols).text};
  lined.bytes = jit::compile_cubin(lined.text, target.architecture(), use_cache,
                                   relaxed ? jit::Slow::kAccept : jit::Slow::kAcceptAtOnce, jit::Lines::kWritten)
                    .bytes;
  return lined;
}

LinedLibrary compile_lined_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache) {
  LinedLibrary library;
  jit::Recipe recipe{jit::compile_flags(target)};
  for (KernelUnit& unit : library_units(kernels, jobs)) {
    library.units.push_back(std::move(unit.text));
    recipe.shared += unit.shared;
  }
  library.bytes = jit::compile_lined(library.units, std::move(recipe), jobs, use_cache, kernels.step_symbols());
  return library;
}

MachineCode compile_library(const KernelSet& kernels, const CpuTarget& target, int jobs, bool use_cache,
                            const KernelProgress& progress) {
  std::vector<KernelUnit> units = library_units(kernels, jobs);
  Tally tally(units, progress);
  std::vector<std::string> texts;
  jit::Recipe recipe{jit::compile_flags(target), {""}, {}, [&](size_t unit) { tally.add(unit); }};
  // Lines take a compiler little more time, and a profile would have to compile all of it once more without.
  recipe.lines = true;
  for (KernelUnit& unit : units) {
    texts.push_back(std::move(unit.text));
    recipe.shared += unit.shared;
  }
  jit::CompiledLibrary library = jit::compile(texts, std::move(recipe), jobs, use_cache, kernels.step_symbols());
  return {std::move(library.bytes), {}, library.from_cache};
}

}  // namespace heddle::driver
