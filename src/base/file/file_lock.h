#pragma once

#include <string>

#include "base/file/descriptor.h"

namespace heddle {

// A lock that one holder has at a time, among the threads and processes that name the same file. The kernel releases it
// when its process dies; a file that a dead process left is taken over by the next holder or removed by sweep_locks().
class FileLock {
 public:
  // Waits for the holder. Returns without the lock if the holder is stopped (Ctrl-Z, a debugger) or if the file system
  // has no locks. Never throws.
  explicit FileLock(std::string path);
  ~FileLock() { release(); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return file_.get() >= 0; }
  // True if somebody else held the lock meanwhile, so the guarded work may be done already.
  bool waited() const { return waited_; }
  void release();  // also removes the file

 private:
  std::string path_;
  Descriptor file_;
  bool waited_ = false;
};

// Removes the lock files in a folder that nobody holds.
void sweep_locks(const std::string& folder);

}  // namespace heddle
