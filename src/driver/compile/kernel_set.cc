#include "driver/compile/kernel_set.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "codegen/text/numbers.h"
#include "driver/backend.h"
#include "jit/compiler.h"
#include "jit/cuda/nvrtc.h"

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
void add_cubins(const KernelSet& kernels, KernelUnit unit, const CudaTarget& target, bool use_cache,
                std::vector<runtime::Cubin>& cubins, bool& from_cache) {
  const std::string architecture = target.architecture();
  jit::CompiledCubin compiled = jit::compile_cubin(unit.text, architecture, use_cache, jit::Slow::kAcceptAtOnce);
  from_cache = compiled.from_cache;
  const std::set<std::string> again_symbols = relaxable(kernels, compiled.log);
  if (!again_symbols.empty()) {
    KernelUnit alone = kernels.unit_of(again_symbols);
    const std::string relaxed = jit::relax_bounds(alone.text, compiled.log);
    jit::CompiledCubin again = jit::compile_cubin(relaxed, architecture, use_cache, jit::Slow::kAcceptAtOnce);
    from_cache = from_cache && again.from_cache;
    if (jit::spilled_bytes(again.log, again_symbols) < jit::spilled_bytes(compiled.log, again_symbols)) {
      std::erase_if(unit.symbols, [&](const std::string& symbol) { return again_symbols.contains(symbol); });
      cubins.push_back({std::move(again.bytes), std::move(alone.symbols)});
    }
  }
  if (!unit.symbols.empty()) cubins.push_back({std::move(compiled.bytes), std::move(unit.symbols)});
}

// What a text costs to compile, in bytes of text. A template takes NVRTC 0.2 to 1.2 s, 1000 bytes that are written out
// some 0.05 (the UNet of Stable Diffusion in f32). Micro-kernels take GCC 0.15 s, 1000 bytes of other text 0.03.
double compile_cost(const codegen::KernelText& kernel) {
  constexpr double kTemplate = 10e3, kMicroKernels = 5e3;
  const bool fills_template = std::any_of(kernel.includes.begin(), kernel.includes.end(), [](const std::string& path) {
    return path.starts_with("tile/kernel/cuda/");
  });
  const bool has_micro_kernels = kernel.text.find("tile::micro_kernels<") != std::string::npos;
  return static_cast<double>(codegen::without_comments(kernel.text).size()) + (fills_template ? kTemplate : 0) +
         (has_micro_kernels ? kMicroKernels : 0);
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

}  // namespace

const std::string& KernelSet::add(codegen::KernelSource source) {
  std::vector<Kernel*> kernels;
  const auto take = [&](codegen::KernelText text) {
    const std::string symbol = text.symbol;
    const auto found = kernels_.try_emplace(symbol, Kernel{std::move(text), {}, false, {}}).first;
    kernels.push_back(&found->second);
  };
  for (codegen::KernelText& other : source.others) take(std::move(other));
  take(std::move(static_cast<codegen::KernelText&>(source)));
  const std::string& symbol = kernels.back()->text.symbol;
  kernels.back()->is_step = source.launches.empty();
  for (size_t i = 0; i + 1 < kernels.size(); ++i) kernels.back()->calls.insert(kernels[i]->text.symbol);
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

void KernelSet::add(const KernelSet& other) {
  kernels_.insert(other.kernels_.begin(), other.kernels_.end());
  edited_.insert(other.edited_.begin(), other.edited_.end());
}

void KernelSet::add_cheapest(const KernelSet& other, double most_cost) {
  std::vector<KernelSet> more;
  for (const std::string& symbol : other.step_symbols()) {
    if (!kernels_.contains(symbol)) more.push_back(other.subset({symbol}));
  }
  std::stable_sort(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.cost() < b.cost(); });
  for (const KernelSet& one : more) {
    KernelSet both = *this;
    both.add(one);
    if (both.cost() > most_cost) return;
    *this = std::move(both);
  }
}

std::vector<EditedText> KernelSet::replace(std::map<std::string, EditedText> edited) {
  std::vector<EditedText> strangers;
  for (auto& [symbol, text] : edited) {
    if (kernels_.contains(symbol)) {
      edited_.insert_or_assign(symbol, std::move(text));
    } else {
      strangers.push_back(std::move(text));
    }
  }
  return strangers;
}

const codegen::KernelText& KernelSet::chosen(const Kernel& kernel) const {
  const auto edited = edited_.find(kernel.text.symbol);
  return edited == edited_.end() ? kernel.text : edited->second.text;
}

size_t KernelSet::size() const {
  return static_cast<size_t>(std::count_if(kernels_.begin(), kernels_.end(), [](const auto& named) {
    return named.second.is_step || !named.second.symbols.empty();
  }));
}

std::vector<std::string> KernelSet::step_symbols() const {
  std::vector<std::string> symbols;
  for (const auto& [symbol, kernel] : kernels_) {
    if (kernel.is_step) symbols.push_back(symbol);
  }
  return symbols;
}

double KernelSet::cost() const {
  double cost = 0;
  for (const auto& [symbol, kernel] : kernels_) cost += compile_cost(kernel.text);
  return cost;
}

std::vector<KernelUnit> KernelSet::units(const std::vector<int>& shares) const {
  std::vector<std::pair<double, const Kernel*>> order;
  std::vector<KernelUnit> units;
  for (const auto& [symbol, kernel] : kernels_) {
    const double cost = compile_cost(kernel.text);
    if (kernel.text.declaration.empty()) {
      order.emplace_back(cost, &kernel);
    } else {
      units.push_back({codegen::join_texts({&chosen(kernel)}), {}, 1, cost, true});
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  // The most expensive first, each to the unit that has the least of its share so far.
  const size_t cut = std::min(shares.size(), order.size());
  std::vector<std::vector<const codegen::KernelText*>> parts(cut);
  const size_t first = units.size();
  units.resize(first + cut);
  std::vector<double> filled(cut);
  for (const auto& [cost, kernel] : order) {
    const auto least = static_cast<size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
    KernelUnit& unit = units[first + least];
    parts[least].push_back(&chosen(*kernel));
    unit.symbols.insert(unit.symbols.end(), kernel->symbols.begin(), kernel->symbols.end());
    filled[least] += cost / shares[least];
    ++unit.kernels;
    unit.cost += cost;
  }
  for (size_t i = 0; i < cut; ++i) units[first + i].text = codegen::join_texts(parts[i]);
  return units;
}

KernelSet KernelSet::subset(const std::set<std::string>& wanted) const {
  KernelSet set;
  for (const auto& [symbol, kernel] : kernels_) {
    const bool is_wanted = kernel.is_step ? wanted.contains(symbol)
                                          : std::any_of(kernel.symbols.begin(), kernel.symbols.end(),
                                                        [&](const std::string& s) { return wanted.contains(s); });
    if (!is_wanted) continue;
    set.kernels_.emplace(symbol, kernel);
    for (const std::string& called : kernel.calls) set.kernels_.emplace(called, kernels_.at(called));
  }
  set.replace(edited_);
  return set;
}

KernelUnit KernelSet::unit_of(const std::set<std::string>& symbols) const {
  KernelUnit unit;
  std::vector<const codegen::KernelText*> texts;
  for (const auto& [name, kernel] : kernels_) {
    const bool named = std::any_of(kernel.symbols.begin(), kernel.symbols.end(),
                                   [&](const std::string& symbol) { return symbols.contains(symbol); });
    if (!named) continue;
    texts.push_back(&chosen(kernel));
    unit.symbols.insert(unit.symbols.end(), kernel.symbols.begin(), kernel.symbols.end());
  }
  unit.text = codegen::join_texts(texts);
  return unit;
}

namespace {

// An error of a compiler that is about edited texts names their files.
[[noreturn]] void edited_failed(const KernelSet& kernels, const Error& error) {
  std::vector<std::string> files;
  for (const auto& [symbol, edited] : kernels.edited()) {
    if (error.why().find(symbol) != std::string::npos) files.push_back(edited.file);
  }
  if (files.empty() || error.code() != ErrorCode::kCompilerFailed) throw error;
  fail(error.code(), fmt::format("{}", fmt::join(files, ", ")), error.why(),
       "Mend the file, or unset HEDDLE_KERNEL_OVERRIDE");
}

}  // namespace

MachineCode compile_cubins(const KernelSet& kernels, const CudaTarget& target, int jobs, bool use_cache,
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

namespace {

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

MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                            const KernelProgress& progress) {
  if (kernels.size() == 0) return {};
  try {
    return backend_of(target).compile(kernels, target, jobs, use_cache, progress);
  } catch (const Error& error) {
    edited_failed(kernels, error);
  }
}

}  // namespace heddle::driver
