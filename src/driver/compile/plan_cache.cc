#include "driver/compile/plan_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/file/file.h"
#include "base/log.h"
#include "driver/shapes/import.h"
#include "frontend/onnx/reader/budget.h"
#include "frontend/onnx/reader/external_data.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

constexpr int64_t kHashedWhole = int64_t{1} << 30;
constexpr int64_t kSamples = 64, kSampleBytes = 1 << 20;
// Disk space that a plan must leave free.
constexpr uint64_t kReserve = uint64_t{256} << 20;

// Which file it is and when it was last changed. A change within the resolution of the file system's clock would not
// show, so a file that was written a moment ago has none.
using FileVersion = std::array<int64_t, 7>;
std::optional<FileVersion> version_of(const struct stat& status) {
  constexpr time_t kSettled = 2;  // seconds
  if (::time(nullptr) - std::max(status.st_ctim.tv_sec, status.st_mtim.tv_sec) <= kSettled) return std::nullopt;
  return FileVersion{static_cast<int64_t>(status.st_dev),
                     static_cast<int64_t>(status.st_ino),
                     status.st_size,
                     status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec,
                     status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec};
}

// Hashes of files by their versions: a model is hashed before it is compiled and after, and again for other shapes.
class KnownFiles {
 public:
  std::optional<Hash128> find(const FileVersion& version) const {
    const std::lock_guard lock(mutex_);
    const auto found = hashes_.find(version);
    return found == hashes_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const FileVersion& version, const Hash128& hash) {
    constexpr size_t kMost = 1024;
    const std::lock_guard lock(mutex_);
    if (hashes_.size() >= kMost) hashes_.clear();
    hashes_[version] = hash;
  }

 private:
  mutable std::mutex mutex_;
  std::map<FileVersion, Hash128> hashes_;
};

Hash128 whole_hash(int fd, const std::string& path, const struct stat& status, int threads) {
  static KnownFiles known;
  const std::optional<FileVersion> version = version_of(status);
  if (version) {
    if (const auto hash = known.find(*version)) return *hash;
  }
  const Hash128 hash = hash_file(fd, path, threads);
  struct stat after {};
  if (version && ::fstat(fd, &after) == 0 && version_of(after) == version) known.keep(*version, hash);
  return hash;
}

Hash128 content_hash(int fd, const std::string& path, int threads) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return hash_file(fd, path, threads);
  if (status.st_size <= kHashedWhole) return whole_hash(fd, path, status, threads);
  Hasher hasher;
  hasher.add(status.st_size).add(status.st_mtim.tv_sec).add(status.st_mtim.tv_nsec);
  const int64_t stride = (status.st_size - kSampleBytes) / (kSamples - 1);
  std::vector<char> sample(kSampleBytes);
  for (int64_t i = 0; i < kSamples; ++i) {
    const ssize_t got = ::pread(fd, sample.data(), sample.size(), i * stride);
    if (got < 0) fail_errno(path, "reading", errno);
    hasher.add(hash_bytes(sample.data(), static_cast<size_t>(got)));
  }
  return hasher.finish();
}

Hash128 content_hash(const std::string& path, int threads) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    fail_errno(path, "opening the file", errno, "Check the path");
  }
  return content_hash(file.get(), path, threads);
}

void add_external_files(const std::string& path, const CompileOptions& options, int threads, Hasher& hasher) {
  const auto file = MappedFile::read(path);
  const auto folder = onnx::DataFolder::of_model(path, import_options(options).links);
  onnx::Budget budget(options.limits);
  for (const std::string& location : onnx::external_locations(onnx::parse_model(file->text(), file, path, budget))) {
    try {
      const Descriptor data = folder.open(location, path);
      hasher.add(location).add(content_hash(data.get(), folder.path_of(location), threads));
    } catch (const Error&) {  // the importer's error, which names the tensor
    }
  }
}

}  // namespace

Hash128 model_hash(const std::string& path, const CompileOptions& options, int threads) {
  Hasher hasher;
  hasher.add(content_hash(path, threads));
  if (!is_ir_file(path)) add_external_files(path, options, threads, hasher);
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
