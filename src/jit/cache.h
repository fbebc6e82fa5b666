#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "base/file/file_lock.h"
#include "base/hash.h"

namespace heddle::jit {

// Kinds of cache entries. Each kind has its own folder.
//   kObject    the object file of a unit that many libraries share
//   kProblems  the problems that a model's schedule looks up in the tuner's database
//   kStamp     records that the checksums of the plan with the same key were correct; the date of the stamp is the
//              date of the plan's last use
//   kClock     the highest clock rate measured on a CPU
enum class EntryKind : uint8_t { kLibrary, kPlan, kStamp, kCubin, kProblems, kObject, kClock };
std::string_view to_string(EntryKind kind);

// A cache entry that is mapped into memory.
struct Entry {
  std::shared_ptr<const MappedFile> file;
  std::string_view payload;
};

struct CacheInfo {
  std::string folder;
  uint64_t entries = 0, bytes = 0;
};

// The content-addressed store on disk that all processes of a user share. Its folder is that of use_folder(), else
// $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else .cache/heddle in the user's home. An entry is written to a
// temporary file, flushed and renamed. Processes that create the same entry at the same time overwrite each other's
// file with identical bytes. The temporary files of a dead process are deleted by other processes.
//
// The cache holds code that this process runs. It therefore reads nothing from a folder or file that anyone other than
// the current user and root could have written (base/file/trust.h).
//
// The cache never makes a compilation fail. If its folder is unusable, find() finds nothing, store() stores nothing,
// and one warning is logged.
class Cache {
 public:
  static Cache of_user();
  // Sets the folder for this process, once. Throws kInvalidArgument if it has been set to another folder.
  static void use_folder(const std::string& folder);
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }  // "" if there is no cache

  // Framed entries. The frame contains the key, the size and a checksum. find() removes a damaged entry and returns
  // nullopt.
  std::optional<Entry> find(EntryKind kind, const Hash128& key) const;
  bool store(EntryKind kind, const Hash128& key, std::string_view payload) const;
  // Returns the payload of an entry whose file content is `bytes`; nullopt if `bytes` is not an entry of this kind and
  // key.
  static std::optional<std::string_view> payload_of(EntryKind kind, const Hash128& key, std::string_view bytes);

  // For plans, which are files with their own format and checksums. open() returns null if there is no usable file.
  // prepare() creates the folder and removes abandoned temporary files from it; it returns false if the cache is
  // unusable.
  std::string path_of(EntryKind kind, const Hash128& key) const;
  std::shared_ptr<const MappedFile> open(EntryKind kind, const Hash128& key) const;
  bool prepare(EntryKind kind) const;
  void remove(EntryKind kind, const Hash128& key) const;

  // Returns a lock to hold while an entry is created, so that other processes wait instead of creating the entry, too.
  // If FileLock::waited() is true, look the entry up again. If the cache is unusable, the returned lock is not held.
  FileLock lock(EntryKind kind, const Hash128& key) const;

  // Removes the least recently used entries until at most `limit` bytes remain. A process that has mapped a removed
  // entry can still read it.
  void trim(uint64_t limit = default_limit()) const;
  // $HEDDLE_CACHE_GB in bytes; 20 GB if the variable is not set.
  static uint64_t default_limit();

  // True if stamp_plan() was called for exactly this file (same inode, size and date) since the machine booted. Then
  // the plan's checksums need not be verified again. For a plan of several gigabytes, verification would take longer
  // than the rest of the load.
  bool is_stamped(const Hash128& key) const;
  void stamp_plan(const Hash128& key) const;

  // Returns the path of the subfolder `name`, for files that are not cache entries. Creates the folder if it is
  // missing. Returns "" if the cache is unusable.
  std::string subfolder(std::string_view name) const;
  // The folder for the temporary folders (TempDir) of this user's compilations. "" if the cache is unusable or its disk
  // has no room for these folders.
  std::string scratch_folder() const;
  // Returns the reason why a write to the folder may fail: a full disk, or no free inodes. "" if there is no such
  // reason.
  std::string lack_of_room() const;

  CacheInfo info() const;
  CacheInfo clear() const;  // returns what was removed; throws kFile if others may write to the folder

 private:
  bool is_trusted(const std::string& folder) const;
  std::string folder_;
};

}  // namespace heddle::jit
