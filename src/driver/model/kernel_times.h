#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/model/report.h"

namespace heddle::driver {

// Returns a short name for the machine in a target's fingerprint: "cpu-avx512", "cuda-sm_90a".
std::string machine_of(const std::string& target);

// A kernel's time as a multiple of its floor. The floor is the minimum time for the kernel's arithmetic and memory
// traffic. `why` names the largest cause of the difference and the time that it costs.
struct Excess {
  double times = 1;
  std::string why;
};

// Kernel times from a report: measured times if the report has any, else predictions of the cost models. A kernel
// without a cost model is assumed to take exactly its floor.
class KernelTimes {
 public:
  static constexpr double kFar = 3;  // a kernel that takes more than this multiple of its floor is far from it

  explicit KernelTimes(const CompileReport& report);

  bool measured() const { return measured_; }
  double seconds(const KernelReport& kernel) const;
  double floor(const KernelReport& kernel) const { return kernel.floor_seconds / threads_; }
  // Returns the excess of a kernel that is far from its floor, else nullopt. Measurements on a busy machine are
  // ignored: the result is then nullopt for every kernel.
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
