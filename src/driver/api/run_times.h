#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "heddle/model.h"
#include "target/energy/energy_counter.h"

namespace heddle::driver {

// Times of a model's runs, in seconds. `floor` is the shortest possible time of a run on this machine.
struct RunTimes {
  size_t runs = 0;
  double p10 = 0, p50 = 0, p90 = 0;
  double cpu = 0;      // median CPU time of a run, summed over all threads
  double waiting = 0;  // Contention::waiting() over all runs
  double floor = 0;
  int threads = 1;
  // Set on a GPU only: the device time of a run, excluding copies from and to the host, and the device memory in use.
  // `device_cold` is the median device time if L2 holds no operands at the start of a run.
  double device_p10 = 0, device_p50 = 0, device_p90 = 0, device_cold = 0;
  uint64_t device_bytes = 0;
  EnergyFigure energy;
};

// Runs a model for about `seconds`, at least five times, after some warm-up runs. If the device has an energy counter,
// runs it as long again (energy_of_runs()). If the inputs have other shapes than the model was loaded for, there are no
// device times and no energy. Throws the errors of Model::run().
RunTimes time_runs(const Model& model, const std::map<std::string, Tensor>& inputs, double seconds);

}  // namespace heddle::driver
