// Files that others write to, locks, and what dead processes leave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/file/file.h"
#include "base/file/file_lock.h"
#include "base/file/sweep.h"
#include "base/file/trust.h"
#include "tests/error_of.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using test::error_of;

constexpr uid_t kOther = 12345;

// Runs `action` in a child process, which then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<void()>& action) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      action();
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
      for (;;) ::pause();
    }
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { kill(); }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

TEST(FileGuard, WhatWasReadStaysWhenTheFileIsOverwrittenOrShortened) {
  const TempDir dir;
  const std::string path = dir.path() + "/a", text(40 << 20, 'a');
  write_file(path, text, Sync::kNo);
  const auto content = MappedFile::read(path, From::kAnybody, 2);
  ASSERT_EQ(::truncate(path.c_str(), 1), 0);
  EXPECT_EQ(content->text(), text);
  release_pages(content->data(), content->size());
  EXPECT_EQ(content->text(), text);
  EXPECT_EQ(MappedFile::read(path)->text(), "a");
}

TEST(FileGuard, AFileThatShrinksWhileItIsReadIsAnError) {
  // A file of /proc says that it is empty, and one of /sys that it has a page, which it has not.
  if (!file_exists("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "there is no such file here";
  const Error error = error_of([] { MappedFile::read("/sys/kernel/mm/transparent_hugepage/enabled"); });
  EXPECT_EQ(error.code(), ErrorCode::kFile);
  EXPECT_NE(error.why().find("shorter"), std::string::npos) << error.what();
}

TEST(FileGuard, FilesThatOthersMayWriteAreDistrusted) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  write_file(path, "x");
  EXPECT_EQ(MappedFile::read(path, From::kOwn)->text(), "x");
  for (const mode_t mode : {0666, 0664, 0602}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const Error error = error_of([&] { MappedFile::read(path, From::kOwn); });
    EXPECT_EQ(error.code(), ErrorCode::kFile);
    EXPECT_NE(error.remedy().find("chmod go-w " + path), std::string::npos) << error.what();
    EXPECT_EQ(MappedFile::read(path)->text(), "x");
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(::chown(path.c_str(), kOther, 0), 0);
  const Error error = error_of([&] { MappedFile::read(path, From::kOwn); });
  EXPECT_EQ(error.code(), ErrorCode::kFile);
  EXPECT_NE(error.why().find("12345"), std::string::npos) << error.what();
}

TEST(FileGuard, FoldersThatOthersMayExchangeAreDistrusted) {
  const TempDir dir;
  const std::string outer = dir.path() + "/outer", folder = outer + "/cache";
  make_directories(folder);
  EXPECT_FALSE(distrust_of_folder(folder));
  const auto distrusted = [&](const std::string& path, const std::string& where) {
    const auto distrust = distrust_of_folder(path);
    return distrust && distrust->where == where;
  };
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_TRUE(distrusted(folder, folder));
  ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
  EXPECT_TRUE(distrusted(folder, folder)) << "a sticky folder keeps what is in it, but takes what others add";
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(outer.c_str(), 0777), 0);
  EXPECT_TRUE(distrusted(folder, outer));
  ASSERT_EQ(::chmod(outer.c_str(), 01777), 0);
  EXPECT_FALSE(distrust_of_folder(folder));
  ASSERT_EQ(::symlink("../outer/cache", (outer + "/link").c_str()), 0);
  EXPECT_FALSE(distrust_of_folder(outer + "/link"));
  ASSERT_EQ(::symlink("loop", (outer + "/loop").c_str()), 0);
  EXPECT_TRUE(distrust_of_folder(outer + "/loop"));
  EXPECT_TRUE(distrust_of_folder(outer + "/missing"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::lchown((outer + "/link").c_str(), kOther, 0), 0);
  EXPECT_TRUE(distrusted(outer + "/link", outer + "/link")) << "its owner may let it lead elsewhere";
  ASSERT_EQ(::chown(outer.c_str(), kOther, 0), 0);
  EXPECT_TRUE(distrusted(folder, outer));
}

TEST(FileGuard, ALockHasOneHolderAndEndsWithItsProcess) {
  const TempDir dir;
  const std::string path = dir.path() + "/lock";
  {
    FileLock lock(path);
    EXPECT_TRUE(lock.held());
    EXPECT_FALSE(lock.waited());
    std::atomic<bool> inside = false;
    std::thread other([&] {
      const FileLock second(path);
      EXPECT_TRUE(second.held());
      EXPECT_TRUE(second.waited());
      inside = true;
    });
    ::usleep(20000);
    EXPECT_FALSE(inside);
    lock.release();
    other.join();
  }
  EXPECT_FALSE(file_exists(path));
  Child child([&] { new FileLock(path); });
  sweep_locks(dir.path());
  EXPECT_TRUE(file_exists(path)) << "it is held";
  child.kill();
  EXPECT_FALSE(FileLock(path).waited());
  EXPECT_FALSE(file_exists(path));
  EXPECT_FALSE(FileLock(dir.path() + "/no/folder").held());
}

TEST(FileGuard, NobodyWaitsForAHolderThatIsStopped) {
  const TempDir dir;
  const std::string path = dir.path() + "/lock";
  const Child child([&] { new FileLock(path); });
  child.signal(SIGSTOP);
  const FileLock lock(path);
  EXPECT_FALSE(lock.held());
  EXPECT_TRUE(lock.waited());
}

TEST(FileGuard, WhatDeadProcessesLeftIsSwept) {
  const TempDir dir;
  Child child([&] { new TempDir("kept", dir.path()); });
  make_directories(dir.path() + "/heddle-code");
  // Entries beside a temporary folder of a process that has not swept yet.
  const auto neighbours = [&] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const TempDir mine("mine", dir.path());
      ::_exit(static_cast<int>(std::distance(fs::directory_iterator(dir.path()), {})) - 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(neighbours(), 2) << "the folder of a living process, and the user's";
  child.kill();
  EXPECT_EQ(neighbours(), 1);
  EXPECT_TRUE(file_exists(dir.path() + "/heddle-code"));
}

TEST(FileGuard, AFolderThatASweepTookBeforeItWasLockedIsMadeAgain) {
  const TempDir dir;
  const pid_t sweeper = ::fork();
  if (sweeper == 0) {
    for (;;) sweep_temporary_folders(dir.path());
  }
  for (int i = 0; i < 2000; ++i) {
    const TempDir mine("mine", dir.path());
    EXPECT_TRUE(file_exists(mine.path()));
  }
  ::kill(sweeper, SIGKILL);
  ::waitpid(sweeper, nullptr, 0);
}

TEST(FileGuard, UnfinishedFilesAreSweptUnlessTheyAreWritten) {
  const TempDir dir;
  write_file(dir.path() + "/a.1.0.tmp", "of a dead process");
  write_file(dir.path() + "/a", "finished");
  sweep_unfinished(dir.path());
  EXPECT_FALSE(file_exists(dir.path() + "/a.1.0.tmp"));
  EXPECT_TRUE(file_exists(dir.path() + "/a"));
}

}  // namespace
}  // namespace heddle
