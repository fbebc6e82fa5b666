#include "base/file/trust.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace heddle {
namespace {

namespace fs = std::filesystem;

bool is_trusted(uid_t owner) {
  return owner == ::geteuid() || owner == 0;
}

// Who owns "/" decides about everything. In a user namespace that does not map root this is the user nobody.
bool is_trusted_on_the_way(uid_t owner) {
  struct stat root {};
  return is_trusted(owner) || (::stat("/", &root) == 0 && owner == root.st_uid);
}

Distrust foreign(const std::string& path, uid_t owner) {
  return {path, fmt::format("it belongs to user {}, this process runs as user {}", owner, ::geteuid()),
          "Use what you or root have made; a copy is yours, if you trust who made this one"};
}

Distrust writable(const std::string& path, mode_t mode) {
  return {path, fmt::format("other users may write to it (its mode is {:04o})", mode & 07777),
          fmt::format("Check what is in it, then run `chmod go-w {}`", path)};
}

Distrust absent(const std::string& path, int error) {
  return {path, std::strerror(error), "Name a folder that exists"};
}

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// Of one step on the way to a folder.
std::optional<Distrust> distrust_of_step(const std::string& path, const struct stat& status) {
  if (!is_trusted_on_the_way(status.st_uid)) return foreign(path, status.st_uid);
  if (S_ISLNK(status.st_mode)) return std::nullopt;  // only its owner changes where it leads
  if (!S_ISDIR(status.st_mode)) return Distrust{path, "it is no folder", "Name a folder"};
  if ((status.st_mode & kOthersWrite) != 0 && (status.st_mode & S_ISVTX) == 0) return writable(path, status.st_mode);
  return std::nullopt;
}

}  // namespace

std::optional<Distrust> distrust_of_file(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Distrust{path, std::strerror(errno), ""};
  if (!is_trusted(status.st_uid)) return foreign(path, status.st_uid);
  if ((status.st_mode & kOthersWrite) != 0) return writable(path, status.st_mode);
  return std::nullopt;
}

std::optional<Distrust> distrust_of_folder(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  std::vector<std::string> names;  // that are left to walk, last first
  const auto push = [&](const fs::path& relative) {
    const std::vector<std::string> parts(relative.begin(), relative.end());
    names.insert(names.end(), parts.rbegin(), parts.rend());
  };
  push(fs::absolute(path, error).relative_path());
  fs::path at = "/";
  struct stat status {};
  if (::stat("/", &status) != 0) return absent(at, errno);
  if (auto distrust = distrust_of_step(at, status)) return distrust;
  for (int links = 0; !names.empty();) {
    const std::string name = std::move(names.back());
    names.pop_back();
    if (name.empty() || name == ".") continue;
    const fs::path next = name == ".." ? at.parent_path() : at / name;
    if (::lstat(next.c_str(), &status) != 0) return absent(next, errno);
    if (auto distrust = distrust_of_step(next, status)) return distrust;
    if (!S_ISLNK(status.st_mode)) {
      at = next;
      continue;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMostLinks) return absent(next, error ? error.value() : ELOOP);
    if (target.is_absolute()) at = "/";
    push(target.relative_path());
  }
  if (!is_trusted(status.st_uid)) return foreign(at, status.st_uid);
  if ((status.st_mode & kOthersWrite) != 0) return writable(at, status.st_mode);
  return std::nullopt;
}

}  // namespace heddle
