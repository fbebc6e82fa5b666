#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// The layout of CPython's data structures that a profiler reads from memory: the frames of a thread and the names of
// their code objects.
namespace heddle::profile {

// Offsets of fields, in bytes. `frame_code` is the offset of the code object within a frame, and so on.
struct PythonLayout {
  size_t thread_frame;  // in a PyThreadState: the current frame, or the cframe that points to the frame
  bool through_cframe;  // true if `thread_frame` is the offset of a cframe pointer
  size_t cframe_frame;  // in a cframe: the current frame
  size_t frame_code, frame_previous, frame_instruction, frame_owner, frame_locals;  // frame_owner: 0 if there is none
  size_t code_first_line, code_file, code_name, code_lines;
  size_t code_instructions;              // 0: frame_instruction is a 32-bit index, not an address
  size_t text_of_ascii, text_of_others;  // in a str: the characters of an ASCII string; of any other string
};

// The value of frame_owner for frames that the interpreter creates for calls from C. These frames have no code.
inline constexpr uint8_t kOwnedByCStack = 3;

// The Python interpreter of this process. Its functions and data are found through the dynamic linker.
struct PythonRuntime {
  const PythonLayout* layout = nullptr;
  uint64_t code_type = 0;             // address of PyCode_Type
  uint64_t cell_type = 0;             // address of PyCell_Type
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState: null if the calling thread has no Python state
};

// Finds the interpreter. If there is none or its version is unknown, the result is empty and `why` holds the reason.
// Known versions are CPython 3.10 to 3.13 with a GIL.
PythonRuntime find_python(std::string* why);

}  // namespace heddle::profile
