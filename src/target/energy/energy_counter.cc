#include "target/energy/energy_counter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "base/clock.h"
#include "target/cuda_driver.h"
#include "target/energy/nvml.h"
#include "target/energy/rapl.h"

namespace heddle {
namespace {

constexpr double kChunkSeconds = 0.02;  // between two looks at the counter, which may take a millisecond itself
constexpr double kPatience = 2;         // seconds without an update after which a counter stands still
constexpr int kFewestUpdates = 10;
constexpr double kLongEnough = 5;  // seconds that fewer updates may take

// Numbers of attributes in the driver's interface.
constexpr int kPciBus = 33, kPciDevice = 34, kPciDomain = 50;

std::string pci_address_of(int ordinal) {
  const CudaDriver& driver = CudaDriver::get();
  CudaDriver::Device device = 0;
  driver.check(driver.device_get(&device, ordinal), "cuDeviceGet");
  const auto attribute = [&](int which) {
    int value = 0;
    driver.check(driver.device_attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  return fmt::format("{:08X}:{:02X}:{:02X}.0", attribute(kPciDomain), attribute(kPciBus), attribute(kPciDevice));
}

std::unique_ptr<EnergyCounter> cpu_counter() {
  const char* folder = std::getenv("HEDDLE_POWERCAP");
  return rapl_counter(folder != nullptr ? folder : "/sys/class/powercap");
}

std::unique_ptr<EnergyCounter> cuda_counter(int device) {
  if (CudaDriver::get().emulated && std::getenv("HEDDLE_NVML") == nullptr) {
    fail(ErrorCode::kDevice, EnergyCounter::kWhere, "an emulated GPU has no energy counter");
  }
  return nvml_counter(pci_address_of(device));
}

// Measures between updates of a counter.
class Window {
 public:
  Window(EnergyCounter& counter, double seconds, const std::function<void(int64_t)>& run)
      : counter_(counter), seconds_(seconds), run_(run) {}

  EnergyFigure measure() {
    EnergyFigure figure;
    figure.source = counter_.source();
    find_chunk();
    if (!wait_for_update()) return still(figure);
    const double before = wall_seconds();
    if (!wait_for_update()) return still(figure);
    const double begin = wall_seconds(), joules = last_;
    figure.interval = begin - before;
    runs_ = 0;
    const double enough = std::max(seconds_, std::min((kFewestUpdates - 0.5) * figure.interval, kLongEnough));
    double end = begin;
    // The device idles during a look, so there are none until the last interval.
    while (wall_seconds() - begin < enough - figure.interval) run_chunk();
    while (end - begin < enough) {
      if (!wait_for_update()) return still(figure);
      end = wall_seconds();
    }
    figure.runs = runs_;
    figure.seconds = end - begin;
    figure.joules = (last_ - joules) / static_cast<double>(runs_);
    figure.watts = (last_ - joules) / figure.seconds;
    return figure;
  }

 private:
  // Also warms up: code, caches and clocks.
  void find_chunk() {
    for (chunk_ = 1;;) {
      const double start = wall_seconds();
      run_(chunk_);
      const double took = wall_seconds() - start;
      if (took >= kChunkSeconds / 2) return;
      const double growth = took > 0 ? std::clamp(kChunkSeconds / took, 1.5, 10.0) : 10;
      chunk_ = static_cast<int64_t>(std::ceil(static_cast<double>(chunk_) * growth));
    }
  }

  void run_chunk() {
    run_(chunk_);
    runs_ += chunk_;
  }

  bool wait_for_update() {
    const double start = wall_seconds();
    last_ = counter_.joules();
    while (wall_seconds() - start < kPatience) {
      run_chunk();
      const double now = counter_.joules();
      if (now == last_) continue;
      last_ = now;
      return true;
    }
    return false;
  }

  static EnergyFigure still(EnergyFigure figure) {
    figure.why_not = fmt::format("the counter of {} did not change within {} s", figure.source, kPatience);
    return figure;
  }

  EnergyCounter& counter_;
  const double seconds_;
  const std::function<void(int64_t)>& run_;
  int64_t chunk_ = 1, runs_ = 0;
  double last_ = 0;
};

}  // namespace

std::unique_ptr<EnergyCounter> EnergyCounter::of(std::string_view fingerprint, int device) {
  if (fingerprint.starts_with("cuda-")) return cuda_counter(device);
  if (!fingerprint.starts_with("hip-")) return cpu_counter();
  fail(ErrorCode::kDevice, kWhere, "Heddle does not read the energy counters of AMD GPUs");
}

std::string text_of(const EnergyFigure& figure) {
  if (!figure.ok()) return "not measured: " + figure.why_not;
  return fmt::format("{:.3g} W in {:.1f} s, {}, updated every {:.3g} ms", figure.watts, figure.seconds, figure.source,
                     figure.interval * 1e3);
}

EnergyFigure measure_energy(EnergyCounter& counter, double seconds, const std::function<void(int64_t runs)>& run) {
  try {
    return Window(counter, seconds, run).measure();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDevice || error.where() != EnergyCounter::kWhere) throw;
    EnergyFigure figure;
    figure.source = counter.source();
    figure.why_not = error.why();
    return figure;
  }
}

}  // namespace heddle
