#include "base/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle {
namespace {

constexpr size_t kHugePage = 2 << 20;

// What the kernel tells in a file, which it makes when it is read.
std::string text_of(const char* path) {
  std::string text;
  FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return text;
  char piece[4096];
  while (const size_t count = std::fread(piece, 1, sizeof piece, file)) text.append(piece, count);
  std::fclose(file);
  return text;
}

// The number that `text` begins with, behind blanks. UINT64_MAX: there is none ("max").
uint64_t number_of(const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  return end == text ? UINT64_MAX : value;
}

uint64_t number_in(const char* path) {
  return number_of(text_of(path).c_str());
}

// The number behind `key` at the beginning of a line. UINT64_MAX: there is none.
uint64_t number_behind(const std::string& text, std::string_view key) {
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (std::string_view(text).substr(at).starts_with(key)) return number_of(text.c_str() + at + key.size());
    if (text.find('\n', at) == std::string::npos) break;
  }
  return UINT64_MAX;
}

uint64_t system_available() {
  const uint64_t kib = number_behind(text_of("/proc/meminfo"), "MemAvailable:");
  return kib == UINT64_MAX ? kib : kib << 10;
}

// Page cache counts as used here, although it can be reclaimed: so at least what is inactive on file is added back.
uint64_t cgroup_available() {
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  const std::string stat = text_of("/sys/fs/cgroup/memory.stat");
  uint64_t reclaimable = 0;
  for (const char* key : {"inactive_file ", "active_file "}) {
    const uint64_t bytes = number_behind(stat, key);
    if (bytes != UINT64_MAX) reclaimable += bytes;
  }
  const uint64_t held = used - std::min(used, reclaimable);
  return limit - std::min(limit, held);
}

// What `ulimit -v` leaves of the address space.
uint64_t address_space_available() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const uint64_t pages = number_in("/proc/self/statm");
  if (pages == UINT64_MAX) return UINT64_MAX;
  const uint64_t used = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

}  // namespace

uint64_t available_memory() {
  return std::min({system_available(), cgroup_available(), address_space_available()});
}

void fail_allocation(std::string what, uint64_t bytes) {
  const uint64_t available = available_memory();
  fail(ErrorCode::kOutOfMemory, std::move(what),
       available == UINT64_MAX ? fmt::format("{} bytes cannot be allocated", bytes)
                               : fmt::format("{} bytes cannot be allocated, about {} are available", bytes, available),
       fmt::format("Reduce the batch or the sequence length ({}), or close other programs", option::shape()));
}

uint64_t peak_memory() {
  const uint64_t kib = number_behind(text_of("/proc/self/status"), "VmHWM:");
  if (kib != UINT64_MAX) return kib << 10;
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void advise_huge_pages(void* memory, size_t bytes) {
  if (bytes < 2 * kHugePage) return;
  const auto first = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto last = (reinterpret_cast<uintptr_t>(memory) + bytes) / kHugePage * kHugePage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

namespace {

// A mapping of its own.
std::shared_ptr<std::byte> map_pages(size_t bytes, const char* what) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : page;
  if (bytes > SIZE_MAX - 2 * alignment) fail_allocation(what, bytes);
  const size_t size = (bytes + page - 1) / page * page, mapped = size + alignment - page;
  void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_allocation(what, bytes);
  auto* const begin = static_cast<std::byte*>(memory);
  const size_t skipped = (alignment - reinterpret_cast<uintptr_t>(memory) % alignment) % alignment;
  std::byte* const first = begin + skipped;
  if (skipped > 0) ::munmap(begin, skipped);
  if (mapped > skipped + size) ::munmap(first + size, mapped - skipped - size);
  advise_huge_pages(first, size);
  return {first, [size](std::byte* p) { ::munmap(p, size); }};
}

}  // namespace

// In malloc's heap the small objects that are made after a large block keep its place from the system when it is freed,
// and plans for one set of shapes after the other leave a heap that is mostly empty.
std::shared_ptr<std::byte> allocate(size_t bytes, const char* what) {
  constexpr size_t kOwnMapping = 256 << 10, kAlignment = 64;
  if (bytes >= kOwnMapping) return map_pages(bytes, what);
  void* memory =
      std::aligned_alloc(kAlignment, (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) fail_allocation(what, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

}  // namespace heddle
