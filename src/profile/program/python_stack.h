#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/program/python_layout.h"

namespace heddle::profile {

// A Python frame as sampled. Names are looked up later. A program that compiles code as it runs may place a new code
// object, its file name and its line table where old ones were, so the content of the line table also tells them apart.
struct PythonFrame {
  uint64_t code = 0;         // address of the code object
  uint64_t file = 0;         // address of its file name
  uint64_t lines = 0;        // address of its line table
  uint64_t begins = 0;       // hash of the size and the first bytes of its line table
  int32_t first_line = 0;    // first line of the code object
  int32_t instruction = 0;   // byte offset of the current instruction
  uint64_t first_local = 0;  // the object in the first local variable: `self` in a method
  auto operator<=>(const PythonFrame&) const = default;
};

// Stores the frames of the calling thread, innermost first, as many as fit into `to`. Returns their number. Reads the
// interpreter's memory without holding the GIL, which is safe because no other thread changes these frames. If a signal
// interrupted the thread while it changed its frames, the list may be incomplete. Takes no lock, allocates nothing, and
// may be called in a signal handler.
size_t walk_python(const PythonRuntime& python, std::span<PythonFrame> to);
// Like walk_python(), for calls from C code that Python called, outside of signal handlers. The frames of the calling
// thread do not change then, so they are read directly, without system calls.
size_t walk_resting_python(const PythonRuntime& python, std::span<PythonFrame> to);
// Like walk_python(), for another thread, given its PyThreadState. That thread must be waiting: a running thread may
// change its frames.
size_t walk_python(const PythonRuntime& python, uint64_t thread, std::span<PythonFrame> to);

// The memory that holds the frames of a waiting thread.
struct WaitingStack {
  struct Piece {
    uint64_t begin, bytes;  // a memory range that contains one or more frames
  };
  uint64_t thread = 0;           // PyThreadState of the thread; 0 if unknown
  uint64_t cframe = 0, top = 0;  // address where the interpreter stores the innermost frame, and address of that frame
  std::vector<Piece> pieces;
};
// Locates the frames of a waiting thread. In the result, `thread` is 0 if the frames occupy too much memory to read at
// once.
WaitingStack find_waiting_stack(const PythonRuntime& python, uint64_t thread);
// Computes a hash of the frames' code objects and instructions. This costs one system call, while a walk costs many.
// Returns false if the frames have moved.
bool hash_of_waiting(const PythonRuntime& python, const WaitingStack& stack, uint64_t* hash);

// The object that a local variable refers to. Looks inside the cell if inner functions also use the variable.
uint64_t object_of(const PythonRuntime& python, uint64_t local);
uint64_t resting_object_of(const PythonRuntime& python, uint64_t local);  // for frames of walk_resting_python()

// The memory of the content of a str or bytes object: address and size.
struct PythonObject {
  uint64_t content = 0, bytes = 0;
  uint64_t width = 0;  // bytes per character; 0: ASCII text or bytes
};

// Finds the objects that describe a code object: its qualified name, file name and line table. Returns false if the
// address no longer holds this code object. May be called in a signal handler.
bool find_code(const PythonRuntime& python, const PythonFrame& frame, PythonObject* name, PythonObject* file,
               PythonObject* lines);
// Converts the content to UTF-8.
std::string text_of(const PythonObject& object, const uint8_t* content);

// The readable description of a code object.
struct PythonCode {
  std::string name, file;
  int64_t first_line = 0;
  std::vector<uint8_t> lines;    // line table (PEP 626), encoded as in PEP 657
  bool lines_are_pairs = false;  // true: encoded as in CPython 3.10 instead

  int64_t line_of(int32_t instruction) const;  // first_line if the table has no entry
};
// Reads the description of a frame's code object. May be called in any thread. Returns false if the code object no
// longer exists.
bool read_code(const PythonRuntime& python, const PythonFrame& frame, PythonCode* to);

}  // namespace heddle::profile
