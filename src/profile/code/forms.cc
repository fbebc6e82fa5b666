#include "profile/code/forms.h"

#include <iterator>

namespace heddle::profile::code {
namespace {

// How a form stores its value. A number of `size` bytes or in LEB128; bytes that are no number of their own, whose
// count is `size` or stands in front of them in a number of `size` bytes or in LEB128.
enum class Storage : uint8_t { kNone, kNumber, kUnsigned, kSigned, kBytes, kSkipped, kText, kBlock, kLebBlock };
using enum Storage;

struct Form {
  Storage storage;
  uint8_t size;
};

// By code (DWARF 5, 7.5.6), eight a line.
// clang-format off
constexpr Form kForms[] = {
    {kNone, 0}, {kNumber, 8}, {kNone, 0}, {kBlock, 2}, {kBlock, 4}, {kNumber, 2}, {kNumber, 4}, {kNumber, 8},
    {kText, 0}, {kLebBlock, 0}, {kBlock, 1}, {kNumber, 1}, {kBytes, 1}, {kSigned, 0}, {kBytes, 4}, {kUnsigned, 0},
    {kBytes, 4}, {kBytes, 1}, {kBytes, 2}, {kBytes, 4}, {kBytes, 8}, {kSkipped, 0}, {kNone, 0}, {kNumber, 4},
    {kLebBlock, 0}, {kBytes, 0}, {kSkipped, 0}, {kUnsigned, 0}, {kBytes, 4}, {kBytes, 4}, {kBytes, 16}, {kBytes, 4},
    {kBytes, 8}, {kBytes, 0}, {kSkipped, 0}, {kUnsigned, 0}, {kBytes, 8}, {kBytes, 1}, {kBytes, 2}, {kBytes, 3},
    {kBytes, 4}, {kNumber, 1}, {kNumber, 2}, {kNumber, 3}, {kNumber, 4},
};
// clang-format on

uint64_t little_endian(Bytes& bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes.u8()) << (8 * i);
  return value;
}

}  // namespace

void skip_form(Bytes& bytes, uint64_t form, uint16_t version) {
  uint64_t value = 0;
  read_number(bytes, form, version, value);
}

bool read_number(Bytes& bytes, uint64_t form, uint16_t version, uint64_t& value) {
  const auto [storage, size] = form < std::size(kForms) ? kForms[form] : Form{kNone, 0};
  switch (storage) {
    case kNumber:
      value = little_endian(bytes, size);
      return true;
    case kUnsigned:
      value = bytes.unsigned_leb();
      return true;
    case kSigned:
      value = static_cast<uint64_t>(bytes.signed_leb());
      return true;
    case kBytes:
      bytes.take(form == kFormRefAddr && version == 2 ? 8 : size);
      return false;
    case kSkipped:
      bytes.unsigned_leb();
      return false;
    case kText:
      bytes.text();
      return false;
    case kBlock:
      bytes.take(little_endian(bytes, size));
      return false;
    case kLebBlock:
      bytes.take(bytes.unsigned_leb());
      return false;
    case kNone:
      break;
  }
  fail_damaged("a value is of a form that is not read");
}

}  // namespace heddle::profile::code
