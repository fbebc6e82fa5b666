#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Where CPython keeps what a profiler reads without asking it: the frames of a thread and the names of their code.
namespace heddle::profile {

// Offsets in bytes; frames hold their code at `frame_code`, and so on.
struct PythonLayout {
  size_t thread_frame;  // in a PyThreadState: the current frame, or what holds it
  bool through_cframe;  // the latter
  size_t cframe_frame;  // in that
  size_t frame_code, frame_previous, frame_instruction, frame_owner, frame_locals;  // frame_owner: 0: there is none
  size_t code_first_line, code_file, code_name, code_lines;
  size_t code_instructions;              // 0: frame_instruction is an index of 32 bits in place of an address
  size_t text_of_ascii, text_of_others;  // in a str: its characters
};

// Frames that the interpreter makes for calls from C have no code.
inline constexpr uint8_t kOwnedByCStack = 3;

// Of the interpreter in this process, whose functions and data the dynamic linker knows.
struct PythonRuntime {
  const PythonLayout* layout = nullptr;
  uint64_t code_type = 0;             // address of PyCode_Type
  uint64_t cell_type = 0;             // of PyCell_Type
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState: of the calling thread, null where it has none
};

// Nothing but `why` where there is no interpreter or one that is not known: CPython 3.10 to 3.13 with a GIL are.
PythonRuntime find_python(std::string* why);

}  // namespace heddle::profile
