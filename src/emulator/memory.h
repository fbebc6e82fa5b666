#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace heddle::emulator {

struct BadAccess;

// Device memory. An allocation is host memory between two red zones. Unmapped pages surround the red zones. New memory
// is filled with NaN; a large allocation is filled only at both ends.
class Memory {
 public:
  static constexpr size_t kZoneBytes = 1024;
  static constexpr size_t kAlignment = 256;
  static constexpr size_t kGuardBytes = size_t{16} << 20;

  ~Memory();

  // Returns 0 if more than `limit` bytes would be in use.
  uint64_t allocate(size_t bytes, uint64_t limit);
  // Frees an allocation. Returns false if no allocation starts at `address`. Sets `what` to a description of the error
  // in that case, and also if a red zone was overwritten.
  bool release(uint64_t address, std::string* what);
  uint64_t used() const { return used_; }
  // True if a single allocation contains all of the bytes.
  bool contains(uint64_t address, size_t bytes) const;
  // ", byte 64 of an allocation of 4096" for an address in an allocation.
  std::string offset_of(uint64_t address) const;
  // Describes an invalid access: "writes to address 0x7f..., where there is no memory: 3 bytes behind the end of an
  // allocation of 64 bytes". The part after the colon is missing if no allocation is near.
  std::string describe(const BadAccess& access) const;
  // Describes an overwritten red zone and repairs it. Returns "" if no zone was overwritten.
  std::string check_zones();

 private:
  struct Allocation {
    uint8_t* raw;    // start of the first red zone
    uint8_t* pages;  // start of the mapping with its guards
    size_t mapped;
    size_t bytes;
  };
  static std::string check(uint64_t address, const Allocation& allocation);

  std::map<uint64_t, Allocation> allocations_;
  uint64_t used_ = 0;
};

}  // namespace heddle::emulator
