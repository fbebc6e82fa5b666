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

// What an entry of the cache holds; each kind has a folder of its own. An object is a unit that many libraries have.
// Problems are what the schedule of a model asks the tuner's database about. A stamp says of the plan with the same key
// that its checksums were right, and its date when the plan was last used. A clock is the highest that a CPU had.
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
// $XDG_CACHE_HOME/heddle, else .cache/heddle in the user's home. An entry is written aside, flushed and renamed, so
// processes that make the same entry at once overwrite each other with equal bytes, and what one leaves that dies is
// swept by others.
//
// It holds code that this process runs: nothing is read from a folder or a file that others than this user and root may
// have written (base/file/trust.h).
//
// The cache never makes a compile fail: where its folder cannot be used, find() finds nothing, store() stores nothing
// and one warning is logged.
class Cache {
 public:
  static Cache of_user();
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }  // "": there is none

  // Framed entries: the frame holds key, size and a checksum; a damaged entry is removed and reported as absent.
  std::optional<Entry> find(EntryKind kind, const Hash128& key) const;
  bool store(EntryKind kind, const Hash128& key, std::string_view payload) const;
  // The payload of a file with these bytes; nullopt: they are no entry of this kind and key.
  static std::optional<std::string_view> payload_of(EntryKind kind, const Hash128& key, std::string_view bytes);

  // Files with a format (and checksums) of their own: plans. open() is null where there is none that may be used;
  // prepare() makes the folder and sweeps it; false: the cache cannot be used.
  std::string path_of(EntryKind kind, const Hash128& key) const;
  std::shared_ptr<const MappedFile> open(EntryKind kind, const Hash128& key) const;
  bool prepare(EntryKind kind) const;
  void remove(EntryKind kind, const Hash128& key) const;

  // Held by who makes an entry, so that others wait for it instead of making it, too: where one waited(), the entry may
  // be there. Not held where the cache cannot be used.
  FileLock lock(EntryKind kind, const Hash128& key) const;

  // Removes what was not used for longest until at most `limit` bytes are left. An entry that another process has
  // mapped stays readable there.
  void trim(uint64_t limit = default_limit()) const;
  // $HEDDLE_CACHE_GB in bytes; 20 GB where that is not set.
  static uint64_t default_limit();

  // Whether stamp_plan() was called for exactly this file (by number, size and date) since the machine was started.
  // Reading gigabytes to check them at each load would take longer than anything else.
  bool is_stamped(const Hash128& key) const;
  void stamp_plan(const Hash128& key) const;

  // A folder with files of another kind, made where it is missing; "" where the cache cannot be used.
  std::string subfolder(std::string_view name) const;
  // The folder for TempDirs of this user's compilations; "" also if its disk has no room for them.
  std::string scratch_folder() const;
  // Why writing in the folder may fail: its disk is full or has no free inodes. "" if neither holds.
  std::string lack_of_room() const;

  CacheInfo info() const;
  CacheInfo clear() const;  // what was removed. Throws kFile for a folder that others may write to

 private:
  bool is_trusted(const std::string& folder) const;
  std::string folder_;
};

}  // namespace heddle::jit
