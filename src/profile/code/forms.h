#pragma once

#include <cstdint>

#include "profile/code/bytes.h"

namespace heddle::profile::code {

// The DWARF forms (encodings of values) that callers distinguish.
inline constexpr uint64_t kFormAddr = 0x01, kFormData2 = 0x05, kFormData4 = 0x06, kFormData8 = 0x07, kFormString = 0x08,
                          kFormData1 = 0x0b, kFormStr = 0x0e, kFormUdata = 0x0f, kFormRefAddr = 0x10,
                          kFormSecOffset = 0x17, kFormAddrx = 0x1b, kFormLineStr = 0x1f, kFormImplicitConst = 0x21,
                          kFormRngListx = 0x23;

// Skips a value of this form. Throws kDamagedArtefact for unknown forms.
void skip_form(Bytes& bytes, uint64_t form, uint16_t version);

// True if a value of this form is an index into .debug_addr.
inline bool is_address_number(uint64_t form) {
  constexpr uint64_t kAddrx1 = 0x29, kAddrx4 = 0x2c;
  return form == kFormAddrx || (form >= kAddrx1 && form <= kAddrx4);
}

// Reads a numeric value: an address or its index, an offset, or a constant. Returns false after skipping the value if
// its form is not numeric.
bool read_number(Bytes& bytes, uint64_t form, uint16_t version, uint64_t& value);

}  // namespace heddle::profile::code
