#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace heddle {

// Memory that this process could still get without swapping, limited by the system's available memory, its control
// group and its address space. UINT64_MAX if unknown.
uint64_t available_memory();

// Throws kOutOfMemory. The message says that `bytes` for `what` were refused, and how much memory is available.
[[noreturn]] void fail_allocation(std::string what, uint64_t bytes);

// The largest resident set that this process has had (since the last reset), in bytes. A reset that the system does not
// allow has no effect.
uint64_t peak_memory();
void reset_peak_memory();

// Uninitialised memory, 64-byte aligned (on huge pages where it is large and the system agrees). Throws kOutOfMemory,
// naming `what`.
std::shared_ptr<std::byte> allocate(size_t bytes, const char* what);

// Asks for huge pages for the parts of a large range that cover whole huge pages. The content does not change.
void advise_huge_pages(void* memory, size_t bytes);

}  // namespace heddle
