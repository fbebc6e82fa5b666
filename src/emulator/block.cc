#include "emulator/block.h"

#include <algorithm>
#include <cstring>

namespace heddle::emulator {
namespace {

bool filled(const uint8_t* from, size_t bytes) {
  return std::all_of(from, from + bytes, [](uint8_t byte) { return byte == kZoneByte; });
}

}  // namespace

// The host's address has the alignment of the emulated one.
void Block::set_shared(uint32_t bytes, uint32_t base) {
  constexpr size_t kAlignment = 1024;
  const size_t room = kAlignment + base % kAlignment + 2 * kZoneBytes + bytes;
  if (memory_.size() < room) memory_.resize(room);
  const size_t skew = -reinterpret_cast<uintptr_t>(memory_.data()) % kAlignment;
  zone_ = memory_.data() + skew + base % kAlignment;
  shared = zone_ + kZoneBytes;
  shared_bytes = bytes;
  shared_base = base;
  std::memset(zone_, kZoneByte, kZoneBytes);
  std::memset(shared, kPoisonByte, bytes);
  std::memset(shared + bytes, kZoneByte, kZoneBytes);
}

bool Block::zones_intact() const {
  return filled(zone_, kZoneBytes) && filled(shared + shared_bytes, kZoneBytes);
}

}  // namespace heddle::emulator
