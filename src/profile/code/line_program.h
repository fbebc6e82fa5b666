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
  // A source line as the program writes it.
  struct Line {
    uint64_t file, line;
    uint64_t inlined_at;  // NVIDIA's compilers: index from 1 of the line of the call that this is inlined to;
                          // 0: none
  };
  // Code from `begin` to `end`, addresses in the object.
  struct Row {
    uint64_t begin, end;
    size_t line;        // index into `lines`
    uint32_t sequence;  // number from 0 of a piece of code; addresses start anew in each
  };
  std::vector<std::string> files;  // as rows and call sites number them, without folders; "": there is none
  std::vector<Row> rows;
  std::vector<Line> lines;  // all lines that were written, even without code
  uint32_t sequences = 0;
  uint64_t end = 0;  // the offset just past the program
};

// The program at this offset of .debug_line, of DWARF 2 to 5. Throws kDamagedArtefact.
LineProgram read_line_program(const LineSections& sections, uint64_t offset);

}  // namespace heddle::profile::code
