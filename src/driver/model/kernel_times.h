#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/model/report.h"

namespace heddle::driver {

// The machine of a target's fingerprint, in short: "cpu-avx512", "cuda-sm_90a".
std::string machine_of(const std::string& target);

// A kernel's time as a multiple of its floor, the least time that its arithmetic and its memory traffic allow. `why`
// names the largest part of the difference and its size.
struct Excess {
  double times = 1;
  std::string why;
};

// Kernel times from a report: measured ones if there are any, else predictions of the models. A kernel without a model
// is assumed to take its floor.
class KernelTimes {
 public:
  static constexpr double kFar = 3;  // a kernel is far from its floor above this multiple of it

  explicit KernelTimes(const CompileReport& report);

  bool measured() const { return measured_; }
  double seconds(const KernelReport& kernel) const;
  double floor(const KernelReport& kernel) const { return kernel.floor_seconds / threads_; }
  // The excess of a kernel that is far from its floor, else nullopt. On a busy machine, measured times count for no
  // kernel.
  std::optional<Excess> excess(const KernelReport& kernel) const;

 private:
  struct Term {
    double seconds = 0;
    std::string why;
  };
  std::vector<Term> terms_of(const KernelReport& kernel, double takes, double least) const;

  int threads_, sms_;  // sms_: 0 on a CPU
  bool measured_ = false, busy_ = false;
};

}  // namespace heddle::driver
