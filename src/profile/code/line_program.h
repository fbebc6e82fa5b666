#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::profile::code {

// The sections that a program for lines refers to.
struct LineSections {
  std::string_view line;      // .debug_line
  std::string_view line_str;  // .debug_line_str
  std::string_view str;       // .debug_str
};

struct LineProgram {
  // Code from `begin` to `end`, addresses of the object.
  struct Row {
    uint64_t begin, end;
    uint64_t file, line;
  };
  std::vector<std::string> files;  // as rows and call sites number them, without folders; "": there is none
  std::vector<Row> rows;
};

// The program at this offset of .debug_line, of DWARF 4 or 5. Throws kDamagedArtefact.
LineProgram read_line_program(const LineSections& sections, uint64_t offset);

}  // namespace heddle::profile::code
