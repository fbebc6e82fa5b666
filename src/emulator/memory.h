#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace heddle::emulator {

struct BadAccess;

// Device memory: host memory, filled with NaN when fresh, between red zones beyond which nothing is mapped.
class Memory {
 public:
  static constexpr size_t kZoneBytes = 1024;
  static constexpr size_t kAlignment = 256;
  static constexpr size_t kGuardBytes = size_t{16} << 20;

  ~Memory();

  // 0 where more than `limit` bytes would be in use.
  uint64_t allocate(size_t bytes, uint64_t limit);
  // False where no allocation starts there. `what` then or where a red zone was overwritten says so.
  bool release(uint64_t address, std::string* what);
  uint64_t used() const { return used_; }
  // Whether all bytes lie in one allocation.
  bool contains(uint64_t address, size_t bytes) const;
  // "writes to address 0x7f..., where there is no memory: 3 bytes behind the end of an allocation of 64 bytes", where
  // one is near.
  std::string describe(const BadAccess& access) const;
  // "" or which red zone was overwritten; repairs it.
  std::string check_zones();

 private:
  struct Allocation {
    uint8_t* raw;    // the first red zone
    uint8_t* pages;  // with the guards around them
    size_t mapped;
    size_t bytes;
  };
  static std::string check(uint64_t address, const Allocation& allocation);

  std::map<uint64_t, Allocation> allocations_;
  uint64_t used_ = 0;
};

}  // namespace heddle::emulator
