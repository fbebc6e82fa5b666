#include <set>

#include "base/check.h"
#include "codegen/bundle.h"
#include "codegen/codegen.h"
#include "codegen/contraction.h"
#include "codegen/cuda_attention.h"
#include "codegen/cuda_bundle.h"
#include "codegen/cuda_contraction.h"
#include "codegen/cuda_recurrent.h"
#include "codegen/cuda_stitch.h"
#include "codegen/separate.h"
#include "codegen/stitch.h"
#include "target/cuda_occupancy.h"

namespace heddle::codegen {

namespace {

KernelSource emit_any(const schedule::KernelDesc& desc, const schedule::Config& config, const Target& target) {
  if (const auto* stitch = std::get_if<std::shared_ptr<const schedule::StitchDesc>>(&desc.body)) {
    return emit_stitch(desc, **stitch, config);
  }
  if (const auto* bundle = std::get_if<std::shared_ptr<const schedule::BundleDesc>>(&desc.body)) {
    return emit_bundle(**bundle);
  }
  if (const auto* stitch = std::get_if<std::shared_ptr<const schedule::CudaStitchDesc>>(&desc.body)) {
    return emit_cuda_stitch(desc, **stitch);
  }
  if (const auto* loops = std::get_if<std::shared_ptr<const schedule::RecurrentDesc>>(&desc.body)) {
    return emit_cuda_recurrence(desc, **loops, target);
  }
  if (const auto* bundle = std::get_if<std::shared_ptr<const schedule::CudaBundleDesc>>(&desc.body)) {
    return emit_cuda_bundle(**bundle);
  }
  if (const auto* attention = std::get_if<std::shared_ptr<const schedule::AttentionDesc>>(&desc.body)) {
    return emit_cuda_attention(desc, **attention, config, target);
  }
  if (const auto* separate = std::get_if<std::shared_ptr<const schedule::SeparateDesc>>(&desc.body)) {
    return emit_separate(**separate, config);
  }
  const auto& contraction = *std::get<std::shared_ptr<const schedule::ContractionDesc>>(desc.body);
  if (target.kind == TargetKind::kCuda) return emit_cuda_contraction(desc, contraction, config, target);
  return emit_contraction(desc, contraction, config, target);
}

}  // namespace

KernelSource emit(const schedule::KernelDesc& desc, const schedule::Config& config, const Target& target) {
  KernelSource source = emit_any(desc, config, target);
  for (const CudaLaunch& launch : source.launches) {
    const std::string why = reject_waiting(launch, target.cuda);
    HEDDLE_CHECK(why.empty(), "{}: {}", launch.symbol, why);
  }
  return source;
}

std::string translation_unit(const std::vector<const KernelSource*>& kernels, const Target&) {
  std::set<std::string> includes, symbols;
  for (const KernelSource* kernel : kernels) includes.insert(kernel->includes.begin(), kernel->includes.end());
  std::string text;
  for (const std::string& path : includes) text += "#include \"" + path + "\"\n";
  text += "\nnamespace tile = heddle::tile;\n";
  for (const KernelSource* kernel : kernels) {
    if (symbols.insert(kernel->symbol).second) text += "\n" + kernel->text;
  }
  return text;
}

}  // namespace heddle::codegen
