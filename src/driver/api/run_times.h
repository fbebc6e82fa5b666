#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "heddle/model.h"

namespace heddle::driver {

// How long runs of a model take, in seconds, and its floor: the least time that the machine allows.
struct RunTimes {
  size_t runs = 0;
  double p10 = 0, p50 = 0, p90 = 0;
  double cpu = 0;      // of processor time of one run, over all threads, median
  double waiting = 0;  // Contention::waiting() of the runs
  double floor = 0;
  int threads = 1;
  // On a GPU: its own time for one run, without copies from and to the host, and bytes of its memory that are in use.
  // `device_cold`: with an L2 that holds nothing of its operands.
  double device_p10 = 0, device_p50 = 0, device_p90 = 0, device_cold = 0;
  uint64_t device_bytes = 0;
};

// Runs a model on these inputs, which are of the shapes that it was loaded for, for about `seconds`, at least five
// times, behind some runs that do not count. Throws what running throws.
RunTimes time_runs(const Model& model, const std::map<std::string, Tensor>& inputs, double seconds);

}  // namespace heddle::driver
