#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/cuda_model.h"

namespace heddle {

// The measurements of `heddle devices --calibrate`, kept in one file per device in $HEDDLE_DEVICES, else
// $XDG_CONFIG_HOME/heddle/devices, else ~/.config/heddle/devices. Detection of a target uses them (Target::host_cpu(),
// cuda_devices()).
struct CpuRates {
  double ghz = 0;                  // one core under load
  double fma_bytes_per_cycle = 0;  // bytes of vectors that one core multiplies and adds
  double copy_gbps = 0;            // one thread, read and written together
  double barrier_us = 0;           // fork and join of all threads
};

// The CPU's name as the system reports it, or "unknown".
std::string cpu_name();

// The clock in GHz of the core that this runs on, from some runs of 50 us; 0 if the CPU has no known way to measure it.
double measured_ghz();

// The file of a device by its name; empty if the user has no folder for it.
std::string calibration_path(std::string_view device);

// The calibration of a device; nullopt if it has no file. A file that is damaged or has impossible values is ignored
// with a warning that names it.
std::optional<CpuRates> cpu_calibration(std::string_view device);
std::optional<CudaRates> cuda_calibration(std::string_view device);

// Writes the file and returns its path. Throws kFile.
std::string write_calibration(std::string_view device, const CpuRates& rates);
std::string write_calibration(std::string_view device, const CudaRates& rates);

}  // namespace heddle
