#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/check.h"
#include "codegen/attention/attention.h"
#include "codegen/codegen.h"
#include "codegen/product/cpu/contraction.h"
#include "codegen/product/cpu/micro_table.h"
#include "codegen/product/cuda/contraction.h"
#include "codegen/recurrence/recurrent.h"
#include "codegen/region/cpu/bundle.h"
#include "codegen/region/cpu/standalone.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/region/cuda/bundle.h"
#include "codegen/region/cuda/standalone.h"
#include "codegen/region/cuda/stitch.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/numbers.h"
#include "target/cuda_occupancy.h"

namespace heddle::codegen {

namespace {

// Where a function's name stands before its parameters; npos if it is not there.
size_t find_function(std::string_view text, std::string_view name) {
  return text.find(fmt::format(" {}(", name));
}

KernelText& text_with(KernelSource& source, const std::string& function) {
  if (find_function(source.text, function) != std::string::npos) return source;
  const auto other = std::find_if(source.others.begin(), source.others.end(), [&](const KernelText& kernel) {
    return find_function(kernel.text, function) != std::string::npos;
  });
  HEDDLE_CHECK(other != source.others.end(), "no kernel is named {}", function);
  return *other;
}

// Lets launches begin before the one in front of them has ended (tile/arch/sm90/dependent.h). Kernels whose launch is
// early already see to it themselves, and so do all that are named after a text that says whether theirs is. Long ones
// stay as they are, whose blocks would crowd where the kernel in front leaves room, beside a small L1 if that has much
// shared memory: DIEN's recurrences took 60 instead of 46 us so. So do grids whose blocks wait for each other, which
// need all of the GPU.
void begin_early(KernelSource& source, bool long_running, const CudaTarget& target) {
  constexpr int kFewRegisters = 32;
  std::set<std::string> done;
  for (CudaLaunch& launch : source.launches) {
    if (launch.cooperative) continue;
    const bool waits = launch.early;
    launch.early = !long_running && is_one_wave(launch, target, kFewRegisters);
    if (waits || !done.insert(launch.symbol).second) continue;
    KernelText& kernel = text_with(source, launch.symbol);
    const size_t body = kernel.text.find('{', find_function(kernel.text, launch.symbol));
    kernel.text.insert(body + 1,
                       "\n  heddle::tile::sm90::launch_dependents();\n  heddle::tile::sm90::grid_dependency_wait();");
    kernel.includes.emplace_back("tile/arch/sm90/dependent.h");
  }
}

KernelSource emit_any(const schedule::KernelDesc& desc, const schedule::Config& config, const Target& target,
                      bool marked = false) {
  if (const auto* stitch = std::get_if<std::shared_ptr<const schedule::StitchDesc>>(&desc.body)) {
    return emit_stitch(desc, **stitch, config, marked);
  }
  if (const auto* bundle = std::get_if<std::shared_ptr<const schedule::BundleDesc>>(&desc.body)) {
    return emit_bundle(**bundle, desc.operands.size(), marked);
  }
  if (const auto* stitch = std::get_if<std::shared_ptr<const schedule::CudaStitchDesc>>(&desc.body)) {
    return emit_cuda_stitch(desc, **stitch, target.cuda, marked);
  }
  if (const auto* loops = std::get_if<std::shared_ptr<const schedule::RecurrentDesc>>(&desc.body)) {
    return emit_cuda_recurrence(desc, **loops, target);
  }
  if (const auto* bundle = std::get_if<std::shared_ptr<const schedule::CudaBundleDesc>>(&desc.body)) {
    return emit_cuda_bundle(**bundle, desc.operands.size(), target.cuda, marked);
  }
  if (const auto* attention = std::get_if<std::shared_ptr<const schedule::AttentionDesc>>(&desc.body)) {
    return emit_cuda_attention(desc, **attention, config, target);
  }
  if (const auto* separate = std::get_if<std::shared_ptr<const schedule::StandaloneDesc>>(&desc.body)) {
    if (target.kind == TargetKind::kCuda) return emit_cuda_standalone(desc, **separate, config);
    return emit_standalone(desc, **separate, config, marked);
  }
  const auto& contraction = *std::get<std::shared_ptr<const schedule::ContractionDesc>>(desc.body);
  if (target.kind == TargetKind::kCuda) return emit_cuda_contraction(desc, contraction, config, target);
  return emit_contraction(desc, contraction, config, target, marked);
}

bool takes_arguments(const schedule::KernelDesc& desc, const Target& target) {
  if (target.kind == TargetKind::kCpu) return true;
  const auto* stitch = std::get_if<std::shared_ptr<const schedule::CudaStitchDesc>>(&desc.body);
  if (stitch != nullptr) return !(*stitch)->whole_grid;
  return std::holds_alternative<std::shared_ptr<const schedule::CudaBundleDesc>>(desc.body);
}

// nullopt: all numbers of the kernel are literals.
std::optional<KernelSource> emit_with_arguments(const schedule::KernelDesc& desc, const schedule::Config& config,
                                                const Target& target, NumberChoice& choice) {
  KernelSource source = emit_any(desc, config, target, true);
  const NumberedText numbered = numbers_of(source.text);
  const std::vector<bool> chosen = choice.arguments(numbered.pattern, numbered.numbers);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) source.arguments.push_back(numbered.numbers[i]);
  }
  if (source.arguments.empty()) return std::nullopt;
  source.text = with_arguments(source.text, chosen);
  declare_others(source);
  source.symbol = name_kernel(source.text, source.symbol + "_any");
  for (CudaLaunch& launch : source.launches) launch.symbol = source.symbol;
  return source;
}

}  // namespace

KernelSource emit(const schedule::KernelDesc& desc, const schedule::Config& config, const Target& target,
                  NumberChoice* choice) {
  if (choice != nullptr && takes_arguments(desc, target)) {
    if (auto source = emit_with_arguments(desc, config, target, *choice)) return std::move(*source);
  }
  KernelSource source = emit_any(desc, config, target);
  for (const CudaLaunch& launch : source.launches) {
    const std::string why = reject_waiting(launch, target.cuda);
    HEDDLE_CHECK(why.empty(), "{}: {}", launch.symbol, why);
  }
  const bool decides = std::holds_alternative<std::shared_ptr<const schedule::CudaStitchDesc>>(desc.body) ||
                       std::holds_alternative<std::shared_ptr<const schedule::CudaBundleDesc>>(desc.body);
  if (target.kind == TargetKind::kCuda && target.cuda.sm >= 90 && !decides) {
    begin_early(source, std::holds_alternative<std::shared_ptr<const schedule::RecurrentDesc>>(desc.body), target.cuda);
  }
  return source;
}

std::string join_texts(const std::vector<const KernelText*>& texts) {
  std::set<std::string> includes, symbols;
  for (const KernelText* kernel : texts) includes.insert(kernel->includes.begin(), kernel->includes.end());
  std::string unit;
  for (const std::string& path : includes) unit += "#include \"" + path + "\"\n";
  // Texts that include what they need by themselves have an alias of their own, too.
  if (!includes.empty()) unit += "\nnamespace tile = heddle::tile;\n";
  for (const KernelText* kernel : texts) {
    if (symbols.insert(kernel->symbol).second) unit += "\n" + kernel->text;
  }
  return unit;
}

std::string translation_unit(const std::vector<const KernelSource*>& kernels) {
  std::vector<const KernelText*> texts;
  for (const KernelSource* kernel : kernels) {
    texts.push_back(kernel);
    for (const KernelText& other : kernel->others) texts.push_back(&other);
  }
  return join_texts(texts);
}

}  // namespace heddle::codegen
