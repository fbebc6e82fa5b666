#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/code/line_table.h"

namespace heddle::profile::code {

// Which line of source each instruction of a kernel is of, from what NVRTC's -lineinfo writes into machine code for
// NVIDIA GPUs: lines of DWARF 2 with an operation of NVIDIA's own for inlined calls.
class CubinLines {
 public:
  // Throws kDamagedArtefact where the tables are no such tables; without any of them it knows no line.
  static CubinLines of(std::string_view cubin, std::string_view kernel);

  // The line of an offset in the kernel's code, and behind it, from the inside out, those that it was inlined to. Empty
  // where nothing is known.
  std::vector<Place> at(uint64_t offset) const;
  size_t rows() const { return rows_.size(); }

 private:
  struct Line {
    uint32_t file;  // of files_
    uint64_t line;
    size_t inlined_at;  // of lines_, plus 1; 0: none
  };
  struct Row {
    uint64_t begin, end;
    size_t line;  // of lines_
  };
  std::vector<std::string> files_;
  std::vector<Line> lines_;
  std::vector<Row> rows_;  // ascending
};

// The machine code of a kernel; empty where the cubin has no such kernel. Throws kDamagedArtefact.
std::string_view code_of(std::string_view cubin, std::string_view kernel);

}  // namespace heddle::profile::code
