#include <cmath>

#include "ir/ops/combine.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

using U = uint64_t;

// Python's %: the sign of the divisor.
double floored_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(r, b);
  return std::signbit(r) != std::signbit(b) ? r + b : r;
}

// Calls use(cost, f) with the function of a float op.
template <typename Use>
void with_binary_function(Op op, const Use& use) {
  switch (op) {
    case Op::kAdd:
      return use(kCheap, [](double a, double b) { return a + b; });
    case Op::kSub:
      return use(kCheap, [](double a, double b) { return a - b; });
    case Op::kMul:
      return use(kCheap, [](double a, double b) { return a * b; });
    case Op::kDiv:
      return use(kCheap, [](double a, double b) { return a / b; });
    case Op::kRem:
      return use(kLibrary, [](double a, double b) { return std::fmod(a, b); });
    case Op::kMod:
      return use(kLibrary, floored_mod);
    case Op::kPow:
      return use(kLibrary, [](double a, double b) { return std::pow(a, b); });
    case Op::kAtan2:
      return use(kLibrary, [](double a, double b) { return std::atan2(a, b); });
    case Op::kMax:
      return with_real_combine(Combine::kMax, [&](const auto& f) { use(kCheap, f); });
    case Op::kMin:
      return with_real_combine(Combine::kMin, [&](const auto& f) { use(kCheap, f); });
    default:
      HEDDLE_CHECK(false, "{} is no function of floats", to_string(op));
  }
}

template <typename T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-static_cast<U>(a));  // the lowest value wraps
  }
  return a / b;
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return a % b;
}

template <typename T>
T modulo(T a, T b) {
  const T r = remainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// 1 / a^n, truncated, for a negative n; division by zero gives 0.
template <typename T>
T power(T a, T n) {
  if constexpr (std::is_signed_v<T>) {
    if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 == 0 ? 1 : -1) : 0;
  }
  U result = 1, base = static_cast<U>(a);
  for (U rest = static_cast<U>(n); rest != 0; rest >>= 1) {
    if (rest & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

// Calls use(f) with the function of an integer op on T: int64_t, or uint64_t for u64 (narrower unsigned types fit
// int64_t). `bits` is the width of the type, which shifts ask for.
template <typename T, typename Use>
void with_int_function(Op op, int bits, const Use& use) {
  const auto out_of_width = [bits](T n) { return n < 0 || n >= static_cast<T>(bits); };
  switch (op) {
    case Op::kAdd:
      return use([](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
    case Op::kSub:
      return use([](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
    case Op::kMul:
      return use([](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); });
    case Op::kDiv:
      return use(divide<T>);
    case Op::kRem:
      return use(remainder<T>);
    case Op::kMod:
      return use(modulo<T>);
    case Op::kPow:
      return use(power<T>);
    case Op::kMax:
      return use([](T a, T b) { return std::max(a, b); });
    case Op::kMin:
      return use([](T a, T b) { return std::min(a, b); });
    case Op::kAnd:
      return use([](T a, T b) { return a & b; });
    case Op::kOr:
      return use([](T a, T b) { return a | b; });
    case Op::kXor:
      return use([](T a, T b) { return a ^ b; });
    case Op::kShl:
      return use([=](T a, T n) { return out_of_width(n) ? T{0} : static_cast<T>(static_cast<U>(a) << n); });
    case Op::kShr:
      return use([=](T a, T n) { return out_of_width(n) ? T{0} : static_cast<T>(a >> n); });
    default:
      HEDDLE_CHECK(false, "{} is no function of integers", to_string(op));
  }
}

template <typename T, typename Use>
void with_comparison(Op op, const Use& use) {
  switch (op) {
    case Op::kEq:
      return use([](T a, T b) { return a == b; });
    case Op::kNe:
      return use([](T a, T b) { return a != b; });
    case Op::kLt:
      return use([](T a, T b) { return a < b; });
    case Op::kLe:
      return use([](T a, T b) { return a <= b; });
    case Op::kGt:
      return use([](T a, T b) { return a > b; });
    default:
      return use([](T a, T b) { return a >= b; });
  }
}

template <typename T>
void eval_ints(Op op, const Array& a, const Array& b, Array& result) {
  const auto run = [&](const auto& f) {
    map_elements(
        result.i(), kCheap,
        [&](int64_t x, int64_t y) { return static_cast<int64_t>(f(static_cast<T>(x), static_cast<T>(y))); }, a.i(),
        b.i());
  };
  if (is_comparison(op)) {
    with_comparison<T>(op, run);
  } else {
    with_int_function<T>(op, bits_of(a.dtype), run);
    wrap(a.dtype, result.i());
  }
}

}  // namespace

std::vector<Array> eval_binary(const EvalContext& c) {
  const Array& a = *c.inputs[0];
  const Array& b = *c.inputs[1];
  Array result(c.outputs[0].dtype, a.shape);
  if (!a.real()) {
    a.dtype == DType::kU64 ? eval_ints<uint64_t>(c.op, a, b, result) : eval_ints<int64_t>(c.op, a, b, result);
  } else if (is_comparison(c.op)) {
    with_comparison<double>(c.op, [&](const auto& f) { map_elements(result.i(), kCheap, f, a.f(), b.f()); });
  } else {
    with_binary_function(c.op, [&](int64_t cost, const auto& f) { map_elements(result.f(), cost, f, a.f(), b.f()); });
  }
  return results_of(std::move(result));
}

std::vector<Array> eval_select(const EvalContext& c) {
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  std::visit(
      [&](auto& out) {
        using V = std::decay_t<decltype(out)>;
        map_elements(
            out, kCheap, [](int64_t condition, auto a, auto b) { return condition ? a : b; }, c.inputs[0]->i(),
            std::get<V>(c.inputs[1]->data), std::get<V>(c.inputs[2]->data));
      },
      result.data);
  return results_of(std::move(result));
}

}  // namespace heddle::ir
