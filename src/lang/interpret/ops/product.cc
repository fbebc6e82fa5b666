#include <cmath>
#include <limits>

#include "heddle/dtype.h"
#include "lang/interpret/environment.h"

namespace heddle::lang {
namespace {

struct Extents {
  size_t batch, m, n, k;
};

Extents extents_of(const Type& sum, size_t k) {
  const std::vector<int64_t>& s = sum.shape;
  const size_t rank = s.size();
  return {rank == 3 ? static_cast<size_t>(s[0]) : 1, static_cast<size_t>(s[rank - 2]), static_cast<size_t>(s[rank - 1]),
          k};
}

// c + a b, summed in double and rounded once.
Cells product(const std::vector<double>& a, const std::vector<double>& b, const Cells& c, const Extents& x,
              Element out) {
  Cells result(c.size());
  std::vector<double> row(x.n);
  for (size_t bm = 0; bm < x.batch * x.m; ++bm) {
    const size_t batch = bm / x.m;
    for (size_t j = 0; j < x.n; ++j) row[j] = c[bm * x.n + j].f;
    for (size_t k = 0; k < x.k; ++k) {
      const double left = a[bm * x.k + k];
      const double* right = b.data() + (batch * x.k + k) * x.n;
      for (size_t j = 0; j < x.n; ++j) row[j] += left * right[j];
    }
    for (size_t j = 0; j < x.n; ++j) result[bm * x.n + j].f = round_float(out, row[j]);
  }
  return result;
}

Cells int_product(const Cells& a, const Cells& b, const Cells& c, const Extents& x) {
  Cells result = c;
  for (size_t bm = 0; bm < x.batch * x.m; ++bm) {
    for (size_t j = 0; j < x.n; ++j) {
      int64_t sum = c[bm * x.n + j].i;
      for (size_t k = 0; k < x.k; ++k) sum += a[bm * x.k + k].i * b[(bm / x.m * x.k + k) * x.n + j].i;
      result[bm * x.n + j].i = wrap_int(Element::kI32, sum);
    }
  }
  return result;
}

std::vector<double> numbers(const Cells& cells) {
  std::vector<double> result;
  result.reserve(cells.size());
  for (const Cell cell : cells) result.push_back(cell.f);
  return result;
}

void dot(Environment& env, const Op& op) {
  const Type& a = env.operand_type(op, 0);
  const Type& sum = env.operand_type(op, 2);
  const Extents x = extents_of(sum, static_cast<size_t>(a.shape.back()));
  const Cells &left = env.operand(op, 0), &right = env.operand(op, 1), &c = env.operand(op, 2);
  env.set(op.results[0], is_float(sum.element) ? product(numbers(left), numbers(right), c, x, sum.element)
                                               : int_product(left, right, c, x));
}

// The elements of an operand of dot_scaled. Of e2m1, two lie in a byte along K, the first in the low bits; `inner`: how
// far apart neighbours along K are, in bytes.
std::vector<double> unpacked(const Cells& cells, Element element, std::string_view format, size_t inner) {
  if (format != "e2m1") {
    if (is_float(element)) return numbers(cells);
    const Element held = format == "e4m3" ? Element::kF8E4M3 : Element::kF8E5M2;
    std::vector<double> result;
    for (const Cell cell : cells) result.push_back(decode(held, static_cast<uint64_t>(cell.i)).f);
    return result;
  }
  std::vector<double> result(cells.size() * 2);
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t outer = i / inner, k = i % inner;
    for (size_t half = 0; half < 2; ++half) {
      const auto code = static_cast<uint32_t>(cells[i].i >> (4 * half)) & 15;
      result[(outer * 2 + half) * inner + k] = decode_float(DType::kF4E2M1, code);
    }
  }
  return result;
}

double scale_factor(int64_t code) {
  return code == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(code) - 127);
}

void dot_scaled(Environment& env, const Op& op) {
  constexpr size_t kGroup = 32;
  const std::string_view scales = op.attributes.word("scales", "both");
  const bool a_scaled = scales == "both" || scales == "a", b_scaled = scales == "both" || scales == "b";
  const size_t at_b = a_scaled ? 2 : 1, at_sum = op.operands.size() - 1;
  const Type& sum = env.operand_type(op, at_sum);
  Extents x = extents_of(sum, 0);
  std::vector<double> a =
      unpacked(env.operand(op, 0), env.operand_type(op, 0).element, op.attributes.word("a_format"), 1);
  std::vector<double> b =
      unpacked(env.operand(op, at_b), env.operand_type(op, at_b).element, op.attributes.word("b_format"), x.n);
  x.k = a.size() / (x.batch * x.m);
  const size_t groups = x.k / kGroup;
  if (a_scaled) {
    const Cells& scale = env.operand(op, 1);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] *= scale_factor(scale[(i / x.k * groups + i % x.k / kGroup) % scale.size()].i);
  }
  if (b_scaled) {
    const Cells& scale = env.operand(op, at_b + 1);
    for (size_t i = 0; i < b.size(); ++i) {
      const size_t batch = i / (x.k * x.n), k = i / x.n % x.k, n = i % x.n;
      b[i] *= scale_factor(scale[((batch * x.n + n) * groups + k / kGroup) % scale.size()].i);
    }
  }
  env.set(op.results[0], product(a, b, env.operand(op, at_sum), x, sum.element));
}

}  // namespace

bool run_product_op(Environment& env, const Op& op) {
  if (op.code == OpCode::kDot) {
    dot(env, op);
  } else if (op.code == OpCode::kDotScaled) {
    dot_scaled(env, op);
  } else {
    return false;
  }
  return true;
}

}  // namespace heddle::lang
