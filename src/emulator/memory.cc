#include "emulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "emulator/block.h"

namespace heddle::emulator {
namespace {

// Filling costs a second for some gigabytes; of more than this only both ends are filled.
constexpr size_t kMostPoisoned = size_t{256} << 20;

uint8_t* bytes_at(uint64_t address) {
  return reinterpret_cast<uint8_t*>(address);
}

// The first byte of the zone that was overwritten; its length where none was.
size_t first_change(const uint8_t* zone) {
  const uint8_t* end = zone + Memory::kZoneBytes;
  return static_cast<size_t>(std::find_if(zone, end, [](uint8_t byte) { return byte != kZoneByte; }) - zone);
}

}  // namespace

Memory::~Memory() {
  for (const auto& [address, allocation] : allocations_) std::free(allocation.raw);
}

uint64_t Memory::allocate(size_t bytes, uint64_t limit) {
  if (bytes > limit || used_ > limit - bytes) return 0;
  const size_t room = (bytes + 2 * kZoneBytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* raw = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, room));
  if (raw == nullptr) return 0;
  uint8_t* start = raw + kZoneBytes;
  std::memset(raw, kZoneByte, kZoneBytes);
  if (bytes <= kMostPoisoned) {
    std::memset(start, kPoisonByte, bytes);
  } else {
    std::memset(start, kPoisonByte, kMostPoisoned / 2);
    std::memset(start + bytes - kMostPoisoned / 2, kPoisonByte, kMostPoisoned / 2);
  }
  std::memset(start + bytes, kZoneByte, kZoneBytes);
  const auto address = reinterpret_cast<uint64_t>(start);
  allocations_[address] = {raw, bytes};
  used_ += bytes;
  return address;
}

bool Memory::release(uint64_t address, std::string* what) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) {
    *what = fmt::format("no allocation starts at {:#x}", address);
    return false;
  }
  *what = check(address, found->second);
  used_ -= found->second.bytes;
  std::free(found->second.raw);
  allocations_.erase(found);
  return true;
}

bool Memory::contains(uint64_t address, size_t bytes) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [start, allocation] = *--after;
  return address - start <= allocation.bytes && bytes <= allocation.bytes - (address - start);
}

std::string Memory::check(uint64_t address, const Allocation& allocation) {
  uint8_t* zones[2] = {allocation.raw, bytes_at(address) + allocation.bytes};
  for (int side = 0; side < 2; ++side) {
    const size_t at = first_change(zones[side]);
    if (at == kZoneBytes) continue;
    std::memset(zones[side], kZoneByte, kZoneBytes);
    if (side == 0) {
      return fmt::format("byte {} before an allocation of {} bytes was written", kZoneBytes - at, allocation.bytes);
    }
    return fmt::format("byte {} behind the end of an allocation of {} bytes was written", at, allocation.bytes);
  }
  return {};
}

std::string Memory::check_zones() {
  std::string found;
  for (const auto& [address, allocation] : allocations_) {
    std::string text = check(address, allocation);
    if (found.empty()) found = std::move(text);
  }
  return found;
}

}  // namespace heddle::emulator
