#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "profile/gpu/activity.h"

namespace heddle::profile {

// A buffer of records made by hand, of CUPTI 13.0 or 12.
class HandmadeBuffer {
 public:
  explicit HandmadeBuffer(bool old = false) : old_(old) {}

  HandmadeBuffer& kernel(uint64_t start, uint64_t end, uint32_t correlation, const char* name, uint64_t node = 0) {
    begin(10, old_ ? 208 : 216);
    put(6, uint16_t{40});
    put(16, start);
    put(24, end);
    put(40, uint32_t{1});
    put(48, uint32_t{7});
    put(52, uint32_t{3});
    put(56, uint32_t{1});
    put(60, uint32_t{1});
    put(64, uint32_t{128});
    put(68, uint32_t{1});
    put(72, uint32_t{1});
    put(76, uint32_t{100});
    put(80, uint32_t{2000});
    put(84, uint32_t{16});
    put(92, correlation);
    put(104, name);
    put(144, node);
    return *this;
  }
  HandmadeBuffer& copy(uint8_t direction, uint8_t from, uint8_t to, uint64_t bytes, uint64_t start, uint64_t end) {
    begin(1, old_ ? 88 : 96);
    put(4, direction);
    put(5, from);
    put(6, to);
    put(8, bytes);
    put(16, start);
    put(24, end);
    put(40, uint32_t{9});
    put(44, uint32_t{55});
    put(64, uint64_t{0x200000003});
    return *this;
  }
  HandmadeBuffer& peer_copy(uint64_t bytes, uint64_t start, uint64_t end) {
    begin(22, old_ ? 88 : 96);
    put(4, uint8_t{10});
    put(8, bytes);
    put(16, start);
    put(24, end);
    put(60, uint32_t{56});
    put(72, uint64_t{0x200000004});
    return *this;
  }
  HandmadeBuffer& memset(uint64_t bytes, uint64_t start, uint64_t end) {
    begin(2, old_ ? 80 : 88);
    put(8, bytes);
    put(16, start);
    put(24, end);
    put(44, uint32_t{57});
    return *this;
  }
  HandmadeBuffer& wait(uint32_t type, uint64_t start, uint64_t end) {
    begin(38, old_ ? 40 : 56);
    put(4, type);
    put(8, start);
    put(16, end);
    put(24, uint32_t{58});
    put(32, uint32_t{7});
    return *this;
  }
  HandmadeBuffer& memory(uint32_t operation, uint64_t bytes, uint64_t time) {
    begin(49, old_ ? 120 : 128);
    put(4, operation);
    put(12, uint32_t{59});
    put(24, bytes);
    put(32, time);
    return *this;
  }
  HandmadeBuffer& overhead(uint32_t what, uint64_t start, uint64_t end) {
    begin(17, old_ ? 48 : 56);
    put(4, what);
    put(24, start);
    put(32, end);
    return *this;
  }
  HandmadeBuffer& unknown() {
    begin(99, 64);
    return *this;
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  const std::vector<size_t>& starts() const { return starts_; }
  // Gives the records that begin within the buffer, as CUPTI does.
  NextRecord next() const {
    return [starts = starts_](std::span<const uint8_t> buffer, const uint8_t* previous) -> const uint8_t* {
      for (const size_t start : starts) {
        if (start >= buffer.size()) return nullptr;
        if (previous == nullptr || buffer.data() + start > previous) return buffer.data() + start;
      }
      return nullptr;
    };
  }

 private:
  void begin(uint32_t kind, size_t bytes) {
    starts_.push_back(bytes_.size());
    bytes_.resize(bytes_.size() + bytes);
    put(0, kind);
  }
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(bytes_.data() + starts_.back() + offset, &value, sizeof value);
  }

  bool old_;
  std::vector<uint8_t> bytes_;
  std::vector<size_t> starts_;
};

}  // namespace heddle::profile
