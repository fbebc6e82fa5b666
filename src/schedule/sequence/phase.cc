#include "schedule/sequence/phase.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "schedule/attention/attention.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "schedule/product/contraction.h"
#include "schedule/product/cuda/family.h"
#include "schedule/product/cuda/side_by_side.h"
#include "schedule/region/cuda/launch/bundle.h"
#include "schedule/region/cuda/launch/launch.h"
#include "target/cuda_occupancy.h"

namespace heddle::schedule {
namespace {

using Phase = SequenceDesc::Phase;

// More blocks keep the device busy for so long that a boundary is a small share of the time.
constexpr int64_t kMostTasksOfSm = 16;

std::string stitch_obstacle(const CudaStitchDesc& body) {
  return body.cta_group > 1 ? "its blocks share iterations" : "";
}

std::string bundle_obstacle(const CudaBundleDesc& bundle) {
  if (bundle.last) return "its last blocks compute another kernel";
  for (const CudaBundleDesc::Part& part : bundle.parts) {
    if (std::string why = stitch_obstacle(*part.body); !why.empty()) return why;
  }
  return {};
}

const Product* product_of(const ScheduledKernel& kernel) {
  const auto contraction = kernel.desc.get<ContractionDesc>();
  return contraction != nullptr ? contraction->get<Product>() : nullptr;
}

std::string product_obstacle(const ScheduledKernel& kernel, const GpuTarget& target) {
  if (product_of(kernel) == nullptr) return "windows are no phase";
  if (kernel.desc.get<ContractionDesc>()->copies > 1) return "it is several products side by side";
  const auto* skinny = kernel.config.get<SkinnyConfig>();
  if (skinny != nullptr) return skinny->splits > 1 ? "a second launch adds its parts of k" : "";
  return other_form(kernel, target) ? "" : fmt::format("a product by {} is no phase", family_of(kernel.config));
}

std::string attention_obstacle(const CudaAttentionConfig& config) {
  if (config.key_warps == 0) return "an attention of many rows is no phase";
  return config.combines ? "a second launch adds its parts of the keys" : "";
}

// Whether the threads of a block that a stitch kernel does not need may skip it.
bool synchronises_blocks(const CudaStitchDesc& body) {
  return body.team > 32 || body.serial.has_value() || shared_memory(body).bytes > 0;
}

// The bytes of keys and values, which tasks request ahead.
double key_bytes(const AttentionDesc& a) {
  return static_cast<double>(a.batch * a.n * (a.depth + a.width)) * static_cast<double>(size_of(a.type));
}

// An attention with the smallest rings that are predicted to be as fast, and still hold enough loads in flight. The
// next launch then finds room beside it, and loads its weights. nullopt: the kernel itself.
std::optional<ScheduledKernel> with_less_memory(const ScheduledKernel& kernel, const AttentionDesc& attention,
                                                const GpuTarget& target) {
  constexpr int kEnough = 48 << 10;  // bytes of an SM
  constexpr double kAsFast = 1.01;   // the model does not tell shorter times apart
  const auto& own = kernel.config.as<CudaAttentionConfig>();
  if (own.key_warps == 0 || kernel.config.predicted_us <= 0) return std::nullopt;
  int least = mma_shared_bytes(attention, own);
  std::optional<ScheduledKernel> best;
  for (const Config& candidate : few_rows_candidates(attention, target, SIZE_MAX)) {
    const auto& c = candidate.as<CudaAttentionConfig>();
    const int bytes = mma_shared_bytes(attention, c);
    const bool is_like = c.key_warps == own.key_warps && c.splits == own.splits && c.combines == own.combines;
    if (!is_like || candidate.predicted_us > kAsFast * kernel.config.predicted_us || bytes < kEnough || bytes >= least)
      continue;
    best = kernel;
    best->config = candidate;
    least = bytes;
  }
  return best;
}

// The memory of operands [first, first + count) of a kernel.
void set_memory(PhaseFacts& facts, const PlannedKernel& planned, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    const int64_t memory = planned.memory[i];
    if (memory == kConstantMemory) continue;
    const bool writes = planned.kernel->desc.operands[i].role == Operand::Role::kOutput;
    (writes ? facts.writes : facts.reads).push_back(memory);
  }
}

// Sets what tasks request ahead, and what decides it. Requests for the L2 never return old data, so the data itself may
// still be written.
void set_ahead(PhaseFacts& facts, const PlannedKernel& planned, const GpuTarget& target) {
  const double bytes_per_us = target.model.chip.read_tbps * 1e6;
  const KernelDesc& desc = planned.kernel->desc;
  if (const auto attention = desc.get<AttentionDesc>(); attention != nullptr && loads_ahead(*attention)) {
    facts.ahead_us = key_bytes(*attention) / bytes_per_us;
    for (size_t i = 0; i < desc.operands.size(); ++i) {
      const bool is_matrix = i == attention->q.operand || i == attention->k.operand || i == attention->v.operand;
      const bool is_read = desc.operands[i].role == Operand::Role::kInput;
      if (is_read && !is_matrix) facts.decide_ahead.push_back(planned.memory[i]);
    }
  }
  const Product* product = product_of(*planned.kernel);
  const auto* skinny = planned.kernel->config.get<SkinnyConfig>();
  if (product != nullptr && skinny != nullptr && loads_ahead(*product, *skinny)) {
    const OperandView& wide = skinny->swapped ? product->a : product->b;
    const int64_t elements = (skinny->swapped ? product->m : product->n) * product->k * product->batch;
    facts.ahead_us = static_cast<double>(elements) * static_cast<double>(size_of(wide.dtype)) / bytes_per_us;
  }
}

PhaseDraft draft_of(const PlannedKernel& planned, KernelDesc desc, size_t first, const GpuTarget& target) {
  const ScheduledKernel& kernel = *planned.kernel;
  PhaseDraft draft;
  Phase& phase = draft.desc;
  PhaseFacts& facts = draft.facts;
  phase.desc = std::move(desc), phase.config = kernel.config, phase.label = kernel.label, phase.first = first;
  set_memory(facts, planned, first, phase.desc.operands.size());
  if (planned.has_workspace) {
    phase.workspace = kernel.desc.operands.size();
    facts.writes.push_back(planned.memory[*phase.workspace]);
  }
  facts.us = us_alone(kernel, target);
  const KernelPlan plan = plan_phase(phase, target);
  const CudaLaunch& launch = plan.launches.front();
  facts.tasks = int64_t{launch.grid[0]};
  facts.at_once =
      static_cast<int>(std::min<int64_t>(resident_blocks(target, launch.block, launch.shared_bytes, kSequenceRegisters),
                                         ceil_div(facts.tasks, target.sms)));
  facts.threads = static_cast<int>(launch.block);
  facts.shared_bytes = launch.shared_bytes;
  facts.counter_bytes = plan.counter_bytes;
  const auto stitch = phase.desc.get<CudaStitchDesc>();
  facts.needs_all_threads = stitch == nullptr || synchronises_blocks(*stitch);
  // Functors and views have at most as many bytes as this for each operand.
  constexpr size_t kBytesOfOperand = 64;
  facts.argument_bytes =
      stitch != nullptr ? sizeof(uint64_t) * phase.desc.operands.size() : kBytesOfOperand * phase.desc.operands.size();
  for (const auto& argument : launch.arguments) facts.argument_bytes += stitch != nullptr ? 0 : argument.size();
  set_ahead(facts, planned, target);
  return draft;
}

}  // namespace

bool loads_ahead(const AttentionDesc& a) {
  return !a.pages && a.k_along_depth() && a.v_along_width();
}

bool loads_ahead(const Product& p, const SkinnyConfig& c) {
  const OperandView& wide = c.swapped ? p.a : p.b;
  return wide.form == OperandView::Form::kMatrix && wide.along_k();
}

double us_alone(const ScheduledKernel& kernel, const GpuTarget& target) {
  const double boundary = target.model.chip.graph_boundary_us, region = kernel.stitch.predicted_seconds * 1e6;
  return region > 0 ? std::max(region - boundary, 0.0) : kernel.config.predicted_us;
}

std::optional<ScheduledKernel> other_form(const ScheduledKernel& kernel, const GpuTarget& target) {
  if (const auto attention = kernel.desc.get<AttentionDesc>()) return with_less_memory(kernel, *attention, target);
  const Product* product = product_of(kernel);
  if (product == nullptr || kernel.config.get<SkinnyConfig>() != nullptr) return std::nullopt;
  const ContractionDesc& contraction = *kernel.desc.get<ContractionDesc>();
  Config probe;
  probe.choice = SkinnyConfig{};
  const Family& skinny = cuda_family_of(probe);
  const ProductTask task{*product, contraction.epilogue, kernel.desc.operands};
  if (!skinny.refuse(task, target).empty()) return std::nullopt;
  std::vector<CudaCandidate> candidates = skinny.candidates(task, target);
  std::erase_if(candidates, [&](const CudaCandidate& c) {
    const auto& config = c.config.as<SkinnyConfig>();
    return !c.rejected.empty() || config.splits > 1 || !loads_ahead(*product, config);
  });
  if (candidates.empty()) return std::nullopt;
  sort_by_prediction(candidates);
  ScheduledKernel result = kernel;
  result.config = candidates.front().config;
  return result;
}

KernelPlan plan_phase(const Phase& phase, const GpuTarget& target) {
  KernelPlan plan{{}, phase.desc, phase.config};
  plan_gpu_launches(plan, target);
  plan.waits = false;  // the sequence waits
  return plan;
}

std::string phase_obstacle(const ScheduledKernel& kernel, const GpuTarget& target) {
  std::string why = kernel.desc.visit(
      [](const CudaStitchDesc& body) { return stitch_obstacle(body); },
      [](const CudaBundleDesc& bundle) { return bundle_obstacle(bundle); },
      [&](const ContractionDesc&) { return product_obstacle(kernel, target); },
      [&](const AttentionDesc&) { return attention_obstacle(kernel.config.as<CudaAttentionConfig>()); },
      [](const auto&) { return std::string("a kernel of its kind is no phase"); });
  if (!why.empty()) return why;
  KernelPlan plan{{}, kernel.desc, kernel.config};
  plan_gpu_launches(plan, target);
  if (plan.launches.empty()) return "it has no launch";
  const int64_t blocks = plan.launches.front().grid[0];
  if (blocks > kMostTasksOfSm * target.sms) return fmt::format("{} blocks keep the device busy by themselves", blocks);
  return {};
}

std::vector<PhaseDraft> phases_of(const PlannedKernel& planned, const GpuTarget& target) {
  const KernelDesc& desc = planned.kernel->desc;
  const auto bundle = desc.get<CudaBundleDesc>();
  if (bundle == nullptr) return {draft_of(planned, desc, 0, target)};
  std::vector<PhaseDraft> drafts;
  for (const CudaBundleDesc::Part& part : bundle->parts) {
    drafts.push_back(draft_of(planned, {part.operands, part.body}, part.first, target));
  }
  return drafts;
}

}  // namespace heddle::schedule
