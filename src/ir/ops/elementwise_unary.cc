#include <cmath>
#include <limits>

#include "base/odd.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

// Calls use(cost, f) with the function of a float op.
template <typename Use>
void with_unary_function(Op op, const Use& use) {
  switch (op) {
#define HEDDLE_FUNCTION(enumerator, name, text, cost, value) \
  case Op::enumerator:                                       \
    return use((cost).f64 < 100 ? kCheap : kLibrary, [](double x) { return value; });
#include "ir/ops.def"
    default:
      HEDDLE_CHECK(false, "{} is no function of a float", to_string(op));
  }
}

int64_t negate(int64_t x) {
  return static_cast<int64_t>(-static_cast<uint64_t>(x));
}

void eval_int(Op op, const Array& x, Array& result) {
  const bool is_signed = is_signed_int(x.dtype);
  switch (op) {
    case Op::kNeg:
      map_elements(result.i(), kCheap, negate, x.i());
      break;
    case Op::kAbs:
      map_elements(
          result.i(), kCheap, [&](int64_t v) { return is_signed && v < 0 ? negate(v) : v; }, x.i());
      break;
    case Op::kSign:
      map_elements(
          result.i(), kCheap, [&](int64_t v) { return is_signed && v < 0 ? -1 : v != 0; }, x.i());
      break;
    case Op::kNot:
      if (x.dtype == DType::kBool) {
        map_elements(
            result.i(), kCheap, [](int64_t v) { return v == 0; }, x.i());
      } else {
        map_elements(
            result.i(), kCheap, [](int64_t v) { return ~v; }, x.i());
      }
      break;
    default:
      HEDDLE_CHECK(false, "{} is no function of an integer", to_string(op));
  }
  wrap(x.dtype, result.i());
}

// Float to integer: towards zero, saturating, NaN is 0.
std::vector<int64_t> truncate(const std::vector<double>& in, DType to) {
  std::vector<int64_t> out(in.size());
  if (to == DType::kU64) {
    map_elements(
        out, kCheap,
        [](double v) {
          return static_cast<int64_t>(!(v > 0) ? 0 : v >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(v));
        },
        in);
    return out;
  }
  const int bits = bits_of(to) - is_signed_int(to);  // of the magnitude
  const double above = std::ldexp(1, bits), below = is_signed_int(to) ? -above : 0;
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  const int64_t lowest = is_signed_int(to) ? -highest - 1 : 0;
  map_elements(
      out, kCheap,
      [=](double v) {
        return std::isnan(v) ? 0 : v >= above ? highest : v <= below ? lowest : static_cast<int64_t>(v);
      },
      in);
  return out;
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) == 1;
}

Array cast_from_real(const Array& x, DType to, bool saturate) {
  Array result;
  result.dtype = to;
  result.shape = x.shape;
  if (is_narrow_float(to)) {
    // Quantisation is part of the model's meaning, so it happens in float64 evaluation too.
    std::vector<double> out(x.f().size());
    map_elements(
        out, kLibrary, [&](double v) { return round_to(to, v, saturate); }, x.f());
    result.data = std::move(out);
  } else if (is_float(to)) {
    result.data = x.f();
  } else if (to == DType::kBool) {
    std::vector<int64_t> out(x.f().size());
    map_elements(
        out, kCheap, [](double v) { return v != 0; }, x.f());
    result.data = std::move(out);
  } else {
    result.data = truncate(x.f(), to);
  }
  return result;
}

Array cast_from_int(const Array& x, DType to, bool saturate) {
  Array result(to, x.shape);
  if (!result.real()) {
    result.i() = x.i();
    wrap(to, result.i());
    return result;
  }
  // Every float type but f64 is rounded from the double, now or when it is stored.
  const auto wide = [=](auto v) { return to == DType::kF64 ? static_cast<double>(v) : to_odd_double(v); };
  map_elements(
      result.f(), kCheap,
      [&](int64_t v) -> double {
        const double number = x.dtype == DType::kU64 ? wide(static_cast<uint64_t>(v)) : wide(v);
        return is_narrow_float(to) ? round_to(to, number, saturate) : number;
      },
      x.i());
  return result;
}

}  // namespace

std::vector<Array> eval_unary(const EvalContext& c) {
  const Array& x = *c.inputs[0];
  Array result(c.outputs[0].dtype, x.shape);
  if (c.op == Op::kIsNan) {
    map_elements(
        result.i(), kCheap, [](double v) { return std::isnan(v); }, x.f());
  } else if (c.op == Op::kIsInf) {
    const bool positive = c.attrs.flag("positive"), negative = c.attrs.flag("negative");
    map_elements(
        result.i(), kCheap, [=](double v) { return std::isinf(v) && (v > 0 ? positive : negative); }, x.f());
  } else if (x.real()) {
    with_unary_function(c.op, [&](int64_t cost, const auto& f) { map_elements(result.f(), cost, f, x.f()); });
  } else {
    eval_int(c.op, x, result);
  }
  return results_of(std::move(result));
}

std::vector<Array> eval_cast(const EvalContext& c) {
  const bool saturate = !c.attrs.has("saturate") || c.attrs.flag("saturate");
  const Array& x = *c.inputs[0];
  const DType to = c.outputs[0].dtype;
  return results_of(x.real() ? cast_from_real(x, to, saturate) : cast_from_int(x, to, saturate));
}

std::vector<Array> eval_bitcast(const EvalContext& c) {
  const Tensor bits = to_tensor(*c.inputs[0]);
  return results_of(to_array(Tensor::borrow(c.outputs[0].dtype, bits.shape(), bits.data(), nullptr)));
}

}  // namespace heddle::ir
