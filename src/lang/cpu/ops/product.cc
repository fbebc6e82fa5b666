#include <fmt/format.h>

#include "lang/cpu/sinks.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

// The buffer in which the sum is made: that of `c` itself, if nobody needs it afterwards.
std::string sum_buffer(SinkContext& c, const Op& op) {
  const ValueId sum = op.operands.back(), result = op.results[0];
  if (c.loops.is_last_use(sum)) {
    const std::string buffer = c.loops.buffer(*c.out, sum);
    if (c.state.at(sum).owned) return buffer;
  }
  const std::string buffer = c.state.new_buffer(result);
  c.loops.prepare(*c.out, sum);
  c.loops.write_to(*c.out, sum, buffer);
  return buffer;
}

void finish(SinkContext& c, const Op& op, const std::string& sum) {
  const Type& type = c.state.type(op.results[0]);
  if (is_rounded(type)) {
    c.out->line("round_buffer<{}>({}, {});", memory_type(type.element), sum, type.elements());
  }
  c.state.set_buffer(op.results[0], sum);
}

struct Extents {
  int64_t batch, m, n, k;
};

Extents extents_of(const Type& sum, int64_t k) {
  const size_t rank = sum.shape.size();
  return {rank == 3 ? sum.shape[0] : 1, sum.shape[rank - 2], sum.shape[rank - 1], k};
}

void multiply(SinkContext& c, const std::string& a, const std::string& b, const std::string& sum, const Extents& x) {
  if (x.batch == 1) {
    c.out->line("multiply_tiles<{}, {}, {}>({}, {}, {});", x.m, x.n, x.k, a, b, sum);
    return;
  }
  Writer body;
  body.line("multiply_tiles<{0}, {1}, {2}>({3} + o * {6}, {4} + o * {7}, {5} + o * {8});", x.m, x.n, x.k, a, b, sum,
            x.m * x.k, x.k * x.n, x.m * x.n);
  c.out->block(fmt::format("for (int64_t o = 0; o < {}; ++o)", x.batch), body);
}

void dot(SinkContext& c, const Op& op) {
  const std::string a = c.loops.buffer(*c.out, op.operands[0]), b = c.loops.buffer(*c.out, op.operands[1]);
  const std::string sum = sum_buffer(c, op);
  add_place(c, op);
  multiply(c, a, b, sum, extents_of(c.state.type(op.results[0]), c.state.type(op.operands[0]).shape.back()));
  finish(c, op, sum);
}

// An operand of dot_scaled as floats.
std::string unpacked(SinkContext& c, const Op& op, size_t operand, int64_t rows, int64_t k, int64_t columns,
                     const std::string& scale) {
  const std::string_view format = op.attributes.word(operand == 0 ? "a_format" : "b_format");
  const Type& type = c.state.type(op.operands[operand]);
  const std::string from = c.loops.buffer(*c.out, op.operands[operand]);
  const bool is_a = operand == 0;
  const int64_t per_byte = format == "e2m1" ? 2 : 1;
  const std::string to = c.state.new_floats(op.operands[operand], type.elements() * per_byte);
  const std::string decoded = is_float(type.element) ? "float"
                              : format == "e2m1"     ? "f4e2m1"
                              : format == "e4m3"     ? "f8e4m3"
                                                     : "f8e5m2";
  c.out->line("unpack_scaled<{}, {}>({}, {}, {}, {}, {}, {});", decoded, is_a, to, from,
              scale.empty() ? "nullptr" : scale, rows, k, columns);
  return to;
}

void dot_scaled(SinkContext& c, const Op& op) {
  const std::string_view scales = op.attributes.word("scales", "both");
  const bool a_scaled = scales == "both" || scales == "a", b_scaled = scales == "both" || scales == "b";
  const size_t at_b = a_scaled ? 2 : 1;
  const Type& a = c.state.type(op.operands[0]);
  const int64_t k = a.shape.back() * (op.attributes.word("a_format") == "e2m1" ? 2 : 1);
  const Extents x = extents_of(c.state.type(op.results[0]), k);
  const std::string a_scale = a_scaled ? c.loops.buffer(*c.out, op.operands[1]) : "";
  const std::string b_scale = b_scaled ? c.loops.buffer(*c.out, op.operands[at_b + 1]) : "";
  const std::string sum = sum_buffer(c, op);
  add_place(c, op);
  const std::string left = unpacked(c, op, 0, x.batch * x.m, k, 1, a_scale);
  const std::string right = unpacked(c, op, at_b, x.batch, k, x.n, b_scale);
  multiply(c, left, right, sum, x);
  finish(c, op, sum);
}

}  // namespace

bool write_product_op(SinkContext& c, const Op& op) {
  if (op.code == OpCode::kDot) {
    dot(c, op);
  } else if (op.code == OpCode::kDotScaled) {
    dot_scaled(c, op);
  } else {
    return false;
  }
  return true;
}

}  // namespace heddle::lang::cpu
