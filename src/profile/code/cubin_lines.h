#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/code/line_table.h"

namespace heddle::profile::code {

// Maps instructions of a kernel to source lines. Reads the tables that NVRTC's -lineinfo writes into machine code for
// NVIDIA GPUs: DWARF 2 line tables with NVIDIA's extension for inlined calls.
class CubinLines {
 public:
  // Reads the line tables of a kernel. Throws kDamagedArtefact if the tables are malformed. Without tables, every
  // lookup is empty.
  static CubinLines of(std::string_view cubin, std::string_view kernel);

  // Returns the source line of the instruction at `offset` in the kernel's code. If the line belongs to an inlined
  // function, the lines of the inlined calls follow, innermost call first. Empty if unknown.
  std::vector<Place> at(uint64_t offset) const;
  size_t rows() const { return rows_.size(); }

 private:
  struct Line {
    uint32_t file;  // index into files_
    uint64_t line;
    size_t inlined_at;  // index into lines_, plus 1; 0: none
  };
  struct Row {
    uint64_t begin, end;
    size_t line;  // index into lines_
  };
  std::vector<std::string> files_;
  std::vector<Line> lines_;
  std::vector<Row> rows_;  // ascending
};

// Returns the machine code of a kernel; empty if the cubin does not contain the kernel. Throws kDamagedArtefact.
std::string_view code_of(std::string_view cubin, std::string_view kernel);

}  // namespace heddle::profile::code
