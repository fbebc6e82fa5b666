#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/program/python_layout.h"

namespace heddle::profile {

// One Python frame as it was sampled. Names are looked up later.
struct PythonFrame {
  uint64_t code = 0;  // address of the code object,
  uint64_t file = 0;  // and of its file name and its table of lines: another object at this address has others
  uint64_t lines = 0;
  int32_t first_line = 0;    // of the code
  int32_t instruction = 0;   // offset of the instruction in bytes
  uint64_t first_local = 0;  // `self` of a method
  auto operator<=>(const PythonFrame&) const = default;
};

// The frames of the calling thread, innermost first, as many as fit. Reads memory of the interpreter without its lock:
// no other thread changes these frames. The walk ends if a signal interrupted the thread while it changed them. Takes
// no lock, allocates nothing, and may be called in a signal handler.
size_t walk_python(const PythonRuntime& python, std::span<PythonFrame> to);
// The same for a thread in C code that Python called, not in a signal handler. Its frames do not change, so they are
// read directly, without system calls.
size_t walk_resting_python(const PythonRuntime& python, std::span<PythonFrame> to);
// The same for another thread, by its PyThreadState. It must be waiting: a running thread may change its frames.
size_t walk_python(const PythonRuntime& python, uint64_t thread, std::span<PythonFrame> to);

// The places of a waiting thread's frames.
struct WaitingStack {
  struct Piece {
    uint64_t begin, bytes;  // of memory, with frames that lie close together
  };
  uint64_t thread = 0;           // its PyThreadState; 0: not known
  uint64_t cframe = 0, top = 0;  // where the interpreter stores the innermost frame, and the frame
  std::vector<Piece> pieces;
};
// Finds them. Sets `thread` to 0 if they take too much memory to be read at once.
WaitingStack find_waiting_stack(const PythonRuntime& python, uint64_t thread);
// A hash of the frames' code and instructions. It costs one system call; a walk costs many. False if the frames have
// moved.
bool hash_of_waiting(const PythonRuntime& python, const WaitingStack& stack, uint64_t* hash);

// The object that a local variable holds, also if it is in a cell because inner functions use it.
uint64_t object_of(const PythonRuntime& python, uint64_t local);
uint64_t resting_object_of(const PythonRuntime& python, uint64_t local);  // of a frame of walk_resting_python()

// The place of the content of a str or bytes object.
struct PythonObject {
  uint64_t content = 0, bytes = 0;
  uint64_t width = 0;  // of a character; 0: the content is ASCII or no text
};

// The objects that describe a code object: its qualified name, file and table of lines. False if it is no code object
// any more. May be called in a signal handler.
bool find_code(const PythonRuntime& python, const PythonFrame& frame, PythonObject* name, PythonObject* file,
               PythonObject* lines);
// As UTF-8.
std::string text_of(const PythonObject& object, const uint8_t* content);

// The description of a code object.
struct PythonCode {
  std::string name, file;
  int64_t first_line = 0;
  std::vector<uint8_t> lines;    // PEP 626's table in the form of PEP 657,
  bool lines_are_pairs = false;  // or, of CPython 3.10, in its own

  int64_t line_of(int32_t instruction) const;  // first_line if the table does not know
};
// May be called in any thread while the code object exists. False if it is gone.
bool read_code(const PythonRuntime& python, const PythonFrame& frame, PythonCode* to);

}  // namespace heddle::profile
