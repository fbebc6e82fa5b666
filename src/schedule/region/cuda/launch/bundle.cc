#include "schedule/region/cuda/launch/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schedule/region/bundle.h"
#include "schedule/region/cuda/launch/last_step.h"
#include "schedule/region/cuda/launch/launch.h"
#include "target/cuda_occupancy.h"

namespace heddle::schedule {
namespace {

constexpr size_t kMostPointers = 480;  // 4 KB of arguments
constexpr int kMostRefusals = 8;       // of a kernel, before it runs alone

std::set<Place> places(const ScheduledKernel& kernel, Operand::Role role) {
  std::set<Place> all;
  for (size_t i = 0; i < kernel.bindings.size(); ++i) {
    if (kernel.desc.operands[i].role == role) all.insert(place_of(kernel.bindings[i]));
  }
  return all;
}
bool meet(const std::set<Place>& a, const std::set<Place>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Place& p) { return b.count(p) != 0; });
}

// Threads come and go by themselves: no shared memory, no barrier of the block.
bool is_elementwise(const CudaStitchDesc& body) {
  return body.team == 1 && body.cta_group == 1 && !body.serial && body.scratch.empty();
}

// The kernel's description if it can be a part: blocks that only cooperate with themselves.
std::shared_ptr<const CudaStitchDesc> part_of(const ScheduledKernel& kernel, bool elementwise_only) {
  std::shared_ptr<const CudaStitchDesc> d = kernel.desc.get<CudaStitchDesc>();
  const bool fits = d != nullptr && (elementwise_only ? is_elementwise(*d) : d->cta_group == 1);
  return fits ? d : nullptr;
}

// The same with blocks of another size, if its thread groups are independent of each other.
std::shared_ptr<const CudaStitchDesc> with_threads(const std::shared_ptr<const CudaStitchDesc>& body, int threads) {
  if (body->team > body->lanes || body->serial || body->threads == threads) return body;
  auto copy = std::make_shared<CudaStitchDesc>(*body);
  copy->threads = threads;
  const int64_t units = static_cast<int64_t>(copy->teams()) * copy->turns;
  copy->blocks = std::min<int64_t>((copy->iterations() + units - 1) / units, INT32_MAX);
  return copy;
}

// Blocks have as many threads as the part that moves most bytes if no part needs more.
int threads_of(const std::vector<const ScheduledKernel*>& kernels) {
  int fixed = 0, largest = 0;
  double most = -1;
  for (const ScheduledKernel* k : kernels) {
    const auto body = k->desc.get<CudaStitchDesc>();
    if (body->team > body->lanes || body->serial) fixed = std::max(fixed, body->threads);
    if (k->stitch.bytes_moved > most) most = k->stitch.bytes_moved, largest = body->threads;
  }
  return fixed > 0 ? fixed : largest;
}

// Predicts the time of kernels side by side, in seconds. A part whose blocks leave threads idle takes longer, unless
// all blocks of the launch run at once.
double seconds_beside(const std::vector<const ScheduledKernel*>& kernels, const GpuTarget& target) {
  constexpr int kRegisters = 64;
  const int threads = threads_of(kernels);
  int64_t blocks = 0, shared = 0;
  for (const ScheduledKernel* k : kernels) {
    const auto body = with_threads(k->desc.get<CudaStitchDesc>(), threads);
    blocks += body->blocks;
    shared = std::max(shared, shared_memory(*body).bytes);
  }
  const bool at_once = blocks <= target.sms * int64_t{resident_blocks(target, static_cast<uint32_t>(threads),
                                                                      static_cast<uint32_t>(shared), kRegisters)};
  const double boundary = target.model.chip.graph_boundary_us * 1e-6;
  double all = 0, longest = 0, bytes = 0;
  for (const ScheduledKernel* k : kernels) {
    const auto body = with_threads(k->desc.get<CudaStitchDesc>(), threads);
    const double alone = (k->stitch.predicted_seconds - boundary) * threads / body->threads;
    all += alone;
    longest = std::max(longest, k->stitch.predicted_seconds - boundary);
    bytes += k->stitch.bytes_moved;
  }
  return boundary + (at_once ? std::max(longest, bytes / (target.model.chip.copy_tbps * 1e12)) : all);
}

// Whether kernels side by side save a worthwhile part of their time; says why not. Elementwise kernels need no more
// registers together than alone.
bool pays_beside(const std::vector<const ScheduledKernel*>& kernels, const GpuTarget& target, std::string* why) {
  constexpr double kWorthwhile = 0.02;
  const auto elementwise = [](const ScheduledKernel* k) { return is_elementwise(*k->desc.get<CudaStitchDesc>()); };
  if (std::all_of(kernels.begin(), kernels.end(), elementwise)) return true;
  double apart = 0;
  for (const ScheduledKernel* k : kernels) apart += k->stitch.predicted_seconds;
  const double together = seconds_beside(kernels, target);
  *why = fmt::format("{:.3g} us apart, {:.3g} us side by side", apart * 1e6, together * 1e6);
  return together < (1 - kWorthwhile) * apart;
}

ScheduledKernel joined(const std::vector<const ScheduledKernel*>& kernels, const GpuTarget& target) {
  auto bundle = std::make_shared<CudaBundleDesc>();
  ScheduledKernel result;
  const auto largest = std::max_element(kernels.begin(), kernels.end(), [](const auto* a, const auto* b) {
    return a->stitch.bytes_moved < b->stitch.bytes_moved;
  });
  result.label = (*largest)->label;
  bundle->threads = threads_of(kernels);
  for (const ScheduledKernel* k : kernels) {
    CudaBundleDesc::Part part{with_threads(k->desc.get<CudaStitchDesc>(), bundle->threads), k->desc.operands,
                              result.desc.operands.size()};
    result.config.tasks += part.body->blocks;
    bundle->parts.push_back(std::move(part));
    result.desc.operands.insert(result.desc.operands.end(), k->desc.operands.begin(), k->desc.operands.end());
    result.bindings.insert(result.bindings.end(), k->bindings.begin(), k->bindings.end());
    result.floor_seconds += k->floor_seconds;
    result.stitch.bytes_moved += k->stitch.bytes_moved;
    result.stitch.on_chip_bytes = std::max(result.stitch.on_chip_bytes, k->stitch.on_chip_bytes);
    result.stitch.schemes.insert(result.stitch.schemes.end(), k->stitch.schemes.begin(), k->stitch.schemes.end());
  }
  result.stitch.predicted_seconds = seconds_beside(kernels, target);
  result.label += fmt::format(", {} side by side", kernels.size());
  result.config.reason = result.stitch.mapping =
      fmt::format("{} kernels side by side, {:.3g} MB, {} blocks of {} threads", kernels.size(),
                  result.stitch.bytes_moved * 1e-6, result.config.tasks, bundle->threads);
  result.desc.body = std::shared_ptr<const CudaBundleDesc>(std::move(bundle));
  return result;
}

// `second` as the last step of `first`.
ScheduledKernel with_last_step(const ScheduledKernel& first, const ScheduledKernel& second,
                               CudaBundleDesc::LastStep last, double seconds) {
  auto bundle = std::make_shared<CudaBundleDesc>();
  const auto body = first.desc.get<CudaStitchDesc>();
  bundle->threads = body->threads;
  bundle->parts.push_back({body, first.desc.operands, 0});
  ScheduledKernel result = first;
  result.desc.operands.insert(result.desc.operands.end(), second.desc.operands.begin(), second.desc.operands.end());
  result.bindings.insert(result.bindings.end(), second.bindings.begin(), second.bindings.end());
  result.label += "; then " + second.label;
  result.floor_seconds += second.floor_seconds;
  StitchFacts& facts = result.stitch;
  facts.bytes_moved += second.stitch.bytes_moved;
  facts.predicted_seconds = seconds;
  facts.on_chip_bytes = std::max(facts.on_chip_bytes, second.stitch.on_chip_bytes);
  facts.schemes.insert(facts.schemes.end(), second.stitch.schemes.begin(), second.stitch.schemes.end());
  facts.mapping += fmt::format("; the last of {} blocks computes {}", last.arrivals, second.stitch.mapping);
  result.config.reason = facts.mapping;
  bundle->last = std::move(last);
  result.desc.body = std::shared_ptr<const CudaBundleDesc>(std::move(bundle));
  return result;
}

// Lets the last blocks of kernels compute the kernels after them.
std::vector<ScheduledKernel> with_last_steps(std::vector<ScheduledKernel> kernels, const GpuTarget& target,
                                             std::vector<std::string>& notes) {
  const auto& chip = target.model.chip;
  std::vector<ScheduledKernel> result;
  for (ScheduledKernel& kernel : kernels) {
    if (result.empty() || !meet(places(result.back(), Operand::Role::kOutput), places(kernel, Operand::Role::kInput))) {
      result.push_back(std::move(kernel));
      continue;
    }
    std::string why;
    const ScheduledKernel& first = result.back();
    auto last = last_step_of(first, kernel, &why);
    const double saved = (chip.graph_boundary_us - chip.last_step_us) * 1e-6;
    if (last && saved <= 0) {
      why = fmt::format("a last step takes {} us, a boundary {} us", chip.last_step_us, chip.graph_boundary_us);
      last.reset();
    }
    if (!last) {
      notes.push_back(fmt::format("{} is not the last step of {}: {}", kernel.label, first.label, why));
      result.push_back(std::move(kernel));
      continue;
    }
    const double seconds = first.stitch.predicted_seconds + kernel.stitch.predicted_seconds - saved;
    result.back() = with_last_step(ScheduledKernel(first), kernel, std::move(*last), seconds);
  }
  return result;
}

}  // namespace

std::vector<const CudaBundleDesc::Part*> CudaBundleDesc::all() const {
  std::vector<const Part*> found;
  for (const Part& part : parts) found.push_back(&part);
  if (last) found.push_back(&last->part);
  return found;
}

ScheduledGroup bundle_cuda_kernels(ScheduledGroup group, const GpuTarget& target, bool elementwise_only) {
  struct Slot {
    std::vector<const ScheduledKernel*> kernels;
    std::set<Place> reads, writes;
    size_t pointers = 0;
    bool open = false;
  };
  std::vector<Slot> slots;
  // Predicts the time of the slot with the kernel in it. Sets `*why` if the kernel had better run alone.
  const auto takes = [&](const Slot& slot, const ScheduledKernel& kernel, std::string* why) {
    if (!slot.open || slot.pointers + kernel.bindings.size() > kMostPointers) return false;
    std::vector<const ScheduledKernel*> kernels = slot.kernels;
    kernels.push_back(&kernel);
    return pays_beside(kernels, target, why);
  };
  for (const ScheduledKernel& kernel : group.kernels) {
    const auto reads = places(kernel, Operand::Role::kInput), writes = places(kernel, Operand::Role::kOutput);
    const bool candidate = part_of(kernel, elementwise_only) != nullptr;
    // The earliest slot behind everything that this kernel waits for.
    size_t at = slots.size();
    while (at > 0) {
      const Slot& before = slots[at - 1];
      if (meet(before.writes, reads) || meet(before.reads, writes) || meet(before.writes, writes)) break;
      --at;
    }
    std::string why;
    for (int refusals = 0; at < slots.size(); ++at) {
      std::string reason;
      if (candidate && refusals < kMostRefusals && takes(slots[at], kernel, &reason)) break;
      if (reason.empty()) continue;
      ++refusals;
      why = fmt::format("{} is not beside {}: {}", kernel.label, slots[at].kernels[0]->label, reason);
    }
    if (at == slots.size() && !why.empty()) group.notes.push_back(std::move(why));
    if (at == slots.size()) slots.emplace_back().open = candidate;
    Slot& slot = slots[at];
    slot.kernels.push_back(&kernel);
    slot.reads.insert(reads.begin(), reads.end());
    slot.writes.insert(writes.begin(), writes.end());
    slot.pointers += kernel.bindings.size();
  }
  std::vector<ScheduledKernel> kernels;
  for (const Slot& slot : slots) {
    kernels.push_back(slot.kernels.size() > 1 ? joined(slot.kernels, target) : *slot.kernels[0]);
  }
  group.kernels = elementwise_only ? std::move(kernels) : with_last_steps(std::move(kernels), target, group.notes);
  return group;
}

}  // namespace heddle::schedule
