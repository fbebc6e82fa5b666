#include "lang/interpret/elementwise.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ir/ops/values.h"
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

double next_after(Element element, double a, double b) {
  return element == Element::kF32 ? std::nextafterf(static_cast<float>(a), static_cast<float>(b))
                                  : std::nextafter(a, b);
}

using Binary = double (*)(double, double);
Binary binary_function(OpCode code) {
  Binary function = nullptr;
  ir::with_binary_function(code, [&](auto f) { function = f; });
  return function;
}

// With min and max as they are without {nan = propagate}: of a number and NaN, the number.
double apply_to_numbers(Binary f, double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : f(a, b);
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
  const auto x = [&](size_t operand, size_t i) { return (*in[operand])[i].f; };
  const auto rounded = [&](const auto& f) {
    return each(lanes, [&](size_t i) { return Cell{.f = round_float(element, f(i))}; });
  };
  Cells result;
  if (ir::with_function(op.code, [&](auto f) { result = rounded([&](size_t i) { return f(x(0, i)); }); }))
    return result;
  const bool propagates = op.attributes.word("nan") == "propagate";
  if (const Binary f = binary_function(op.code)) {
    const bool numbers = (op.code == OpCode::kMin || op.code == OpCode::kMax) && !propagates;
    return rounded([&](size_t i) { return numbers ? apply_to_numbers(f, x(0, i), x(1, i)) : f(x(0, i), x(1, i)); });
  }
  switch (op.code) {
    case OpCode::kLdexp:
    case OpCode::kJn:
    case OpCode::kYn:
      return rounded([&](size_t i) { return with_integer(op.code, x(0, i), static_cast<int>((*in[1])[i].i)); });
    case OpCode::kNextAfter:
      return rounded([&](size_t i) { return next_after(element, x(0, i), x(1, i)); });
    case OpCode::kFma:
      return rounded([&](size_t i) { return std::fma(x(0, i), x(1, i), x(2, i)); });
    default:
      break;
  }
  HEDDLE_CHECK(op.code == OpCode::kClamp, "{} of floats", to_string(op.code));
  const Binary least = binary_function(OpCode::kMin), most = binary_function(OpCode::kMax);
  return rounded([&](size_t i) {
    if (std::isnan(x(0, i)) && propagates) return x(0, i);
    return apply_to_numbers(least, apply_to_numbers(most, x(0, i), x(1, i)), x(2, i));
  });
}

// ---- Integers

template <typename T>
auto integer_function(OpCode code) {
  T (*function)(T, T, int) = nullptr;
  ir::with_integer_function<T>(code, [&](auto f) { function = f; });
  HEDDLE_CHECK(function != nullptr, "{} of integers", to_string(code));
  return function;
}

// T as the table has it.
template <typename T>
Cells evaluate_ints(const Op& op, Element element, Element result, Operands in, size_t lanes) {
  const int bits = bits_of(element);
  const auto x = [&](size_t operand, size_t i) {
    return operand < in.size() ? static_cast<T>((*in[operand])[i].i) : T{0};
  };
  const auto wrapped = [&](const auto& f) {
    return each(lanes, [&](size_t i) { return Cell{.i = wrap_int(result, static_cast<int64_t>(f(i)))}; });
  };
  if (op.code == OpCode::kClamp) {
    return wrapped([&](size_t i) { return std::min(std::max(x(0, i), x(1, i)), x(2, i)); });
  }
  if (op.code == OpCode::kFma) {
    const auto mul = integer_function<T>(OpCode::kMul), add = integer_function<T>(OpCode::kAdd);
    return wrapped([&](size_t i) { return add(mul(x(0, i), x(1, i), bits), x(2, i), bits); });
  }
  const auto f = integer_function<T>(op.code);
  return wrapped([&](size_t i) { return f(x(0, i), x(1, i), bits); });
}

// ---- Comparison and conversion

Cells compare(const Op& op, const Type& type, Operands in, size_t lanes) {
  const Cells &a = *in[0], &b = *in[1];
  Cells result;
  const auto compare_as = [&](auto zero) {
    using T = decltype(zero);
    ir::with_comparison<T>(op.code, [&](auto f) {
      result = each(lanes, [&](size_t i) {
        if constexpr (std::is_floating_point_v<T>) return Cell{.i = f(a[i].f, b[i].f)};
        return Cell{.i = f(static_cast<T>(a[i].i), static_cast<T>(b[i].i))};
      });
    });
  };
  if (is_float(type.element) && !type.pointer) {
    compare_as(0.0);
  } else if (type.pointer || type.element == Element::kU64) {
    compare_as(uint64_t{0});
  } else {
    compare_as(int64_t{0});
  }
  return result;
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
  if (ir::is_comparison(op.code)) return compare(op, *types[0], in, lanes);
  if (is_float(element)) return evaluate_floats(op, element, in, lanes);
  return element == Element::kU64 ? evaluate_ints<uint64_t>(op, element, result.element, in, lanes)
                                  : evaluate_ints<int64_t>(op, element, result.element, in, lanes);
}

}  // namespace heddle::lang
