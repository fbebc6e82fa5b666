#include <fmt/format.h>

#include "base/check.h"
#include "lang/cpu/sinks.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

// A pointer to the elements of a value.
std::string elements(SinkContext& c, ValueId value) {
  if (c.state.type(value).is_tile()) return c.loops.buffer(*c.out, value);
  const std::string one = c.state.new_buffer(value);
  c.loops.write_to(*c.out, value, one);
  return one;
}

void print(SinkContext& c, const Op& op) {
  const int site = c.state.uses.order(op);
  if (op.operands.empty()) c.out->line("services->print(services->self, {}, 0, program, nullptr);", site);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string from = elements(c, op.operands[i]);
    c.out->line("services->print(services->self, {}, {}, program, {});", site, i, from);
  }
}

void assertion(SinkContext& c, const Op& op) {
  const std::string condition = elements(c, op.operands[0]);
  const std::string mask = op.operands.size() > 1 ? elements(c, op.operands[1]) + "[i] != 0 && " : "";
  Writer body;
  body.line("if ({}{}[i] == 0) services->fail(services->self, {}, program, i);", mask, condition,
            c.state.uses.order(op));
  c.out->block(fmt::format("for (int64_t i = 0; i < {}; ++i)", c.state.type(op.operands[0]).elements()), body);
}

}  // namespace

bool write_effect_op(SinkContext& c, const Op& op) {
  switch (op.code) {
    case OpCode::kPrint:
      print(c, op);
      return true;
    case OpCode::kAssert:
      assertion(c, op);
      return true;
    case OpCode::kBarrier:
      c.loops.flush_loads(*c.out);
      c.out->raw("order_memory();");
      return true;
    case OpCode::kAssume:
      return true;
    case OpCode::kInlineAsm:
      fail(ErrorCode::kUnsupportedOperator, c.state.kernel.place(op.frame),
           "inline assembly of a GPU does not run on a CPU",
           "Write the operation in the tile language, or choose the target cuda");
    default:
      return false;
  }
}

}  // namespace heddle::lang::cpu
