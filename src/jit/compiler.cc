#include "jit/compiler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "jit/cache.h"
#include "jit/headers.h"
#include "jit/library.h"
#include "jit/process.h"

namespace heddle::jit {
namespace {

bool executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string identify(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  const TempDir dir("heddle-cxx");
  const ProcessResult result = run_process({path, "--version"}, dir.path() + "/out");
  return fmt::format("{} {} {}.{} {}", path, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     result.output);
}

bool is_clang(const Compiler& compiler) {
  return compiler.version.find("clang") != std::string::npos;
}

// GCC before 10 has no -std=c++20. --version prints "c++ (Debian 10.2.1-6) 10.2.1 20210110" and a sentence on copying
// that other GNU programs no longer print.
bool too_old(const Compiler& compiler) {
  const size_t package = compiler.version.find(") ");
  const bool is_gcc = compiler.version.find("see the source for copying conditions") != std::string::npos;
  if (package == std::string::npos || !is_gcc) return false;
  const long major = std::strtol(compiler.version.c_str() + package + 2, nullptr, 10);
  return major > 0 && major < 10;
}

[[noreturn]] void refuse_old(const std::string& path) {
  fail(ErrorCode::kNoCompiler, path, "it is too old: kernels need GCC 10 or Clang 14, or a later one of them",
       "Install one and name it in HEDDLE_CXX, such as HEDDLE_CXX=clang++-16");
}

bool says(const std::string& output, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return output.find(word) != std::string::npos; });
}

constexpr const char* kSilence = "(it printed nothing)";  // or its output went with its folder

// Failures of the system rather than the compiler, recognised by its messages, which are in English whatever the user's
// locale.
[[noreturn]] void compiler_failed(const Compiler& compiler, const char* stage, const ProcessResult& result) {
  constexpr size_t kShown = 6000;
  std::string output = result.output.substr(0, kShown);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  if (output.empty()) output = kSilence;
  ErrorCode code = ErrorCode::kCompilerFailed;
  const char* remedy = "Try another compiler through HEDDLE_CXX";
  if (result.status > 128) {
    remedy = "It was killed: is there enough memory?";
  } else if (says(result.output, {"No space left on device", "Disk quota exceeded"})) {
    code = ErrorCode::kFile;
    remedy = "Make room on the disk (df, and df -i for the number of files), or set TMPDIR to a folder on another one";
  } else if (says(result.output, {"Resource temporarily unavailable", "Cannot allocate memory"})) {
    code = ErrorCode::kOutOfMemory;
    remedy = kMoreProcesses;
  }
  fail(code, compiler.path, fmt::format("{} failed with status {}:\n{}", stage, result.status, output), remedy);
}

// What a library depends on besides the units.
Hasher hasher_of(const Compiler& compiler, const Recipe& recipe) {
  Hasher hasher;
  hasher.add("library 3").add(compiler.version).add(headers_hash());
  for (const auto* list : {&recipe.flags, &recipe.header_folders, &recipe.link_flags}) {
    for (const std::string& text : *list) hasher.add(text);
  }
  return hasher;
}

// The units of a build that other libraries have, too.
class SharedObjects {
 public:
  SharedObjects(const Compiler& compiler, const Recipe& recipe, const std::vector<std::string>& units, bool use_cache)
      : made_(use_cache ? std::min(recipe.shared, units.size()) : 0) {
    for (size_t i = 0; i < made_.size(); ++i) keys_.push_back(hasher_of(compiler, recipe).add(units[i]).finish());
  }

  // Whether `file` now is the object of this unit, from the cache.
  bool take(size_t unit, const std::string& file) const {
    if (unit >= made_.size()) return false;
    const auto entry = cache_.find(EntryKind::kObject, keys_[unit]);
    if (entry) write_file(file, entry->payload, Sync::kNo);
    return entry.has_value();
  }
  // The unit was compiled to `file`.
  void add(size_t unit, const std::string& file) {
    if (unit < made_.size() && file_exists(file)) made_[unit] = MappedFile::read(file)->text();
  }
  // The library that has them is sound.
  void store() const {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i].empty()) cache_.store(EntryKind::kObject, keys_[i], made_[i]);
    }
  }

 private:
  const Cache cache_ = Cache::of_user();
  std::vector<Hash128> keys_;
  std::vector<std::string> made_;  // "": it was in the cache
};

struct Built {
  std::string library;
  std::string lined;  // with tables of lines; "": the recipe wants none
};

Built build(const Compiler& compiler, const Recipe& recipe, const std::vector<std::string>& units, int jobs,
            bool use_cache, SharedObjects& shared) {
  const TempDir dir("heddle-jit", use_cache ? Cache::of_user().scratch_folder() : "");
  // Not beside the units: what lies there is found before every folder of headers.
  const std::string include = header_folder(dir.path() + "/headers", use_cache);
  const auto file = [&](size_t unit, const char* suffix) { return fmt::format("{}/k{}{}", dir.path(), unit, suffix); };
  // Tables of lines have this name, and an object that is cached by itself is in other libraries, too.
  const auto source = [&](size_t unit) { return fmt::format("{}/{}", dir.path(), unit_file(units[unit])); };

  const std::unique_ptr<ThreadPool> pool = pool_of_up_to(std::min(jobs, static_cast<int>(units.size())));
  pool->run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (!shared.take(i, file(i, ".o"))) {
        write_file(source(i), units[i], Sync::kNo);
        std::vector<std::string> command = {compiler.path, "-c", source(i), "-o", file(i, ".o")};
        for (const std::string& folder : recipe.header_folders) command.insert(command.end(), {"-I", include + folder});
        command.insert(command.end(), recipe.flags.begin(), recipe.flags.end());
        const ProcessResult result = run_process(command, file(i, ".log"));
        if (result.status != 0) compiler_failed(compiler, "compiling kernels", result);
        shared.add(i, file(i, ".o"));
      }
      if (recipe.compiled) recipe.compiled(i);
    }
  });

  const auto link = [&](const char* name, bool with_lines) {
    const std::string library = fmt::format("{}/{}", dir.path(), name);
    // Nothing but the C library is called, and that is in every process already.
    std::vector<std::string> command = {compiler.path, "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o", library};
    if (!with_lines) command.push_back("-Wl,--strip-debug");
    for (size_t i = 0; i < units.size(); ++i) command.push_back(file(i, ".o"));
    command.insert(command.end(), recipe.link_flags.begin(), recipe.link_flags.end());
    command.push_back("-lgcc");
    const ProcessResult result = run_process(command, dir.path() + "/link.log");
    if (result.status != 0 || !file_exists(library)) compiler_failed(compiler, "linking kernels", result);
    return std::string(MappedFile::read(library)->text());
  };
  return {link("kernels.so", !recipe.lines), recipe.lines ? link("lined.so", true) : std::string()};
}

// True if the compilation may succeed in another folder: a file it wrote or read is gone, or could not be written.
bool is_about_files(const Error& error) {
  return error.code() == ErrorCode::kFile ||
         says(error.why(), {kSilence, "No such file or directory", "can't create", "cannot open",
                            "Read-only file system", "Permission denied", "Input/output error", "Stale file handle"});
}

// The cache folder may be full or be removed meanwhile, with the compiler's temporary files in it; $TMPDIR is
// independent of it.
Built build_somewhere(const Compiler& compiler, const Recipe& recipe, const std::vector<std::string>& units, int jobs,
                      bool use_cache, SharedObjects& shared) {
  std::string why;
  try {
    return build(compiler, recipe, units, jobs, use_cache, shared);
  } catch (const Error& error) {
    const Cache cache = Cache::of_user();
    if (!use_cache || cache.folder().empty()) throw;
    why = cache.lack_of_room();
    if (why.empty() && !is_about_files(error)) throw;
    if (why.empty()) {
      why = fmt::format("compiling in the cache folder {} failed ({})", cache.folder(),
                        error.why().substr(0, error.why().find('\n')));
    }
  }
  Built built = build(compiler, recipe, units, jobs, false, shared);
  warn_once(why + "; compiled without it");
  return built;
}

void check_library(const Compiler& compiler, const Recipe& recipe, const std::string& bytes, const Symbols& symbols) {
  try {
    if (!recipe.loads_here) return check_whole(bytes);
    const auto library = Library::load(bytes);
    for (const std::string& symbol : symbols) library->find(symbol);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamagedArtefact) throw;
    fail(ErrorCode::kCompilerFailed, compiler.path,
         fmt::format("it says that all is well, but the library that it wrote is broken: {}", error.why()),
         "Is there room on the disk and in memory? Else try another compiler through HEDDLE_CXX");
  }
}

Built make_library(const Compiler& compiler, const Recipe& recipe, const std::vector<std::string>& units, int jobs,
                   bool use_cache, const Symbols& symbols) {
  SharedObjects shared(compiler, recipe, units, use_cache);
  Built built = build_somewhere(compiler, recipe, units, jobs, use_cache, shared);
  check_library(compiler, recipe, built.library, symbols);
  shared.store();
  return built;
}

Hash128 lined_key(const Hash128& key) {
  return Hasher().add("lined").add(key).finish();
}

// What both ways to a library do first. Unique symbols would keep a library in memory after dlclose().
Hash128 complete(const Compiler& compiler, const std::vector<std::string>& units, Recipe& recipe) {
  HEDDLE_CHECK(!units.empty());
  if (!is_clang(compiler)) recipe.flags.push_back("-fno-gnu-unique");
  if (recipe.lines) recipe.flags.push_back("-g1");
  Hasher hasher = hasher_of(compiler, recipe);
  for (const std::string& unit : units) hasher.add(unit);
  return hasher.finish();
}

// A library of these units that is in the cache, or nothing.
bool take_cached(const Cache& cache, const Hash128& key, CompiledLibrary& library) {
  const auto entry = cache.find(EntryKind::kLibrary, key);
  if (!entry) return false;
  library.bytes = entry->payload;
  library.from_cache = true;
  return true;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  const char* variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const size_t colon = path.find(':');
    std::string candidate = fmt::format("{}/{}", path.substr(0, colon), name);
    if (executable(candidate)) return candidate;
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
  }
  return "";
}

// Asking a compiler for its version costs milliseconds; it does not change under a running process.
std::string version_of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  auto found = known.find(path);
  if (found == known.end()) found = known.emplace(path, identify(path)).first;
  return found->second;
}

Compiler find_compiler() {
  const char* chosen = std::getenv("HEDDLE_CXX");
  if (chosen != nullptr && *chosen != '\0') {
    const std::string path = find_program(chosen);
    if (path.empty()) {
      fail(ErrorCode::kNoCompiler, "HEDDLE_CXX", fmt::format("\"{}\" is no executable file", chosen),
           "Set HEDDLE_CXX to a C++ compiler or unset it");
    }
    Compiler compiler{path, version_of(path)};
    if (too_old(compiler)) refuse_old(path);
    return compiler;
  }
  std::string old;
  for (const char* name : {"c++", "g++", "clang++"}) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    Compiler compiler{path, version_of(path)};
    if (!too_old(compiler)) return compiler;
    if (old.empty()) old = path;
  }
  if (!old.empty()) refuse_old(old);
  const char* path = std::getenv("PATH");
  fail(
      ErrorCode::kNoCompiler, "PATH",
      fmt::format("none of c++, g++, clang++ is in {}", path == nullptr ? "(unset)" : path),
      "Install one (Debian: apt install g++) or set HEDDLE_CXX; a plan made by `heddle compile` runs without compiler");
}

std::vector<std::string> compile_flags(const CpuTarget& target) {
  std::vector<std::string> flags = {"-std=c++20",
                                    "-O2",
                                    "-w",
                                    "-g0",
                                    "-fPIC",
                                    "-pipe",
                                    "-fwrapv",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-ffp-contract=fast",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fno-stack-protector",
                                    "-fvisibility-inlines-hidden",
                                    "-fno-semantic-interposition"};
  const auto add = [&](std::initializer_list<const char*> more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  if (target.isa >= CpuIsa::kAvx2) add({"-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt"});
  if (target.f16c) add({"-mf16c"});
  if (target.isa >= CpuIsa::kAvx512) {
    add({"-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd", "-mprefer-vector-width=512"});
    if (target.avx512_bf16) add({"-mavx512bf16"});
    if (target.avx512_vnni) add({"-mavx512vnni"});
    if (target.amx) add({"-mamx-tile", "-mamx-bf16", "-mamx-int8"});
  }
  return flags;
}

CompiledLibrary compile(const std::vector<std::string>& units, const CpuTarget& target, int jobs, bool use_cache,
                        const Symbols& symbols) {
  return compile(units, Recipe{compile_flags(target)}, jobs, use_cache, symbols);
}

CompiledLibrary compile(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                        const Symbols& symbols) {
  const double start = wall_seconds();
  const Compiler compiler = find_compiler();
  const Hash128 key = complete(compiler, units, recipe);
  CompiledLibrary library;
  const Cache cache = Cache::of_user();
  if (!use_cache) {
    library.bytes = make_library(compiler, recipe, units, jobs, use_cache, symbols).library;
  } else if (!take_cached(cache, key, library)) {
    FileLock lock = cache.lock(EntryKind::kLibrary, key);
    if (!lock.waited() || !take_cached(cache, key, library)) {
      if (lock.waited()) lock.release();  // who made it could not store it: all who waited make their own now
      Built built = make_library(compiler, recipe, units, jobs, use_cache, symbols);
      library.bytes = std::move(built.library);
      if (recipe.lines) cache.store(EntryKind::kLibrary, lined_key(key), built.lined);
      if (cache.store(EntryKind::kLibrary, key, library.bytes)) cache.trim();
    }
  }
  library.seconds = wall_seconds() - start;
  return library;
}

std::string compile_lined(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                          const Symbols& symbols) {
  recipe.lines = true;
  const Compiler compiler = find_compiler();
  const Hash128 key = lined_key(complete(compiler, units, recipe));
  const Cache cache = Cache::of_user();
  CompiledLibrary library;
  if (use_cache && take_cached(cache, key, library)) return std::move(library.bytes);
  std::string lined = make_library(compiler, recipe, units, jobs, use_cache, symbols).lined;
  if (use_cache && cache.store(EntryKind::kLibrary, key, lined)) cache.trim();
  return lined;
}

std::string unit_file(std::string_view unit) {
  return fmt::format("k{}.cc", hash_bytes(unit.data(), unit.size()).hex());
}

}  // namespace heddle::jit
