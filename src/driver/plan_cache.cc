#include "driver/plan_cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "driver/import.h"
#include "frontend/onnx/proto.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

constexpr int64_t kHashedWhole = int64_t{1} << 30;
constexpr int64_t kSamples = 64, kSampleBytes = 1 << 20;
// Disk space that a plan must leave free.
constexpr uint64_t kReserve = uint64_t{256} << 20;

Hash128 file_hash(const std::string& path, int threads) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    fail(ErrorCode::kFile, path, fmt::format("it cannot be read: {}", std::strerror(errno)), "Check the path");
  }
  if (status.st_size <= kHashedWhole) return hash_file(path, threads);
  Hasher hasher;
  hasher.add(status.st_size).add(status.st_mtim.tv_sec).add(status.st_mtim.tv_nsec);
  const auto file = MappedFile::open(path);
  const int64_t stride = (static_cast<int64_t>(file->size()) - kSampleBytes) / (kSamples - 1);
  for (int64_t i = 0; i < kSamples; ++i) hasher.add(hash_bytes(file->data() + i * stride, kSampleBytes));
  return hasher.finish();
}

std::set<std::string> external_files(const std::string& path) {
  if (is_ir_file(path)) return {};
  const auto file = MappedFile::read(path);
  const onnx::ModelProto model = onnx::parse_model(file->text(), file, path);
  std::set<std::string> locations;
  for (const onnx::TensorProto& tensor : model.graph.initializers) {
    if (!tensor.external) continue;
    for (const auto& [key, value] : tensor.external_data) {
      if (key == "location") locations.emplace(value);
    }
  }
  return locations;
}

}  // namespace

Hash128 model_hash(const std::string& path, int threads) {
  Hasher hasher;
  hasher.add(file_hash(path, threads));
  const std::string folder = path.substr(0, path.rfind('/') + 1);  // "" for a bare name
  for (const std::string& location : external_files(path)) {
    // A missing file is the importer's error, which names the tensor.
    if (file_exists(folder + location)) hasher.add(location).add(file_hash(folder + location, threads));
  }
  return hasher.finish();
}

Hash128 tuned_key(const Hash128& base, const std::string& winners) {
  if (winners.empty()) return base;
  Hasher hasher;
  hasher.add(base).add(winners);
  return hasher.finish();
}

std::optional<std::string> PlanCache::find_problems(const Hash128& base) const {
  const auto entry = cache_.find(jit::EntryKind::kProblems, base);
  return entry ? std::optional<std::string>(entry->payload) : std::nullopt;
}

void PlanCache::store_problems(const Hash128& base, const std::string& text) const {
  cache_.store(jit::EntryKind::kProblems, base, text);
}

std::shared_ptr<const runtime::Plan> PlanCache::find(const Hash128& key, int threads) const {
  const std::shared_ptr<const MappedFile> file = cache_.open(jit::EntryKind::kPlan, key);
  if (file == nullptr) return nullptr;
  try {
    const bool stamped = cache_.is_stamped(key);
    auto plan = runtime::parse_plan(file->bytes(), file, stamped ? 0 : threads, key);
    if (!stamped) cache_.stamp_plan(key);
    return plan;
  } catch (const Error& error) {
    log(LogLevel::kInfo, fmt::format("cached plan {}: {}; it is made again", file->path(), error.why()));
    cache_.remove(jit::EntryKind::kPlan, key);
    return nullptr;
  }
}

std::shared_ptr<const runtime::Plan> PlanCache::store(const Hash128& key, runtime::Plan& plan,
                                                      const runtime::ConstantMakers& makers) const {
  if (!cache_.prepare(jit::EntryKind::kPlan)) return nullptr;
  const std::string path = cache_.path_of(jit::EntryKind::kPlan, key);
  uint64_t bytes = kReserve;
  for (const Tensor& constant : plan.constants) bytes += constant.bytes();
  if (const uint64_t room = free_bytes(cache_.folder()); room != 0 && room < bytes) {
    warn_once(fmt::format("the disk of the cache folder {} has no room for the plan of {}; it is not cached",
                          cache_.folder(), plan.model));
    return nullptr;
  }
  try {
    // Gigabytes take seconds to flush; the checksums, which are checked after a start of the machine, make up for it.
    plan.key = key;
    runtime::write_plan(plan, path, Sync::kNo, makers);
    const auto file = MappedFile::open(path);
    auto mapped = runtime::parse_plan(file->bytes(), file, 0, key);
    cache_.stamp_plan(key);
    cache_.trim();
    return mapped;
  } catch (const Error& error) {
    warn_once(fmt::format("the plan of {} cannot be cached: {}", plan.model, error.what()));
    return nullptr;
  }
}

}  // namespace heddle::driver
