// Functions for reading, and waiting for, data that other programs of the tile language write. CPU only.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/core/cpu_program.h"

extern "C" int sched_yield(void) noexcept;

namespace heddle::tile {

// A memory fence: orders earlier memory accesses before later ones, for the compiler and for other threads that also
// use a fence.
TILE_INLINE void order_memory() {
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

// Loads the bits of an element with an acquire load.
template <typename T>
TILE_INLINE uint_t<sizeof(T)> bits_now(vec<int64_t, 1> address) {
  return __atomic_load_n(reinterpret_cast<const uint_t<sizeof(T)>*>(address.v), __ATOMIC_ACQUIRE);
}

// Watches a loop that reads data written by other programs. An iteration that reads the same values as the previous one
// counts as waiting. The thread pauses in such an iteration; after many of them in a row, it yields instead. If the
// loop-carried values do not change either, the thread also reports to the launcher that it waits. The launcher detects
// endless waits.
class spin_watch {
 public:
  // saw() and changed() record the values that this iteration has read, and carries() the values that it passes to the
  // next iteration.
  template <typename T>
  TILE_INLINE void saw(vec<T, 1> value) {
    read_ = mix(read_, value.v);
  }
  TILE_INLINE void saw(mask<4, 1> value) { saw(value.v); }
  template <typename T>
  TILE_INLINE void saw(const T* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) read_ = mix(read_, values[i]);
  }
  TILE_INLINE void changed() { read_ = ++trips_; }
  template <typename T>
  TILE_INLINE void carries(vec<T, 1> value) {
    carried_ = mix(carried_, value.v);
  }
  TILE_INLINE void carries(mask<4, 1> value) { carries(value.v); }

  // Ends an iteration. Returns true if the wait is endless and the program must return. `site` identifies the loop.
  TILE_INLINE bool turn(const program_services* services, int64_t site, const int64_t* program) {
    const bool reads_the_same = read_ == last_read_, spins = reads_the_same && carried_ == last_carried_;
    last_read_ = read_;
    last_carried_ = carried_;
    read_ = carried_ = 0;
    if (!reads_the_same) {
      if (same_ > kPauses) end(services);
      same_ = 0;
      return false;
    }
    return ++same_ > kPauses ? give_way(services, site, program, spins) : pause();
  }
  // Must be called after the loop.
  TILE_INLINE void end(const program_services* services) {
    if (!reported_) return;
    services->resume(services->self);
    reported_ = false;
  }

 private:
  // The number of pauses before the thread yields. A wait for a running program usually ends earlier.
  static constexpr int64_t kPauses = 64;
  static constexpr int64_t kYieldsPerReport = 64;

  template <typename T>
  TILE_INLINE static uint64_t mix(uint64_t hash, T value) {
    const auto bits = uint64_t(__builtin_bit_cast(uint_t<sizeof(T)>, value));
    return (hash ^ bits) * 0x9E3779B97F4A7C15u + 1;
  }
  TILE_INLINE static bool pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return false;
  }
  __attribute__((noinline)) bool give_way(const program_services* services, int64_t site, const int64_t* program,
                                          bool spins) {
    // A loop that does other work while it reads the same values must not be slowed down.
    if (!spins) {
      end(services);
      waits_ = 0;
      if (same_ % kPauses == 0) sched_yield();
      return false;
    }
    sched_yield();
    if (++waits_ % kYieldsPerReport != 0 || services == nullptr || services->wait == nullptr) return false;
    reported_ = true;
    return services->wait(services->self, site, program) != 0;
  }

  uint64_t read_ = 0, carried_ = 0, last_read_ = 0, last_carried_ = 0, trips_ = 0;
  int64_t same_ = 0, waits_ = 0;
  bool reported_ = false;
};

}  // namespace heddle::tile
