#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file/descriptor.h"

namespace heddle {

// The owners whose files may be read. kOwn refuses, with kFile, files that users other than this one and root may have
// written (base/file/trust.h).
enum class From : bool { kAnybody, kOwn };

// The content of a whole file, read-only, as long as the object lives.
class MappedFile {
 public:
  // Maps the file; pages are read on first access. Only for files that are replaced and never overwritten, such as
  // those of write_file(): if somebody shortens the file, access to the lost pages raises SIGBUS. Errors: kFile.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Reads the file into memory of this process, so later changes to the file have no effect. For files that users name.
  // Errors: kFile, also if the file became shorter meanwhile; kOutOfMemory.
  static std::shared_ptr<const MappedFile> read(const std::string& path, From from = From::kAnybody, int threads = 1);
  // The same for a file that is open for reading; `path` is for messages.
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
  bool backed_;  // pages can be read from the file again
};

// Gives the resident pages of a range back to the system if it lies in a mapped file, for callers that have copied or
// packed the content. A later access reads the pages again. Other memory is left alone.
void release_pages(const void* data, size_t bytes);

bool file_exists(const std::string& path);

// Creates `path` with all missing parents (mode 0700 for what is created). Throws kFile.
void make_directories(const std::string& path);

// Writes the parts one after another to a new file in the folder of `path`, flushes it to the disk and moves it to
// `path`. Readers see the old file, the new one or none, never a part of one, even if the process or the machine stops.
// Throws kFile (and leaves nothing behind). Without the flush, a stop of the machine (not of the process) may leave a
// damaged file, so skip it only for content that is checked before use.
enum class Sync : bool { kNo, kYes };
void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, Sync sync = Sync::kYes);
void write_file(const std::string& path, std::string_view text, Sync sync = Sync::kYes);

// Replaces `to` by a copy of `from`, flushed to the disk. On file systems that can (XFS, Btrfs), both share their
// blocks until one is written to. Returns false if `from` cannot be opened.
bool duplicate_file(const std::string& from, const std::string& to);

// Removes the unfinished files that write_file() calls of dead processes left in a folder.
void sweep_unfinished(const std::string& folder);

// Free bytes for this user on the file system of `path`; 0 when that is unknown.
uint64_t free_bytes(const std::string& path);

// A new empty folder below `root` (empty: $TMPDIR, else /tmp), removed with its content at the end. It is locked while
// it lives. Folders that dead processes left below the same root are removed first. Throws kFile.
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

// Removes all TempDirs of this process, which is about to end by a signal.
void remove_temporary_folders();

}  // namespace heddle
