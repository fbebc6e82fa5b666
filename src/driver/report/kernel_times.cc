#include "driver/report/kernel_times.h"

namespace heddle::driver {

std::string machine_of(const std::string& target) {
  const size_t kind = target.find('-');
  return target.substr(0, kind == std::string::npos ? kind : target.find('-', kind + 1));
}

KernelTimes::KernelTimes(const CompileReport& report)
    : threads_(report.target.starts_with("cuda") ? 1 : report.threads) {  // a CPU's floor is that of one thread
  for (const GroupReport& group : report.groups) {
    for (const KernelReport& kernel : group.kernels) measured_ |= kernel.measured_seconds > 0;
  }
}

double KernelTimes::seconds(const KernelReport& kernel) const {
  if (measured_) return kernel.measured_seconds;
  if (kernel.stitch.predicted_seconds > 0) return kernel.stitch.predicted_seconds;
  return kernel.floor_seconds / threads_;
}

}  // namespace heddle::driver
