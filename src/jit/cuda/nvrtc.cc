#include "jit/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread/cancel.h"
#include "jit/cuda/emulated.h"
#include "jit/headers.h"

namespace heddle::jit {
namespace {

struct Nvrtc {
  using Program = void*;
  int (*version)(int* major, int* minor);
  int (*create)(Program* program, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*destroy)(Program* program);
  int (*compile)(Program program, int options, const char* const* values);
  int (*log_size)(Program program, size_t* bytes);
  int (*log)(Program program, char* text);
  int (*cubin_size)(Program program, size_t* bytes);
  int (*cubin)(Program program, char* bytes);
  const char* (*error_text)(int result);
  // Called with `payload` now and then, on any thread; returning 1 ends compile(). Null before CUDA 12.8.
  int (*set_flow)(Program program, int (*asked)(void* payload, void*), void* payload);
  NvrtcInfo info;
  std::string why;  // empty: there is one
};

bool open(Nvrtc& nvrtc, const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool all = true;
  const auto need = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function != nullptr;
  };
  need("nvrtcVersion", nvrtc.version);
  need("nvrtcCreateProgram", nvrtc.create);
  need("nvrtcDestroyProgram", nvrtc.destroy);
  need("nvrtcCompileProgram", nvrtc.compile);
  need("nvrtcGetProgramLogSize", nvrtc.log_size);
  need("nvrtcGetProgramLog", nvrtc.log);
  need("nvrtcGetCUBINSize", nvrtc.cubin_size);
  need("nvrtcGetCUBIN", nvrtc.cubin);
  need("nvrtcGetErrorString", nvrtc.error_text);
  nvrtc.set_flow = reinterpret_cast<decltype(nvrtc.set_flow)>(::dlsym(library, "nvrtcSetFlowCallback"));
  if (!all || nvrtc.version(&nvrtc.info.major, &nvrtc.info.minor) != 0) {
    ::dlclose(library);
    return false;
  }
  nvrtc.info.path = path;
  return true;
}

std::vector<std::string>& preferred() {
  static std::vector<std::string> paths;
  return paths;
}

Nvrtc load() {
  Nvrtc nvrtc{};
  std::vector<std::string> paths;
  if (const char* chosen = std::getenv("HEDDLE_NVRTC"); chosen != nullptr && *chosen != '\0') {
    paths.push_back(chosen);
  } else {
    paths = preferred();
    for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"}) {
      for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) paths.push_back(std::string(folder) + name);
    }
  }
  for (const std::string& path : paths) {
    if (open(nvrtc, path)) return nvrtc;
  }
  nvrtc.why = fmt::format("none of {} can be loaded", fmt::join(paths, ", "));
  return nvrtc;
}

const Nvrtc& nvrtc_of_process() {
  static const Nvrtc nvrtc = load();
  if (!nvrtc.why.empty()) {
    fail(ErrorCode::kNoCompiler, "nvrtc", nvrtc.why,
         "Install CUDA's NVRTC (for Python: pip install nvidia-cuda-nvrtc), or name the library in HEDDLE_NVRTC");
  }
  return nvrtc;
}

std::vector<std::string> options_for(const std::string& architecture, Lines lines) {
  std::vector<std::string> options = {"--gpu-architecture=" + architecture, "--std=c++20",
                                      "--device-as-default-execution-space", "--ptxas-options=-v",
                                      "--ptxas-options=-warn-spills"};
  if (lines == Lines::kWritten) options.emplace_back("-lineinfo");
  return options;
}

// A program and everything that NVRTC reads while compiling it.
struct Program {
  const Nvrtc& nvrtc;
  const std::string unit;
  const std::vector<std::string> options;
  Nvrtc::Program handle = nullptr;
  std::atomic<bool> cancelled{false};

  ~Program() {
    if (handle != nullptr) nvrtc.destroy(&handle);
  }
  int compile() {
    std::vector<const char*> values;
    for (const std::string& option : options) values.push_back(option.c_str());
    return nvrtc.compile(handle, static_cast<int>(values.size()), values.data());
  }
};

// Abandoned compilations. NVRTC cannot be interrupted, so the process exits only after they end.
class Abandoned {
 public:
  ~Abandoned() {
    for (std::thread& thread : threads_) thread.join();
  }
  static void add(std::thread thread) {
    static Abandoned all;
    const std::lock_guard lock(all.mutex_);
    all.threads_.push_back(std::move(thread));
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

int is_cancelled(void* program, void*) {
  return static_cast<Program*>(program)->cancelled ? 1 : 0;
}

// NVRTC polls for cancellation only between its phases, and one may take seconds: work that can be cancelled is
// therefore compiled on another thread, which is abandoned on cancellation.
int compile_cancellably(const std::shared_ptr<Program>& program) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  Cancellation* const cancellation = Cancellation::current();
  if (cancellation == nullptr) return program->compile();
  if (program->nvrtc.set_flow != nullptr) program->nvrtc.set_flow(program->handle, &is_cancelled, program.get());
  std::promise<int> result;
  std::future<int> compiled = result.get_future();
  std::thread thread([program, result = std::move(result)]() mutable { result.set_value(program->compile()); });
  while (compiled.wait_for(kPause) != std::future_status::ready) {
    if (!cancellation->is_cancelled()) continue;
    program->cancelled = true;
    Abandoned::add(std::move(thread));
    throw Cancelled();
  }
  thread.join();
  return compiled.get();
}

std::string read_log(const Program& program) {
  size_t bytes = 0;
  if (program.nvrtc.log_size(program.handle, &bytes) != 0 || bytes <= 1) return {};
  std::string log(bytes, '\0');
  if (program.nvrtc.log(program.handle, log.data()) != 0) return {};
  log.resize(bytes - 1);
  return log;
}

[[noreturn]] void compiler_failed(const Nvrtc& nvrtc, const std::string& why, const std::string& log) {
  constexpr size_t kShown = 6000;
  fail(ErrorCode::kCompilerFailed, nvrtc.info.path, fmt::format("{}:\n{}", why, log.substr(0, kShown)));
}

void build_once(const Nvrtc& nvrtc, const std::string& unit, const std::vector<std::string>& options,
                CompiledCubin& compiled) {
  std::vector<const char*> texts, names;
  for (const SystemHeader& header : kSystemHeaders) {
    texts.push_back(header.text);
    names.push_back(header.path);
  }
  // Views of string literals: they end with a zero.
  for (const EmbeddedHeader& header : embedded_headers()) {
    texts.push_back(header.text.data());
    names.push_back(header.path.data());
  }
  const std::shared_ptr<Program> program(new Program{nvrtc, unit, options});
  int result = nvrtc.create(&program->handle, program->unit.c_str(), "kernel.cu", static_cast<int>(texts.size()),
                            texts.data(), names.data());
  if (result != 0) compiler_failed(nvrtc, "creating a program", nvrtc.error_text(result));
  result = compile_cancellably(program);
  compiled.log = read_log(*program);
  if (result != 0) compiler_failed(nvrtc, nvrtc.error_text(result), compiled.log);
  size_t bytes = 0;
  result = nvrtc.cubin_size(program->handle, &bytes);
  compiled.bytes.resize(bytes);
  if (result == 0) result = nvrtc.cubin(program->handle, compiled.bytes.data());
  if (result != 0) compiler_failed(nvrtc, "no machine code", nvrtc.error_text(result));
}

// Calls found(line, bytes) for each line of a log that tells of registers in memory.
template <typename Found>
void each_spill(std::string_view log, const Found& found) {
  constexpr std::string_view kMark = " bytes spill stores";
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const size_t mark = line.find(kMark);
    if (mark == std::string_view::npos) continue;
    size_t first = mark;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    int64_t bytes = 0;
    std::from_chars(line.data() + first, line.data() + mark, bytes);
    if (bytes > 0) found(line, bytes);
  }
}

// Where the argument list of a kernel's __launch_bounds__ begins and ends; no characters where it has none. The name
// follows it, on the next line perhaps.
std::pair<size_t, size_t> find_bounds(std::string_view unit, std::string_view name) {
  constexpr std::string_view kBounds = "__launch_bounds__(", kSpace = " \n";
  for (size_t at = unit.find(name); at != std::string_view::npos; at = unit.find(name, at + 1)) {
    if (at == 0 || !unit.substr(at + name.size()).starts_with('(')) continue;
    const size_t end = unit.find_last_not_of(kSpace, at - 1);
    if (end == std::string_view::npos || end + 1 == at || unit[end] != ')') continue;
    const size_t begin = unit.rfind(kBounds, end);
    if (begin == std::string_view::npos) continue;
    const size_t first = begin + kBounds.size();
    if (unit.substr(first, end - first).find_first_of(";{}") != std::string_view::npos) continue;  // another kernel's
    return {first, end};
  }
  return {0, 0};
}

// The function that a line of a log is about, "" where it does not say.
std::string_view function_of(std::string_view line) {
  constexpr std::string_view kFunction = "in function '";
  const size_t quote = line.find(kFunction);
  if (quote == std::string_view::npos) return {};  // the same figures again, without the name
  const std::string_view rest = line.substr(quote + kFunction.size());
  return rest.substr(0, rest.find('\''));
}

// Kernels that spill get a second chance.
void build(const Nvrtc& nvrtc, const std::string& unit, const std::vector<std::string>& options, bool relax,
           CompiledCubin& compiled) {
  build_once(nvrtc, unit, options, compiled);
  if (!relax) return;
  const std::string relaxed = relax_bounds(unit, compiled.log);
  if (relaxed == unit) return;
  CompiledCubin again;
  build_once(nvrtc, relaxed, options, again);
  if (spilled_bytes(again.log) < spilled_bytes(compiled.log)) compiled = std::move(again);
}

}  // namespace

int64_t spilled_bytes(std::string_view log) {
  int64_t sum = 0;
  each_spill(log, [&](std::string_view, int64_t bytes) { sum += bytes; });
  return sum;
}

int64_t spilled_bytes(std::string_view log, const std::set<std::string>& kernels) {
  int64_t sum = 0;
  each_spill(log, [&](std::string_view line, int64_t bytes) {
    if (kernels.contains(std::string(function_of(line)))) sum += bytes;
  });
  return sum;
}

std::string find_defect(std::string_view log) {
  for (const char* code : {"C7508", "C7510"}) {
    if (log.find(code) != std::string_view::npos) return fmt::format("the compiler gave warning {}", code);
  }
  if (log.find("serialized") != std::string_view::npos) return "the compiler serialised tensor core instructions";
  if (const int64_t bytes = spilled_bytes(log); bytes > 0) return fmt::format("registers spill: {} bytes", bytes);
  return {};
}

std::string relax_bounds(const std::string& unit, std::string_view log) {
  std::string relaxed = unit;
  each_spill(log, [&](std::string_view line, int64_t) {
    const std::string_view function = function_of(line);
    if (function.empty()) return;
    const auto [first, end] = find_bounds(relaxed, function);
    std::string threads = relaxed.substr(first, end - first);
    const size_t comma = threads.rfind(',');
    if (comma != std::string::npos && threads.find_first_not_of(" 0123456789", comma + 1) == std::string::npos) {
      threads.resize(comma);
    }
    if (!threads.empty()) relaxed.replace(first, end - first, threads + ", 1");
  });
  return relaxed;
}

std::set<std::string> spilling_kernels(std::string_view log) {
  std::set<std::string> names;
  each_spill(log, [&](std::string_view line, int64_t) {
    if (const std::string_view function = function_of(line); !function.empty()) names.emplace(function);
  });
  return names;
}

NvrtcInfo find_nvrtc() {
  return nvrtc_of_process().info;
}

void prefer_nvrtc(std::vector<std::string> paths) {
  preferred() = std::move(paths);
}

CompiledCubin compile_cubin(const std::string& unit, const std::string& architecture, bool use_cache, Slow slow,
                            Lines lines) {
  check_cancelled();
  if (is_emulated(architecture)) return compile_emulated(unit, architecture, use_cache);
  const double start = wall_seconds();
  const Nvrtc& nvrtc = nvrtc_of_process();
  const std::vector<std::string> options = options_for(architecture, lines);

  Hasher hasher;
  const bool relax = slow != Slow::kAcceptAtOnce;
  hasher.add(relax ? "cubin 2" : "cubin 2, one attempt")
      .add(nvrtc.info.major)
      .add(nvrtc.info.minor)
      .add(headers_hash())
      .add(unit);
  for (const std::string& option : options) hasher.add(option);
  const Hash128 key = hasher.finish();

  CompiledCubin compiled;
  if (!use_cache || !find_cubin(key, compiled)) {
    build(nvrtc, unit, options, relax, compiled);
    if (use_cache) store_cubin(key, compiled);
  }
  const std::string defect = find_defect(compiled.log);
  if (slow == Slow::kRefuse && !defect.empty()) compiler_failed(nvrtc, defect, compiled.log);
  compiled.seconds = wall_seconds() - start;
  return compiled;
}

}  // namespace heddle::jit
