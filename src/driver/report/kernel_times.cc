#include "driver/report/kernel_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace heddle::driver {

std::string machine_of(const std::string& target) {
  const size_t kind = target.find('-');
  return target.substr(0, kind == std::string::npos ? kind : target.find('-', kind + 1));
}

KernelTimes::KernelTimes(const CompileReport& report) {
  const bool gpu = report.target.starts_with("cuda");
  threads_ = gpu ? 1 : report.threads;  // a CPU's floor is that of one thread
  sms_ = gpu ? report.sms : 0;
  for (const GroupReport& group : report.groups) {
    for (const KernelReport& kernel : group.kernels) measured_ |= kernel.measured_seconds > 0;
  }
}

double KernelTimes::seconds(const KernelReport& kernel) const {
  if (measured_) return kernel.measured_seconds;
  if (kernel.stitch.predicted_seconds > 0) return kernel.stitch.predicted_seconds;
  if (kernel.configuration.predicted_us > 0) return kernel.configuration.predicted_us * 1e-6;
  return floor(kernel);
}

std::optional<Excess> KernelTimes::excess(const KernelReport& kernel) const {
  constexpr double kStart = 5e-6;  // of a kernel on a GPU: its launch, and a few latencies of memory
  const double least = floor(kernel), takes = seconds(kernel);
  const bool only_starts = sms_ > 0 && takes - least <= kStart;
  if (least <= 0 || takes <= kFar * least || only_starts) return std::nullopt;
  int64_t blocks = 0;
  for (const CudaLaunch& launch : kernel.launches) {
    blocks = std::max(blocks, int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]);
  }
  const auto why = [&]() -> std::string {
    if (blocks > 0 && blocks < sms_) return fmt::format("{} of {} SMs idle", sms_ - blocks, sms_);
    if (sms_ > 0 && least <= kStart) return "too little work to hide latencies";
    if (kernel.family.empty()) return kernel.stitch.mapping;
    return fmt::format("{}: {}", kernel.family, kernel.reason);
  };
  return Excess{takes / least, why()};
}

}  // namespace heddle::driver
