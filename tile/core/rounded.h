// Scalar arithmetic with directed rounding and without contraction, for CPUs, the emulated GPU and the interpreter. The
// operands are volatile, because compilers assume rounding to nearest. Compilers might otherwise fuse operations, or
// move operations out of the code for which another rounding mode is set.
#pragma once

#if !defined(__CUDACC_RTC__) && !defined(__NVCC__)  // CUDA has intrinsics for these functions

namespace heddle::tile {

enum class rounding { rtne, rtn, rtp, rtz };  // nearest, down, up, toward zero; the values of MXCSR's rounding field

namespace detail {

class rounding_mode {
 public:
  explicit rounding_mode(rounding to) : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr((before_ & ~0x6000u) | (static_cast<unsigned>(to) << 13));
  }
  ~rounding_mode() { __builtin_ia32_ldmxcsr(before_); }
  rounding_mode(const rounding_mode&) = delete;
  rounding_mode& operator=(const rounding_mode&) = delete;

 private:
  unsigned before_;
};

}  // namespace detail

#define TILE_ROUNDED(NAME, EXPRESSION)                \
  template <typename T>                               \
  inline T NAME(rounding to, T a, T b = 0, T c = 0) { \
    [[maybe_unused]] volatile T x = a, y = b, z = c;  \
    volatile T result = 0;                            \
    {                                                 \
      const detail::rounding_mode mode(to);           \
      result = EXPRESSION;                            \
    }                                                 \
    return result;                                    \
  }
TILE_ROUNDED(rounded_add, x + y)
TILE_ROUNDED(rounded_sub, x - y)
TILE_ROUNDED(rounded_mul, x* y)
TILE_ROUNDED(rounded_div, x / y)
TILE_ROUNDED(rounded_rcp, T(1) / x)
TILE_ROUNDED(rounded_sqrt, sizeof(T) == 4 ? T(__builtin_sqrtf(float(x))) : T(__builtin_sqrt(double(x))))
TILE_ROUNDED(rounded_fma, sizeof(T) == 4 ? T(__builtin_fmaf(float(x), float(y), float(z)))
                                         : T(__builtin_fma(double(x), double(y), double(z))))
#undef TILE_ROUNDED

template <typename To, typename From>
inline To rounded_cast(rounding to, From a) {
  volatile From x = a;
  volatile To result = 0;
  {
    const detail::rounding_mode mode(to);
    result = static_cast<To>(x);
  }
  return result;
}

}  // namespace heddle::tile

#endif
