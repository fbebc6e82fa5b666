#include "profile/code/line_table.h"

#include <algorithm>
#include <map>
#include <optional>

#include "profile/code/bytes.h"
#include "profile/code/elf.h"
#include "profile/code/forms.h"
#include "profile/code/line_program.h"

namespace heddle::profile::code {
namespace {

constexpr uint64_t kMostRanges = 1 << 22;  // a small file may name one list of ranges very often

struct Abbreviation {
  struct Attribute {
    uint64_t name, form;
  };
  uint64_t tag = 0;
  bool has_children = false;
  std::vector<Attribute> attributes;
  std::vector<int64_t> constants;  // by attribute, of those whose value is in the abbreviation
};

std::map<uint64_t, Abbreviation> read_abbreviations(std::string_view section, uint64_t offset) {
  std::map<uint64_t, Abbreviation> all;
  Bytes bytes(section, offset);
  while (const uint64_t code = bytes.unsigned_leb()) {
    Abbreviation a;
    a.tag = bytes.unsigned_leb();
    a.has_children = bytes.u8() != 0;
    while (true) {
      const uint64_t name = bytes.unsigned_leb(), form = bytes.unsigned_leb();
      const int64_t constant = form == kFormImplicitConst ? bytes.signed_leb() : 0;
      if (name == 0 && form == 0) break;
      a.attributes.push_back({name, form});
      a.constants.push_back(constant);
    }
    all.emplace(code, std::move(a));
  }
  return all;
}

// What is read of an entry.
struct Entry {
  std::optional<uint64_t> low, high, ranges, rnglists_base, addr_base, call_file, call_line, lines;
  bool low_is_number = false, high_is_size = false, ranges_is_index = false;
};

using Span = std::pair<uint64_t, uint64_t>;

}  // namespace

// Reads a unit of .debug_info into a table.
class UnitReader {
 public:
  struct Sections {
    std::string_view info, abbreviations, ranges, rnglists, addresses;
    LineSections lines;
  };

  UnitReader(const Sections& sections, LineTable& table) : s_(sections), table_(table) {}

  void read(Bytes unit) {
    version_ = unit.u16();
    if (version_ != 4 && version_ != 5) fail_damaged("a unit is of another version of DWARF than 4 and 5");
    const uint8_t type = version_ == 5 ? unit.u8() : kCompile;
    uint64_t abbreviations = version_ == 4 ? unit.u32() : 0;
    if (unit.u8() != 8) fail_damaged("a unit has addresses that are not of 64 bits");
    if (version_ == 5) abbreviations = unit.u32();
    if (type != kCompile && type != kPartial) return;
    read_entries(unit, read_abbreviations(s_.abbreviations, abbreviations));
  }

 private:
  static constexpr uint8_t kCompile = 1, kPartial = 3;

  void read_entries(Bytes& unit, const std::map<uint64_t, Abbreviation>& abbreviations) {
    constexpr uint64_t kCompileUnit = 0x11, kPartialUnit = 0x3c, kInlined = 0x1d;
    uint32_t depth = 0;
    while (!unit.done()) {
      const uint64_t code = unit.unsigned_leb();
      if (code == 0) {
        if (depth > 0) --depth;
        continue;
      }
      const auto found = abbreviations.find(code);
      if (found == abbreviations.end()) fail_damaged("an entry is of an unknown kind");
      const Abbreviation& a = found->second;
      const Entry entry = read_entry(unit, a);
      if (a.tag == kCompileUnit || a.tag == kPartialUnit) begin_unit(entry);
      if (a.tag == kInlined) add_call(entry, depth);
      if (a.has_children) ++depth;
    }
  }

  Entry read_entry(Bytes& unit, const Abbreviation& a) const {
    enum Attribute : uint64_t {
      kStmtList = 0x10,
      kLowPc = 0x11,
      kHighPc = 0x12,
      kRanges = 0x55,
      kCallFile = 0x58,
      kCallLine = 0x59,
      kAddrBase = 0x73,
      kRnglistsBase = 0x74,
    };
    Entry entry;
    for (size_t i = 0; i < a.attributes.size(); ++i) {
      const auto [name, form] = a.attributes[i];
      auto value = static_cast<uint64_t>(a.constants[i]);
      if (form != kFormImplicitConst && !read_number(unit, form, version_, value)) continue;
      if (name == kStmtList) entry.lines = value;
      if (name == kLowPc) entry.low = value, entry.low_is_number = is_address_number(form);
      if (name == kHighPc) entry.high = value, entry.high_is_size = form != kFormAddr;
      if (name == kAddrBase) entry.addr_base = value;
      if (name == kRanges) entry.ranges = value, entry.ranges_is_index = form == kFormRngListx;
      if (name == kCallFile) entry.call_file = value;
      if (name == kCallLine) entry.call_line = value;
      if (name == kRnglistsBase) entry.rnglists_base = value;
    }
    return entry;
  }

  void begin_unit(const Entry& entry) {
    addresses_at_ = entry.addr_base.value_or(0);
    base_ = low_of(entry).value_or(0);
    lists_at_ = entry.rnglists_base.value_or(0);
    if (!entry.lines) return;
    const auto [known, is_new] = first_file_.try_emplace(*entry.lines, table_.files_.size());
    first_ = known->second;
    if (!is_new) return;
    LineProgram program = read_line_program(s_.lines, *entry.lines);
    const size_t files = program.files.size();
    table_.files_.insert(table_.files_.end(), program.files.begin(), program.files.end());
    count_[first_] = files;
    for (const LineProgram::Row& row : program.rows) {
      const LineProgram::Line& line = program.lines[row.line];
      if (line.file < files) table_.rows_.push_back({row.begin, row.end, file(line.file), 0, line.line});
    }
  }

  uint32_t file(uint64_t number) const { return static_cast<uint32_t>(first_ + number); }

  void add_call(const Entry& entry, uint32_t depth) {
    if (!entry.call_file || !entry.call_line || *entry.call_file >= count_[first_]) return;
    const std::vector<Span> spans = spans_of(entry);
    ranges_ += spans.size();
    if (ranges_ > kMostRanges) fail_damaged("it names more ranges of code than are read");
    for (const auto& [begin, end] : spans) {
      if (begin < end) table_.calls_.push_back({begin, end, file(*entry.call_file), depth, *entry.call_line});
    }
  }

  std::vector<Span> spans_of(const Entry& entry) const {
    if (entry.ranges) {
      if (version_ == 4) return old_ranges(*entry.ranges);
      if (!entry.ranges_is_index) return ranges(*entry.ranges);
      if (*entry.ranges > s_.rnglists.size()) fail_damaged("a list of ranges has a number that there is not");
      Bytes offsets(s_.rnglists, lists_at_);
      offsets.take(4 * *entry.ranges);
      return ranges(lists_at_ + offsets.u32());
    }
    const std::optional<uint64_t> low = low_of(entry);
    if (!low || !entry.high) return {};
    return {{*low, entry.high_is_size ? *low + *entry.high : *entry.high}};
  }

  std::optional<uint64_t> low_of(const Entry& entry) const {
    return entry.low && entry.low_is_number ? address(*entry.low) : entry.low;
  }
  uint64_t address(uint64_t number) const {
    if (number > s_.addresses.size()) fail_damaged("an address has a number that there is not");
    Bytes bytes(s_.addresses, addresses_at_);
    bytes.take(8 * number);
    return bytes.u64();
  }

  // DWARF 4: pairs of offsets from a base, which a pair may change.
  std::vector<Span> old_ranges(uint64_t offset) const {
    std::vector<Span> spans;
    uint64_t base = base_;
    for (Bytes bytes(s_.ranges, offset);;) {
      const uint64_t begin = bytes.u64(), end = bytes.u64();
      if (begin == 0 && end == 0) return spans;
      if (begin == ~uint64_t{0}) {
        base = end;
      } else {
        spans.emplace_back(base + begin, base + end);
      }
    }
  }

  std::vector<Span> ranges(uint64_t offset) const {
    enum Kind : uint8_t {
      kEnd = 0,
      kBaseNumber = 1,
      kNumbers = 2,
      kNumberLength = 3,
      kOffsetPair = 4,
      kBase = 5,
      kStartEnd = 6,
      kStartLength = 7
    };
    std::vector<Span> spans;
    uint64_t base = base_;
    for (Bytes bytes(s_.rnglists, offset);;) {
      uint64_t begin = 0;
      switch (bytes.u8()) {
        case kEnd:
          return spans;
        case kBaseNumber:
          base = address(bytes.unsigned_leb());
          break;
        case kNumbers:
          begin = address(bytes.unsigned_leb());
          spans.emplace_back(begin, address(bytes.unsigned_leb()));
          break;
        case kNumberLength:
          begin = address(bytes.unsigned_leb());
          spans.emplace_back(begin, begin + bytes.unsigned_leb());
          break;
        case kOffsetPair:
          begin = bytes.unsigned_leb();
          spans.emplace_back(base + begin, base + bytes.unsigned_leb());
          break;
        case kBase:
          base = bytes.u64();
          break;
        case kStartEnd:
          begin = bytes.u64();
          spans.emplace_back(begin, bytes.u64());
          break;
        case kStartLength:
          begin = bytes.u64();
          spans.emplace_back(begin, begin + bytes.unsigned_leb());
          break;
        default:
          fail_damaged("a list of ranges has an entry of an unknown kind");
      }
    }
  }

  const Sections& s_;
  LineTable& table_;
  uint16_t version_ = 5;
  uint64_t base_ = 0, lists_at_ = 0, addresses_at_ = 0;
  size_t first_ = 0;                       // of the unit's files in the table
  uint64_t ranges_ = 0;                    // that were read
  std::map<uint64_t, size_t> first_file_;  // by program, which units may share
  std::map<size_t, size_t> count_;         // of files, by the first one
};

LineTable LineTable::of(std::string_view elf) {
  const auto bytes = [&](const char* name) { return section_of(elf, name).bytes; };
  const UnitReader::Sections sections{
      bytes(".debug_info"),   bytes(".debug_abbrev"),
      bytes(".debug_ranges"), bytes(".debug_rnglists"),
      bytes(".debug_addr"),   {bytes(".debug_line"), bytes(".debug_line_str"), bytes(".debug_str")},
  };
  LineTable table;
  UnitReader reader(sections, table);
  Bytes info(sections.info);
  while (!info.done()) reader.read(info.part(info.unit_length()));
  std::sort(table.rows_.begin(), table.rows_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return table;
}

std::vector<Place> LineTable::at(uint64_t address) const {
  const auto behind = std::upper_bound(rows_.begin(), rows_.end(), address,
                                       [](uint64_t at, const Range& row) { return at < row.begin; });
  if (behind == rows_.begin() || (behind - 1)->end <= address) return {};
  std::vector<Place> places = {{files_[(behind - 1)->file], (behind - 1)->line}};
  std::vector<const Range*> calls;
  for (const Range& call : calls_) {
    if (call.begin <= address && address < call.end) calls.push_back(&call);
  }
  std::sort(calls.begin(), calls.end(), [](const Range* a, const Range* b) { return a->depth > b->depth; });
  for (const Range* call : calls) places.push_back({files_[call->file], call->line});
  return places;
}

}  // namespace heddle::profile::code
