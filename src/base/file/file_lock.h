#pragma once

#include <string>

#include "base/file/descriptor.h"

namespace heddle {

// An exclusive lock among the threads and processes that name the same file. The operating system releases the lock
// when the process that holds it dies. The file of a dead process remains until the next holder reuses it or
// sweep_locks() removes it.
class FileLock {
 public:
  // Waits until the lock is free, then acquires it. Returns without the lock if the process that holds it is suspended
  // (Ctrl-Z, a debugger) or if the file system does not support locks. Never throws.
  explicit FileLock(std::string path);
  ~FileLock() { release(); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return file_.get() >= 0; }
  // True if the constructor waited for another holder. The guarded work may then be done already.
  bool waited() const { return waited_; }
  void release();  // also removes the file

 private:
  std::string path_;
  Descriptor file_;
  bool waited_ = false;
};

// Removes the lock files in `folder` whose locks are free.
void sweep_locks(const std::string& folder);

}  // namespace heddle
