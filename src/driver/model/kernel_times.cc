#include "driver/model/kernel_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/thread/contention.h"

namespace heddle::driver {
namespace {

constexpr double kStart = 5e-6;  // of a kernel on a GPU: its launch, and a few latencies of memory

int64_t blocks_of(const KernelReport& kernel) {
  int64_t blocks = 0;
  for (const CudaLaunch& launch : kernel.launches) {
    blocks = std::max(blocks, int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]);
  }
  return blocks;
}

// 0: no model says one.
double predicted_seconds(const KernelReport& kernel) {
  if (kernel.stitch.predicted_seconds > 0) return kernel.stitch.predicted_seconds;
  return kernel.configuration.predicted_us * 1e-6;
}

}  // namespace

std::string machine_of(const std::string& target) {
  const size_t kind = target.find('-');
  return target.substr(0, kind == std::string::npos ? kind : target.find('-', kind + 1));
}

KernelTimes::KernelTimes(const CompileReport& report) {
  const bool gpu = report.target.starts_with("cuda");
  threads_ = gpu ? 1 : report.threads;  // a CPU's floor is that of one thread
  sms_ = gpu ? report.sms : 0;
  busy_ = is_busy(report.waiting);
  for (const GroupReport& group : report.groups) {
    for (const KernelReport& kernel : group.kernels) measured_ |= kernel.measured_seconds > 0;
  }
}

double KernelTimes::seconds(const KernelReport& kernel) const {
  if (measured_) return kernel.measured_seconds;
  const double predicted = predicted_seconds(kernel);
  return predicted > 0 ? predicted : floor(kernel);
}

std::optional<Excess> KernelTimes::excess(const KernelReport& kernel) const {
  const double least = floor(kernel), takes = seconds(kernel);
  const bool only_starts = sms_ > 0 && takes - least <= kStart;
  if (busy_ || least <= 0 || takes <= kFar * least || only_starts) return std::nullopt;
  std::vector<Term> terms = terms_of(kernel, takes, least);
  const auto largest =
      std::max_element(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.seconds < b.seconds; });
  return Excess{takes / least,
                fmt::format("{}, {:.1f} of {:.1f} us", largest->why, largest->seconds * 1e6, takes * 1e6)};
}

// What a time is more than its floor, cut into what has a cause that the report shows.
std::vector<KernelTimes::Term> KernelTimes::terms_of(const KernelReport& kernel, double takes, double least) const {
  std::vector<Term> terms;
  double left = takes - least;
  const auto add = [&](double seconds, std::string why) {
    seconds = std::clamp(seconds, 0.0, left);
    left -= seconds;
    terms.push_back({seconds, std::move(why)});
  };
  const double predicted = predicted_seconds(kernel);
  if (measured_ && predicted > 0) {
    add(takes - predicted, fmt::format("the cost model, which predicts {:.1f} us, does not know why", predicted * 1e6));
  }
  if (sms_ > 0) {
    const size_t launches = std::max<size_t>(kernel.launches.size(), 1);
    add(kStart * static_cast<double>(launches),
        launches > 1 ? fmt::format("its {} launches have too little work to hide latencies", launches)
                     : std::string("too little work to hide latencies"));
  }
  const char* const name = sms_ > 0 ? "SMs" : "threads";
  const int64_t workers = sms_ > 0 ? sms_ : threads_, tasks = sms_ > 0 ? blocks_of(kernel) : kernel.tasks;
  if (tasks > 0 && workers > 1) {
    const int64_t waves = (tasks + workers - 1) / workers, idle = waves * workers - tasks;
    const double idles = least * static_cast<double>(idle) / static_cast<double>(tasks);
    add(idles, waves == 1 ? fmt::format("{} of {} {} idle", idle, workers, name)
                          : fmt::format("{} of {} {} idle in the last of {} waves", idle, workers, name, waves));
  }
  add(left, kernel.family.empty() ? fmt::format("latencies inside it ({})", kernel.stitch.mapping)
                                  : fmt::format("{}: {}", kernel.family, kernel.reason));
  return terms;
}

}  // namespace heddle::driver
