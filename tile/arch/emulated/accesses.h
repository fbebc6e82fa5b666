// The functions that code compiled with -fsanitize=thread calls before each access. Their names are those of the
// compilers' sanitizer library, which is not linked.
#pragma once

#include "tile/arch/emulated/keywords.h"

namespace heddle::emulated {

// Reports an access of a function that is HEDDLE_UNREPORTED.
inline HEDDLE_UNREPORTED void report(const void* address, uint32_t bytes, Access kind, Place place) {
  if constexpr (HEDDLE_REPORTS_ACCESSES) heddle_emulated_api->access(address, bytes, kind, place);
}
inline HEDDLE_UNREPORTED void report_fence() {
  if constexpr (HEDDLE_REPORTS_ACCESSES) heddle_emulated_api->fence();
}

}  // namespace heddle::emulated

#if HEDDLE_REPORTS_ACCESSES
extern "C" {
#define HEDDLE_HOOK __attribute__((used, visibility("hidden"), no_sanitize("thread"))) inline void
#define HEDDLE_ACCESS(NAME, BYTES, KIND)                                               \
  HEDDLE_HOOK NAME(void* at) {                                                         \
    const auto* code = static_cast<const char*>(__builtin_return_address(0));          \
    heddle_emulated_api->access(at, BYTES, heddle::emulated::Access::KIND, {code, 0}); \
  }
#define HEDDLE_ACCESSES(BYTES)                              \
  HEDDLE_ACCESS(__tsan_read##BYTES, BYTES, kRead)           \
  HEDDLE_ACCESS(__tsan_write##BYTES, BYTES, kWrite)         \
  HEDDLE_ACCESS(__tsan_unaligned_read##BYTES, BYTES, kRead) \
  HEDDLE_ACCESS(__tsan_unaligned_write##BYTES, BYTES, kWrite)
HEDDLE_ACCESSES(1)
HEDDLE_ACCESSES(2)
HEDDLE_ACCESSES(4)
HEDDLE_ACCESSES(8)
HEDDLE_ACCESSES(16)
#undef HEDDLE_ACCESSES
#undef HEDDLE_ACCESS
#define HEDDLE_RANGE(NAME, KIND)                                                                              \
  HEDDLE_HOOK NAME(void* at, unsigned long bytes) {                                                           \
    const auto* code = static_cast<const char*>(__builtin_return_address(0));                                 \
    heddle_emulated_api->access(at, static_cast<uint32_t>(bytes), heddle::emulated::Access::KIND, {code, 0}); \
  }
HEDDLE_RANGE(__tsan_read_range, kRead)
HEDDLE_RANGE(__tsan_write_range, kWrite)
#undef HEDDLE_RANGE
// clang reports copies in this way.
#define HEDDLE_COPY(NAME, COPY)                                                                                    \
  __attribute__((used, visibility("hidden"), no_sanitize("thread"))) inline void* NAME(void* to, const void* from, \
                                                                                       unsigned long bytes) {      \
    const auto* code = static_cast<const char*>(__builtin_return_address(0));                                      \
    const auto count = static_cast<uint32_t>(bytes);                                                               \
    heddle_emulated_api->access(from, count, heddle::emulated::Access::kRead, {code, 0});                          \
    heddle_emulated_api->access(to, count, heddle::emulated::Access::kWrite, {code, 0});                           \
    return COPY(to, from, bytes);                                                                                  \
  }
HEDDLE_COPY(__tsan_memcpy, __builtin_memcpy)
HEDDLE_COPY(__tsan_memmove, __builtin_memmove)
#undef HEDDLE_COPY
__attribute__((used, visibility("hidden"), no_sanitize("thread"))) inline void* __tsan_memset(void* to, int value,
                                                                                              unsigned long bytes) {
  const auto* code = static_cast<const char*>(__builtin_return_address(0));
  heddle_emulated_api->access(to, static_cast<uint32_t>(bytes), heddle::emulated::Access::kWrite, {code, 0});
  return __builtin_memset(to, value, bytes);
}
HEDDLE_HOOK __tsan_init() {}
HEDDLE_HOOK __tsan_func_entry(void*) {}
HEDDLE_HOOK __tsan_func_exit(void*) {}
#undef HEDDLE_HOOK
}
#endif
