#include "profile/program/library.h"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/file/file.h"
#include "heddle/error.h"
#include "heddle/export.h"
#include "profile/json.h"
#include "profile/program/nvtx/injection.h"
#include "profile/program/nvtx/ranges.h"
#include "profile/program/recording.h"

namespace heddle::profile {
namespace {

// One recording of the process. Never destroyed: threads of the program may still run when it ends.
struct State {
  std::mutex mutex;
  std::unique_ptr<ProgramRecording> recording;
  std::string file, why;
  int gpu = 0;
};
State& state() {
  static auto* one = new State;
  return *one;
}

char* copy_of(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// A child of fork() has none of the threads and timers.
void in_child() {
  State& s = state();
  new (&s.mutex) std::mutex;
  if (s.recording == nullptr) return;
  s.recording->forget_in_child();
  static_cast<void>(s.recording.release());
}

int start(State& s, ProgramRecording::Options options, int gpu) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, in_child); });
  s.file = options.file;
  s.gpu = gpu;
  options.gpu = gpu != 0;
  try {
    s.recording = std::make_unique<ProgramRecording>(std::move(options));
    if (gpu == 2) s.recording->start_gpu();
  } catch (const std::exception& error) {
    s.why = error.what();
    s.recording.reset();
    return 2;
  }
  return 0;
}

std::string stop(State& s) {
  const std::unique_ptr<ProgramRecording> recording = std::move(s.recording);
  std::string json = to_json(recording->finish());
  if (!s.file.empty()) write_file(s.file, json, Sync::kNo);
  return json;
}

// Of a program that has no Python to do it: what the command that started it says.
void stop_at_exit() {
  std::free(heddle_profile_stop());
}

}  // namespace
}  // namespace heddle::profile

using namespace heddle::profile;

HEDDLE_API int heddle_profile_start(const char* title, const char* file, double rate, int gpu, int all_frames) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.recording != nullptr) return 1;
  return start(s, {.title = title, .rate = rate, .all_frames = all_frames != 0, .file = file}, gpu);
}

HEDDLE_API const char* heddle_profile_why() {
  return state().why.c_str();
}

HEDDLE_API size_t heddle_profile_modules(unsigned long long* addresses, size_t room) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.recording == nullptr) return 0;
  const std::vector<uint64_t> found = s.recording->modules();
  for (size_t i = 0; i < std::min(room, found.size()); ++i) addresses[i] = found[i];
  return found.size();
}

HEDDLE_API void heddle_profile_name_module(unsigned long long address, const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.recording != nullptr) s.recording->name_modules({{address, name}});
}

HEDDLE_API char* heddle_profile_stop() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.recording == nullptr) return nullptr;
  try {
    return copy_of(stop(s));
  } catch (const std::exception& error) {
    s.why = error.what();
    return nullptr;
  }
}

HEDDLE_API void heddle_profile_free(char* json) {
  std::free(json);
}

HEDDLE_API char* heddle_profile_stack(int resting) {
  std::string why, text;
  const PythonRuntime python = find_python(&why);
  std::array<PythonFrame, 256> frames;
  const size_t count = resting != 0 ? walk_resting_python(python, frames) : walk_python(python, frames);
  for (size_t i = 0; i < count; ++i) {
    PythonCode code;
    if (read_code(python, frames[i], &code)) {
      text += fmt::format("{}:{}:{}\n", code.name, code.line_of(frames[i].instruction), code.file);
    } else {
      text += "(unknown)\n";
    }
  }
  return copy_of(python.layout == nullptr ? why : text);
}

HEDDLE_API void heddle_profile_say(const char* name, const char* value) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.recording != nullptr) s.recording->say(name, value);
}

HEDDLE_API unsigned long long heddle_profile_ranges() {
  return ranges_pushed();
}

HEDDLE_API int InitializeInjectionNvtx2(const void* (*export_table)(unsigned table)) {
  return take_over_nvtx(export_table) ? 1 : 0;
}

HEDDLE_API int InitializeInjection() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const char* file = std::getenv("HEDDLE_PROFILE_FILE");
  if (s.recording == nullptr && file != nullptr) {
    const char* rate = std::getenv("HEDDLE_PROFILE_RATE");
    ProgramRecording::Options options{.title = "a program", .file = fmt::format("{}.{}", file, ::getpid())};
    if (rate != nullptr && std::atof(rate) > 0) options.rate = std::atof(rate);
    if (start(s, std::move(options), 1) != 0) return 0;
    std::atexit(stop_at_exit);
  }
  if (s.recording != nullptr && s.gpu != 0) s.recording->start_gpu();
  return 1;
}
