#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::profile::code {

// A section of a 64-bit little-endian ELF file, and its load address relative to the object's base.
struct Section {
  std::string_view bytes;  // the contents in the file; empty if there is no such section
  uint64_t address = 0;
};

// Finds a section by name. Throws kDamagedArtefact if `elf` is not a 64-bit little-endian ELF file or its headers point
// outside of the file.
Section section_of(std::string_view elf, std::string_view name);

}  // namespace heddle::profile::code
