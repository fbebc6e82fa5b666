#include "lang/interpret/elementwise.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "tile/core/rounded.h"
#include "tile/core/special.h"

namespace heddle::lang {
namespace {

using Operands = std::span<const Cells* const>;

template <typename F>
Cells each(size_t lanes, const F& f) {
  Cells result(lanes);
  for (size_t i = 0; i < lanes; ++i) result[i] = f(i);
  return result;
}

// ---- Floats

double minimum(double a, double b, bool propagate) {
  if (std::isnan(a) || std::isnan(b)) return propagate ? std::numeric_limits<double>::quiet_NaN() : std::fmin(a, b);
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
double maximum(double a, double b, bool propagate) {
  if (std::isnan(a) || std::isnan(b)) return propagate ? std::numeric_limits<double>::quiet_NaN() : std::fmax(a, b);
  return a > b || (a == b && std::signbit(b)) ? a : b;
}

double next_after(Element element, double a, double b) {
  return element == Element::kF32 ? std::nextafterf(static_cast<float>(a), static_cast<float>(b))
                                  : std::nextafter(a, b);
}

using Unary = double (*)(double);
Unary unary_function(OpCode code) {
  switch (code) {
#define HEDDLE_FUNCTION(Enum, name) \
  case OpCode::k##Enum:             \
    return [](double x) -> double { return std::name(x); };
    HEDDLE_FUNCTION(Abs, fabs)
    HEDDLE_FUNCTION(Exp, exp)
    HEDDLE_FUNCTION(Exp2, exp2)
    HEDDLE_FUNCTION(Expm1, expm1)
    HEDDLE_FUNCTION(Log, log)
    HEDDLE_FUNCTION(Log2, log2)
    HEDDLE_FUNCTION(Log10, log10)
    HEDDLE_FUNCTION(Log1p, log1p)
    HEDDLE_FUNCTION(Sin, sin)
    HEDDLE_FUNCTION(Cos, cos)
    HEDDLE_FUNCTION(Tan, tan)
    HEDDLE_FUNCTION(Asin, asin)
    HEDDLE_FUNCTION(Acos, acos)
    HEDDLE_FUNCTION(Atan, atan)
    HEDDLE_FUNCTION(Sinh, sinh)
    HEDDLE_FUNCTION(Cosh, cosh)
    HEDDLE_FUNCTION(Tanh, tanh)
    HEDDLE_FUNCTION(Asinh, asinh)
    HEDDLE_FUNCTION(Acosh, acosh)
    HEDDLE_FUNCTION(Atanh, atanh)
    HEDDLE_FUNCTION(Sqrt, sqrt)
    HEDDLE_FUNCTION(Cbrt, cbrt)
    HEDDLE_FUNCTION(Erf, erf)
    HEDDLE_FUNCTION(Erfc, erfc)
    HEDDLE_FUNCTION(LGamma, lgamma)
    HEDDLE_FUNCTION(TGamma, tgamma)
    HEDDLE_FUNCTION(LogB, logb)
    HEDDLE_FUNCTION(Floor, floor)
    HEDDLE_FUNCTION(Ceil, ceil)
    HEDDLE_FUNCTION(Trunc, trunc)
    HEDDLE_FUNCTION(Round, round)
    HEDDLE_FUNCTION(Rint, nearbyint)
#undef HEDDLE_FUNCTION
#define HEDDLE_FUNCTION(Enum, name) \
  case OpCode::k##Enum:             \
    return tile::special::name;
    HEDDLE_FUNCTION(Erfcx, erfcx)
    HEDDLE_FUNCTION(ErfInv, erfinv)
    HEDDLE_FUNCTION(ErfcInv, erfcinv)
    HEDDLE_FUNCTION(NormCdf, normcdf)
    HEDDLE_FUNCTION(NormCdfInv, normcdfinv)
    HEDDLE_FUNCTION(SinPi, sinpi)
    HEDDLE_FUNCTION(CosPi, cospi)
    HEDDLE_FUNCTION(J0, j0)
    HEDDLE_FUNCTION(J1, j1)
    HEDDLE_FUNCTION(Y0, y0)
    HEDDLE_FUNCTION(Y1, y1)
    HEDDLE_FUNCTION(CylBesselI0, cyl_bessel_i0)
    HEDDLE_FUNCTION(CylBesselI1, cyl_bessel_i1)
#undef HEDDLE_FUNCTION
    case OpCode::kNeg:
      return [](double x) { return -x; };
    case OpCode::kExp10:
      return [](double x) { return std::pow(10.0, x); };
    case OpCode::kRsqrt:
      return [](double x) { return 1 / std::sqrt(x); };
    default:
      return nullptr;
  }
}

using Binary = double (*)(double, double);
Binary binary_function(const Op& op) {
  const bool propagate = op.attributes.word("nan") == "propagate";
  switch (op.code) {
    case OpCode::kAdd:
      return [](double a, double b) { return a + b; };
    case OpCode::kSub:
      return [](double a, double b) { return a - b; };
    case OpCode::kMul:
      return [](double a, double b) { return a * b; };
    case OpCode::kDiv:
      return [](double a, double b) { return a / b; };
    case OpCode::kRem:
      return [](double a, double b) { return std::fmod(a, b); };
    case OpCode::kMin:
      if (propagate) return [](double a, double b) { return minimum(a, b, true); };
      return [](double a, double b) { return minimum(a, b, false); };
    case OpCode::kMax:
      if (propagate) return [](double a, double b) { return maximum(a, b, true); };
      return [](double a, double b) { return maximum(a, b, false); };
    case OpCode::kPow:
      return [](double a, double b) { return std::pow(a, b); };
    case OpCode::kAtan2:
      return [](double a, double b) { return std::atan2(a, b); };
    case OpCode::kHypot:
      return [](double a, double b) { return std::hypot(a, b); };
    case OpCode::kCopySign:
      return [](double a, double b) { return std::copysign(a, b); };
    case OpCode::kFdim:
      return [](double a, double b) { return std::fdim(a, b); };
    case OpCode::kRemainder:
      return [](double a, double b) { return std::remainder(a, b); };
    default:
      return nullptr;
  }
}

double with_integer(OpCode code, double a, int n) {
  if (code == OpCode::kLdexp) return std::ldexp(a, n);
  return code == OpCode::kJn ? tile::special::jn(n, a) : tile::special::yn(n, a);
}

// ---- Rounding that is asked for

tile::rounding rounding_of(const Op& op) {
  const std::string_view to = op.attributes.word("to");
  return to == "rtne"  ? tile::rounding::rtne
         : to == "rtn" ? tile::rounding::rtn
         : to == "rtp" ? tile::rounding::rtp
                       : tile::rounding::rtz;
}

template <typename T>
double rounded(const Op& op, Operands in, size_t i) {
  const tile::rounding to = rounding_of(op);
  const auto x = [&](size_t k) { return in.size() > k ? static_cast<T>((*in[k])[i].f) : T{}; };
  const std::string_view function = op.attributes.word("function");
  if (function == "add") return tile::rounded_add(to, x(0), x(1));
  if (function == "sub") return tile::rounded_sub(to, x(0), x(1));
  if (function == "mul") return tile::rounded_mul(to, x(0), x(1));
  if (function == "div") return tile::rounded_div(to, x(0), x(1));
  if (function == "rcp") return tile::rounded_rcp(to, x(0));
  if (function == "sqrt") return tile::rounded_sqrt(to, x(0));
  return tile::rounded_fma(to, x(0), x(1), x(2));
}

template <typename To>
double rounded_cast(const Op& op, Element from, Cell value) {
  const tile::rounding to = rounding_of(op);
  if (is_float(from)) return tile::rounded_cast<To>(to, value.f);
  if (from == Element::kU64) return tile::rounded_cast<To>(to, static_cast<uint64_t>(value.i));
  return tile::rounded_cast<To>(to, value.i);
}

Cells evaluate_rounded(const Op& op, Element from, Element result, Operands in, size_t lanes) {
  const bool single = result == Element::kF32;
  if (op.attributes.word("function") != "cast") {
    return each(lanes,
                [&](size_t i) { return Cell{.f = single ? rounded<float>(op, in, i) : rounded<double>(op, in, i)}; });
  }
  const Cells& a = *in[0];
  return each(lanes, [&](size_t i) {
    return Cell{.f = single ? rounded_cast<float>(op, from, a[i]) : rounded_cast<double>(op, from, a[i])};
  });
}

Cells evaluate_floats(const Op& op, Element element, Operands in, size_t lanes) {
  const Cells& a = *in[0];
  if (const Unary f = unary_function(op.code)) {
    return each(lanes, [&](size_t i) { return Cell{.f = round_float(element, f(a[i].f))}; });
  }
  const Cells& b = *in[1];
  if (const Binary f = binary_function(op)) {
    return each(lanes, [&](size_t i) { return Cell{.f = round_float(element, f(a[i].f, b[i].f))}; });
  }
  if (op.code == OpCode::kLdexp || op.code == OpCode::kJn || op.code == OpCode::kYn) {
    return each(lanes, [&](size_t i) {
      return Cell{.f = round_float(element, with_integer(op.code, a[i].f, static_cast<int>(b[i].i)))};
    });
  }
  if (op.code == OpCode::kNextAfter) {
    return each(lanes, [&](size_t i) { return Cell{.f = next_after(element, a[i].f, b[i].f)}; });
  }
  const Cells& c = *in[2];
  if (op.code == OpCode::kFma) {
    return each(lanes, [&](size_t i) { return Cell{.f = round_float(element, std::fma(a[i].f, b[i].f, c[i].f))}; });
  }
  HEDDLE_CHECK(op.code == OpCode::kClamp, "{} of floats", to_string(op.code));
  const bool propagate = op.attributes.word("nan") == "propagate";
  return each(lanes, [&](size_t i) {
    if (std::isnan(a[i].f) && propagate) return a[i];
    return Cell{.f = minimum(maximum(a[i].f, b[i].f, false), c[i].f, false)};
  });
}

// ---- Integers

bool less(Element element, int64_t a, int64_t b) {
  return element == Element::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t divide(Element element, int64_t a, int64_t b, bool remainder) {
  if (b == 0) return 0;
  if (element == Element::kU64) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(remainder ? x % y : x / y);
  }
  if (b == -1) return remainder ? 0 : static_cast<int64_t>(-static_cast<uint64_t>(a));
  return remainder ? a % b : a / b;
}

int64_t multiply_high(Element element, int64_t a, int64_t b) {
  __extension__ typedef __int128 Wide;
  __extension__ typedef unsigned __int128 UnsignedWide;
  const int bits = bits_of(element);
  if (element == Element::kU64) {
    return static_cast<int64_t>((UnsignedWide{static_cast<uint64_t>(a)} * static_cast<uint64_t>(b)) >> 64);
  }
  return static_cast<int64_t>((Wide{a} * b) >> bits);
}

int64_t shift(Element element, int64_t a, int64_t amount, bool left) {
  if (static_cast<uint64_t>(amount) >= static_cast<uint64_t>(bits_of(element))) return 0;
  if (left) return static_cast<int64_t>(static_cast<uint64_t>(a) << amount);
  return element == Element::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(a) >> amount) : a >> amount;
}

uint64_t low_bits(Element element, int64_t value) {
  return static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - bits_of(element)));
}

int64_t reverse_bits(Element element, int64_t value) {
  uint64_t from = low_bits(element, value), to = 0;
  for (int i = 0; i < bits_of(element); ++i, from >>= 1) to = (to << 1) | (from & 1);
  return static_cast<int64_t>(to);
}

int64_t count_bits(OpCode code, Element element, int64_t value) {
  const uint64_t bits = low_bits(element, value);
  if (code == OpCode::kPopc) return std::popcount(bits);
  if (code == OpCode::kClz) return std::countl_zero(bits) - (64 - bits_of(element));
  return bits == 0 ? 0 : std::countr_zero(bits) + 1;
}

int64_t unary_int(OpCode code, Element element, int64_t a) {
  switch (code) {
    case OpCode::kNeg:
      return static_cast<int64_t>(-static_cast<uint64_t>(a));
    case OpCode::kAbs:
      return less(element, a, 0) ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
    case OpCode::kNot:
      return ~a;
    case OpCode::kBrev:
      return reverse_bits(element, a);
    default:
      return count_bits(code, element, a);
  }
}

int64_t binary_int(OpCode code, Element element, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (code) {
    case OpCode::kAdd:
      return static_cast<int64_t>(x + y);
    case OpCode::kSub:
      return static_cast<int64_t>(x - y);
    case OpCode::kMul:
      return static_cast<int64_t>(x * y);
    case OpCode::kIDiv:
      return divide(element, a, b, false);
    case OpCode::kRem:
      return divide(element, a, b, true);
    case OpCode::kMin:
      return less(element, a, b) ? a : b;
    case OpCode::kMax:
      return less(element, a, b) ? b : a;
    case OpCode::kAnd:
      return a & b;
    case OpCode::kOr:
      return a | b;
    case OpCode::kXor:
      return a ^ b;
    case OpCode::kShl:
      return shift(element, a, b, true);
    case OpCode::kShr:
      return shift(element, a, b, false);
    case OpCode::kMulHi:
      return multiply_high(element, a, b);
    default:
      break;
  }
  HEDDLE_CHECK(false, "{} of integers", to_string(code));
  return 0;
}

Cells evaluate_ints(const Op& op, Element element, Element result, Operands in, size_t lanes) {
  const auto wrapped = [&](int64_t value) { return Cell{.i = wrap_int(result, value)}; };
  const Cells& a = *in[0];
  if (in.size() == 1) return each(lanes, [&](size_t i) { return wrapped(unary_int(op.code, element, a[i].i)); });
  const Cells& b = *in[1];
  if (in.size() == 2) {
    return each(lanes, [&](size_t i) { return wrapped(binary_int(op.code, element, a[i].i, b[i].i)); });
  }
  const Cells& c = *in[2];
  if (op.code == OpCode::kClamp) {
    return each(lanes, [&](size_t i) {
      const int64_t low = less(element, a[i].i, b[i].i) ? b[i].i : a[i].i;
      return Cell{.i = less(element, c[i].i, low) ? c[i].i : low};
    });
  }
  return each(lanes, [&](size_t i) {
    const int64_t product = binary_int(OpCode::kMul, element, a[i].i, b[i].i);
    return wrapped(binary_int(OpCode::kAdd, element, product, c[i].i));
  });
}

// ---- Comparison and conversion

template <typename T>
bool holds(std::string_view predicate, T a, T b) {
  if (predicate == "eq") return a == b;
  if (predicate == "ne") return a != b;
  if (predicate == "lt") return a < b;
  if (predicate == "le") return a <= b;
  if (predicate == "gt") return a > b;
  return a >= b;
}

Cells compare(const Op& op, const Type& type, Operands in, size_t lanes) {
  const std::string_view predicate = op.attributes.word("predicate");
  const Cells &a = *in[0], &b = *in[1];
  return each(lanes, [&](size_t i) {
    bool value = false;
    if (is_float(type.element) && !type.pointer) {
      value = holds(predicate, a[i].f, b[i].f);
    } else if (type.pointer || type.element == Element::kU64) {
      value = holds(predicate, static_cast<uint64_t>(a[i].i), static_cast<uint64_t>(b[i].i));
    } else {
      value = holds(predicate, a[i].i, b[i].i);
    }
    return Cell{.i = value};
  });
}

Cell cast(const Op& op, Element from, Element to, Cell value) {
  if (is_float(from)) {
    if (!is_float(to)) return {.i = to == Element::kI1 ? value.f != 0 : float_to_int(to, value.f)};
    return {.f = op.attributes.word("rounding") == "rtz" ? truncate_float(to, value.f) : round_float(to, value.f)};
  }
  if (is_float(to)) return {.f = int_to_float(from, value.i, to)};
  return {.i = to == Element::kI1 ? value.i != 0 : wrap_int(to, value.i)};
}

Cell bitcast(const Type& from, const Type& to, Cell value) {
  const uint64_t bits = from.pointer ? static_cast<uint64_t>(value.i) : encode(from.element, value);
  return to.pointer ? Cell{.i = static_cast<int64_t>(bits)} : decode(to.element, bits);
}

Cell constant(const Op& op, const Type& type) {
  const Attribute& value = *op.attributes.find("value");
  if (is_float(type.element) && !type.pointer) return {.f = round_float(type.element, value.number)};
  return {.i = value.integer};
}

}  // namespace

Cells evaluate_elementwise(const Op& op, std::span<const Type* const> types, const Type& result, Operands in,
                           size_t lanes) {
  switch (op.code) {
    case OpCode::kConstant:
      return Cells(lanes, constant(op, result));
    case OpCode::kHint:
      return *in[0];
    case OpCode::kCmp:
      return compare(op, *types[0], in, lanes);
    case OpCode::kSelect:
      return each(lanes, [&](size_t i) { return (*in[0])[i].i != 0 ? (*in[1])[i] : (*in[2])[i]; });
    case OpCode::kCast:
      return each(lanes, [&](size_t i) { return cast(op, types[0]->element, result.element, (*in[0])[i]); });
    case OpCode::kBitcast:
      return each(lanes, [&](size_t i) { return bitcast(*types[0], result, (*in[0])[i]); });
    case OpCode::kAddPtr: {
      const int64_t size = size_of(result.element);
      return each(lanes, [&](size_t i) { return Cell{.i = (*in[0])[i].i + (*in[1])[i].i * size}; });
    }
    case OpCode::kRounded:
      return evaluate_rounded(op, types[0]->element, result.element, in, lanes);
    case OpCode::kIsNan:
      return each(lanes, [&](size_t i) { return Cell{.i = std::isnan((*in[0])[i].f)}; });
    case OpCode::kIsInf:
      return each(lanes, [&](size_t i) { return Cell{.i = std::isinf((*in[0])[i].f)}; });
    default:
      break;
  }
  const Element element = types[0]->element;
  if (is_float(element)) return evaluate_floats(op, element, in, lanes);
  return evaluate_ints(op, element, result.element, in, lanes);
}

}  // namespace heddle::lang
