#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace heddle {

// Memory that this process could still get without swapping: what the system calls available, and what the limits of
// its control group and of its address space leave. UINT64_MAX when that cannot be known.
uint64_t available_memory();

// Throws kOutOfMemory: `bytes` for `what` were refused, and how much there is.
[[noreturn]] void fail_allocation(std::string what, uint64_t bytes);

// The largest resident set that this process has had (since the last reset), in bytes. A reset that the system does not
// allow has no effect.
uint64_t peak_memory();
void reset_peak_memory();

// Uninitialised memory, 64-byte aligned (on huge pages where it is large and the system agrees). Throws kOutOfMemory,
// naming `what`.
std::shared_ptr<std::byte> allocate(size_t bytes, const char* what);

// Asks for huge pages under those parts of a large range that are whole ones. No effect on what is there.
void advise_huge_pages(void* memory, size_t bytes);

}  // namespace heddle
