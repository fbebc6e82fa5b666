#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// The layout of data that a profiler reads from CPython's memory: the frames of a thread and the names of their code.
namespace heddle::profile {

// Offsets in bytes: a frame holds its code at `frame_code`, and so on.
struct PythonLayout {
  size_t thread_frame;  // in a PyThreadState: the current frame, or the cframe that holds it
  bool through_cframe;  // true for a cframe
  size_t cframe_frame;  // in a cframe: the current frame
  size_t frame_code, frame_previous, frame_instruction, frame_owner, frame_locals;  // frame_owner: 0: there is none
  size_t code_first_line, code_file, code_name, code_lines;
  size_t code_instructions;              // 0: frame_instruction is a 32-bit index, no address
  size_t text_of_ascii, text_of_others;  // in a str: its characters
};

// Frames that the interpreter makes for calls from C have no code.
inline constexpr uint8_t kOwnedByCStack = 3;

// The interpreter of this process. The dynamic linker knows its functions and data.
struct PythonRuntime {
  const PythonLayout* layout = nullptr;
  uint64_t code_type = 0;             // address of PyCode_Type
  uint64_t cell_type = 0;             // of PyCell_Type
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState: of the calling thread, null where it has none
};

// Sets only `why` if there is no interpreter or an unknown one. Known are CPython 3.10 to 3.13 with a GIL.
PythonRuntime find_python(std::string* why);

}  // namespace heddle::profile
