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

// Kinds of cache entries; each has its own folder. kObject: the object file of a unit that many libraries share.
// kProblems: the problems that the schedule of a model looks up in the tuner's database. kStamp: proof that the
// checksums of the plan with the same key were right; the date of the stamp is that of the plan's last use. kClock: the
// highest clock rate measured on a CPU.
enum class EntryKind : uint8_t { kLibrary, kPlan, kStamp, kCubin, kProblems, kObject, kClock };
std::string_view to_string(EntryKind kind);

// The payload of an entry, mapped.
struct Entry {
  std::shared_ptr<const MappedFile> file;
  std::string_view payload;
};

struct CacheInfo {
  std::string folder;
  uint64_t entries = 0, bytes = 0;
};

// The content-addressed store on disk that all processes of a user share: $HEDDLE_CACHE_DIR, else
// $XDG_CACHE_HOME/heddle, else .cache/heddle in the user's home. An entry is written to a temporary file, flushed and
// renamed. Processes that make the same entry at once therefore overwrite each other with equal bytes. Other processes
// delete the temporary files of a process that died.
//
// The cache holds code that this process runs. So it reads nothing from a folder or file that users other than this one
// and root may have written (base/file/trust.h).
//
// The cache never makes a compilation fail: if its folder is unusable, find() finds nothing, store() stores nothing and
// one warning is logged.
class Cache {
 public:
  static Cache of_user();
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }  // "": there is no cache

  // Framed entries: the frame has key, size and a checksum. A damaged entry is removed and reported as absent.
  std::optional<Entry> find(EntryKind kind, const Hash128& key) const;
  bool store(EntryKind kind, const Hash128& key, std::string_view payload) const;
  // The payload of a file with these bytes; nullopt if they are not an entry of this kind and key.
  static std::optional<std::string_view> payload_of(EntryKind kind, const Hash128& key, std::string_view bytes);

  // Files with their own format and checksums: plans. open() is null if there is no usable file. prepare() makes and
  // sweeps the folder; it returns false if the cache is unusable.
  std::string path_of(EntryKind kind, const Hash128& key) const;
  std::shared_ptr<const MappedFile> open(EntryKind kind, const Hash128& key) const;
  bool prepare(EntryKind kind) const;
  void remove(EntryKind kind, const Hash128& key) const;

  // Held while an entry is made, so that other processes wait instead of making it again. After waited(), look the
  // entry up again. Not held if the cache is unusable.
  FileLock lock(EntryKind kind, const Hash128& key) const;

  // Removes the least recently used entries until at most `limit` bytes are left. An entry that another process has
  // mapped stays readable there.
  void trim(uint64_t limit = default_limit()) const;
  // $HEDDLE_CACHE_GB in bytes; 20 GB if that is not set.
  static uint64_t default_limit();

  // True if stamp_plan() was called for exactly this file (same inode, size and date) since the machine booted.
  // Checking gigabytes at every load would take longer than the rest of the load.
  bool is_stamped(const Hash128& key) const;
  void stamp_plan(const Hash128& key) const;

  // A folder for files of another kind, created if it is missing; "" if the cache is unusable.
  std::string subfolder(std::string_view name) const;
  // The folder for TempDirs of this user's compilations; "" also if its disk has no room for them.
  std::string scratch_folder() const;
  // Why writing in the folder may fail: its disk is full or has no free inodes. "" if neither holds.
  std::string lack_of_room() const;

  CacheInfo info() const;
  CacheInfo clear() const;  // returns what it removed; throws kFile for a folder that others may write to

 private:
  bool is_trusted(const std::string& folder) const;
  std::string folder_;
};

}  // namespace heddle::jit
