#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <system_error>

#include "base/check.h"
#include "base/file/file.h"
#include "base/file/sweep.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// Nobody gives a folder of his own such a name: what begins so is removed when nobody holds its lock.
constexpr std::string_view kMark = "heddle-tmp.";

struct Live {
  std::recursive_mutex mutex;  // files are written while folders are made
  std::set<std::string> folders;
  std::set<std::string> swept;  // roots
  bool ending = false;          // a signal is ending the process: make no more folders
};

Live& live() {
  static auto* instance = new Live;
  return *instance;
}

Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

void sweep_temporary_folders(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string path = entry.path();
    if (!entry.path().filename().string().starts_with(kMark)) continue;
    const Descriptor folder = open_folder(path);
    struct stat status {};
    if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !is_named(folder.get(), path)) continue;
    fs::remove_all(path, error);
  }
}

namespace {

void sweep_once(const std::string& root) {
  {
    const std::lock_guard lock(live().mutex);
    if (!live().swept.insert(root).second) return;
  }
  sweep_temporary_folders(root);
}

// Removes a folder into which a thread, or a compiler that was interrupted, may still write: under another name they no
// longer find it.
void remove_folder(const std::string& folder) {
  std::error_code error;
  const std::string renamed = folder + "-removed";
  fs::rename(folder, renamed, error);
  const std::string& left = error ? folder : renamed;
  constexpr int kAttempts = 3;  // a file that was being opened may still come to it
  for (int attempt = 0; attempt < kAttempts; ++attempt) fs::remove_all(left, error);
}

std::string standard_root() {
  const char* variable = std::getenv("TMPDIR");
  return variable != nullptr && *variable != '\0' ? variable : "/tmp";
}

}  // namespace

TempDir::TempDir(const std::string& prefix, const std::string& root) {
  const std::string parent = root.empty() ? standard_root() : root;
  sweep_once(parent);
  // Held from before the folder exists until it is registered, so that remove_temporary_folders() misses none.
  const auto lock = hold_temporary_folders();
  while (path_.empty()) {
    std::string name = fmt::format("{}/{}{}.XXXXXX", parent, kMark, prefix);
    if (::mkdtemp(name.data()) == nullptr) {
      fail_errno(name, "creating a temporary folder", errno, "Set TMPDIR to a folder that may be written");
    }
    lock_ = open_folder(name);
    // A process that sweeps may have taken the folder for a dead process's and removed it. Without locks nothing is
    // swept.
    if (lock_.get() < 0 && errno == ENOENT) continue;
    if (lock_.get() >= 0 && ::flock(lock_.get(), LOCK_EX) == 0 && !is_named(lock_.get(), name)) continue;
    path_ = std::move(name);
  }
  live().folders.insert(path_);
}

TempDir::~TempDir() {
  // Held while the folder is removed: a signal would otherwise end the process in the midst of it.
  const auto lock = hold_temporary_folders();
  remove_folder(path_);
  live().folders.erase(path_);
}

std::unique_lock<std::recursive_mutex> hold_temporary_folders() {
  std::unique_lock lock(live().mutex);
  while (live().ending) ::pause();
  return lock;
}

void remove_temporary_folders() {
  const std::lock_guard lock(live().mutex);
  live().ending = true;
  for (const std::string& folder : live().folders) remove_folder(folder);
}

}  // namespace heddle
