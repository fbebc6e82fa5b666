#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::profile::code {

struct Place {
  std::string_view file;  // without its folder
  uint64_t line;          // from 1; 0: unknown
  bool operator==(const Place&) const = default;
};

// Maps the instructions of a shared object to source lines. It uses the DWARF tables (versions 4 and 5) that `g++ -g1`
// writes into the object.
class LineTable {
 public:
  // Throws kDamagedArtefact if the tables are malformed. Without tables, every lookup is empty.
  static LineTable of(std::string_view elf);

  // Returns the source line of an address of the object. If the code was inlined, the lines of the inlined calls
  // follow, innermost first. Empty if the line is unknown. Takes time proportional to the number of inlined
  // functions.
  std::vector<Place> at(uint64_t address) const;
  size_t rows() const { return rows_.size(); }
  size_t inlined() const { return calls_.size(); }

 private:
  friend class UnitReader;
  struct Range {
    uint64_t begin, end;
    uint32_t file;   // index into files_
    uint32_t depth;  // for a call: its nesting depth
    uint64_t line;
  };
  std::vector<std::string> files_;
  std::vector<Range> rows_;   // sorted by address
  std::vector<Range> calls_;  // inlined functions: the address range of their code, and the line of the call
};

}  // namespace heddle::profile::code
