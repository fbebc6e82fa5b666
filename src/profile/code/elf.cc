#include "profile/code/elf.h"

#include <elf.h>

#include "profile/code/bytes.h"

namespace heddle::profile::code {
Section section_of(std::string_view elf, std::string_view name) {
  const auto file = Bytes(elf).record<Elf64_Ehdr>();
  const bool is_elf = std::memcmp(file.e_ident, ELFMAG, SELFMAG) == 0 && file.e_ident[EI_CLASS] == ELFCLASS64 &&
                      file.e_ident[EI_DATA] == ELFDATA2LSB;
  if (!is_elf) fail_damaged("it is no 64-bit little-endian ELF file");
  const auto section = [&](uint64_t i) {
    // In two steps: the product stays below 2^32.
    Bytes table(elf, file.e_shoff);
    table.take(i * sizeof(Elf64_Shdr));
    return table.record<Elf64_Shdr>();
  };
  if (file.e_shnum == 0) return {};
  const auto content = [&](const Elf64_Shdr& s) { return Bytes(elf, s.sh_offset).take(s.sh_size); };
  const std::string_view names = content(section(file.e_shstrndx));
  for (uint64_t i = 0; i < file.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (Bytes(names, s.sh_name).text() != name) continue;
    if (s.sh_type == SHT_NOBITS) return {{}, s.sh_addr};
    if ((s.sh_flags & SHF_COMPRESSED) != 0) fail_damaged("its sections are compressed, which is not read");
    return {content(s), s.sh_addr};
  }
  return {};
}

}  // namespace heddle::profile::code
