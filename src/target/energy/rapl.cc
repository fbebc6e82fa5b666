#include "target/energy/rapl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/check.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// A zone counts microjoules from 0 up to `range` and begins at 0 again.
struct Zone {
  std::string file;
  uint64_t range = 0, last = 0;
};

uint64_t read_number(const std::string& file) {
  errno = 0;
  std::ifstream stream(file);
  uint64_t number = 0;
  if (stream >> number) return number;
  const int error = errno;
  const bool refused = error == EACCES;
  fail(ErrorCode::kDevice, EnergyCounter::kWhere,
       fmt::format("{} cannot be read: {}", file, error != 0 ? std::strerror(error) : "it has no number"),
       refused ? fmt::format("As root: chmod a+r {}",
                             (fs::path(file).parent_path().parent_path() / "intel-rapl:*/energy_uj").string())
               : "");
}

std::string name_of_zone(const fs::path& zone) {
  std::ifstream stream(zone / "name");
  std::string name;
  std::getline(stream, name);
  return name;
}

class RaplCounter : public EnergyCounter {
 public:
  RaplCounter(std::vector<Zone> zones, size_t packages)
      : EnergyCounter(fmt::format("RAPL of {} package{}", packages, packages == 1 ? "" : "s")),
        zones_(std::move(zones)) {}

  double joules() override {
    for (Zone& zone : zones_) {
      const uint64_t now = read_number(zone.file);
      sum_ += now >= zone.last ? now - zone.last : zone.range - zone.last + now;
      zone.last = now;
    }
    return static_cast<double>(sum_) * 1e-6;
  }

 private:
  std::vector<Zone> zones_;
  uint64_t sum_ = 0;
};

}  // namespace

// Among the zones of a package, only its memory is outside the package's own counter. "psys" counts the whole machine,
// the packages included; intel-rapl-mmio counts the packages a second time.
std::unique_ptr<EnergyCounter> rapl_counter(const std::string& folder) {
  std::vector<Zone> zones;
  size_t packages = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (!entry.path().filename().string().starts_with("intel-rapl:")) continue;
    const std::string name = name_of_zone(entry.path());
    if (!name.starts_with("package-") && name != "dram") continue;
    packages += name == "dram" ? 0 : 1;
    Zone zone{(entry.path() / "energy_uj").string()};
    zone.last = read_number(zone.file);
    zone.range = read_number((entry.path() / "max_energy_range_uj").string());
    zones.push_back(std::move(zone));
  }
  if (packages == 0) {
    fail(ErrorCode::kDevice, EnergyCounter::kWhere,
         fmt::format("{} has no RAPL counter (a virtual machine or container often has none)", folder));
  }
  return std::make_unique<RaplCounter>(std::move(zones), packages);
}

}  // namespace heddle
