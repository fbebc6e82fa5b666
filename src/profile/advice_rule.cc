#include "profile/advice_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "profile/views.h"

namespace heddle::profile {

int64_t run_time(const CallingContextTree& tree) {
  const std::optional<size_t> busy = find_metric(tree, metrics::kGpuBusy.name),
                              idle = find_metric(tree, metrics::kGpuIdle.name);
  if (busy && idle) return tree.total(*busy) + tree.total(*idle);
  const std::optional<size_t> time = time_metric(tree);
  return time ? tree.total(*time) : 0;
}

double share_of_run(const CallingContextTree& tree, int64_t time) {
  return static_cast<double>(time) / static_cast<double>(std::max<int64_t>(run_time(tree), 1));
}

Advice advice_on(const Profile& profile, const char* rule, NodeId node, int64_t gain) {
  Advice advice;
  advice.rule = rule;
  advice.node = node;
  advice.gain_ns = gain;
  advice.share = share_of_run(profile.tree, gain);
  return advice;
}

void keep_largest(std::vector<Gain>& gains) {
  if (gains.size() <= kMostAdvice) return;
  std::vector<int64_t> times;
  for (const Gain& gain : gains) times.push_back(gain.ns);
  std::nth_element(times.begin(), times.begin() + (kMostAdvice - 1), times.end(), std::greater<>());
  const int64_t least = times[kMostAdvice - 1];
  size_t equal = kMostAdvice - static_cast<size_t>(std::count_if(times.begin(), times.end(),
                                                                 [&](int64_t time) { return time > least; }));
  std::erase_if(gains, [&](const Gain& gain) {
    if (gain.ns != least) return gain.ns < least;
    if (equal == 0) return true;
    --equal;
    return false;
  });
}

std::string time_text(int64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  return ns < 1e6   ? fmt::format("{:.1f} us", ns * 1e-3)
         : ns < 1e9 ? fmt::format("{:.1f} ms", ns * 1e-6)
                    : fmt::format("{:.2f} s", ns * 1e-9);
}

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool is_collective(std::string_view kernel) {
  return has_any(kernel, {"nccl", "AllReduce", "all_reduce"});
}

}  // namespace heddle::profile
