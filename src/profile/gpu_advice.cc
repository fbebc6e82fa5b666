#include "profile/gpu_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>

#include "profile/advice_rule.h"
#include "profile/views.h"

namespace heddle::profile {
namespace {

// Nodes that a rule is about, and what they take together.
struct Found {
  int64_t total = 0, largest = 0;
  NodeId node = 0;  // the largest
  void add(NodeId at, int64_t value) {
    total += value;
    if (value > largest) largest = value, node = at;
  }
};

// Of the nodes whose frame `wanted` takes, the own values of a metric.
template <typename Wanted>
Found find(const CallingContextTree& tree, const Metric& metric, const Wanted& wanted) {
  Found found;
  const std::optional<size_t> column = find_metric(tree, metric.name);
  for (NodeId node = 0; column && node < tree.size(); ++node) {
    const int64_t own = tree.own(*column)[node];
    if (own > 0 && wanted(tree.frame(node))) found.add(node, own);
  }
  return found;
}

// The kernels whose names a test takes, where they are at least `least` of the run.
template <typename Wanted>
std::optional<Found> kernels(const Profile& profile, double least, const Wanted& wanted) {
  const Found found = find(profile.tree, metrics::kGpuBusy,
                           [&](const Frame& frame) { return frame.kind == "kernel" && wanted(frame.name); });
  if (found.total == 0 || share_of_run(profile.tree, found.total) < least) return std::nullopt;
  return found;
}

Found idle(const CallingContextTree& tree, std::string_view why) {
  return find(tree, metrics::kGpuIdle, [&](const Frame& frame) { return frame.kind == "idle" && frame.name == why; });
}

Found idle_of_host(const CallingContextTree& tree) {
  return idle(tree, "waits for the host");
}

// Whether copies are of a few bytes each. A row sums all of its copies, so only their rate tells: a copy takes 1 us or
// more however small it is, and large ones reach ten times this rate even from pageable memory.
bool is_small_copy(int64_t bytes, int64_t ns) {
  return static_cast<double>(bytes) < 0.1 * static_cast<double>(ns);
}

std::string callers(const CallingContextTree& tree, NodeId node) {
  return node == 0 ? "the program" : path_text(tree, tree.parent(node));
}

}  // namespace

std::vector<Advice> waits_for_host(const Profile& profile) {
  constexpr double kMuch = 0.1;
  const CallingContextTree& tree = profile.tree;
  const Found idle = idle_of_host(tree);
  if (idle.total == 0 || share_of_run(tree, idle.total) < kMuch) return {};
  const std::optional<size_t> busy = find_metric(tree, metrics::kGpuBusy.name),
                              launches = find_metric(tree, metrics::kLaunches.name);
  Advice a = advice_on(profile, "waits_for_host", idle.node, idle.total);
  a.evidence = "the GPU has nothing to do because the host launches too late";
  if (busy && launches) {
    a.evidence += fmt::format("; a kernel takes {} in the mean", time_text(tree.total(*busy) / tree.total(*launches)));
  }
  a.confidence = "bound";
  a.remedy =
      "Launch fewer, larger kernels: a CUDA graph (torch.compile(mode=\"reduce-overhead\")), a compiler, or a larger "
      "batch";
  return {a};
}

std::vector<Advice> synchronisation(const Profile& profile) {
  const CallingContextTree& tree = profile.tree;
  const std::optional<size_t> waits = find_metric(tree, metrics::kGpuSync.name);
  const std::optional<size_t> copies = find_metric(tree, "GXCOPY:D2H"), bytes = find_metric(tree, "GXCOPY:D2H:B");
  const int64_t idle = idle_of_host(tree).total;
  std::map<NodeId, int64_t> calls;  // by who calls: a small copy is followed by a wait for it
  int64_t all = 0;
  for (NodeId node = 1; node < tree.size(); ++node) {
    int64_t own = waits ? tree.own(*waits)[node] : 0;
    if (copies && bytes && is_small_copy(tree.own(*bytes)[node], tree.own(*copies)[node]))
      own += tree.own(*copies)[node];
    if (own <= 0) continue;
    calls[tree.parent(node)] += own;
    all += own;
  }
  // Where the host is late anyway, what it does not wait any more is gained.
  const auto total = static_cast<double>(std::min(idle, all));
  std::vector<Gain> gains;
  for (const auto& [node, own] : calls) {
    const auto gain = static_cast<int64_t>(total * static_cast<double>(own) / static_cast<double>(all));
    if (gain > 0) gains.push_back({node, gain});
  }
  keep_largest(gains);
  std::vector<Advice> found;
  for (const auto& [node, gain] : gains) {
    Advice a = advice_on(profile, "synchronisation", node, gain);
    a.evidence = fmt::format("{} waits {} for the GPU, and the next kernels are launched only afterwards",
                             path_text(tree, node), time_text(calls.at(node)));
    a.confidence = "guess";
    a.remedy =
        "Leave values on the GPU (.item(), .cpu(), print and if on a tensor wait for it), or look at them once in many "
        "steps";
    found.push_back(std::move(a));
  }
  return found;
}

std::vector<Advice> memory_churn(const Profile& profile) {
  constexpr double kMuch = 0.05;
  const CallingContextTree& tree = profile.tree;
  const Found waits = idle(tree, "waits for an allocation");
  if (waits.total == 0 || share_of_run(tree, waits.total) < kMuch) return {};
  Advice a = advice_on(profile, "memory_churn", waits.node, waits.total);
  a.evidence = fmt::format("{} allocates or frees memory of the GPU, and the next kernels are launched only afterwards",
                           callers(tree, waits.node));
  if (const std::optional<size_t> bytes = find_metric(tree, metrics::kGpuAllocated.name)) {
    a.evidence += fmt::format("; {} MB were allocated", tree.total(*bytes) / 1000000);
  }
  a.confidence = "bound";
  a.remedy =
      "Keep memory: no torch.cuda.empty_cache() in a loop, buffers made once, and "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where sizes vary";
  return {a};
}

std::vector<Advice> pageable_copy(const Profile& profile) {
  constexpr double kUsual = 40e9;                // bytes a second, between PCIe 4.0 and 5.0
  constexpr int64_t kEnough = int64_t{1} << 20;  // bytes that show a rate,
  constexpr int64_t kWorthwhile = 1 << 16;       // and that are worth page-locked memory
  const CallingContextTree& tree = profile.tree;
  std::vector<Advice> found;
  for (const char* direction : {"H2D", "D2H"}) {
    const std::string name = fmt::format("GXCOPY:{}", direction);
    const std::optional<size_t> time = find_metric(tree, name), bytes = find_metric(tree, name + ":B");
    if (!time || !bytes) continue;
    double rate = 0;
    for (NodeId node = 0; node < tree.size(); ++node) {
      if (tree.frame(node).name != direction || tree.own(*bytes)[node] < kEnough) continue;
      rate = std::max(rate, static_cast<double>(tree.own(*bytes)[node]) /
                                static_cast<double>(std::max<int64_t>(tree.own(*time)[node], 1)) * 1e9);
    }
    const bool seen = rate > 0;
    if (!seen) rate = kUsual;
    const std::string pageable = fmt::format("{}, pageable", direction);
    std::vector<Gain> gains;
    for (NodeId node = 0; node < tree.size(); ++node) {
      if (tree.frame(node).name != pageable) continue;
      const int64_t own = tree.own(*time)[node], moved = tree.own(*bytes)[node];
      if (moved < kWorthwhile || is_small_copy(moved, own)) continue;
      const double gain = static_cast<double>(own) - static_cast<double>(moved) / rate * 1e9;
      if (gain >= 1) gains.push_back({node, static_cast<int64_t>(gain)});
    }
    keep_largest(gains);
    for (const auto& [node, gain] : gains) {
      const int64_t own = tree.own(*time)[node];
      Advice a = advice_on(profile, "pageable_copy", node, gain);
      a.evidence = fmt::format("{} copies {} MB from or to pageable memory in {}; page-locked memory {} {:.0f} GB/s",
                               callers(tree, node), tree.own(*bytes)[node] / 1000000, time_text(own),
                               seen ? "reaches" : "usually reaches", rate * 1e-9);
      a.confidence = seen ? "measured" : "guess";
      a.remedy = "Take page-locked memory (pin_memory=True of a DataLoader, tensor.pin_memory()) and non_blocking=True";
      found.push_back(std::move(a));
    }
  }
  return found;
}

std::vector<Advice> layout_and_casts(const Profile& profile) {
  const auto found = kernels(profile, 0.05, [](std::string_view name) {
    return has_any(name, {"nchwToNhwc", "nhwcToNchw", "transpose", "permute", "direct_copy_kernel", "LoadWithCast"});
  });
  if (!found) return {};
  Advice a = advice_on(profile, "layout_and_casts", found->node, found->total);
  a.evidence = fmt::format("kernels that only change layout or type take {}", time_text(found->total));
  a.confidence = "bound";
  a.remedy = "Keep one layout and type: channels_last for convolutions, weights and inputs in the type of the products";
  return {a};
}

std::vector<Advice> unfused_elementwise(const Profile& profile) {
  const auto found = kernels(profile, 0.1, [](std::string_view name) {
    return has_any(name, {"elementwise_kernel", "multi_tensor_apply"}) && !has_any(name, {"direct_copy_kernel"});
  });
  if (!found) return {};
  Advice a = advice_on(profile, "unfused_elementwise", found->node, found->total / 2);
  a.evidence =
      fmt::format("elementwise kernels, which read and write whole tensors each, take {}", time_text(found->total));
  a.confidence = "guess";
  a.remedy = "A compiler joins them: torch.compile, or heddle compile for inference; fused=True of an optimiser";
  return {a};
}

std::vector<Advice> low_precision_unused(const Profile& profile) {
  const auto found = kernels(profile, 0.01, [](std::string_view name) {
    return has_any(name, {"sgemm", "f32f32_f32f32_f32", "_fp32_", "simt_sgemm"}) &&
           !has_any(name, {"tf32", "tensorop", "s1688", "bf16"});
  });
  if (!found) return {};
  Advice a = advice_on(profile, "low_precision_unused", found->node, found->total / 4 * 3);
  a.evidence = fmt::format("products of f32 without tensor cores take {}", time_text(found->total));
  a.confidence = "guess";
  a.remedy =
      "torch.set_float32_matmul_precision(\"high\") allows tf32; autocast to bfloat16 or float16 is faster still";
  return {a};
}

std::vector<Advice> exposed_collectives(const Profile& profile) {
  const auto found = kernels(profile, 0.05, is_collective);
  if (!found) return {};
  Advice a = advice_on(profile, "exposed_collectives", found->node, found->total);
  a.evidence =
      fmt::format("collectives take {} in which no kernel that began before them runs", time_text(found->total));
  a.confidence = "bound";
  a.remedy =
      "Let them run beside the backward pass: smaller buckets begin earlier (bucket_cap_mb), gradients in bf16 are "
      "half the bytes";
  return {a};
}

}  // namespace heddle::profile
