#include "driver/model/kernel_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "codegen/text/numbers.h"

namespace heddle::driver {
namespace {

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

}  // namespace heddle::driver
