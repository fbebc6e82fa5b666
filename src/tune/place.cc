#include "tune/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/error.h"
#include "heddle/version.h"
#include "jit/cache.h"
#include "jit/compiler.h"
#include "jit/headers.h"
#include "target/calibration.h"

namespace heddle::tune {
namespace {

std::string heddle_version() {
  return fmt::format("{} {}", version(), jit::headers_hash().hex());
}

}  // namespace

Database& user_database() {
  // By folder: a process that changes HEDDLE_CACHE_DIR (tests do) sees the other folder's. Never destroyed: operators
  // that a program keeps in static variables may still ask.
  static std::mutex mutex;
  static auto* databases = new std::map<std::string, std::unique_ptr<Database>>;
  const std::string path = Database::path_in(jit::Cache::of_user().folder());
  const std::lock_guard lock(mutex);
  std::unique_ptr<Database>& database = (*databases)[path];
  if (database == nullptr) database = std::make_unique<Database>(path);
  return *database;
}

Place place_of(const CudaDevice& device) {
  Target target;
  target.kind = TargetKind::kCuda;
  target.cuda = device.target;
  return {fmt::format("{}, {}", device.name, target.fingerprint()), fmt::format("cuda {}", device.driver_version),
          heddle_version()};
}

Place place_of(const Target& target) {
  if (target.kind == TargetKind::kCuda) {
    for (const CudaDevice& device : cuda_devices()) {
      Target here;
      here.kind = TargetKind::kCuda;
      here.cuda = device.target;
      if (here.fingerprint() == target.fingerprint()) return place_of(device);
    }
    return {target.fingerprint(), "none", heddle_version()};
  }
  Place place{fmt::format("{}, {}", cpu_name(), target.fingerprint()), "no compiler", heddle_version()};
  try {
    place.driver = jit::find_compiler().version;
  } catch (const Error&) {
    // Plans run without one, and tuning needs it anyway.
  }
  return place;
}

}  // namespace heddle::tune
