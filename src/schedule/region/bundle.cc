#include "schedule/region/bundle.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace heddle::schedule {
namespace {

constexpr size_t kMostBundled = 64;  // of one bundle: its text is compiled as one function

// By kernel: one more than the highest level of those whose results it reads.
std::vector<int> levels_of(const std::vector<ScheduledKernel>& kernels) {
  std::map<Place, int> made;
  std::vector<int> levels;
  for (const ScheduledKernel& kernel : kernels) {
    int level = 0;
    for (const Binding& binding : kernel.bindings) {
      const auto at = made.find(place_of(binding));
      if (at != made.end()) level = std::max(level, at->second + 1);
    }
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      if (kernel.desc.operands[i].role == Operand::Role::kOutput) made[place_of(kernel.bindings[i])] = level;
    }
    levels.push_back(level);
  }
  return levels;
}

// "a; then 3 times b"
std::string sequence_of(const std::vector<std::string>& texts, bool in_a_row) {
  std::string result;
  for (size_t i = 0; i < texts.size();) {
    size_t end = i;
    while (end < texts.size() && texts[end] == texts[i]) ++end;
    if (i > 0) result += in_a_row ? "; then " : "; beside ";
    if (end - i > 1) result += fmt::format("{} times ", end - i);
    result += texts[i];
    i = end;
  }
  return result;
}

void add_facts(const StitchFacts& from, StitchFacts& to) {
  to.schemes.insert(to.schemes.end(), from.schemes.begin(), from.schemes.end());
  to.on_chip_bytes = std::max(to.on_chip_bytes, from.on_chip_bytes);
  to.barriers += from.barriers;
  to.bytes_moved += from.bytes_moved;
  to.predicted_seconds += from.predicted_seconds;
}

ScheduledKernel join(std::vector<ScheduledKernel> kernels, bool in_a_row, const Target& target) {
  if (kernels.size() == 1) return std::move(kernels[0]);
  auto bundle = std::make_shared<CpuBundleDesc>();
  bundle->in_a_row = in_a_row;
  ScheduledKernel result;
  std::map<Place, uint32_t> known;
  std::vector<std::string> titles, mappings;
  int64_t tasks = 0;
  int boundaries = 0;
  for (ScheduledKernel& kernel : kernels) {
    CpuBundleDesc::Part part{kernel.desc.get<CpuStitchDesc>(), kernel.desc.operands, kernel.config, {}};
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const auto count = static_cast<uint32_t>(result.bindings.size());
      const auto [at, is_new] = known.try_emplace(place_of(kernel.bindings[i]), count);
      if (is_new) {
        result.bindings.push_back(kernel.bindings[i]);
        result.desc.operands.push_back(kernel.desc.operands[i]);
      }
      part.from.push_back(at->second);
    }
    tasks += kernel.config.tasks;
    boundaries += kernel.config.tasks > 1;
    result.floor_seconds += kernel.floor_seconds;
    titles.push_back(part.body->title);
    mappings.push_back(kernel.stitch.mapping);
    add_facts(kernel.stitch, result.stitch);
    bundle->parts.push_back(std::move(part));
  }
  result.label = "stitch " + sequence_of(titles, in_a_row);
  result.stitch.mapping = sequence_of(mappings, in_a_row);
  if (boundaries > 1) result.stitch.predicted_seconds -= (boundaries - 1) * target.cpu.barrier_us * 1e-6;
  constexpr size_t kLongestLabel = 120;
  if (result.label.size() > kLongestLabel) {
    result.label = fmt::format("{}... ({} parts)", result.label.substr(0, kLongestLabel), bundle->parts.size());
  }
  result.config = kernels[0].config;
  result.config.tasks = in_a_row ? 1 : tasks;
  result.config.reason = in_a_row
                             ? "each part is one task: one after the other on one thread"
                             : fmt::format("no part waits for another: one boundary instead of {}", kernels.size());
  result.desc.body = std::shared_ptr<const CpuBundleDesc>(std::move(bundle));
  return result;
}

}  // namespace

ScheduledGroup bundle_kernels(ScheduledGroup group, const Target& target) {
  std::vector<ScheduledKernel>& kernels = group.kernels;
  const auto joins = [](const ScheduledKernel& kernel) { return kernel.desc.get<CpuStitchDesc>() != nullptr; };
  if (kernels.size() < 2 || !std::all_of(kernels.begin(), kernels.end(), joins)) return group;
  double seconds = 0;
  for (const ScheduledKernel& kernel : kernels) seconds += kernel.stitch.predicted_seconds;
  // One thread does it all where several would gain less than a boundary costs.
  constexpr double kShort = 4;  // boundaries
  const bool in_a_row =
      std::all_of(kernels.begin(), kernels.end(), [](const ScheduledKernel& k) { return k.config.tasks <= 1; }) &&
      kernels.size() <= kMostBundled && (target.cpu.threads == 1 || seconds < kShort * target.cpu.barrier_us * 1e-6);
  const std::vector<int> levels = in_a_row ? std::vector<int>(kernels.size(), 0) : levels_of(kernels);
  std::vector<ScheduledKernel> joined;
  const int last = *std::max_element(levels.begin(), levels.end());
  for (int level = 0; level <= last; ++level) {
    std::vector<ScheduledKernel> beside;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (levels[i] != level) continue;
      if (beside.size() == kMostBundled) joined.push_back(join(std::exchange(beside, {}), in_a_row, target));
      beside.push_back(std::move(kernels[i]));
    }
    if (!beside.empty()) joined.push_back(join(std::move(beside), in_a_row, target));
  }
  kernels = std::move(joined);
  return group;
}

}  // namespace heddle::schedule
