#include "base/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/check.h"

namespace heddle {
namespace {

constexpr size_t kHugePage = 2 << 20;

uint64_t number_in(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;  // "max" is no number
}

uint64_t system_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0;
  while (file >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib << 10;
  }
  return UINT64_MAX;
}

// Page cache counts as used here, although it can be reclaimed: so at least what is inactive on file is added back.
uint64_t cgroup_available() {
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  uint64_t reclaimable = 0, value = 0;
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string key;
  while (file >> key >> value) {
    if (key == "inactive_file" || key == "active_file") reclaimable += value;
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
       "Reduce the batch or the sequence length (--shape), or close other programs");
}

uint64_t peak_memory() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  }
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
