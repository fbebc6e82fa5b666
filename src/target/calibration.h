#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/cuda_model.h"

namespace heddle {

// The measurements of `heddle devices --calibrate`. Target detection uses these measurements (Target::host_cpu(),
// cuda_devices()). Each device has one file, in $HEDDLE_DEVICES if that variable is set, else in
// $XDG_CONFIG_HOME/heddle/devices, else in ~/.config/heddle/devices.
struct CpuRates {
  double ghz = 0;                  // of one core under load
  double fma_bytes_per_cycle = 0;  // bytes of vectors that one core can multiply and add per cycle
  double copy_gbps = 0;            // of one thread; bytes read plus bytes written
  double barrier_us = 0;           // time to fork and join all threads
};

// The CPU's name as the system reports it, or "unknown".
std::string cpu_name();

// Measures the clock of the current core in GHz, in a few runs of 50 us. Returns 0 if there is no known method for this
// CPU.
double measured_ghz();

// Returns the path of a device's calibration file, or "" if the user has no folder for such files.
std::string calibration_path(std::string_view device);

// Returns the calibration of a device, or nullopt if it has no file. A file that is damaged or has impossible values is
// ignored, with a warning that contains its path.
std::optional<CpuRates> cpu_calibration(std::string_view device);
std::optional<CudaRates> cuda_calibration(std::string_view device);

// Writes the calibration file of a device and returns its path. Throws kFile.
std::string write_calibration(std::string_view device, const CpuRates& rates);
std::string write_calibration(std::string_view device, const CudaRates& rates);

}  // namespace heddle
