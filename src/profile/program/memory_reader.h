#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::profile {

// Copies memory of this process that may not be there. A system call: it takes no lock, and a signal handler may use
// it. Returns whether all of it was there.
bool read_memory(uint64_t address, void* to, size_t bytes);

template <typename T>
bool read_memory(uint64_t address, T* to) {
  return read_memory(address, to, sizeof(T));
}

}  // namespace heddle::profile
