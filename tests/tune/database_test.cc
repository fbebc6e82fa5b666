#include "tune/database.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file/file.h"
#include "base/log.h"

namespace heddle::tune {
namespace {

const Place kHere = {"cpu A", "g++ 12", "0.1"};

Record record_of(const std::string& winner, double us = 10) {
  return {winner, "pick", us, 2 * us, 0, 0, 0.05, 8, 11};
}

class DatabaseTest : public testing::Test {
 protected:
  DatabaseTest() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~DatabaseTest() override { set_log_sink({}); }
  std::string path() const { return Database::path_in(dir_.path() + "/cache"); }
  // Files beside the database whose names contain `part`.
  size_t files(const std::string& part) const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path() + "/cache")) {
      count += entry.path().filename().string().find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }
  TempDir dir_;
};

TEST_F(DatabaseTest, AFileOrFolderThatOthersMayWriteIsNotRead) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(Database(path()).store(kHere, "gemm", record_of("a")));
  ::umask(before);
  const std::string folder = dir_.path() + "/cache";
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (const auto& [changed, mode] : {std::pair(path(), 0666), std::pair(folder, 0777)}) {
    ASSERT_EQ(::chmod(changed.c_str(), static_cast<mode_t>(mode)), 0);
    Database database(path());
    EXPECT_FALSE(database.find(kHere, "gemm"));
    EXPECT_FALSE(database.store(kHere, "gemm", record_of("b")));
    EXPECT_NE(database.note().find("chmod go-w " + changed), std::string::npos) << database.note();
    ASSERT_EQ(::chmod(changed.c_str(), 0700), 0);
  }
  EXPECT_EQ(Database(path()).find(kHere, "gemm")->winner, "a");
  Database none(Database::path_in(""));
  EXPECT_FALSE(none.store(kHere, "gemm", record_of("a")));
  EXPECT_FALSE(none.find(kHere, "gemm"));
}

TEST_F(DatabaseTest, KeepsRecordsByProblemDeviceDriverAndVersion) {
  {
    Database database(path());
    EXPECT_FALSE(database.find(kHere, "gemm"));
    EXPECT_FALSE(file_exists(path()));  // asking makes no file
    EXPECT_TRUE(database.store(kHere, "gemm", record_of("a", 12.5)));
    EXPECT_TRUE(database.store({"cpu B", "g++ 12", "0.1"}, "gemm", record_of("b")));
    EXPECT_TRUE(database.store({"cpu A", "g++ 13", "0.1"}, "gemm", record_of("c")));
    EXPECT_TRUE(database.store({"cpu A", "g++ 12", "0.2"}, "gemm", record_of("d")));
  }
  Database again(path());
  const auto found = again.find(kHere, "gemm");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->winner, "a");
  EXPECT_EQ(found->pick, "pick");
  EXPECT_EQ(found->winner_us, 12.5);
  EXPECT_EQ(found->pick_us, 25);
  EXPECT_FALSE(found->by_energy());
  EXPECT_EQ(found->spread, 0.05);
  EXPECT_EQ(found->candidates, 8);
  EXPECT_EQ(found->samples, 11);
  EXPECT_EQ(again.find({"cpu A", "g++ 12", "0.2"}, "gemm")->winner, "d");
  EXPECT_FALSE(again.find({"cpu A", "g++ 12", "0.3"}, "gemm"));
  EXPECT_FALSE(again.find(kHere, "conv"));
  EXPECT_EQ(again.count(), 4);
  EXPECT_EQ(again.note(), "");
  // A later measurement replaces.
  EXPECT_TRUE(again.store(kHere, "gemm", record_of("e")));
  EXPECT_EQ(again.find(kHere, "gemm")->winner, "e");
  EXPECT_EQ(again.count(), 4);
  EXPECT_TRUE(again.clear());
  EXPECT_EQ(again.count(), 0);
  EXPECT_TRUE(again.store(kHere, "gemm", record_of("f")));
}

TEST_F(DatabaseTest, AnyTextIsAProblem) {
  Database database(path());
  const std::string odd = "it's \"odd\"; DROP TABLE winners; -- \xff\xfe %s";
  EXPECT_TRUE(database.store(kHere, odd, record_of("w'inner")));
  EXPECT_EQ(database.find(kHere, odd)->winner, "w'inner");
  EXPECT_EQ(database.count(), 1);
}

TEST_F(DatabaseTest, ManyProcessesWriteAtOnce) {
  constexpr int kProcesses = 6, kRecords = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      Database database(path());
      bool ok = true;
      for (int i = 0; i < kRecords; ++i) {
        ok = ok && database.store(kHere, "shared " + std::to_string(i), record_of(std::to_string(p)));
        ok = ok && database.store(kHere, std::to_string(p) + " own " + std::to_string(i), record_of("own"));
        ok = ok && database.find(kHere, "shared " + std::to_string(i)).has_value();
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Database database(path());
  EXPECT_EQ(database.count(), kRecords * (kProcesses + 1));
  EXPECT_EQ(database.note(), "");
  EXPECT_EQ(files("damaged"), 0u);
}

TEST_F(DatabaseTest, ManyThreadsShareOne) {
  Database database(path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) database.store(kHere, std::to_string(t * 100 + i), record_of("x"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(database.count(), 80);
}

TEST_F(DatabaseTest, SetsAsideAFileThatIsNoDatabase) {
  make_directories(dir_.path() + "/cache");
  std::ofstream(path()) << "this was something else, and it is longer than the header of a database file is, too.....";
  {
    Database database(path());
    EXPECT_FALSE(database.find(kHere, "gemm"));
    EXPECT_NE(database.note().find("was set aside as"), std::string::npos) << database.note();
    EXPECT_EQ(files("damaged"), 1u);
    EXPECT_TRUE(database.store(kHere, "gemm", record_of("a")));
    EXPECT_EQ(database.find(kHere, "gemm")->winner, "a");
  }
  Database again(path());
  EXPECT_EQ(again.count(), 1);
  EXPECT_EQ(again.note(), "");
  EXPECT_TRUE(again.clear());
  EXPECT_EQ(files("damaged"), 0u);
}

TEST_F(DatabaseTest, SetsAsideADamagedFileWhereverTheDamageIs) {
  size_t refused = 0;
  for (const int64_t at : {0, 20, 100, 4096, 4100, 8192 + 10, 12288 + 50}) {
    std::filesystem::remove_all(dir_.path() + "/cache");
    {
      Database database(path());
      for (int i = 0; i < 200; ++i) database.store(kHere, "problem " + std::to_string(i), record_of("winner"));
    }
    {
      std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at);
      for (int i = 0; i < 300; ++i) file.put(static_cast<char>(0xA5));
    }
    Database database(path());
    for (int i = 0; i < 200; ++i) database.find(kHere, "problem " + std::to_string(i));
    EXPECT_TRUE(database.store(kHere, "new", record_of("b"))) << at;
    EXPECT_EQ(database.find(kHere, "new")->winner, "b") << at;
    refused += files("damaged");
  }
  EXPECT_GE(refused, 4u);
}

TEST_F(DatabaseTest, TruncatedAndEmptyFilesAreBegunAnew) {
  for (const int64_t size : {0, 1, 50, 1000, 5000}) {
    std::filesystem::remove_all(dir_.path() + "/cache");
    {
      Database database(path());
      for (int i = 0; i < 50; ++i) database.store(kHere, "problem " + std::to_string(i), record_of("winner"));
    }
    std::filesystem::resize_file(path(), static_cast<uint64_t>(size));
    Database database(path());
    database.find(kHere, "problem 1");
    EXPECT_TRUE(database.store(kHere, "new", record_of("b"))) << size << database.note();
    EXPECT_TRUE(database.find(kHere, "new")) << size;
  }
}

// As a user without rights, since root may write anywhere.
template <typename Body>
bool unprivileged(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setegid(65534) != 0 || ::seteuid(65534) != 0)) ::_exit(2);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(DatabaseTest, AReadOnlyFolderIsReadAndKeepsNothing) {
  {
    Database database(path());
    database.store(kHere, "gemm", record_of("a"));
  }
  ::chmod(dir_.path().c_str(), 0755);
  ::chmod((dir_.path() + "/cache").c_str(), 0555);
  ::chmod(path().c_str(), 0444);
  EXPECT_TRUE(unprivileged([&] {
    Database database(path());
    const auto found = database.find(kHere, "gemm");
    if (!found || found->winner != "a" || !database.note().empty()) return false;
    if (database.store(kHere, "gemm", record_of("b")) || database.note().empty()) return false;
    return database.find(kHere, "gemm")->winner == "a" && database.count() == 1;
  }));
  ::chmod((dir_.path() + "/cache").c_str(), 0755);
}

TEST_F(DatabaseTest, FilesOfOlderFormatsAreNamedAndCleared) {
  const std::string older = dir_.path() + "/cache/tune-2.sqlite";
  std::filesystem::create_directory(dir_.path() + "/cache");
  std::filesystem::permissions(dir_.path() + "/cache", std::filesystem::perms::owner_all);
  std::ofstream(older) << "records";
  size_t warnings = 0;
  set_log_sink(
      [&](LogLevel, std::string_view text) { warnings += text.find(older) != std::string_view::npos ? 1 : 0; });
  Database database(path());
  EXPECT_FALSE(database.find(kHere, "gemm"));
  EXPECT_FALSE(database.find(kHere, "conv"));
  EXPECT_EQ(warnings, 1u);
  EXPECT_NE(database.note().find("heddle cache clear"), std::string::npos) << database.note();
  EXPECT_TRUE(database.clear());
  EXPECT_EQ(files("tune-2"), 0u);
  EXPECT_EQ(database.note(), "");
}

TEST_F(DatabaseTest, AFolderThatCannotBeMadeKeepsNothing) {
  Database database(Database::path_in("/proc/nothing/here"));
  EXPECT_FALSE(database.find(kHere, "gemm"));
  EXPECT_EQ(database.note(), "");
  EXPECT_FALSE(database.store(kHere, "gemm", record_of("a")));
  EXPECT_NE(database.note().find("cannot be written"), std::string::npos);
  EXPECT_EQ(database.count(), 0);
}

TEST_F(DatabaseTest, AFullDiskKeepsNothing) {
  Database database("/dev/full/tune-3.sqlite");
  EXPECT_FALSE(database.store(kHere, "gemm", record_of("a")));
  EXPECT_NE(database.note(), "");
}

}  // namespace
}  // namespace heddle::tune
