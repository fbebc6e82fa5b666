#include "jit/cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/file/space.h"
#include "base/file/sweep.h"
#include "base/file/trust.h"
#include "base/log.h"
#include "base/system/environment.h"

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

constexpr EntryKind kKinds[] = {EntryKind::kLibrary,  EntryKind::kPlan,   EntryKind::kStamp, EntryKind::kCubin,
                                EntryKind::kProblems, EntryKind::kObject, EntryKind::kClock};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What the system's list of users says; "" where that is no folder.
std::string home_folder() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  std::vector<char> buffer(1 << 14);
  struct passwd entry {
  }, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  std::error_code error;
  return fs::is_directory(found->pw_dir, error) ? found->pw_dir : "";
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

struct ChosenFolder {
  std::mutex mutex;
  std::string path;  // "" if none was chosen
};

// Never destroyed: threads may still compile while the process ends.
ChosenFolder& chosen_folder() {
  static auto* const chosen = new ChosenFolder;
  return *chosen;
}

}  // namespace

std::string_view to_string(EntryKind kind) {
  constexpr std::string_view kNames[] = {"library", "plan", "stamp", "cubin", "problems", "object", "clock"};
  return kNames[static_cast<size_t>(kind)];
}

void Cache::use_folder(const std::string& folder) {
  std::error_code error;
  const std::string absolute = fs::absolute(folder, error);
  ChosenFolder& chosen = chosen_folder();
  const std::lock_guard lock(chosen.mutex);
  if (!chosen.path.empty() && chosen.path != absolute) {
    fail(ErrorCode::kInvalidArgument, "the cache folder",
         fmt::format("this process uses {} already, not {}", chosen.path, absolute),
         "Give all models of a process the same folder");
  }
  chosen.path = absolute;
}

// A folder where all users may write, in place of a home, could have been made by another one.
Cache Cache::of_user() {
  {
    ChosenFolder& chosen = chosen_folder();
    const std::lock_guard lock(chosen.mutex);
    if (!chosen.path.empty()) return Cache(chosen.path);
  }
  std::error_code error;
  if (const std::string folder = environment("HEDDLE_CACHE_DIR"); !folder.empty()) {
    return Cache(fs::absolute(folder, error));
  }
  if (const std::string base = environment("XDG_CACHE_HOME"); base.starts_with('/')) return Cache(base + "/heddle");
  if (const std::string home = home_folder(); home.starts_with('/')) return Cache(home + "/.cache/heddle");
  return Cache("");
}

std::string Cache::path_of(EntryKind kind, const Hash128& key) const {
  return fmt::format("{}/{}/{}", folder_, to_string(kind), key.hex());
}

bool Cache::is_trusted(const std::string& folder) const {
  auto distrust = distrust_of_folder(folder_);
  if (!distrust) distrust = distrust_of_folder(folder);
  if (!distrust) return true;
  warn_once(
      fmt::format("the cache folder {} is not used, since others than its user could have put code there: {}: {}. "
                  "{}, or set HEDDLE_CACHE_DIR to a folder of your own. Compiling without it",
                  folder_, distrust->where, distrust->why, distrust->remedy));
  return false;
}

std::string Cache::subfolder(std::string_view name) const {
  if (folder_.empty()) {
    warn_once("there is no cache, as there is no home folder; set HEDDLE_CACHE_DIR to a folder of your own");
    return "";
  }
  std::string folder = fmt::format("{}/{}", folder_, name);
  if (file_exists(folder_) && !is_trusted(folder_)) return "";
  try {
    make_directories(folder);
  } catch (const Error& error) {
    warn_unusable(folder_, error.why());
    return "";
  }
  if (!is_trusted(folder)) return "";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    warn_unusable(folder_, "it may not be written");
    return "";
  }
  return folder;
}

std::string Cache::lack_of_room() const {
  constexpr uint64_t kBytes = 16 << 20, kFiles = 256;  // for a compilation's temporary files
  if (folder_.empty() || !file_exists(folder_)) return "";
  if (free_bytes(folder_) < kBytes) return fmt::format("the disk of the cache folder {} is full", folder_);
  if (free_files(folder_) >= kFiles) return "";
  return fmt::format("the disk of the cache folder {} holds no more files (it has no inodes left, see df -i)", folder_);
}

std::string Cache::scratch_folder() const {
  std::string folder = subfolder("scratch");
  if (folder.empty()) return "";
  const std::string lack = lack_of_room();
  if (lack.empty()) return folder;
  warn_once(lack + "; compiling without it");
  return "";
}

bool Cache::prepare(EntryKind kind) const {
  const std::string folder = subfolder(to_string(kind));
  if (!folder.empty()) sweep_unfinished(folder);
  return !folder.empty();
}

std::shared_ptr<const MappedFile> Cache::open(EntryKind kind, const Hash128& key) const {
  const std::string path = path_of(kind, key);
  // Of a link, too, which nobody but a stranger puts there. Between this and the opening only this user changes it.
  const Descriptor file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (folder_.empty() || file.get() < 0 || ::fstat(file.get(), &status) != 0) return nullptr;
  if (!is_trusted(fmt::format("{}/{}", folder_, to_string(kind)))) return nullptr;
  auto distrust = distrust_of_file(file.get(), path);
  if (!distrust && !S_ISREG(status.st_mode)) distrust = Distrust{path, "it is no regular file", ""};
  if (distrust) {
    log(LogLevel::kWarning, fmt::format("the cache entry {} is removed and made again: {}", path, distrust->why));
    remove(kind, key);
    return nullptr;
  }
  try {
    return MappedFile::open(path);
  } catch (const Error&) {
    return nullptr;  // removed meanwhile, or not readable
  }
}

std::optional<std::string_view> Cache::payload_of(EntryKind kind, const Hash128& key, std::string_view bytes) {
  Frame frame;
  if (bytes.size() < sizeof frame) return std::nullopt;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  const std::string_view payload = bytes.substr(sizeof frame);
  const bool good = std::memcmp(frame.magic, kMagic, sizeof kMagic) == 0 && frame.version == kVersion &&
                    frame.kind == static_cast<uint32_t>(kind) && frame.bytes == payload.size() && frame.key == key &&
                    frame.unused == 0 && frame.payload == hash_text(payload);
  return good ? std::optional(payload) : std::nullopt;
}

std::optional<Entry> Cache::find(EntryKind kind, const Hash128& key) const {
  std::shared_ptr<const MappedFile> file = open(kind, key);
  if (file == nullptr) return std::nullopt;
  const std::string path = path_of(kind, key);
  if (const auto payload = payload_of(kind, key, file->text())) {
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
    return Entry{std::move(file), *payload};
  }
  log(LogLevel::kInfo, fmt::format("cache entry {} is damaged; it is made again", path));
  remove(kind, key);
  return std::nullopt;
}

FileLock Cache::lock(EntryKind kind, const Hash128& key) const {
  const std::string folder = subfolder("lock");
  if (folder.empty()) return FileLock("");
  sweep_locks(folder);
  return FileLock(fmt::format("{}/{}-{}", folder, to_string(kind), key.hex()));
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
  const double gigabytes = number_in_environment("HEDDLE_CACHE_GB", 0, 1e6).value_or(20);
  return static_cast<uint64_t>(gigabytes * static_cast<double>(kGigabyte));
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

void Cache::remove(EntryKind kind, const Hash128& key) const {
  if (!folder_.empty()) ::unlink(path_of(kind, key).c_str());
}

CacheInfo Cache::info() const {
  CacheInfo info{folder_};
  if (folder_.empty() || !file_exists(folder_) || !is_trusted(folder_)) return info;
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
  if (folder_.empty()) return {};
  if (auto distrust = distrust_of_folder(folder_); distrust && file_exists(folder_)) {
    fail(ErrorCode::kFile, distrust->where, distrust->why, distrust->remedy);
  }
  CacheInfo before = info();
  std::error_code error;
  for (const EntryKind kind : kKinds) {
    fs::remove_all(fmt::format("{}/{}", folder_, to_string(kind)), error);
  }
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename();
    // Other processes may be compiling.
    if (name == "scratch") sweep_temporary_folders(entry.path());
    if (name.starts_with("headers-") || name == "lock") fs::remove_all(entry.path(), error);
  }
  return before;
}

}  // namespace heddle::jit
