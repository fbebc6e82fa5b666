#include "profile/program/python_layout.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace heddle::profile {
namespace {

constexpr PythonLayout kPython310 = {.thread_frame = 24,
                                     .through_cframe = false,
                                     .cframe_frame = 0,
                                     .frame_code = 32,
                                     .frame_previous = 24,
                                     .frame_instruction = 96,
                                     .frame_owner = 0,
                                     .frame_locals = 352,
                                     .code_first_line = 40,
                                     .code_file = 104,
                                     .code_name = 112,
                                     .code_lines = 120,
                                     .code_instructions = 0,
                                     .text_of_ascii = 48,
                                     .text_of_others = 72};
constexpr PythonLayout kPython311 = {.thread_frame = 56,
                                     .through_cframe = true,
                                     .cframe_frame = 8,
                                     .frame_code = 32,
                                     .frame_previous = 48,
                                     .frame_instruction = 56,
                                     .frame_owner = 69,
                                     .frame_locals = 72,
                                     .code_first_line = 72,
                                     .code_file = 112,
                                     .code_name = 128,
                                     .code_lines = 136,
                                     .code_instructions = 184,
                                     .text_of_ascii = 48,
                                     .text_of_others = 72};
constexpr PythonLayout kPython312 = {.thread_frame = 56,
                                     .through_cframe = true,
                                     .cframe_frame = 0,
                                     .frame_code = 0,
                                     .frame_previous = 8,
                                     .frame_instruction = 56,
                                     .frame_owner = 70,
                                     .frame_locals = 72,
                                     .code_first_line = 68,
                                     .code_file = 112,
                                     .code_name = 128,
                                     .code_lines = 136,
                                     .code_instructions = 192,
                                     .text_of_ascii = 40,
                                     .text_of_others = 56};
constexpr PythonLayout kPython313 = [] {
  PythonLayout layout = kPython312;
  layout.thread_frame = 72, layout.through_cframe = false;
  layout.code_instructions = 200;
  return layout;
}();

// `version`: "3.12.1 (main, ...)".
const PythonLayout* layout_of(std::string_view version) {
  if (version.starts_with("3.10.")) return &kPython310;
  if (version.starts_with("3.11.")) return &kPython311;
  if (version.starts_with("3.12.")) return &kPython312;
  if (version.starts_with("3.13.")) return &kPython313;
  return nullptr;
}

}  // namespace

PythonRuntime find_python(std::string* why) {
  const auto get_version = reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  const void* code_type = ::dlsym(RTLD_DEFAULT, "PyCode_Type");
  const void* cell_type = ::dlsym(RTLD_DEFAULT, "PyCell_Type");
  void* thread_state = ::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  if (get_version == nullptr || code_type == nullptr || thread_state == nullptr) {
    *why = "this process has no Python interpreter";
    return {};
  }
  const std::string_view version = get_version();
  const PythonLayout* layout = layout_of(version);
  if (layout == nullptr) {
    *why = fmt::format("Python contexts need CPython 3.10 to 3.13; this is {}", version.substr(0, version.find(' ')));
    return {};
  }
  // Objects of builds without a GIL are laid out otherwise.
  if (::dlsym(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount") != nullptr) {
    *why = "Python contexts need an interpreter with a GIL";
    return {};
  }
  return {layout, reinterpret_cast<uint64_t>(code_type), reinterpret_cast<uint64_t>(cell_type),
          reinterpret_cast<void* (*)()>(thread_state)};
}

}  // namespace heddle::profile
