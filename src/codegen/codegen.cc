#include "codegen/codegen.h"

#include <optional>
#include <set>

#include "base/check.h"
#include "codegen/back_to_back/cpu.h"
#include "codegen/back_to_back/cuda.h"
#include "codegen/backend.h"
#include "codegen/product/cpu/contraction.h"
#include "codegen/product/cpu/micro_table.h"
#include "codegen/recurrence/recurrent.h"
#include "codegen/region/cpu/bundle.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/region/cuda/bundle.h"
#include "codegen/region/cuda/stitch.h"
#include "codegen/sequence/sequence.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/numbers.h"

namespace heddle::codegen {

namespace {

KernelSource emit_any(const schedule::KernelPlan& plan, const Target& target, Marks marks = Marks::kNone) {
  const schedule::KernelDesc& desc = plan.desc;
  const bool marked = marks == Marks::kAll;
  return desc.visit(
      [&](const schedule::CpuStitchDesc& stitch) { return emit_cpu_stitch(desc, stitch, plan.config, marked); },
      [&](const schedule::CpuBundleDesc& bundle) { return emit_cpu_bundle(bundle, desc.operands.size(), marked); },
      [&](const schedule::CudaStitchDesc& stitch) { return emit_cuda_stitch(plan, stitch, marked); },
      [&](const schedule::CudaBundleDesc& bundle) { return emit_cuda_bundle(plan, bundle, marked); },
      [&](const schedule::RecurrentDesc& loops) { return emit_cuda_recurrence(plan, loops, target.cuda); },
      [&](const schedule::CudaBackToBackDesc& both) { return emit_cuda_back_to_back(plan, both); },
      [&](const schedule::CpuBackToBackDesc& chain) { return emit_cpu_back_to_back(plan, chain, target); },
      [&](const schedule::AttentionDesc& attention) {
        return backend_of(target).attention(plan, attention, target, marked);
      },
      [&](const schedule::SequenceDesc& sequence) { return emit_cuda_sequence(plan, sequence, target.gpu()); },
      [&](const schedule::StandaloneDesc& standalone) {
        return backend_of(target).standalone(plan, standalone, marked);
      },
      [&](const schedule::ContractionDesc& contraction) {
        return backend_of(target).contraction(plan, contraction, target, marks);
      },
      [](const schedule::TileDesc& tile) {
        HEDDLE_CHECK(false, "{} is written by the driver", tile.name);
        return KernelSource{};
      });
}

bool outer_is_free(const schedule::KernelDesc& desc) {
  const auto contraction = desc.get<schedule::ContractionDesc>();
  return contraction != nullptr && sizes_are_free(*contraction);
}

// nullopt: all numbers of the kernel are literals.
std::optional<KernelSource> emit_with_arguments(const schedule::KernelPlan& plan, const Target& target,
                                                NumberChoice& choice, Marks marks) {
  KernelSource source = emit_any(plan, target, marks);
  const NumberedText numbered = numbers_of(source.text);
  const std::vector<bool> chosen = choice.arguments(numbered, marks == Marks::kAll && outer_is_free(plan.desc));
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) source.arguments.push_back(numbered.numbers[i]);
  }
  if (source.arguments.empty()) return std::nullopt;
  source.text = with_arguments(source.text, chosen);
  declare_others(source);
  source.symbol = name_kernel(source.text, source.symbol + "_any");
  source.as_arguments = chosen;
  for (CudaLaunch& launch : source.launches) launch.symbol = source.symbol;
  return source;
}

}  // namespace

KernelSource emit(const schedule::KernelPlan& plan, const Target& target, NumberChoice* choice, Marks marks) {
  if (choice != nullptr && backend_of(target).takes_arguments(plan.desc)) {
    if (auto source = emit_with_arguments(plan, target, *choice, marks)) return std::move(*source);
  }
  return emit_any(plan, target);
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
