#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/cuda_model.h"

namespace heddle {

// What `heddle devices --calibrate` measures of a machine, kept in a file for each device: $HEDDLE_DEVICES, else
// $XDG_CONFIG_HOME/heddle/devices, else ~/.config/heddle/devices. The numbers of a target follow them when it is
// detected (Target::host_cpu(), cuda_devices()).
struct CpuRates {
  double ghz = 0;                  // one core under load
  double fma_bytes_per_cycle = 0;  // of vectors that one core multiplies and adds
  double copy_gbps = 0;            // one thread, read and written together
  double barrier_us = 0;           // fork and join of all threads
};

// The CPU's name as the system gives it, "unknown" where it gives none.
std::string cpu_name();

// The clock of the core that this runs on, in GHz, from some runs of 50 us; 0 where no clock is known to be measured
// so.
double measured_ghz();

// The file of a device by its name; empty where the user has no folder.
std::string calibration_path(std::string_view device);

// The calibration of a device; nothing where it has no file. One that is damaged, or holds what no machine is, is not
// used, and a warning names it.
std::optional<CpuRates> cpu_calibration(std::string_view device);
std::optional<CudaRates> cuda_calibration(std::string_view device);

// Writes the file and returns its path. Throws kFile.
std::string write_calibration(std::string_view device, const CpuRates& rates);
std::string write_calibration(std::string_view device, const CudaRates& rates);

}  // namespace heddle
