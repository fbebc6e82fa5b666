#include "jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace heddle::jit {
namespace {

namespace fs = std::filesystem;

// Raised whenever the frame or the meaning of a payload changes. 1: first.
constexpr uint32_t kVersion = 1;
constexpr char kMagic[8] = {'H', 'D', 'L', 'C', 'A', 'C', 'H', 'E'};

struct Frame {
  char magic[8];
  uint32_t version;
  uint32_t kind;
  uint64_t bytes;
  Hash128 key, payload;
  uint64_t unused;
};
static_assert(sizeof(Frame) == 64 && std::is_trivially_copyable_v<Frame>);

constexpr EntryKind kKinds[] = {EntryKind::kLibrary, EntryKind::kPlan, EntryKind::kStamp, EntryKind::kCubin,
                                EntryKind::kProblems};

// Files aside that are older than this belong to a process that died.
constexpr auto kAsideLifetime = std::chrono::hours(1);

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void sweep(const std::string& folder, bool all = false) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!all && entry.path().extension() != ".tmp") continue;
    const auto written = entry.last_write_time(error);
    if (!error && now - written > kAsideLifetime) fs::remove_all(entry.path(), error);
  }
}

// Changes with every change of the file and with every start of the machine; "" where there is no such file.
std::string file_identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "";
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {} {} {}.{}", boot, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

void warn_unusable(const std::string& folder, std::string_view why) {
  warn_once(fmt::format("the cache folder {} cannot be used ({}); compiling without it", folder, why));
}

}  // namespace

std::string_view to_string(EntryKind kind) {
  switch (kind) {
    case EntryKind::kLibrary:
      return "library";
    case EntryKind::kCubin:
      return "cubin";
    case EntryKind::kPlan:
      return "plan";
    case EntryKind::kStamp:
      return "stamp";
    case EntryKind::kProblems:
      return "problems";
  }
  return "other";
}

Cache Cache::of_user() {
  if (std::string folder = environment("HEDDLE_CACHE_DIR"); !folder.empty()) return Cache(std::move(folder));
  if (const std::string base = environment("XDG_CACHE_HOME"); !base.empty()) return Cache(base + "/heddle");
  if (const std::string home = environment("HOME"); !home.empty()) return Cache(home + "/.cache/heddle");
  return Cache(fmt::format("/tmp/heddle-cache-{}", ::geteuid()));
}

std::string Cache::path_of(EntryKind kind, const Hash128& key) const {
  return fmt::format("{}/{}/{}", folder_, to_string(kind), key.hex());
}

bool Cache::prepare(EntryKind kind) const {
  const std::string folder = fmt::format("{}/{}", folder_, to_string(kind));
  try {
    make_directories(folder);
  } catch (const Error& error) {
    warn_unusable(folder_, error.why());
    return false;
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    warn_unusable(folder_, "it may not be written");
    return false;
  }
  sweep(folder);
  return true;
}

std::optional<Entry> Cache::find(EntryKind kind, const Hash128& key) const {
  const std::string path = path_of(kind, key);
  if (!file_exists(path)) return std::nullopt;
  std::shared_ptr<const MappedFile> file;
  try {
    file = MappedFile::open(path);
  } catch (const Error&) {
    return std::nullopt;  // removed meanwhile, or not readable
  }
  if (file->size() >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, file->data(), sizeof frame);
    const std::string_view payload = file->text().substr(sizeof frame);
    if (std::memcmp(frame.magic, kMagic, sizeof kMagic) == 0 && frame.version == kVersion &&
        frame.kind == static_cast<uint32_t>(kind) && frame.bytes == payload.size() && frame.key == key &&
        frame.unused == 0 && frame.payload == hash_text(payload)) {
      ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
      return Entry{std::move(file), payload};
    }
  }
  log(LogLevel::kInfo, fmt::format("cache entry {} is damaged; it is made again", path));
  remove(kind, key);
  return std::nullopt;
}

bool Cache::store(EntryKind kind, const Hash128& key, std::string_view payload) const {
  if (!prepare(kind)) return false;
  Frame frame{};
  std::memcpy(frame.magic, kMagic, sizeof kMagic);
  frame.version = kVersion;
  frame.kind = static_cast<uint32_t>(kind);
  frame.bytes = payload.size();
  frame.key = key;
  frame.payload = hash_text(payload);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&frame, 1)),
                                              std::as_bytes(std::span(payload.data(), payload.size()))};
  try {
    write_file(path_of(kind, key), parts);
  } catch (const Error& error) {
    warn_unusable(folder_, error.why());
    return false;
  }
  return true;
}

bool Cache::is_stamped(const Hash128& key) const {
  const auto stamp = find(EntryKind::kStamp, key);
  return stamp && stamp->payload == file_identity(path_of(EntryKind::kPlan, key));
}

void Cache::stamp_plan(const Hash128& key) const {
  if (const std::string identity = file_identity(path_of(EntryKind::kPlan, key)); !identity.empty()) {
    store(EntryKind::kStamp, key, identity);
  }
}

uint64_t Cache::default_limit() {
  constexpr uint64_t kGigabyte = 1000000000;
  const std::string text = environment("HEDDLE_CACHE_GB");
  const double gigabytes = text.empty() ? 20 : std::strtod(text.c_str(), nullptr);
  return static_cast<uint64_t>(std::clamp(gigabytes, 0.0, 1e6) * static_cast<double>(kGigabyte));
}

void Cache::trim(uint64_t limit) const {
  struct File {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (const EntryKind kind : kKinds) {
    for (const auto& entry : fs::directory_iterator(fmt::format("{}/{}", folder_, to_string(kind)), error)) {
      const uint64_t bytes = entry.file_size(error);
      if (error) continue;
      const fs::path stamp = fs::path(folder_) / to_string(EntryKind::kStamp) / entry.path().filename();
      const bool stamped = kind == EntryKind::kPlan && fs::exists(stamp, error);
      files.push_back({fs::last_write_time(stamped ? stamp : entry.path(), error), entry.path(), bytes});
      total += bytes;
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= limit) return;
    if (fs::remove(file.path, error)) total -= file.bytes;
  }
}

std::string Cache::scratch_folder() const {
  std::string folder = folder_ + "/scratch";
  try {
    make_directories(folder);
  } catch (const Error&) {
    return "";
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return "";
  sweep(folder, true);
  return folder;
}

void Cache::remove(EntryKind kind, const Hash128& key) const {
  ::unlink(path_of(kind, key).c_str());
}

CacheInfo Cache::info() const {
  CacheInfo info{folder_};
  std::error_code error;
  for (const EntryKind kind : kKinds) {
    for (const auto& entry : fs::directory_iterator(fmt::format("{}/{}", folder_, to_string(kind)), error)) {
      const auto bytes = entry.file_size(error);
      if (error) continue;
      ++info.entries;
      info.bytes += bytes;
    }
  }
  return info;
}

// Removes only what Heddle puts there: the folder may be one that the user named by mistake.
CacheInfo Cache::clear() const {
  CacheInfo before = info();
  std::error_code error;
  for (const EntryKind kind : kKinds) {
    fs::remove_all(fmt::format("{}/{}", folder_, to_string(kind)), error);
  }
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("headers-") || name == "scratch") fs::remove_all(entry.path(), error);
  }
  return before;
}

}  // namespace heddle::jit
