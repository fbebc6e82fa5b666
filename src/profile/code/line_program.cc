#include "profile/code/line_program.h"

#include <optional>
#include <utility>

#include "profile/code/bytes.h"
#include "profile/code/forms.h"

namespace heddle::profile::code {
namespace {

struct Header {
  uint8_t least_length = 1;
  int8_t line_base = 0;
  uint8_t line_range = 1, opcode_base = 1;
  std::vector<uint8_t> operands;  // of the standard opcodes, by number - 1
};

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The entries of a table of version 5, each a path; folders are passed over.
std::vector<std::string> read_entries(Bytes& bytes, const LineSections& sections) {
  constexpr uint64_t kPath = 1;
  std::vector<std::pair<uint64_t, uint64_t>> format;  // content, form
  const uint8_t fields = bytes.u8();
  for (int i = 0; i < fields; ++i) {
    const uint64_t content = bytes.unsigned_leb();
    format.emplace_back(content, bytes.unsigned_leb());
  }
  const uint64_t count = bytes.unsigned_leb();
  std::vector<std::string> entries;
  for (uint64_t i = 0; i < count; ++i) {
    if (format.empty()) fail_damaged("a table of files has entries without fields");
    const uint64_t begin = bytes.at();
    entries.emplace_back();
    for (const auto& [content, form] : format) {
      if (content != kPath) {
        skip_form(bytes, form, 5);
      } else if (form == kFormString) {
        entries.back() = base_name(bytes.text());
      } else if (form == kFormLineStr || form == kFormStr) {
        entries.back() = base_name(Bytes(form == kFormStr ? sections.str : sections.line_str, bytes.u32()).text());
      } else {
        fail_damaged("a file has a name of an unknown form");
      }
    }
    if (bytes.at() == begin) fail_damaged("a table of files has entries without content");
  }
  return entries;
}

std::vector<std::string> read_files(Bytes& bytes, const LineSections& sections, uint16_t version) {
  if (version == 5) {
    read_entries(bytes, sections);
    return read_entries(bytes, sections);
  }
  while (!bytes.text().empty()) {
  }
  std::vector<std::string> files = {""};  // counted from 1
  for (std::string_view name = bytes.text(); !name.empty(); name = bytes.text()) {
    files.emplace_back(base_name(name));
    for (int field = 0; field < 3; ++field) bytes.unsigned_leb();
  }
  return files;
}

// The machine that writes the rows.
class Machine {
 public:
  Machine(const Header& header, LineProgram& program) : h_(header), program_(program) {}

  void run(Bytes& code) {
    while (!code.done()) {
      const uint8_t opcode = code.u8();
      if (opcode >= h_.opcode_base) {
        special(static_cast<uint8_t>(opcode - h_.opcode_base));
      } else if (opcode == 0) {
        extended(code.part(code.unsigned_leb()));
      } else {
        standard(code, opcode);
      }
    }
  }

 private:
  void special(uint8_t adjusted) {
    address_ += static_cast<uint64_t>(adjusted / h_.line_range) * h_.least_length;
    line_ += static_cast<uint64_t>(static_cast<int64_t>(h_.line_base) + adjusted % h_.line_range);
    row();
  }

  void standard(Bytes& code, uint8_t opcode) {
    constexpr uint8_t kCopy = 1, kAdvancePc = 2, kAdvanceLine = 3, kSetFile = 4, kConstAddPc = 8, kFixedAdvancePc = 9;
    switch (opcode) {
      case kCopy:
        return row();
      case kAdvancePc:
        address_ += code.unsigned_leb() * h_.least_length;
        return;
      case kAdvanceLine:
        line_ += static_cast<uint64_t>(code.signed_leb());
        return;
      case kSetFile:
        file_ = code.unsigned_leb();
        return;
      case kConstAddPc:
        address_ += static_cast<uint64_t>((255 - h_.opcode_base) / h_.line_range) * h_.least_length;
        return;
      case kFixedAdvancePc:
        address_ += code.u16();
        return;
      default:
        for (int i = 0; i < h_.operands.at(opcode - 1U); ++i) code.unsigned_leb();
    }
  }

  void extended(Bytes code) {
    constexpr uint8_t kEndSequence = 1, kSetAddress = 2;
    constexpr uint8_t kInlinedCall = 0x90;  // of NVIDIA: a line's number in its sequence, then the offset of a name
    if (code.done()) return;
    const uint8_t opcode = code.u8();
    if (opcode == kSetAddress) address_ = code.u64();
    if (opcode == kInlinedCall) set_call(code.unsigned_leb());
    if (opcode != kEndSequence) return;
    end_row();
    address_ = 0, file_ = 1, line_ = 1, inlined_at_ = 0;
    ++program_.sequences;
    first_line_ = program_.lines.size();
  }

  void set_call(uint64_t number) {
    if (number > program_.lines.size() - first_line_) fail_damaged("a call has a line that there is not");
    inlined_at_ = number == 0 ? 0 : first_line_ + number;
  }

  void row() {
    end_row();
    program_.lines.push_back({file_, line_, inlined_at_});
    open_ = {address_, 0, program_.lines.size() - 1, program_.sequences};
  }
  void end_row() {
    if (open_ && address_ > open_->begin) {
      open_->end = address_;
      program_.rows.push_back(*open_);
    }
    open_.reset();
  }

  const Header& h_;
  LineProgram& program_;
  uint64_t address_ = 0, file_ = 1, line_ = 1, inlined_at_ = 0;
  uint64_t first_line_ = 0;  // of the sequence
  std::optional<LineProgram::Row> open_;
};

}  // namespace

LineProgram read_line_program(const LineSections& sections, uint64_t offset) {
  Bytes all(sections.line, offset);
  Bytes unit = all.part(all.unit_length());
  const uint16_t version = unit.u16();
  if (version < 2 || version > 5) fail_damaged("its lines are of another version of DWARF than 2 to 5");
  if (version == 5 && unit.u8() != 8) fail_damaged("its addresses are not of 64 bits");
  if (version == 5) unit.u8();  // segment selectors
  Bytes head = unit.part(unit.u32());
  Header header;
  header.least_length = head.u8();
  if (version >= 4) head.u8();  // operations of an instruction
  head.u8();                    // whether rows are statements at first
  header.line_base = head.number<int8_t>();
  header.line_range = head.u8();
  header.opcode_base = head.u8();
  if (header.line_range == 0 || header.opcode_base == 0) fail_damaged("the head of a table of lines is no such head");
  for (int i = 1; i < header.opcode_base; ++i) header.operands.push_back(head.u8());
  LineProgram program;
  program.files = read_files(head, sections, version);
  program.end = all.at();
  Machine(header, program).run(unit);
  return program;
}

}  // namespace heddle::profile::code
