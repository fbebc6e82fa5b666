#include "profile/code/cubin_lines.h"

#include <elf.h>

#include <algorithm>
#include <map>

#include "profile/code/bytes.h"
#include "profile/code/elf.h"
#include "profile/code/line_program.h"

namespace heddle::profile::code {
namespace {

constexpr size_t kDeepest = 256;  // calls in one another

// Names of the functions that the addresses in .debug_line are relative to, in order: one for each sequence.
std::vector<std::string> functions_of_sequences(std::string_view cubin) {
  const std::string_view relocations = section_of(cubin, ".rela.debug_line").bytes;
  const std::string_view symbols = section_of(cubin, ".symtab").bytes, names = section_of(cubin, ".strtab").bytes;
  std::map<uint64_t, std::string> by_offset;
  for (uint64_t at = 0; at < relocations.size(); at += sizeof(Elf64_Rela)) {
    const auto relocation = Bytes(relocations, at).record<Elf64_Rela>();
    const auto symbol = Bytes(symbols, ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym)).record<Elf64_Sym>();
    by_offset[relocation.r_offset] = std::string(Bytes(names, symbol.st_name).text());
  }
  std::vector<std::string> functions;
  for (auto& [offset, name] : by_offset) functions.push_back(std::move(name));
  return functions;
}

}  // namespace

CubinLines CubinLines::of(std::string_view cubin, std::string_view kernel) {
  const LineSections sections{section_of(cubin, ".debug_line").bytes, {}, section_of(cubin, ".debug_str").bytes};
  const std::vector<std::string> functions = functions_of_sequences(cubin);
  CubinLines table;
  size_t sequences = 0;  // of the programs before
  for (uint64_t offset = 0; offset < sections.line.size();) {
    const LineProgram program = read_line_program(sections, offset);
    const size_t first_file = table.files_.size(), first_line = table.lines_.size();
    table.files_.insert(table.files_.end(), program.files.begin(), program.files.end());
    for (const LineProgram::Line& line : program.lines) {
      if (line.file >= program.files.size()) fail_damaged("a line is of a file that there is not");
      table.lines_.push_back({static_cast<uint32_t>(first_file + line.file), line.line,
                              line.inlined_at == 0 ? 0 : first_line + line.inlined_at});
    }
    for (const LineProgram::Row& row : program.rows) {
      const size_t sequence = sequences + row.sequence;
      if (sequence >= functions.size() || functions[sequence] != kernel) continue;
      table.rows_.push_back({row.begin, row.end, first_line + row.line});
    }
    sequences += program.sequences;
    offset = program.end;
  }
  std::stable_sort(table.rows_.begin(), table.rows_.end(),
                   [](const Row& a, const Row& b) { return a.begin < b.begin; });
  return table;
}

std::vector<Place> CubinLines::at(uint64_t offset) const {
  const auto behind =
      std::upper_bound(rows_.begin(), rows_.end(), offset, [](uint64_t at, const Row& row) { return at < row.begin; });
  if (behind == rows_.begin() || (behind - 1)->end <= offset) return {};
  std::vector<Place> places;
  for (size_t line = (behind - 1)->line + 1; line > 0 && places.size() < kDeepest; line = lines_[line - 1].inlined_at) {
    places.push_back({files_[lines_[line - 1].file], lines_[line - 1].line});
  }
  return places;
}

std::string_view code_of(std::string_view cubin, std::string_view kernel) {
  return section_of(cubin, ".text." + std::string(kernel)).bytes;
}

}  // namespace heddle::profile::code
