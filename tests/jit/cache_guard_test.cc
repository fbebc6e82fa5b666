// What the cache refuses, what it never stores, and that processes do not do the same work twice.
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "jit/cache.h"
#include "jit_fixture.h"
#include "tests/error_of.h"

namespace heddle::jit {
namespace {

namespace fs = std::filesystem;
using test::error_of;

constexpr uid_t kOther = 12345;

class CacheGuard : public Jit {
 protected:
  CacheGuard() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) warnings_.emplace_back(text);
    });
  }
  ~CacheGuard() override { set_log_sink({}); }

  std::string folder() const { return dir_.path() + "/cache"; }
  size_t files_in(const std::string& name) const {
    std::error_code error;
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder() + "/" + name, error), {}));
  }
  // A good entry for units of factor 2 that holds code for factor 3, as somebody would forge it.
  std::string forge() const {
    const CompiledLibrary evil = compile({unit("a", 3)}, target_, 1, false);
    compile(units_, target_, 1, true);
    const std::string path = fs::directory_iterator(folder() + "/library")->path();
    const std::string name = path.substr(path.rfind('/') + 1);
    const Hash128 key = {std::stoull(name.substr(0, 16), nullptr, 16), std::stoull(name.substr(16), nullptr, 16)};
    EXPECT_TRUE(Cache(folder()).store(EntryKind::kLibrary, key, evil.bytes));
    const CompiledLibrary taken = compile(units_, target_, 1, true);
    EXPECT_EQ(call(taken, "a"), 3) << "what this user stores is believed";
    return path;
  }
  void expect_honest() const {
    const CompiledLibrary library = compile(units_, target_, 1, true);
    EXPECT_FALSE(library.from_cache);
    EXPECT_EQ(call(library, "a"), 2);
  }
  bool warned(const std::string& text) const {
    return std::any_of(warnings_.begin(), warnings_.end(),
                       [&](const std::string& w) { return w.find(text) != std::string::npos; });
  }
  // A compiler that runs `script` first, with the arguments of g++.
  std::string write_compiler(const std::string& script) const {
    const std::string path = dir_.path() + "/cxx";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\nexec g++ \"$@\"\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  const std::vector<std::string> units_ = {unit("a", 2)};
  std::vector<std::string> warnings_;
};

TEST_F(CacheGuard, FoldersAndEntriesAreForTheUserAlone) {
  const mode_t before = ::umask(0);
  compile(units_, target_, 1, true);
  ::umask(before);
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    EXPECT_EQ(entry.status().permissions() & (fs::perms::group_write | fs::perms::others_write), fs::perms::none)
        << entry.path();
    if (entry.is_directory() && entry.path().parent_path() == folder()) {
      EXPECT_EQ(entry.status().permissions(), fs::perms::owner_all) << entry.path();
    }
  }
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
}

TEST_F(CacheGuard, AFolderThatOthersMayWriteIsLeftAlone) {
  forge();
  for (const std::string& path : {folder(), folder() + "/library"}) {
    for (const mode_t mode : {0777, 01777, 0770}) {
      warnings_.clear();
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      expect_honest();
      ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    }
  }
  ASSERT_EQ(::chmod(folder().c_str(), 0722), 0);
  EXPECT_EQ(error_of([&] { Cache(folder()).clear(); }).code(), ErrorCode::kFile);
  ASSERT_EQ(::chmod(folder().c_str(), 0700), 0);
}

TEST_F(CacheGuard, TheWarningSaysWhatToDo) {
  compile(units_, target_, 1, true);
  fs::remove_all(folder() + "/scratch");
  ASSERT_EQ(::chmod(folder().c_str(), 0772), 0);
  expect_honest();
  expect_honest();
  EXPECT_FALSE(file_exists(folder() + "/scratch")) << "nothing is put there";
  ASSERT_EQ(warnings_.size(), 1u);
  for (const std::string& part : {"chmod go-w " + folder(), std::string("HEDDLE_CACHE_DIR"), std::string("0772")}) {
    EXPECT_TRUE(warned(part)) << warnings_[0];
  }
}

TEST_F(CacheGuard, AnEntryThatOthersMayWriteOrALinkNeverRuns) {
  const std::string path = forge();
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  expect_honest();
  EXPECT_TRUE(warned(path));
  const std::string forged = forge(), elsewhere = dir_.path() + "/elsewhere";
  fs::rename(forged, elsewhere);
  fs::create_symlink(elsewhere, forged);
  expect_honest();
  EXPECT_TRUE(file_exists(elsewhere));
}

TEST_F(CacheGuard, WhatAnotherUserForgedNeverRuns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string path = forge();
  ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  expect_honest();
  EXPECT_TRUE(compile(units_, target_, 1, true).from_cache) << "the forged entry was replaced";
  forge();
  for (const std::string& owned : {folder() + "/library", folder(), dir_.path()}) {
    ASSERT_EQ(::chown(owned.c_str(), kOther, kOther), 0);
    expect_honest();
    ASSERT_EQ(::chown(owned.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(call(compile(units_, target_, 1, true), "a"), 3) << "the test's own forgery is what is tested";
}

// As on a machine with many users: one of them makes what root would use, before root does.
TEST_F(CacheGuard, AFolderThatAnotherUserMadeFirstIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const std::string shared = dir_.path() + "/shared";
  fs::create_directory(shared);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kOther) != 0 || ::setuid(kOther) != 0) ::_exit(1);
    ::_exit(Cache(shared + "/cache").store(EntryKind::kLibrary, hash_text("1"), "forged") ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(Cache(shared + "/cache").find(EntryKind::kLibrary, hash_text("1")));
  EXPECT_FALSE(Cache(shared + "/cache").store(EntryKind::kLibrary, hash_text("2"), "mine"));
  EXPECT_TRUE(Cache(shared + "/cache").scratch_folder().empty());
  EXPECT_TRUE(warned("12345"));
}

TEST_F(CacheGuard, WithoutHomeThereIsNoFolderThatOthersCouldMake) {
  const Variable chosen("HEDDLE_CACHE_DIR", ""), base("XDG_CACHE_HOME", "relative/is/ignored"), home("HOME", "");
  const std::string found = Cache::of_user().folder();
  const struct passwd* entry = ::getpwuid(::geteuid());
  if (entry != nullptr && fs::is_directory(entry->pw_dir)) {
    EXPECT_EQ(found, std::string(entry->pw_dir) + "/.cache/heddle");
  } else {
    EXPECT_EQ(found, "");
  }
  const Cache none("");
  EXPECT_FALSE(none.store(EntryKind::kLibrary, hash_text("1"), "x"));
  EXPECT_FALSE(none.find(EntryKind::kLibrary, hash_text("1")));
  EXPECT_FALSE(none.lock(EntryKind::kLibrary, hash_text("1")).held());
  EXPECT_EQ(none.scratch_folder(), "");
  EXPECT_EQ(none.info().entries, 0u);
  EXPECT_TRUE(warned("HEDDLE_CACHE_DIR"));
}

// The last argument but one of the command that links is the library.
TEST_F(CacheGuard, ACompilerThatFailsAndSaysItDidNotHarmsOneCompilation) {
  const std::string marker = dir_.path() + "/broken";
  const std::string fault = "case \"$*\" in *-shared*) if [ -e " + marker + " ]; then rm " + marker +
                            "; while [ \"$1\" != -o ]; do shift; done; BREAK exit 0; fi;; esac";
  int factor = 10;
  for (const std::string& damage :
       {std::string(": > \"$2\";"), std::string("echo no library > \"$2\";"),
        std::string("g++ -shared -nostdlib -x c++ /dev/null -o \"$2\";"),
        std::string("printf 'extern \"C\" void missing(); extern \"C\" void a() { missing(); }' |"
                    " g++ -shared -fPIC -nostdlib -x c++ - -o \"$2\";"),
        std::string("cp /bin/sh \"$2\"; truncate -s 5000 \"$2\";")}) {
    std::string script = fault;
    const Variable cxx("HEDDLE_CXX", write_compiler(script.replace(script.find("BREAK"), 5, damage)));
    const std::vector<std::string> units = {unit("a", ++factor)};
    std::ofstream(marker) << "x";
    const Error error = error_of([&] { compile(units, target_, 1, true, {"a"}); });
    EXPECT_EQ(error.code(), ErrorCode::kCompilerFailed) << damage;
    EXPECT_NE(error.why().find("broken"), std::string::npos) << error.what();
    EXPECT_FALSE(file_exists(marker)) << damage;
    const CompiledLibrary again = compile(units, target_, 1, true, {"a"});
    EXPECT_FALSE(again.from_cache) << damage;
    EXPECT_EQ(call(again, "a"), static_cast<float>(factor));
  }
}

TEST_F(CacheGuard, AFolderThatIsRemovedMeanwhileCostsAWarning) {
  for (const auto& [count, when] : {std::pair(1, "-c"), std::pair(3, "-shared")}) {
    std::vector<std::string> units;
    for (int i = 0; i < count; ++i) units.push_back(unit("a" + std::to_string(i), i + 2));
    const std::string remove = "[ \"$1\" = " + std::string(when) + " ] && rm -rf " + folder();
    const Variable compiler("HEDDLE_CXX", write_compiler(remove));
    warnings_.clear();
    const CompiledLibrary library = compile(units, target_, 2, true);
    EXPECT_EQ(call(library, "a" + std::to_string(count - 1)), static_cast<float>(count + 1)) << when;
    EXPECT_TRUE(warned("compiling in the cache folder " + folder() + " failed")) << when;
  }
}

TEST_F(CacheGuard, ADiskThatIsFullIsNoFaultOfTheCompiler) {
  for (const char* said : {"No space left on device", "Disk quota exceeded"}) {
    fs::remove_all(folder());
    const std::string fail = std::string("{ echo \"k0.cc: fatal error: ") + said + "\"; exit 1; }";
    {
      // There alone: it is compiled elsewhere.
      const std::string there = "case \"$*\" in *" + folder() + "/scratch*) " + fail + ";; esac";
      const Variable compiler("HEDDLE_CXX", write_compiler(there));
      EXPECT_EQ(call(compile(units_, target_, 1, true), "a"), 2);
      EXPECT_TRUE(warned("; compiled without it"));
    }
    fs::remove_all(folder());
    const Variable compiler("HEDDLE_CXX", write_compiler("[ \"$1\" = --version ] || " + fail));
    const Error error = error_of([&] { compile(units_, target_, 1, true); });
    EXPECT_EQ(error.code(), ErrorCode::kFile) << error.what();
    EXPECT_NE(std::string(error.what()).find("Make room on the disk"), std::string::npos) << error.what();
  }
}

TEST_F(CacheGuard, ASystemWithoutProcessesIsNoFaultOfTheCompiler) {
  const Variable compiler("HEDDLE_CXX",
                          write_compiler("[ \"$1\" = --version ] || { echo 'g++: fatal error: cannot "
                                         "execute cc1plus: vfork: Resource temporarily unavailable'; exit 1; }"));
  const Error error = error_of([&] { compile(units_, target_, 1, true); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
  EXPECT_NE(error.remedy().find("ulimit -u"), std::string::npos) << error.what();
}

TEST_F(CacheGuard, ALoopOfLinksIsNoFolder) {
  fs::create_symlink(dir_.path() + "/b", dir_.path() + "/a");
  fs::create_symlink(dir_.path() + "/a", dir_.path() + "/b");
  for (const char* name : {"/a", "/a/cache", "/b/deep/cache"}) {
    const Variable cache("HEDDLE_CACHE_DIR", dir_.path() + name);
    EXPECT_EQ(call(compile(units_, target_, 1, true), "a"), 2) << name;
    EXPECT_TRUE(warned(std::string(name) + " cannot be used (creating the folder failed: Too many levels")) << name;
    EXPECT_EQ(Cache::of_user().info().entries, 0u);
    EXPECT_EQ(error_of([&] { make_directories(dir_.path() + name); }).code(), ErrorCode::kFile);
  }
}

TEST_F(CacheGuard, ProcessesThatWantTheSameCompileItOnce) {
  const std::string log = dir_.path() + "/log";
  const Variable cxx("HEDDLE_CXX",
                     write_compiler("case \"$*\" in *-shared*) echo link >> " + log + "; sleep 0.2;; esac"));
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    children.push_back(::fork());
    if (children.back() == 0) {
      int status = 1;
      try {
        status = call(compile(units_, target_, 1, true), "a") == 2 ? 0 : 1;
      } catch (...) {
      }
      ::_exit(status);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(MappedFile::read(log)->text(), "link\n");
  EXPECT_EQ(files_in("lock"), 0u);
  EXPECT_EQ(files_in("scratch"), 0u);
}

TEST_F(CacheGuard, AProcessThatIsKilledKeepsNobodyWaitingAndLeavesNothing) {
  const std::string started = dir_.path() + "/started";
  const Variable cxx("HEDDLE_CXX", write_compiler("case \"$*\" in *-shared*) if [ ! -e " + started + " ]; then : > " +
                                                  started + "; sleep 5; fi;; esac"));
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      compile(units_, target_, 1, true);
    } catch (...) {
    }
    ::_exit(0);
  }
  while (!file_exists(started)) ::usleep(1000);
  EXPECT_EQ(files_in("lock"), 1u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(call(compile(units_, target_, 1, true), "a"), 2);
  EXPECT_EQ(files_in("lock"), 0u);
  const pid_t next = ::fork();  // each process sweeps once, when it first needs a folder
  if (next == 0) {
    try {
      compile({unit("b", 2)}, target_, 1, true);
    } catch (...) {
    }
    ::_exit(0);
  }
  ::waitpid(next, nullptr, 0);
  EXPECT_EQ(files_in("scratch"), 0u);
}

// In a process of its own, since the choice cannot be taken back.
TEST(CacheFolder, IsChosenOnce) {
  const auto choose = [] {
    Cache::use_folder("/tmp/one");
    Cache::use_folder("/tmp/one");
    if (Cache::of_user().folder() != "/tmp/one") std::exit(1);
    try {
      Cache::use_folder("/tmp/two");
    } catch (const Error& error) {
      std::exit(error.code() == ErrorCode::kInvalidArgument ? 0 : 2);
    }
    std::exit(3);
  };
  EXPECT_EXIT(choose(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::jit
