#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/program/python_layout.h"

namespace heddle::profile {

// One Python frame as it was met: names are looked up later.
struct PythonFrame {
  uint64_t code = 0;  // address of the code object,
  uint64_t file = 0;  // and of its file name and its table of lines: another object at this address has others
  uint64_t lines = 0;
  int32_t first_line = 0;    // of the code
  int32_t instruction = 0;   // offset of the instruction in bytes
  uint64_t first_local = 0;  // `self` of a method
  auto operator<=>(const PythonFrame&) const = default;
};

// The frames of the calling thread, the innermost first, as many as there is room for. Reads memory of the interpreter
// without its lock: no other thread changes these frames, and where a signal interrupted their thread in the middle of
// a change, the walk ends. Takes no lock, allocates nothing, and may be called in a signal handler.
size_t walk_python(const PythonRuntime& python, std::span<PythonFrame> to);
// The same for a thread that is in C code called by Python, not in a signal handler: its frames stand still and are
// read as they are, without system calls.
size_t walk_resting_python(const PythonRuntime& python, std::span<PythonFrame> to);
// Of another thread, by its PyThreadState, which has to be waiting: one that runs may change its frames meanwhile.
size_t walk_python(const PythonRuntime& python, uint64_t thread, std::span<PythonFrame> to);

// Where the frames of a thread that waits were found.
struct WaitingStack {
  struct Piece {
    uint64_t begin, bytes;  // of memory, with frames that lie close together
  };
  uint64_t thread = 0;           // its PyThreadState; 0: not known
  uint64_t cframe = 0, top = 0;  // where the interpreter has the innermost frame, and the frame
  std::vector<Piece> pieces;
};
// Finds them. `thread` is 0 afterwards where they take too much to be read at once.
WaitingStack find_waiting_stack(const PythonRuntime& python, uint64_t thread);
// A hash of the frames' code and instructions, which costs one system call where a walk costs many. False where the
// frames lie elsewhere now.
bool hash_of_waiting(const PythonRuntime& python, const WaitingStack& stack, uint64_t* hash);

// The object that a local variable is, also where it lies in a cell because functions within use it.
uint64_t object_of(const PythonRuntime& python, uint64_t local);
uint64_t resting_object_of(const PythonRuntime& python, uint64_t local);  // of a frame of walk_resting_python()

// Where a str or bytes object has its content.
struct PythonObject {
  uint64_t content = 0, bytes = 0;
  uint64_t width = 0;  // of a character; 0: the content is ASCII or no text
};

// The objects of what a code object says of itself: its qualified name, file and table of lines. False where it is none
// any more. Usable in a signal handler.
bool find_code(const PythonRuntime& python, const PythonFrame& frame, PythonObject* name, PythonObject* file,
               PythonObject* lines);
// As UTF-8.
std::string text_of(const PythonObject& object, const uint8_t* content);

// What a code object says of itself.
struct PythonCode {
  std::string name, file;
  int64_t first_line = 0;
  std::vector<uint8_t> lines;    // PEP 626's table in the form of PEP 657,
  bool lines_are_pairs = false;  // or, of CPython 3.10, in its own

  int64_t line_of(int32_t instruction) const;  // first_line where the table does not know
};
// From any thread, while the code object is there. False where there is none any more.
bool read_code(const PythonRuntime& python, const PythonFrame& frame, PythonCode* to);

}  // namespace heddle::profile
