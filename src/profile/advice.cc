#include "profile/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interface/option.h"
#include "profile/advice_rule.h"
#include "profile/gpu_advice.h"
#include "profile/views.h"

namespace heddle::profile {
std::vector<Advice> far_from_floor(const Profile& profile) {
  constexpr double kFar = 2, kReached = 1.2;  // times the floor
  std::vector<Advice> found;
  const std::optional<size_t> metric = time_metric(profile.tree);
  if (!metric || is_of_busy_machine(profile)) return found;
  const auto own_of = [&](const RooflineRow& row) { return static_cast<double>(profile.tree.own(*metric)[row.node]); };
  std::vector<Gain> gains;
  for (size_t i = 0; i < profile.roofline.size(); ++i) {
    const double own = own_of(profile.roofline[i]), floor = static_cast<double>(profile.roofline[i].floor_ns);
    if (floor <= 0 || own < kFar * floor) continue;
    gains.push_back({static_cast<uint32_t>(i), static_cast<int64_t>(own - kReached * floor)});
  }
  keep_largest(gains);
  for (const Gain& gain : gains) {
    const RooflineRow& row = profile.roofline[gain.of];
    const double own = own_of(row), floor = static_cast<double>(row.floor_ns);
    Advice a = advice_on(profile, "far_from_floor", row.node, gain.ns);
    a.evidence = fmt::format("{} takes {:.1f} times the least that {} allows",
                             path_text(profile.tree, profile.tree.parent(row.node)), own / floor,
                             row.bound == "memory" ? "the memory" : "its arithmetic");
    a.confidence = "bound";
    a.remedy = "heddle tune MODEL measures other configurations; heddle explain -v says what holds the kernel back";
    found.push_back(std::move(a));
  }
  return found;
}

std::vector<Advice> reference_fallback(const Profile& profile) {
  std::vector<Advice> found;
  const std::optional<size_t> metric = time_metric(profile.tree);
  const CallingContextTree& tree = profile.tree;
  std::vector<bool> is_reference;  // by frame
  for (const Frame& frame : tree.frames()) is_reference.push_back(frame.name.find("reference: ") != std::string::npos);
  std::vector<Gain> gains;
  for (NodeId node = 0; metric && node < tree.size(); ++node) {
    const int64_t own = tree.own(*metric)[node];
    if (own > 0 && is_reference[tree.frame_id(node)]) gains.push_back({node, own});
  }
  keep_largest(gains);
  for (const auto& [node, own] : gains) {
    Advice a = advice_on(profile, "reference_fallback", node, own);
    a.evidence = fmt::format("{} runs through the reference evaluator, which is made to be right and not to be fast",
                             path_text(tree, tree.parent(node)));
    a.confidence = "bound";
    a.remedy = "heddle explain says why no kernel was made; heddle.compile(..., kernels=...) takes one of yours";
    found.push_back(std::move(a));
  }
  return found;
}

std::vector<Advice> small_steps(const Profile& profile) {
  constexpr double kMuch = 0.1;
  const std::optional<size_t> metric = time_metric(profile.tree);
  if (!metric || !profile.device) return {};
  const int64_t between = profile.tree.own(*metric)[0];
  if (static_cast<double>(between) < kMuch * static_cast<double>(profile.tree.total(*metric))) return {};
  Advice a = advice_on(profile, "small_steps", 0, between);
  a.evidence = "the time goes to what lies between the steps of a run";
  a.confidence = "bound";
  a.remedy = "A larger batch gives each step more to do";
  const bool cpu = profile.tree.metrics()[*metric] == metrics::kCpu;
  if (cpu) a.remedy += fmt::format("; fewer threads take less time to start and stop ({})", option::threads());
  return {a};
}

std::vector<Advice> compilation(const Profile& profile) {
  constexpr double kMuch = 0.05;
  const CallingContextTree& tree = profile.tree;
  const std::optional<size_t> cpu = find_metric(tree, metrics::kCpu.name);
  if (!cpu) return {};
  const auto compiles = [&](NodeId node) {
    const std::string& file = tree.frame(node).file;
    return file.ends_with("torch/_dynamo/convert_frame.py") || file.ends_with("triton/compiler/compiler.py") ||
           file.ends_with("jax/_src/compiler.py");
  };
  const std::vector<int64_t> inclusive = tree.inclusive(*cpu);
  std::vector<bool> below(tree.size(), false);  // a frame that compiles, which counts once
  int64_t total = 0;
  NodeId most = 0;
  for (NodeId node = 1; node < tree.size(); ++node) {
    const bool within = below[tree.parent(node)];
    below[node] = within || compiles(node);
    if (within || !below[node]) continue;
    total += inclusive[node];
    if (most == 0 || inclusive[node] > inclusive[most]) most = node;
  }
  if (total == 0 || share_of_run(tree, total) < kMuch) return {};
  Advice a = advice_on(profile, "compilation", most, total);
  a.share = std::min(a.share, 1.0);
  a.evidence = fmt::format("{} compiles kernels, which takes {} of CPU time in all", path_text(tree, tree.parent(most)),
                           time_text(total));
  a.confidence = "bound";
  a.remedy =
      "Shapes that change are compiled again and again: pad them to a few sizes, or torch.compile(dynamic=True); "
      "TORCH_LOGS=recompiles says why. What is compiled once is no longer there in a longer run";
  return {a};
}

std::vector<Advice> advice_for(const Profile& profile) {
  constexpr double kLeast = 0.01;
  std::vector<Advice> all;
  for (const auto rule :
       {far_from_floor, reference_fallback, small_steps, compilation, waits_for_host, synchronisation, memory_churn,
        pageable_copy, layout_and_casts, unfused_elementwise, low_precision_unused, exposed_collectives}) {
    for (Advice& advice : rule(profile)) {
      if (advice.share >= kLeast) all.push_back(std::move(advice));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Advice& a, const Advice& b) { return a.gain_ns > b.gain_ns; });
  if (all.size() > kMostAdvice) all.resize(kMostAdvice);
  return all;
}

}  // namespace heddle::profile
