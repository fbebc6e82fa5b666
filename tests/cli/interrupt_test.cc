// Ends `heddle` at every call that changes a file, and by signals: whatever is left, the next run is right.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../driver/models.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "runtime/plan_io.h"
#include "tests/instances.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

bool changes_files(uint64_t call, const uint64_t* arguments) {
  switch (call) {
    case SYS_openat:
      return (arguments[2] & (O_CREAT | O_TMPFILE | O_TRUNC)) != 0;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_copy_file_range:
    case SYS_ftruncate:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_flock:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_link:
    case SYS_linkat:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_mkdirat:
    case SYS_utimensat:
      return true;
    default:
      return false;
  }
}

class Interrupt : public testing::Test {
 protected:
  Interrupt() {
    test::write_mlp(path("m.onnx"));
    test::write_mlp(path("other.onnx"), 3);
    fs::create_directory(path("tmp"));
  }

  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }

  // A compiler that knows what it was asked before: the tests run it hundreds of times.
  void write_compiler(const std::string& first = "") const {
    fs::create_directory(path("known"));
    std::ofstream(path("cxx")) << "#!/bin/sh\n[ \"$1\" = --version ] && exec g++ --version\n"
                               << first << "known=" << path("known") << R"(
for a; do [ "$last" = -o ] && out=$a; last=$a; done
case "$*" in *-shared*) read="${out%/*}/*.o";; *) read=$2;; esac
key=$known/$(cat $read | md5sum | cut -c1-32)-${out##*/}
[ -e $key ] || { g++ "$@" && cp $out $key.$$ && mv $key.$$ $key; }
cp $key $out
)";
    fs::permissions(path("cxx"), fs::perms::owner_all);
  }

  // The process of the command, before it begins where `traced`.
  pid_t start(const std::vector<std::string>& arguments, bool traced = false) const {
    const pid_t child = ::fork();
    // Both do it: either may be the first to need the group.
    ::setpgid(child, child);
    if (child != 0) return child;
    ::setenv("HEDDLE_CACHE_DIR", path("cache").c_str(), 1);
    ::setenv("HEDDLE_CXX", path("cxx").c_str(), 1);
    ::setenv("TMPDIR", path("tmp").c_str(), 1);
    const int null = ::open(path("output").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ::dup2(null, 1);
    ::dup2(null, 2);
    std::vector<char*> argv = {const_cast<char*>(HEDDLE_BINARY)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    if (traced && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int run(const std::vector<std::string>& arguments) const {
    int status = 0;
    ::waitpid(start(arguments), &status, 0);
    return status;
  }
  std::vector<std::string> compile() const {
    return {"compile", path("m.onnx"), "-o", path("m.plan"), "--threads", "2"};
  }

  // Kills compile() as it enters its call number `at` that changes a file; the number of calls where it ended before,
  // -1 where it cannot be traced.
  int kill_at(int at) const {
    const pid_t child = start(compile(), true);
    int status = 0, calls = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return -1;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, options) != 0) return -1;
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    for (;;) {
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0) return calls;
      if (!WIFSTOPPED(status)) {
        if (thread == child) return calls;
        continue;
      }
      const int signal = WSTOPSIG(status);
      if (signal == (SIGTRAP | 0x80)) {
        struct __ptrace_syscall_info info {};
        ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
        const bool entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
        if (entry && changes_files(info.entry.nr, reinterpret_cast<const uint64_t*>(info.entry.args)) &&
            calls++ == at) {
          ::kill(child, SIGKILL);
          while (::waitpid(-1, &status, __WALL) > 0) {
          }
          return calls;
        }
      }
      const bool own = signal == SIGTRAP || signal == SIGSTOP || signal == (SIGTRAP | 0x80);  // of the tracing
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, own ? 0L : static_cast<long>(signal));
    }
  }

  std::string content(const std::string& name) const {
    return file_exists(path(name)) ? std::string(MappedFile::read(path(name))->text()) : "";
  }
  // What the plan at `name` says without the estimates, which are this machine's and differ from process to process.
  std::string plan(const std::string& name) const {
    runtime::Plan plan = *runtime::read_plan(path(name), 1);
    for (runtime::Step& step : plan.steps) step.floor_seconds = 0;
    runtime::write_plan(plan, path("plain"), Sync::kNo);
    return content("plain");
  }
  std::vector<std::string> entries(const std::string& name) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path(name), error)) names.push_back(entry.path());
    return names;
  }
  // After a compilation that nobody interrupted.
  void expect_nothing_left() const {
    EXPECT_EQ(entries("cache/scratch"), std::vector<std::string>{});
    EXPECT_EQ(entries("cache/lock"), std::vector<std::string>{});
    EXPECT_EQ(entries("tmp"), std::vector<std::string>{});
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
  }

  TempDir dir_;
};

TEST_F(Interrupt, KilledAtAnyCallThatChangesAFileItLeavesTheNextRunRight) {
  write_compiler();
  ASSERT_EQ(run(compile()), 0) << content("output");
  const std::string right = plan("m.plan"), old = "what was there before";
  const std::string headers = [&] {
    for (const std::string& entry : entries("cache")) {
      if (entry.find("headers-") != std::string::npos) return entry;
    }
    return std::string();
  }();
  fs::rename(headers, path("headers"));
  // Headers are many files that are written alike: once among a few calls, then without them at every 17th call, at more
  // of both with all instances, or at each where that is wanted.
  const bool more = test::takes_all_instances(), each = std::getenv("HEDDLE_KILL_EVERY_CALL") != nullptr;
  for (const bool with_headers : {true, false}) {
    const int step = with_headers ? (more ? 61 : 149) : each ? 1 : more ? 7 : 17;
    int last = 0;
    for (int at = 0; last == 0; at += step) {
      fs::remove_all(path("cache"));
      fs::create_directory(path("cache"));
      fs::permissions(path("cache"), fs::perms::owner_all);
      if (!with_headers) fs::copy(path("headers"), headers, fs::copy_options::recursive);
      write_file(path("m.plan"), old);
      const int calls = kill_at(at);
      if (calls < 0) GTEST_SKIP() << "this process may not trace another one";
      if (calls <= at) last = calls;
      EXPECT_TRUE(content("m.plan") == old || plan("m.plan") == right) << at;
      EXPECT_EQ(run(compile()), 0) << at << ": " << content("output");
      EXPECT_TRUE(plan("m.plan") == right) << at;
      if (HasFailure()) return;
    }
    EXPECT_GT(last, 40) << "calls that change files";
  }
  EXPECT_EQ(run({"compile", path("other.onnx"), "-o", path("other.plan"), "--threads", "2"}), 0);
  expect_nothing_left();
}

TEST_F(Interrupt, ASignalEndsItWithoutLeavingAnything) {
  const std::string started = path("started");
  write_compiler(": > " + started + "; sleep 5\n");
  for (const char* command : {"tune", "compile"}) {
    for (const int number : {SIGINT, SIGTERM}) {
      fs::remove(started);
      std::vector<std::string> arguments = {command, path("m.onnx")};
      if (command == std::string("compile")) arguments.insert(arguments.end(), {"-o", path("m.plan")});
      const pid_t child = start(arguments);
      while (!file_exists(started)) ::usleep(1000);
      ::kill(child, number);
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << command << " " << status;
      EXPECT_EQ(entries("cache/scratch"), std::vector<std::string>{}) << command << " " << number;
      EXPECT_EQ(entries("tmp"), std::vector<std::string>{}) << command << " " << number;
      EXPECT_EQ(content("output"), "") << command << " " << number;
      EXPECT_FALSE(file_exists(path("m.plan")));
    }
  }
}

// As a terminal sends it, to the command and to all that it has started, whatever it is doing.
TEST_F(Interrupt, AKeyIsAnsweredAtOnceAtEachStage) {
  write_compiler();
  const std::vector<std::vector<std::string>> commands = {compile(),
                                                          {"run", path("m.onnx"), "--output-dir", path("out")},
                                                          {"bench", path("m.onnx"), "--seconds", "60"},
                                                          {"profile", path("m.onnx"), "--seconds", "60"},
                                                          {"tune", path("m.onnx"), "--again"},
                                                          {"verify", path("m.onnx")}};
  for (const std::vector<std::string>& command : commands) {
    for (const int milliseconds : {60, 600}) {
      fs::remove_all(path("cache"));
      const pid_t child = start(command);
      ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
      const double sent = wall_seconds();
      ::kill(-child, SIGINT);
      int status = 0;
      ::waitpid(child, &status, 0);
      const bool had_ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      EXPECT_TRUE(had_ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)) << command[0] << " " << status;
      // The bound leaves room for a disk that is slow to flush; "bench" and "profile" would go on for a minute.
      EXPECT_LT(wall_seconds() - sent, 10) << command[0] << " after " << milliseconds << " ms";
      EXPECT_EQ(content("output").find("error:"), std::string::npos) << content("output");
      EXPECT_EQ(entries("cache/scratch"), std::vector<std::string>{}) << command[0];
      EXPECT_EQ(entries("tmp"), std::vector<std::string>{}) << command[0];
      for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
        EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
      }
      EXPECT_TRUE(!file_exists(path("m.plan")) || runtime::is_plan_file(path("m.plan")));
    }
  }
}

TEST_F(Interrupt, ANextRunRemovesWhatAKilledOneLeft) {
  // Compilers of the killed run outlive it and must not write into its folder while the next run removes that.
  write_compiler("if [ -e " + path("slow") + " ]; then : > " + path("started") + "; sleep 5; exit 1; fi\n");
  write_file(path("slow"), "");
  const pid_t child = start({"tune", path("m.onnx")});
  while (!file_exists(path("started"))) ::usleep(1000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(entries("tmp").empty());
  ::usleep(300000);  // until all of them have begun
  fs::remove(path("slow"));
  EXPECT_EQ(run(compile()), 0);
  expect_nothing_left();
}

}  // namespace
}  // namespace heddle::cli
