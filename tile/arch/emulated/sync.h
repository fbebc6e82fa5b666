// Barriers, exchanges between lanes, and atomics. The emulator runs one thread at a time and switches to another thread
// only when the current one waits. So memory needs no fences, and an atomic is an ordinary operation.
// Instrumented units report fences and atomics, so that races are found.
#pragma once

#include "tile/arch/emulated/accesses.h"

namespace heddle::emulated {

// The lanes that a collective's mask names. A mask of 32 bits is of a warp of 32 lanes, or of the half of a wave of 64
// lanes that the calling thread is in. A mask of 64 bits is of a whole wave.
struct Lanes {
  uint32_t first, own, count;  // the number of the first lane in the warp; the calling lane's number from it on
  uint64_t mask;               // of the warp's lanes
  explicit Lanes(uint32_t of_half)
      : first(heddle_emulated_thread->linear % HEDDLE_LANES & 32),
        own(heddle_emulated_thread->linear % 32),
        count(32),
        mask(uint64_t{of_half} << first) {}
  explicit Lanes(int of_half) : Lanes(static_cast<uint32_t>(of_half)) {}
  explicit Lanes(uint64_t all) : first(0), own(heddle_emulated_thread->linear % HEDDLE_LANES), count(64), mask(all) {}
};

}  // namespace heddle::emulated

// ---- Barriers

inline void __syncthreads(HEDDLE_PLACE) {
  heddle_emulated_api->barrier(0, 0, heddle::emulated::BarrierMode::kSync, false, place);
}
inline int __syncthreads_or(int predicate, HEDDLE_PLACE) {
  return heddle_emulated_api->barrier(0, 0, heddle::emulated::BarrierMode::kOr, predicate != 0, place);
}
inline int __syncthreads_and(int predicate, HEDDLE_PLACE) {
  return heddle_emulated_api->barrier(0, 0, heddle::emulated::BarrierMode::kAnd, predicate != 0, place);
}
inline int __syncthreads_count(int predicate, HEDDLE_PLACE) {
  return heddle_emulated_api->barrier(0, 0, heddle::emulated::BarrierMode::kCount, predicate != 0, place);
}
inline void __syncwarp(HEDDLE_PLACE) {
  constexpr uint64_t kAll = ~uint64_t{0} >> (64 - HEDDLE_LANES);
  heddle_emulated_api->collect(heddle::emulated::Collective::kSync, kAll, 0, place);
}
inline void __syncwarp(unsigned mask, HEDDLE_PLACE) {
  const heddle::emulated::Lanes lanes(mask);
  heddle_emulated_api->collect(heddle::emulated::Collective::kSync, lanes.mask, 0, place);
}
// Loops that wait for another thread's store usually contain a fence or a sleep, so fences and sleeps let other threads
// run.
inline void __threadfence(HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
  heddle::emulated::report_fence();
}
// For races, a fence of the block counts as one of the device.
inline void __threadfence_block() {
  heddle::emulated::report_fence();
}
inline void __threadfence_system(HEDDLE_PLACE) {
  __threadfence(place);
}
inline void __nanosleep(unsigned, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
}
inline void __trap() {
  heddle_emulated_api->fail("the kernel executed a trap");
}

// ---- Warps

namespace heddle::emulated {

template <typename To, typename From>
inline To bits_as(From from) {
  To to{};
  __builtin_memcpy(&to, &from, sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
  return to;
}
// Returns the value of lane `source`. Returns the calling lane's own `value` if `inside` is false: the source lane is
// then outside the segment.
template <typename T>
inline T shuffle(const Lanes& lanes, T value, uint32_t source, bool inside, Place place) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the hardware moves words of 32 bits");
  const Collected all = heddle_emulated_api->collect(Collective::kShuffle, lanes.mask, bits_as<uint64_t>(value), place);
  if (!inside) return value;
  const uint32_t from = lanes.first + source;
  if ((all.present >> from & 1) == 0) heddle_emulated_api->fail("a shuffle reads from a lane that takes no part");
  return bits_as<T>(all.values[from]);
}

}  // namespace heddle::emulated

template <typename Mask, typename T>
inline T __shfl_sync(Mask mask, T value, int from, int width = 8 * sizeof(Mask), HEDDLE_PLACE) {
  const heddle::emulated::Lanes lanes(mask);
  const uint32_t first = lanes.own & ~static_cast<uint32_t>(width - 1);
  return heddle::emulated::shuffle(lanes, value, first + (static_cast<uint32_t>(from) & (width - 1)), true, place);
}
template <typename Mask, typename T>
inline T __shfl_up_sync(Mask mask, T value, unsigned delta, int width = 8 * sizeof(Mask), HEDDLE_PLACE) {
  const heddle::emulated::Lanes lanes(mask);
  const uint32_t first = lanes.own & ~static_cast<uint32_t>(width - 1);
  return heddle::emulated::shuffle(lanes, value, lanes.own - delta, lanes.own >= first + delta, place);
}
template <typename Mask, typename T>
inline T __shfl_down_sync(Mask mask, T value, unsigned delta, int width = 8 * sizeof(Mask), HEDDLE_PLACE) {
  const heddle::emulated::Lanes lanes(mask);
  const uint32_t end = (lanes.own & ~static_cast<uint32_t>(width - 1)) + width;
  return heddle::emulated::shuffle(lanes, value, lanes.own + delta, lanes.own + delta < end, place);
}
template <typename Mask, typename T>
inline T __shfl_xor_sync(Mask mask, T value, int other, int width = 8 * sizeof(Mask), HEDDLE_PLACE) {
  const heddle::emulated::Lanes lanes(mask);
  const uint32_t end = (lanes.own & ~static_cast<uint32_t>(width - 1)) + width;
  const uint32_t source = lanes.own ^ static_cast<uint32_t>(other);
  return heddle::emulated::shuffle(lanes, value, source, source < end, place);
}

namespace heddle::emulated {

// The lanes of `mask`, by their numbers in it, for which f(value) is true.
template <typename Mask, typename F>
inline auto lanes_where(Collective kind, Mask mask, uint64_t value, Place place, F f) {
  const Lanes lanes(mask);
  const Collected all = heddle_emulated_api->collect(kind, lanes.mask, value, place);
  decltype(mask + 0u) bits = 0;
  for (uint32_t i = 0; i < lanes.count; ++i) {
    const uint32_t lane = lanes.first + i;
    if ((all.present >> lane & 1) != 0 && f(all.values[lane])) bits |= decltype(bits){1} << i;
  }
  return bits;
}

}  // namespace heddle::emulated

template <typename Mask>
inline auto __ballot_sync(Mask mask, int predicate, HEDDLE_PLACE) {
  return heddle::emulated::lanes_where(heddle::emulated::Collective::kVote, mask, predicate != 0, place,
                                       [](uint64_t value) { return (value & 1) != 0; });
}
template <typename Mask>
inline int __any_sync(Mask mask, int predicate, HEDDLE_PLACE) {
  return __ballot_sync(mask, predicate, place) != 0;
}
template <typename Mask>
inline int __all_sync(Mask mask, int predicate, HEDDLE_PLACE) {
  return __ballot_sync(mask, !predicate, place) == 0;
}
inline unsigned __activemask() {
  const auto& dim = blockDim;
  const uint32_t first = heddle_emulated_thread->linear & ~31u, threads = dim.x * dim.y * dim.z;
  return threads - first >= 32 ? 0xffffffffu : (1u << (threads - first)) - 1;
}
template <typename Mask, typename T>
inline auto __match_any_sync(Mask mask, T value, HEDDLE_PLACE) {
  const uint64_t mine = heddle::emulated::bits_as<uint64_t>(value);
  return heddle::emulated::lanes_where(heddle::emulated::Collective::kMatch, mask, mine, place,
                                       [&](uint64_t other) { return other == mine; });
}

namespace heddle::emulated {

template <typename T, typename F>
inline T reduce_lanes(unsigned mask, T value, Place place, F combine) {
  const Lanes lanes(mask);
  const Collected all = heddle_emulated_api->collect(Collective::kReduce, lanes.mask, bits_as<uint64_t>(value), place);
  T result = value;
  for (uint32_t i = 0; i < lanes.count; ++i) {
    const uint32_t lane = lanes.first + i;
    if (i != lanes.own && (all.present >> lane & 1) != 0) result = combine(result, bits_as<T>(all.values[lane]));
  }
  return result;
}

}  // namespace heddle::emulated

#define HEDDLE_REDUCE(NAME, T, EXPRESSION)                                                                          \
  inline T NAME(unsigned mask, T value, HEDDLE_PLACE) {                                                             \
    return heddle::emulated::reduce_lanes(mask, value, place, [](T a, T b) { return static_cast<T>(EXPRESSION); }); \
  }
HEDDLE_REDUCE(__reduce_add_sync, int, static_cast<unsigned>(a) + static_cast<unsigned>(b))
HEDDLE_REDUCE(__reduce_add_sync, unsigned, a + b)
HEDDLE_REDUCE(__reduce_min_sync, int, a < b ? a : b)
HEDDLE_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
HEDDLE_REDUCE(__reduce_max_sync, int, a > b ? a : b)
HEDDLE_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
HEDDLE_REDUCE(__reduce_and_sync, unsigned, a& b)
HEDDLE_REDUCE(__reduce_or_sync, unsigned, a | b)
HEDDLE_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef HEDDLE_REDUCE

// ---- Atomics. The emulator runs one thread at a time. It lets other threads run before an exchange or a
// compare-and-swap, since locks use these operations. It also lets them run after any other update that does not change
// the value (such as adding 0), since a loop may wait by reading the value in this way.

namespace heddle::emulated {

template <typename T>
HEDDLE_UNREPORTED inline T updated(T* at, T value, bool gives_way, Place place) {
  report(at, sizeof(T), Access::kAtomicWrite, place);
  const T old = *at;
  const bool changed = __builtin_memcmp(&old, &value, sizeof(T)) != 0;
  *at = value;
  heddle_emulated_api->saw(at, bits_as<uint64_t>(old), changed);
  if (gives_way && !changed) heddle_emulated_api->poll(place);
  return old;
}

}  // namespace heddle::emulated

#define HEDDLE_ATOMIC(NAME, T, EXPRESSION)                                         \
  HEDDLE_UNREPORTED inline T NAME(T* at, T value, HEDDLE_PLACE) {                  \
    const T old = *at;                                                             \
    return heddle::emulated::updated(at, static_cast<T>(EXPRESSION), true, place); \
  }                                                                                \
  inline T NAME##_block(T* at, T value, HEDDLE_PLACE) {                            \
    return NAME(at, value, place);                                                 \
  }                                                                                \
  inline T NAME##_system(T* at, T value, HEDDLE_PLACE) {                           \
    return NAME(at, value, place);                                                 \
  }
#define HEDDLE_ATOMIC_INTEGER(T)                         \
  HEDDLE_ATOMIC(atomicMin, T, value < old ? value : old) \
  HEDDLE_ATOMIC(atomicMax, T, value > old ? value : old) \
  HEDDLE_ATOMIC(atomicAnd, T, old& value)                \
  HEDDLE_ATOMIC(atomicOr, T, old | value)                \
  HEDDLE_ATOMIC(atomicXor, T, old ^ value)
#define HEDDLE_ATOMIC_SWAP(T)                                                      \
  inline T atomicExch(T* at, T value, HEDDLE_PLACE) {                              \
    heddle_emulated_api->poll(place);                                              \
    return heddle::emulated::updated(at, value, false, place);                     \
  }                                                                                \
  HEDDLE_UNREPORTED inline T atomicCAS(T* at, T expected, T value, HEDDLE_PLACE) { \
    heddle_emulated_api->poll(place);                                              \
    const T old = *at;                                                             \
    const bool equal = __builtin_memcmp(&old, &expected, sizeof(T)) == 0;          \
    return heddle::emulated::updated(at, equal ? value : old, false, place);       \
  }
HEDDLE_ATOMIC(atomicAdd, int, static_cast<unsigned>(old) + static_cast<unsigned>(value))
HEDDLE_ATOMIC(atomicAdd, unsigned, old + value)
HEDDLE_ATOMIC(atomicAdd, unsigned long long, old + value)
HEDDLE_ATOMIC(atomicAdd, float, old + value)
HEDDLE_ATOMIC(atomicAdd, double, old + value)
HEDDLE_ATOMIC(atomicSub, int, static_cast<unsigned>(old) - static_cast<unsigned>(value))
HEDDLE_ATOMIC(atomicSub, unsigned, old - value)
HEDDLE_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
HEDDLE_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
HEDDLE_ATOMIC_INTEGER(int)
HEDDLE_ATOMIC_INTEGER(unsigned)
HEDDLE_ATOMIC_INTEGER(long long)
HEDDLE_ATOMIC_INTEGER(unsigned long long)
HEDDLE_ATOMIC_SWAP(int)
HEDDLE_ATOMIC_SWAP(unsigned)
HEDDLE_ATOMIC_SWAP(unsigned short)
HEDDLE_ATOMIC_SWAP(unsigned long long)
HEDDLE_ATOMIC_SWAP(float)
#undef HEDDLE_ATOMIC
#undef HEDDLE_ATOMIC_INTEGER
#undef HEDDLE_ATOMIC_SWAP
