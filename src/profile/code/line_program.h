#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::profile::code {

// The sections that a line-number program refers to.
struct LineSections {
  std::string_view line;      // .debug_line
  std::string_view line_str;  // .debug_line_str
  std::string_view str;       // .debug_str
};

struct LineProgram {
  // A source line, with the numbers that the line program uses.
  struct Line {
    uint64_t file, line;
    uint64_t inlined_at;  // for inlined code (NVIDIA's compilers): 1 + index of the call's line; 0: not inlined
  };
  // Code from `begin` to `end`, as addresses in the object.
  struct Row {
    uint64_t begin, end;
    size_t line;        // index into `lines`
    uint32_t sequence;  // number, from 0, of the row's sequence; addresses restart in each sequence
  };
  std::vector<std::string> files;  // file names without folders, indexed by Line::file and call sites; "": no such file
  std::vector<Row> rows;
  std::vector<Line> lines;  // all lines that the program wrote, even those without code
  uint32_t sequences = 0;
  uint64_t end = 0;  // the offset just past the program
};

// Reads the line program at this offset of .debug_line (DWARF 2 to 5). Throws kDamagedArtefact.
LineProgram read_line_program(const LineSections& sections, uint64_t offset);

}  // namespace heddle::profile::code
