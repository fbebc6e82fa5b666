#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::profile::code {

// A section of a 64-bit little-endian ELF file, and where it is loaded, from the base of the object.
struct Section {
  std::string_view bytes;  // of the file; empty where it has no such section
  uint64_t address = 0;
};

// Throws kDamagedArtefact where the file is no such ELF file, or its headers point outside of it.
Section section_of(std::string_view elf, std::string_view name);

}  // namespace heddle::profile::code
