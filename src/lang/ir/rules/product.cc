#include <fmt/format.h>

#include "lang/ir/rules.h"

namespace heddle::lang::rules {
namespace {

bool may_accumulate(Element in, Element out) {
  if (out == Element::kI32) return is_int(in) && bits_of(in) == 8;
  if (out == Element::kF64) return in == Element::kF64;
  if (out == Element::kF16) return in == Element::kF16 || is_float8(in);
  return out == Element::kF32 && is_float(in) && in != Element::kF64;
}

// Shapes of a product: rank, batch and the other two extents agree. `k_per_a`: extents of K that one of A stands for.
void check_product(RuleContext& c, const Type& a, const Type& b, int64_t k_per_a, int64_t k_per_b) {
  const size_t rank = a.shape.size();
  if (!a.is_tile() || !b.is_tile() || a.pointer || b.pointer || (rank != 2 && rank != 3) || b.shape.size() != rank) {
    c.fail("its operands are tiles of numbers of rank 2, or 3 with a batch");
  }
  if (a.shape[rank - 1] * k_per_a != b.shape[rank - 2] * k_per_b || (rank == 3 && a.shape[0] != b.shape[0])) {
    c.fail(fmt::format("{} and {} cannot be multiplied", to_string(a), to_string(b)));
  }
  std::vector<int64_t> shape = a.shape;
  shape[rank - 1] = b.shape[rank - 1];
  const Type& sum = c.operand(c.operands() - 1);
  if (sum != Type::tile(shape, sum.element)) {
    c.fail(fmt::format("{} is added to a product of the shape {}", to_string(sum),
                       to_string(Type::tile(shape, sum.element))));
  }
  c.expect_results(1);
  c.expect_result(sum);
}

// e2m1 lies in pairs in u8, the other formats in elements of their own.
bool holds_format(Element element, std::string_view format) {
  if (format == "e2m1") return element == Element::kU8;
  if (format == "e4m3") return element == Element::kF8E4M3 || element == Element::kU8;
  if (format == "e5m2") return element == Element::kF8E5M2 || element == Element::kU8;
  return element == (format == "bf16" ? Element::kBF16 : Element::kF16);
}

void check_scale(RuleContext& c, const Type& scale, int64_t rows, int64_t k) {
  constexpr int64_t kGroup = 32;
  const std::vector<int64_t> shape{rows, k / kGroup};
  std::vector<int64_t> last = scale.shape;
  if (last.size() == 3) last.erase(last.begin());
  if (scale.pointer || scale.element != Element::kU8 || last != shape) {
    c.fail(fmt::format("a scale is {}, tile<{}x{}xu8> is wanted", to_string(scale), rows, k / kGroup));
  }
}

}  // namespace

void dot(RuleContext& c) {
  const Type &a = c.operand(0), &b = c.operand(1), &sum = c.operand(2);
  check_product(c, a, b, 1, 1);
  const bool fits = a.element == b.element || (is_float8(a.element) && is_float8(b.element)) ||
                    (is_int(a.element) && is_int(b.element));
  if (!fits || !may_accumulate(a.element, sum.element)) {
    c.fail(fmt::format("a product of {} and {} is not summed in {}", to_string(a.element), to_string(b.element),
                       to_string(sum.element)));
  }
}

void dot_scaled(RuleContext& c) {
  const std::string_view scales = c.op().attributes.word("scales", "both");
  const std::string_view a_format = c.op().attributes.word("a_format"), b_format = c.op().attributes.word("b_format");
  const bool a_scaled = scales == "both" || scales == "a", b_scaled = scales == "both" || scales == "b";
  const size_t count = 3 + (a_scaled ? 1 : 0) + (b_scaled ? 1 : 0);
  if (c.operands() != count)
    c.fail(fmt::format("it has {} operands, scales = {} wants {}", c.operands(), scales, count));
  const size_t at_b = a_scaled ? 2 : 1;
  const Type &a = c.operand(0), &b = c.operand(at_b), &sum = c.operand(count - 1);
  if (!holds_format(a.element, a_format) || !holds_format(b.element, b_format)) {
    c.fail(fmt::format("{} and {} do not hold {} and {}", to_string(a), to_string(b), a_format, b_format));
  }
  if (c.integer("a_k_pack", 1) == 0 || c.integer("b_k_pack", 1) == 0)
    c.fail("pairs along another axis than K are not supported");
  const int64_t in_a = a_format == "e2m1" ? 2 : 1, in_b = b_format == "e2m1" ? 2 : 1;
  if (sum.element != Element::kF32) c.fail("its sum is f32");
  check_product(c, a, b, in_a, in_b);
  const size_t rank = a.shape.size();
  const int64_t k = a.shape[rank - 1] * in_a;
  if (a_scaled) check_scale(c, c.operand(1), a.shape[rank - 2], k);
  if (b_scaled) check_scale(c, c.operand(at_b + 1), b.shape[rank - 1], k);
}

}  // namespace heddle::lang::rules
