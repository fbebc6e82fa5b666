#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace heddle::profile::code {

[[noreturn]] inline void fail_damaged(const std::string& why) {
  fail(ErrorCode::kDamagedArtefact, "line tables", why, "Compile the code again with -g1");
}

// Reads consecutive little-endian values of a section. Throws kDamagedArtefact if the section ends too early.
class Bytes {
 public:
  explicit Bytes(std::string_view all, uint64_t at = 0) : all_(all) { seek(at); }

  bool done() const { return at_ == all_.size(); }
  uint64_t at() const { return at_; }
  void seek(uint64_t at) {
    if (at > all_.size()) fail_damaged("an offset lies behind the end of its section");
    at_ = at;
  }
  std::string_view take(uint64_t size) {
    if (size > all_.size() - at_) fail_damaged("a section ends within a value");
    at_ += size;
    return all_.substr(at_ - size, size);
  }
  // Skips the next `size` bytes and returns a separate reader for them.
  Bytes part(uint64_t size) { return Bytes(take(size)); }

  // Reads a struct with the memory layout of the file.
  template <typename T>
  T record() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  T number() {
    static_assert(std::is_integral_v<T>);
    return record<T>();
  }
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t signed_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t byte = u8();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  std::string_view text() {
    const size_t end = all_.find('\0', at_);
    if (end == std::string_view::npos) fail_damaged("a text has no end");
    const std::string_view found = all_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  // Reads the length at the start of a unit. Throws for units of 64-bit DWARF (above 4 GiB), which are not supported.
  uint64_t unit_length() {
    const uint32_t length = u32();
    if (length >= 0xfffffff0U) fail_damaged("a unit is of 64-bit DWARF, which is not read");
    return length;
  }

 private:
  std::string_view all_;
  uint64_t at_ = 0;
};

}  // namespace heddle::profile::code
