#pragma once

#include <string>

#include "driver/compile/report.h"

namespace heddle::driver {

// What machine a target's fingerprint is of, in short: "cpu-avx512", "cuda-sm_90a".
std::string machine_of(const std::string& target);

// How long kernels take by a report: what was measured where anything was, else what the models predict, and of a
// kernel without a model the least that its arithmetic and memory allow.
class KernelTimes {
 public:
  explicit KernelTimes(const CompileReport& report);

  bool measured() const { return measured_; }
  double seconds(const KernelReport& kernel) const;

 private:
  int threads_;
  bool measured_ = false;
};

}  // namespace heddle::driver
