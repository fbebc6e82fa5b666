#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/file/descriptor.h"

namespace heddle {

// The owners whose files may be read. With kOwn, reading throws kFile if anyone but the current user and root may have
// written the file (base/file/trust.h).
enum class From : bool { kAnybody, kOwn };

// Read-only access to the content of a whole file, for the lifetime of the object.
class MappedFile {
 public:
  // Maps the file; pages are read on first access. Use it only for files that are replaced and never overwritten, such
  // as those of write_file(): if a mapped file is truncated, access to the lost pages raises SIGBUS. Throws kFile.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Reads the file into memory of this process, so later changes to the file have no effect. Use it for files that
  // users name. Throws kFile, also if the file is truncated during the read, and kOutOfMemory.
  static std::shared_ptr<const MappedFile> read(const std::string& path, From from = From::kAnybody, int threads = 1);
  // Reads a file from a descriptor that is open for reading. `path` is for error messages.
  static std::shared_ptr<const MappedFile> read(int fd, const std::string& path, int threads = 1);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size, bool backed);
  std::string path_;
  const std::byte* data_;
  size_t size_;
  bool backed_;  // True if the memory is a mapping, so that released pages can be read from the file again.
};

// Releases the resident pages of a memory range to the system if the range is in a mapped file. For callers that have
// copied or packed the content. A later access reads the pages again. Does nothing for other memory.
void release_pages(const void* data, size_t bytes);

bool file_exists(const std::string& path);

// Creates the folder `path` and all missing parents, with mode 0700. Throws kFile.
void make_directories(const std::string& path);

// write_file() writes the parts one after another to a new file in the folder of `path`, flushes the file to the disk
// and renames it to `path`. Readers see the old file, the new file or no file, but never a partial file, even if the
// process or the machine crashes. Throws kFile, and then leaves no file behind. Sync::kNo skips the flush: a crash of
// the machine (not of the process) may then leave a damaged file, so use kNo only for content that is verified before
// use.
enum class Sync : bool { kNo, kYes };
void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, Sync sync = Sync::kYes);
void write_file(const std::string& path, std::string_view text, Sync sync = Sync::kYes);

// Replaces the file `to` by a copy of the file `from`, and flushes the copy to the disk. On file systems with reflinks
// (XFS, Btrfs), the two files share blocks until one of them is modified. Returns false if `from` cannot be opened.
bool duplicate_file(const std::string& from, const std::string& to);

// Removes the unfinished files of write_file() from a folder if the processes that wrote them have ended.
void sweep_unfinished(const std::string& folder);

// The number of free bytes for this user on the file system of `path`; 0 if unknown.
uint64_t free_bytes(const std::string& path);

// A new temporary folder below `root`. If `root` is empty, the root is $TMPDIR, or /tmp if that is not set. The folder
// is locked while the object exists; the destructor removes it with its content. The constructor first removes the
// temporary folders of ended processes below the same root. Throws kFile.
class TempDir {
 public:
  explicit TempDir(const std::string& prefix = "heddle", const std::string& root = {});
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor lock_;
};

// Removes all TempDirs of this process. Called when a signal is about to end the process.
void remove_temporary_folders();

// Makes remove_temporary_folders() wait while the lock is held. Code that makes folders in a TempDir together with
// their parents holds it: the parents would otherwise appear again after they were removed. Does not return once they
// are.
std::unique_lock<std::recursive_mutex> hold_temporary_folders();

}  // namespace heddle
