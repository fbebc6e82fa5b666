// Atomic updates of memory: one per element of a tile, or a single one by the whole block for a scalar.
#pragma once

#include "tile/block/memory.h"

namespace heddle::tile::block {

enum class Order : uint8_t { kRelaxed, kAcquire, kRelease, kAcquireRelease };
enum class Scope : uint8_t { kBlock, kDevice, kSystem };

namespace detail {

template <Scope W>
TILE_INLINE void fence() {
  if constexpr (W == Scope::kBlock) {
    __threadfence_block();
  } else if constexpr (W == Scope::kDevice) {
    __threadfence();
  } else {
    __threadfence_system();
  }
}
template <Order O>
inline constexpr bool releases = O == Order::kRelease || O == Order::kAcquireRelease;
template <Order O>
inline constexpr bool acquires = O == Order::kAcquire || O == Order::kAcquireRelease;

}  // namespace detail

// A barrier for all threads of the block that also orders their writes for other blocks: a block that sees a write made
// after the barrier also sees all writes made before it.
TILE_INLINE void sync_memory() {
  detail::fence<Scope::kDevice>();
  sync();
}

namespace detail {

// Atomically replaces *p by `wanted` if *p equals `expected`. Returns the old value. Elements may have any size.
template <typename T>
TILE_INLINE T compare_and_swap(T* p, T expected, T wanted) {
  if constexpr (sizeof(T) == 8) {
    using U = unsigned long long;
    return __builtin_bit_cast(
        T, atomicCAS(reinterpret_cast<U*>(p), __builtin_bit_cast(U, expected), __builtin_bit_cast(U, wanted)));
  } else if constexpr (sizeof(T) == 4) {
    using U = unsigned;
    return __builtin_bit_cast(
        T, atomicCAS(reinterpret_cast<U*>(p), __builtin_bit_cast(U, expected), __builtin_bit_cast(U, wanted)));
  } else {
    // Updates the aligned 32-bit word that contains the element.
    using U = uint_t<sizeof(T)>;
    const auto address = reinterpret_cast<uintptr_t>(p);
    auto* const word = reinterpret_cast<unsigned*>(address & ~uintptr_t(3));
    const unsigned shift = unsigned(address & 3) * 8, mask = unsigned(U(~U(0))) << shift;
    const unsigned have = unsigned(__builtin_bit_cast(U, expected)) << shift;
    const unsigned want = unsigned(__builtin_bit_cast(U, wanted)) << shift;
    unsigned seen = sm80::load_now<false>(reinterpret_cast<const uint32_t*>(word));
    while ((seen & mask) == have) {
      const unsigned before = atomicCAS(word, seen, (seen & ~mask) | want);
      if (before == seen) break;
      seen = before;
    }
    return __builtin_bit_cast(T, U((seen & mask) >> shift));
  }
}

template <typename T>
TILE_INLINE T read_volatile(const T* p) {
  using U = uint_t<sizeof(T)>;
  return __builtin_bit_cast(T, sm80::load_now<false>(reinterpret_cast<const U*>(p)));
}
// True if two values have the same bits.
template <typename T>
TILE_INLINE bool same_bits(T a, T b) {
  using U = uint_t<sizeof(T)>;
  return __builtin_bit_cast(U, a) == __builtin_bit_cast(U, b);
}

}  // namespace detail

// Functors that combine the element in memory with a given value. native() uses the hardware's atomic instruction, for
// the types that have one. The other types use compare-and-swap in a loop.
struct atomic_add {
  template <typename T>
  TILE_INLINE static T apply(T old, T x) {
    return add(old, x);
  }
  TILE_INLINE static int32_t native(int32_t* p, int32_t x) { return atomicAdd(p, x); }
  TILE_INLINE static uint32_t native(uint32_t* p, uint32_t x) { return atomicAdd(p, x); }
  TILE_INLINE static uint64_t native(uint64_t* p, uint64_t x) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x));
  }
  TILE_INLINE static int64_t native(int64_t* p, int64_t x) {
    return static_cast<int64_t>(native(reinterpret_cast<uint64_t*>(p), static_cast<uint64_t>(x)));
  }
  TILE_INLINE static float native(float* p, float x) { return atomicAdd(p, x); }
  TILE_INLINE static double native(double* p, double x) { return atomicAdd(p, x); }
};
#define TILE_ATOMIC(NAME, EXPRESSION, FUNCTION)                                                      \
  struct NAME {                                                                                      \
    template <typename T>                                                                            \
    TILE_INLINE static T apply([[maybe_unused]] T old, T x) {                                        \
      return EXPRESSION;                                                                             \
    }                                                                                                \
    TILE_INLINE static int32_t native(int32_t* p, int32_t x) { return FUNCTION(p, x); }              \
    TILE_INLINE static uint32_t native(uint32_t* p, uint32_t x) { return FUNCTION(p, x); }           \
    TILE_INLINE static uint64_t native(uint64_t* p, uint64_t x) {                                    \
      return FUNCTION(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x)); \
    }                                                                                                \
  };
TILE_ATOMIC(atomic_and, static_cast<T>(old& x), atomicAnd)
TILE_ATOMIC(atomic_or, static_cast<T>(old | x), atomicOr)
TILE_ATOMIC(atomic_xor, static_cast<T>(old ^ x), atomicXor)
TILE_ATOMIC(atomic_min, block::min(old, x), atomicMin)
TILE_ATOMIC(atomic_max, block::max(old, x), atomicMax)
#undef TILE_ATOMIC
struct atomic_exchange {
  template <typename T>
  TILE_INLINE static T apply(T, T x) {
    return x;
  }
  TILE_INLINE static int32_t native(int32_t* p, int32_t x) { return atomicExch(p, x); }
  TILE_INLINE static uint32_t native(uint32_t* p, uint32_t x) { return atomicExch(p, x); }
  TILE_INLINE static float native(float* p, float x) { return atomicExch(p, x); }
};

namespace detail {

template <typename F, typename T>
concept is_native = requires(T* p, T x) {
  {F::native(p, x)};
}
&&(is_same<T, int32_t> || is_same<T, uint32_t> || is_same<T, int64_t> || is_same<T, uint64_t> || is_float<T>);

// True if F::native() has a parameter of exactly type T, so that T need not be converted to another type.
template <typename F, typename T>
constexpr bool has_native() {
  if constexpr (is_native<F, T>) {
    return is_same<decltype(F::native(static_cast<T*>(nullptr), T())), T>;
  } else {
    return false;
  }
}

template <typename F, Order O, Scope W, typename T>
TILE_INLINE T update(T* p, T x) {
  if constexpr (releases<O>) fence<W>();
  T old;
  if constexpr (has_native<F, T>()) {
    old = F::native(p, x);
  } else {
    old = read_volatile(p);
    while (true) {
      const T seen = compare_and_swap(p, old, F::apply(old, x));
      if (same_bits(seen, old)) break;
      old = seen;
    }
  }
  if constexpr (acquires<O>) fence<W>();
  return old;
}
template <Order O, Scope W, typename T>
TILE_INLINE T swap(T* p, T expected, T wanted) {
  if constexpr (releases<O>) fence<W>();
  const T old = compare_and_swap(p, expected, wanted);
  if constexpr (acquires<O>) fence<W>();
  return old;
}

}  // namespace detail

// The bytes of shared memory that an atomic update of a tile needs. An update of a single element needs 16 bytes.
template <typename T, typename L>
constexpr int atomic_bytes() {
  return L::kReplicated ? L::elements() * int(sizeof(T)) : 0;
}

// Atomically updates *p where the mask is true, once per element of the tile. Returns the old values; elements where
// the mask is false are 0.
template <typename F, Order O, Scope W, typename T, typename L, typename M, typename S>
TILE_INLINE Tile<T, L> atomic(S shared, const Tile<T*, L>& p, const Tile<T, L>& x, const M& mask) {
  return detail::once<L, T>(shared, mask, [&](int r) { return detail::update<F, O, W>(p.v[r], x.v[r]); });
}
template <typename F, Order O, Scope W, typename T, typename S>
TILE_INLINE T atomic(S shared, T* p, T x, bool mask) {
  return detail::once<T>(shared, mask, [&] { return detail::update<F, O, W>(p, x); });
}
// Atomically replaces *p by `wanted` if its bits equal those of `expected`. Returns the old value.
template <Order O, Scope W, typename T, typename L, typename S>
TILE_INLINE Tile<T, L> compare_and_swap(S shared, const Tile<T*, L>& p, const Tile<T, L>& expected,
                                        const Tile<T, L>& wanted) {
  return detail::once<L, T>(shared, true,
                            [&](int r) { return detail::swap<O, W>(p.v[r], expected.v[r], wanted.v[r]); });
}
template <Order O, Scope W, typename T, typename S>
TILE_INLINE T compare_and_swap(S shared, T* p, T expected, T wanted) {
  return detail::once<T>(shared, true, [&] { return detail::swap<O, W>(p, expected, wanted); });
}

}  // namespace heddle::tile::block
