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

// Which line of a source each instruction of a shared object is of, from what `g++ -g1` writes into it (DWARF 4 and 5).
class LineTable {
 public:
  // Throws kDamagedArtefact where the tables are no such tables; without any of them it knows no line.
  static LineTable of(std::string_view elf);

  // The line of an address of the object, and behind it, from the inside out, those that the code was inlined to. Empty
  // where nothing is known. Takes time proportional to the functions that were inlined.
  std::vector<Place> at(uint64_t address) const;
  size_t rows() const { return rows_.size(); }
  size_t inlined() const { return calls_.size(); }

 private:
  friend class UnitReader;
  struct Range {
    uint64_t begin, end;
    uint32_t file;   // of files_
    uint32_t depth;  // of a call: how deep it lies in others
    uint64_t line;
  };
  std::vector<std::string> files_;
  std::vector<Range> rows_;   // ascending
  std::vector<Range> calls_;  // of functions that were inlined: where their code lies, and from which line
};

}  // namespace heddle::profile::code
