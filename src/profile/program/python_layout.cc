#include "profile/program/python_layout.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace heddle::profile {
namespace {

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
constexpr PythonLayout kPython313 = {.thread_frame = 72,
                                     .through_cframe = false,
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
                                     .code_instructions = 200,
                                     .text_of_ascii = 40,
                                     .text_of_others = 56};

const PythonLayout* layout_of(unsigned long version) {
  switch (version >> 16) {
    case 0x030b:
      return &kPython311;
    case 0x030c:
      return &kPython312;
    case 0x030d:
      return &kPython313;
    default:
      return nullptr;
  }
}

}  // namespace

PythonRuntime find_python(std::string* why) {
  const auto* version = static_cast<const unsigned long*>(::dlsym(RTLD_DEFAULT, "Py_Version"));
  const void* code_type = ::dlsym(RTLD_DEFAULT, "PyCode_Type");
  const void* cell_type = ::dlsym(RTLD_DEFAULT, "PyCell_Type");
  void* thread_state = ::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  if (code_type == nullptr || thread_state == nullptr) {
    *why = "this process has no Python interpreter";
    return {};
  }
  if (version == nullptr || layout_of(*version) == nullptr) {
    *why = version == nullptr ? "Python contexts need CPython 3.11 to 3.13; this one is older"
                              : fmt::format("Python contexts need CPython 3.11 to 3.13; this is {}.{}", *version >> 24,
                                            *version >> 16 & 0xff);
    return {};
  }
  // Objects of builds without a GIL are laid out otherwise.
  if (::dlsym(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount") != nullptr) {
    *why = "Python contexts need an interpreter with a GIL";
    return {};
  }
  return {layout_of(*version), reinterpret_cast<uint64_t>(code_type), reinterpret_cast<uint64_t>(cell_type),
          reinterpret_cast<void* (*)()>(thread_state)};
}

}  // namespace heddle::profile
