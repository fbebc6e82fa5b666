#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

// The energy counter of a device. It counts the whole device: its idle power and other programs are included.
class EnergyCounter {
 public:
  static constexpr const char* kWhere = "energy";  // Error::where() of errors of counters

  virtual ~EnergyCounter() = default;
  // The joules since an arbitrary moment. Throws kDevice if the counter cannot be read any more.
  virtual double joules() = 0;
  // "NVML", "RAPL of 2 packages".
  const std::string& source() const { return source_; }

  // Returns the counter of the device that a target with this fingerprint (Target::fingerprint()) describes. `device`
  // is the number of the GPU. Throws kDevice if the device has no counter or this process may not read it.
  static std::unique_ptr<EnergyCounter> of(std::string_view fingerprint, int device);

 protected:
  explicit EnergyCounter(std::string source) : source_(std::move(source)) {}

 private:
  std::string source_;
};

// The energy of repeated runs of one piece of work.
struct EnergyFigure {
  double joules = 0;    // of one run
  double watts = 0;     // mean power of the device
  double seconds = 0;   // how long was measured
  double interval = 0;  // time between two updates of the counter
  int64_t runs = 0;
  std::string source;   // EnergyCounter::source()
  std::string why_not;  // why there is no figure; the numbers are 0 then

  bool ok() const { return why_not.empty(); }
};

// "312 W in 5.0 s, NVML, updated every 100 ms", or "not measured: " and the reason.
std::string text_of(const EnergyFigure& figure);

// Measures for at least `seconds` and at least ten updates of the counter, from one update to another, so that the
// error of a figure is far below `interval / seconds`. `run` finishes the given number of runs before it returns. A
// counter that stands still or cannot be read any more is reported in EnergyFigure::why_not.
EnergyFigure measure_energy(EnergyCounter& counter, double seconds, const std::function<void(int64_t runs)>& run);

}  // namespace heddle
