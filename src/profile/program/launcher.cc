#include "profile/program/launcher.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/check.h"
#include "base/file/file.h"
#include "base/thread/thread.h"
#include "heddle/error.h"
#include "profile/json.h"
#include "profile/program/hook.h"
#include "profile/rank_advice.h"
#include "profile/views.h"

extern char** environ;

namespace heddle::profile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libheddle_profile.so";

// Beside what this function is in, or where installed libraries are.
std::string find_library() {
  Dl_info info{};
  std::vector<fs::path> places;
  if (::dladdr(reinterpret_cast<const void*>(&find_library), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const fs::path self =
        fs::canonical(fs::path(info.dli_fname).is_absolute() ? info.dli_fname : "/proc/self/exe", error);
    places.push_back(self.parent_path());
    for (const char* folder : {"lib", "lib64", "lib/x86_64-linux-gnu"}) {
      places.push_back(self.parent_path().parent_path() / folder);
    }
  }
  for (const fs::path& place : places) {
    if (file_exists(place / kLibrary)) return place / kLibrary;
  }
  fail(ErrorCode::kFile, kLibrary,
       places.empty() ? "it is not found" : fmt::format("it is not in {} nor beside it", places.front().string()),
       "Install Heddle whole: cmake --install, or pip install");
}

std::vector<std::string> environment_of(const LaunchOptions& options, const std::string& library,
                                        const std::string& folder) {
  std::map<std::string, std::string> values;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string line = *at;
    const size_t end = line.find('=');
    if (end != std::string::npos) values[line.substr(0, end)] = line.substr(end + 1);
  }
  std::string& python = values["PYTHONPATH"];
  python = python.empty() ? folder : folder + ":" + python;
  values["HEDDLE_PROFILE_LIBRARY"] = library;
  values["HEDDLE_PROFILE_FILE"] = folder + "/profile";
  values["HEDDLE_PROFILE_RATE"] = fmt::format("{}", options.rate);
  values["HEDDLE_PROFILE_ALL_FRAMES"] = options.all_frames ? "1" : "0";
  values["HEDDLE_PROFILE_GPU"] = options.gpu ? "1" : "0";
  values["HEDDLE_PROFILE_OPERATORS"] = options.operators ? "1" : "0";
  if (options.gpu) {
    values.try_emplace("CUDA_INJECTION64_PATH", library);
    values.try_emplace("NVTX_INJECTION64_PATH", library);
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : values) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Signals that this process holds back are as usual for the program, and so are those of `usual`, which it ignores.
int spawn(const LaunchOptions& options, std::vector<std::string> environment, const sigset_t& usual) {
  std::vector<std::string> command = options.command;
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, command[0].c_str(), nullptr, &attributes, pointers(command).data(),
                                   pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error == EAGAIN || error == ENOMEM) {
    fail(ErrorCode::kOutOfMemory, command[0], fmt::format("the program cannot be started: {}", std::strerror(error)),
         kMoreProcesses);
  }
  if (error != 0) {
    fail(ErrorCode::kFile, command[0], fmt::format("the program cannot be started: {}", std::strerror(error)),
         "Give a program behind --, as a shell would find it");
  }
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// While the program runs, keys that interrupt are for it.
class Patience {
 public:
  Patience() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~Patience() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
  }
  // What it ignores on its own account: what the caller ignored, as a shell does for jobs in the background, stays
  // ignored.
  sigset_t ignored() const {
    sigset_t result;
    ::sigemptyset(&result);
    if (interrupt_.sa_handler != SIG_IGN) ::sigaddset(&result, SIGINT);
    if (quit_.sa_handler != SIG_IGN) ::sigaddset(&result, SIGQUIT);
    return result;
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  struct sigaction interrupt_ {
  }, quit_{};
};

// Leaves the facts of the processes that took most of the CPU's time to them alone, but for which rank one is. Returns
// how many others there are.
size_t name_heaviest(std::vector<Profile>& parts) {
  constexpr size_t kMost = 8;
  const auto cpu = [](const Profile& part) {
    const std::optional<size_t> metric = find_metric(part.tree, metrics::kCpu.name);
    return metric ? part.tree.total(*metric) : 0;
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Profile& a, const Profile& b) { return cpu(a) > cpu(b); });
  for (size_t i = kMost; i < parts.size(); ++i) {
    std::erase_if(parts[i].facts, [](const auto& fact) { return !is_rank(fact); });
  }
  return parts.size() - std::min(parts.size(), kMost);
}

// The profiles that processes left in a folder. One that cannot be read is a fact, and the others are used without it.
std::vector<Profile> read_parts(const std::string& folder,
                                std::vector<std::pair<std::string, std::string>>& unreadable) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("profile.") && !name.ends_with(".tmp")) files.push_back(at->path());
  }
  if (error) unreadable.emplace_back("left out, processes", fmt::format("{}: {}", folder, error.message()));
  std::sort(files.begin(), files.end());
  std::vector<Profile> parts;
  for (const std::string& file : files) {
    try {
      parts.push_back(parse(MappedFile::read(file)->text(), file));
    } catch (const Error& error) {
      unreadable.emplace_back("left out, a process", error.what());
    }
  }
  if (parts.size() > 1) {
    for (Profile& part : parts) part.title = part.facts.empty() ? part.title : part.facts.front().second;
  }
  return parts;
}

}  // namespace

LaunchedProgram profile_program(const LaunchOptions& options) {
  HEDDLE_CHECK(!options.command.empty(), "no program");
  const std::string library = find_library();
  const TempDir folder("heddle-profile");
  write_file(folder.path() + "/sitecustomize.py", kSiteCustomize, Sync::kNo);
  write_file(folder.path() + "/heddle_profile_record.py", kRecord, Sync::kNo);
  LaunchedProgram result;
  {
    const Patience patience;
    const int process = spawn(options, environment_of(options, library, folder.path()), patience.ignored());
    if (options.started) options.started(process);
    result.status = wait_for(process);
    if (options.started) options.started(0);
  }
  std::vector<std::pair<std::string, std::string>> unreadable;
  std::vector<Profile> parts = read_parts(folder.path(), unreadable);
  const std::string title = fmt::format("{}", fmt::join(options.command, " "));
  if (parts.empty()) {
    result.why_not =
        fmt::format("{}: no process of it left a profile{}. {}", title,
                    unreadable.empty() ? "" : " that can be read (" + unreadable[0].second + ")",
                    "Programs in Python 3.10 to 3.13 (without -I, -E or -S) and programs that use CUDA can "
                    "be profiled, from when they start until they end");
    return result;
  }
  const size_t left_out = name_heaviest(parts);
  Profile& profile = result.profile.emplace(merge_processes(parts));
  profile.title = title;
  for (auto& fact : unreadable) profile.facts.push_back(std::move(fact));
  if (left_out > 0) profile.facts.emplace_back("other processes", fmt::format("{}", left_out));
  profile.facts.emplace_back("exit status", fmt::format("{}", result.status));
  return result;
}

}  // namespace heddle::profile
