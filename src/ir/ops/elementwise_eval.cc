#include <cmath>
#include <limits>

#include "base/odd.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/rules.h"
#include "ir/ops/values.h"

namespace heddle::ir {
namespace {

// An op of one operand gets it twice.
template <typename T>
void eval_ints(Op op, const Array& a, const Array& b, Array& result) {
  const int bits = a.dtype == DType::kBool ? 1 : bits_of(a.dtype);
  const bool known = with_integer_function<T>(op, [&](const auto& f) {
    const auto value = [&](int64_t x, int64_t y) {
      return static_cast<int64_t>(f(static_cast<T>(x), static_cast<T>(y), bits));
    };
    map_elements(result.i(), kCheap, value, a.i(), b.i());
  });
  HEDDLE_CHECK(known, "{} is no function of integers", to_string(op));
  wrap(a.dtype, result.i());
}

void eval_ints(Op op, const Array& a, const Array& b, Array& result) {
  a.dtype == DType::kU64 ? eval_ints<uint64_t>(op, a, b, result) : eval_ints<int64_t>(op, a, b, result);
}

template <typename T, typename In>
void compare(Op op, const std::vector<In>& a, const std::vector<In>& b, Array& result) {
  with_comparison<T>(op, [&](const auto& f) {
    map_elements(
        result.i(), kCheap, [&](In x, In y) { return f(static_cast<T>(x), static_cast<T>(y)); }, a, b);
  });
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) == 1;
}

Array cast_from_real(const Array& x, DType to, bool saturate) {
  Array result(to, x.shape);
  if (is_narrow_float(to)) {
    // Quantisation is part of the model's meaning, so it happens in float64 evaluation too.
    map_elements(
        result.f(), kLibrary, [&](double v) { return round_to(to, v, saturate); }, x.f());
  } else if (is_float(to)) {
    result.f() = x.f();
  } else {
    const auto value = [to](double v) -> int64_t { return to == DType::kBool ? v != 0 : truncated(to, v); };
    map_elements(result.i(), kCheap, value, x.f());
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
    const int64_t cost = cost_of(c.op).f64 < 100 ? kCheap : kLibrary;
    const bool known = with_function(c.op, [&](const auto& f) { map_elements(result.f(), cost, f, x.f()); });
    HEDDLE_CHECK(known, "{} is no function of a float", to_string(c.op));
  } else {
    eval_ints(c.op, x, x, result);
  }
  return results_of(std::move(result));
}

std::vector<Array> eval_binary(const EvalContext& c) {
  const Array& a = *c.inputs[0];
  const Array& b = *c.inputs[1];
  Array result(c.outputs[0].dtype, a.shape);
  if (is_comparison(c.op) && a.real()) {
    compare<double>(c.op, a.f(), b.f(), result);
  } else if (is_comparison(c.op)) {
    a.dtype == DType::kU64 ? compare<uint64_t>(c.op, a.i(), b.i(), result)
                           : compare<int64_t>(c.op, a.i(), b.i(), result);
  } else if (!a.real()) {
    eval_ints(c.op, a, b, result);
  } else {
    const int64_t cost = cost_of(c.op).f64 < 50 ? kCheap : kLibrary;
    const bool known =
        with_binary_function(c.op, [&](const auto& f) { map_elements(result.f(), cost, f, a.f(), b.f()); });
    HEDDLE_CHECK(known, "{} is no function of floats", to_string(c.op));
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
