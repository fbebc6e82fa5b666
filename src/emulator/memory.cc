#include "emulator/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "emulator/block.h"
#include "emulator/fiber.h"

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
  for (const auto& [address, allocation] : allocations_) ::munmap(allocation.pages, allocation.mapped);
}

uint64_t Memory::allocate(size_t bytes, uint64_t limit) {
  if (bytes > limit || used_ > limit - bytes) return 0;
  constexpr size_t kPage = 4096;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const size_t room = (bytes + 2 * kZoneBytes + kPage - 1) / kPage * kPage, mapped = room + 2 * kGuardBytes;
  void* const pages = ::mmap(nullptr, mapped, PROT_NONE, kFlags, -1, 0);
  if (pages == MAP_FAILED) return 0;
  uint8_t* const inside = static_cast<uint8_t*>(pages) + kGuardBytes;
  if (::mprotect(inside, room, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(pages, mapped);
    return 0;
  }
  // At the end of its pages, so that reads far past an array fault just as writes do.
  uint8_t* const raw = inside + (room - bytes - 2 * kZoneBytes) / kAlignment * kAlignment;
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
  allocations_[address] = {raw, static_cast<uint8_t*>(pages), mapped, bytes};
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
  ::munmap(found->second.pages, found->second.mapped);
  allocations_.erase(found);
  return true;
}

bool Memory::contains(uint64_t address, size_t bytes) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [start, allocation] = *--after;
  return address - start <= allocation.bytes && bytes <= allocation.bytes - (address - start);
}

std::string Memory::offset_of(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return "";
  const auto& [start, allocation] = *--after;
  return fmt::format(", byte {} of an allocation of {}", address - start, allocation.bytes);
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

std::string Memory::describe(const BadAccess& access) const {
  if (!access.has_address) return "accesses an address where no memory can be";
  const uint64_t address = access.address;
  std::string text =
      fmt::format("{} address {:#x}, where there is no memory", access.writes ? "writes to" : "reads from", address);
  const auto after = allocations_.upper_bound(address);
  uint64_t behind = kGuardBytes, before = kGuardBytes;
  if (after != allocations_.begin()) behind = address - std::prev(after)->first - std::prev(after)->second.bytes;
  if (after != allocations_.end()) before = after->first - address;
  if (behind < std::min(before, kGuardBytes)) {
    const size_t bytes = std::prev(after)->second.bytes;
    text += fmt::format(": {} bytes behind the end of an allocation of {} bytes", behind, bytes);
  } else if (before < kGuardBytes) {
    text += fmt::format(": {} bytes before an allocation of {} bytes", before, after->second.bytes);
  }
  return text;
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
