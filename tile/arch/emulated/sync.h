// Barriers, exchanges between lanes, and atomics. The emulator runs one thread at a time and switches to another thread
// only when the current one waits. So memory needs no fences, and an atomic is an ordinary operation.
#pragma once

#include "tile/arch/emulated/keywords.h"

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
inline void __syncwarp(unsigned mask = 0xffffffffu, HEDDLE_PLACE) {
  heddle_emulated_api->collect(heddle::emulated::Collective::kSync, mask, 0, place);
}
// Loops that wait for another thread's store usually contain a fence or a sleep, so fences and sleeps let other threads
// run.
inline void __threadfence(HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
}
inline void __threadfence_block() {}
inline void __threadfence_system(HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
}
inline void __nanosleep(unsigned, HEDDLE_PLACE) {
  heddle_emulated_api->poll(place);
}
inline void __trap() {
  heddle_emulated_api->fail("the kernel executed a trap");
}

// ---- Warps

namespace heddle::emulated {

inline uint32_t lane() {
  return heddle_emulated_thread->linear % 32;
}
template <typename To, typename From>
inline To bits_as(From from) {
  To to{};
  __builtin_memcpy(&to, &from, sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
  return to;
}
// Returns the value of lane `source`. Returns the calling lane's own `value` if `inside` is false: the source lane is
// then outside the segment.
template <typename T>
inline T shuffle(unsigned mask, T value, uint32_t source, bool inside, Place place) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the hardware moves words of 32 bits");
  const Collected all = heddle_emulated_api->collect(Collective::kShuffle, mask, bits_as<uint64_t>(value), place);
  if (!inside) return value;
  if ((all.present >> source & 1) == 0) heddle_emulated_api->fail("a shuffle reads from a lane that takes no part");
  return bits_as<T>(all.values[source]);
}

}  // namespace heddle::emulated

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, HEDDLE_PLACE) {
  const uint32_t first = heddle::emulated::lane() & ~static_cast<uint32_t>(width - 1);
  return heddle::emulated::shuffle(mask, value, first + (static_cast<uint32_t>(from) & (width - 1)), true, place);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, HEDDLE_PLACE) {
  const uint32_t lane = heddle::emulated::lane(), first = lane & ~static_cast<uint32_t>(width - 1);
  return heddle::emulated::shuffle(mask, value, lane - delta, lane >= first + delta, place);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, HEDDLE_PLACE) {
  const uint32_t lane = heddle::emulated::lane(), end = (lane & ~static_cast<uint32_t>(width - 1)) + width;
  return heddle::emulated::shuffle(mask, value, lane + delta, lane + delta < end, place);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32, HEDDLE_PLACE) {
  const uint32_t lane = heddle::emulated::lane(), end = (lane & ~static_cast<uint32_t>(width - 1)) + width;
  const uint32_t source = lane ^ static_cast<uint32_t>(other);
  return heddle::emulated::shuffle(mask, value, source, source < end, place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, HEDDLE_PLACE) {
  const auto all = heddle_emulated_api->collect(heddle::emulated::Collective::kVote, mask, predicate != 0, place);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(all.values[lane] & 1) << lane;
  return bits & all.present;
}
inline int __any_sync(unsigned mask, int predicate, HEDDLE_PLACE) {
  return __ballot_sync(mask, predicate, place) != 0;
}
inline int __all_sync(unsigned mask, int predicate, HEDDLE_PLACE) {
  return __ballot_sync(mask, !predicate, place) == 0;
}
inline unsigned __activemask() {
  const auto& dim = blockDim;
  const uint32_t first = heddle_emulated_thread->linear & ~31u, threads = dim.x * dim.y * dim.z;
  return threads - first >= 32 ? 0xffffffffu : (1u << (threads - first)) - 1;
}
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, HEDDLE_PLACE) {
  const uint64_t mine = heddle::emulated::bits_as<uint64_t>(value);
  const auto all = heddle_emulated_api->collect(heddle::emulated::Collective::kMatch, mask, mine, place);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(all.values[lane] == mine) << lane;
  return bits & all.present;
}

namespace heddle::emulated {

template <typename T, typename F>
inline T reduce_lanes(unsigned mask, T value, Place place, F combine) {
  const Collected all = heddle_emulated_api->collect(Collective::kReduce, mask, bits_as<uint64_t>(value), place);
  T result = value;
  for (uint32_t i = 0; i < 32; ++i) {
    if (i != lane() && (all.present >> i & 1) != 0) result = combine(result, bits_as<T>(all.values[i]));
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
inline T updated(T* at, T value, bool gives_way, Place place) {
  const T old = *at;
  const bool changed = __builtin_memcmp(&old, &value, sizeof(T)) != 0;
  *at = value;
  heddle_emulated_api->saw(at, bits_as<uint64_t>(old), changed);
  if (gives_way && !changed) heddle_emulated_api->poll(place);
  return old;
}

}  // namespace heddle::emulated

#define HEDDLE_ATOMIC(NAME, T, EXPRESSION)                                         \
  inline T NAME(T* at, T value, HEDDLE_PLACE) {                                    \
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
#define HEDDLE_ATOMIC_SWAP(T)                                                \
  inline T atomicExch(T* at, T value, HEDDLE_PLACE) {                        \
    heddle_emulated_api->poll(place);                                        \
    return heddle::emulated::updated(at, value, false, place);               \
  }                                                                          \
  inline T atomicCAS(T* at, T expected, T value, HEDDLE_PLACE) {             \
    heddle_emulated_api->poll(place);                                        \
    const T old = *at;                                                       \
    const bool equal = __builtin_memcmp(&old, &expected, sizeof(T)) == 0;    \
    return heddle::emulated::updated(at, equal ? value : old, false, place); \
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
