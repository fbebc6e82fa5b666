#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace heddle {

// Returns the number of bytes that this process can still allocate without swapping. The limits are the system's
// available memory, the process's control group and its address space. Returns UINT64_MAX if the number is unknown.
uint64_t available_memory();

// Throws kOutOfMemory. The message says that `bytes` bytes for `what` could not be allocated, and how much memory is
// available.
[[noreturn]] void fail_allocation(std::string what, uint64_t bytes);

// peak_memory() returns the largest resident set size of this process, in bytes, since its start or the last reset.
// reset_peak_memory() has no effect if the system does not allow a reset.
uint64_t peak_memory();
void reset_peak_memory();

// Allocates uninitialised memory, aligned to 64 bytes. Large allocations use huge pages if the system agrees. Throws
// kOutOfMemory; the message names `what`.
std::shared_ptr<std::byte> allocate(size_t bytes, const char* what);

// Asks the system to use huge pages wherever the range covers whole huge pages. The content does not change.
void advise_huge_pages(void* memory, size_t bytes);

}  // namespace heddle
