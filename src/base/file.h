#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

// A whole file mapped read-only. Pages are read when touched; the mapping lives as long as the object. Errors: kFile.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size);
  std::string path_;
  const std::byte* data_;
  size_t size_;
};

// Gives the resident pages of a range back to the system where it lies in a MappedFile, for who has copied or packed
// what is there; a later access reads them again. Other memory is left alone.
void release_pages(const void* data, size_t bytes);

bool file_exists(const std::string& path);

// Creates `path` with all missing parents (mode 0700 for what is created). Throws kFile.
void make_directories(const std::string& path);

// Writes the parts one after another to a new file beside `path`, flushes it to the disk and renames it onto `path`:
// readers see the old file, the new one, or none, never a part of one, whenever the process or the machine stops.
// Throws kFile (and leaves nothing behind). Without the flush a stop of the machine (not of the process) may leave a
// damaged file: for what is checked before use.
enum class Sync : bool { kNo, kYes };
void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, Sync sync = Sync::kYes);
void write_file(const std::string& path, std::string_view text, Sync sync = Sync::kYes);

// Makes `to` a file with what is in `from`, in place of what was there, without copying gigabytes where the file system
// helps: both share their blocks until one is written to (XFS, Btrfs), or `to` becomes another name of `from`, which has
// to be a file that is replaced and never written to. Not flushed to the disk. False where `from` cannot be opened.
bool duplicate_file(const std::string& from, const std::string& to);

// Free bytes for this user on the file system of `path`; 0 when that is unknown.
uint64_t free_bytes(const std::string& path);

// A new empty folder below `root` (empty: $TMPDIR, else /tmp), removed with what is in it at the end. Throws kFile.
class TempDir {
 public:
  explicit TempDir(const std::string& prefix = "heddle", const std::string& root = {});
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace heddle
