#include "tune/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/error.h"
#include "heddle/version.h"
#include "jit/cache.h"
#include "jit/compiler.h"
#include "jit/headers.h"

namespace heddle::tune {
namespace {

std::string heddle_version() {
  return fmt::format("{} {}", version(), jit::headers_hash().hex());
}

std::string compiler_version() {
  try {
    return jit::find_compiler().version;
  } catch (const Error&) {
    return "no compiler";  // plans run without one, and tuning needs it anyway
  }
}

Place place_of(const DeviceIdentity& device, const Target& target) {
  const std::string name = device.name.empty() ? "" : device.name + ", ";
  return {name + target.fingerprint(), device.driver ? *device.driver : compiler_version(), heddle_version()};
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
  return place_of(device.identity(), Target::of(device.target));
}

Place place_of(const Target& target) {
  return place_of(target.identity(), target);
}

}  // namespace heddle::tune
