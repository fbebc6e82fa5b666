#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::profile::code {

struct Place {
  std::string_view file;  // without folders
  uint64_t line;          // from 1; 0: none
  bool operator==(const Place&) const = default;
};

// Maps instructions of a shared object to source lines, from the tables that `g++ -g1` writes into it (DWARF 4 and 5).
class LineTable {
 public:
  // Throws kDamagedArtefact if the tables are malformed. Without tables, every lookup is empty.
  static LineTable of(std::string_view elf);

  // The line of an address of the object, then the lines that its code was inlined to, from the inside out. Empty if
  // unknown. Takes time proportional to the number of inlined functions.
  std::vector<Place> at(uint64_t address) const;
  size_t rows() const { return rows_.size(); }
  size_t inlined() const { return calls_.size(); }

 private:
  friend class UnitReader;
  struct Range {
    uint64_t begin, end;
    uint32_t file;   // index into files_
    uint32_t depth;  // of a call: its nesting depth
    uint64_t line;
  };
  std::vector<std::string> files_;
  std::vector<Range> rows_;   // ascending
  std::vector<Range> calls_;  // of inlined functions: the range of their code, and the line of the call
};

}  // namespace heddle::profile::code
