#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/model/report.h"

namespace heddle::driver {

// What machine a target's fingerprint is of, in short: "cpu-avx512", "cuda-sm_90a".
std::string machine_of(const std::string& target);

// How many times its floor a kernel takes, the least time that its arithmetic and its memory traffic allow, and what
// most of the difference goes to, with how much that is.
struct Excess {
  double times = 1;
  std::string why;
};

// How long kernels take by a report: what was measured where anything was, else what the models predict, and of a
// kernel without a model the least that its arithmetic and memory allow.
class KernelTimes {
 public:
  static constexpr double kFar = 3;  // times its floor from which on a kernel counts as far from it

  explicit KernelTimes(const CompileReport& report);

  bool measured() const { return measured_; }
  double seconds(const KernelReport& kernel) const;
  double floor(const KernelReport& kernel) const { return kernel.floor_seconds / threads_; }
  // Of a kernel far from its floor. Times that were measured on a busy machine say that of none.
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
