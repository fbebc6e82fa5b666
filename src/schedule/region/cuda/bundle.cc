#include "schedule/region/cuda/bundle.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "schedule/region/bundle.h"

namespace heddle::schedule {
namespace {

constexpr size_t kMostPointers = 480;  // 4 KB of arguments

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
std::shared_ptr<const CudaStitchDesc> simple(const ScheduledKernel& kernel) {
  std::shared_ptr<const CudaStitchDesc> d = kernel.desc.get<CudaStitchDesc>();
  const bool is_simple = d != nullptr && d->team == 1 && d->cta_group == 1 && !d->serial && d->scratch.empty();
  return is_simple ? d : nullptr;
}

// The same with blocks of another size.
std::shared_ptr<const CudaStitchDesc> with_threads(const CudaStitchDesc& body, int threads) {
  auto copy = std::make_shared<CudaStitchDesc>(body);
  copy->threads = threads;
  const int64_t units = static_cast<int64_t>(copy->teams()) * copy->turns;
  copy->blocks = std::min<int64_t>((copy->iterations() + units - 1) / units, INT32_MAX);
  return copy;
}

ScheduledKernel joined(const std::vector<const ScheduledKernel*>& kernels) {
  auto bundle = std::make_shared<CudaBundleDesc>();
  ScheduledKernel result;
  int threads = 0;
  double most = -1;
  for (const ScheduledKernel* k : kernels) {
    if (k->stitch.bytes_moved <= most) continue;
    most = k->stitch.bytes_moved;
    threads = simple(*k)->threads;
    result.label = k->label;
  }
  for (const ScheduledKernel* k : kernels) {
    CudaBundleDesc::Part part{with_threads(*simple(*k), threads), k->desc.operands, result.desc.operands.size()};
    result.config.tasks += part.body->blocks;
    bundle->parts.push_back(std::move(part));
    result.desc.operands.insert(result.desc.operands.end(), k->desc.operands.begin(), k->desc.operands.end());
    result.bindings.insert(result.bindings.end(), k->bindings.begin(), k->bindings.end());
    result.floor_seconds += k->floor_seconds;
    result.stitch.bytes_moved += k->stitch.bytes_moved;
    result.stitch.predicted_seconds += k->stitch.predicted_seconds;
    result.stitch.schemes.insert(result.stitch.schemes.end(), k->stitch.schemes.begin(), k->stitch.schemes.end());
  }
  result.label += fmt::format(", {} side by side", kernels.size());
  result.config.reason = result.stitch.mapping =
      fmt::format("{} kernels side by side, {:.3g} MB, {} blocks of {} threads", kernels.size(),
                  result.stitch.bytes_moved * 1e-6, result.config.tasks, threads);
  result.desc.body = std::shared_ptr<const CudaBundleDesc>(std::move(bundle));
  return result;
}

}  // namespace

ScheduledGroup bundle_cuda_kernels(ScheduledGroup group) {
  struct Slot {
    std::vector<const ScheduledKernel*> kernels;
    std::set<Place> reads, writes;
    size_t pointers = 0;
    bool open = false;
  };
  std::vector<Slot> slots;
  for (const ScheduledKernel& kernel : group.kernels) {
    const auto reads = places(kernel, Operand::Role::kInput), writes = places(kernel, Operand::Role::kOutput);
    const bool candidate = simple(kernel) != nullptr;
    // The earliest slot behind everything that this kernel waits for.
    size_t at = slots.size();
    while (at > 0) {
      const Slot& before = slots[at - 1];
      if (meet(before.writes, reads) || meet(before.reads, writes) || meet(before.writes, writes)) break;
      --at;
    }
    if (candidate) {
      while (at < slots.size() && !(slots[at].open && slots[at].pointers + kernel.bindings.size() <= kMostPointers)) {
        ++at;
      }
    } else {
      at = slots.size();
    }
    if (at == slots.size()) slots.emplace_back().open = candidate;
    Slot& slot = slots[at];
    slot.kernels.push_back(&kernel);
    slot.reads.insert(reads.begin(), reads.end());
    slot.writes.insert(writes.begin(), writes.end());
    slot.pointers += kernel.bindings.size();
  }
  std::vector<ScheduledKernel> kernels;
  for (const Slot& slot : slots) {
    kernels.push_back(slot.kernels.size() > 1 ? joined(slot.kernels) : *slot.kernels[0]);
  }
  group.kernels = std::move(kernels);
  return group;
}

}  // namespace heddle::schedule
