#include "base/check.h"
#include "lang/interpret/environment.h"
#include "lang/interpret/report.h"

namespace heddle::lang {
namespace {

void print(Environment& env, const Op& op) {
  if (!env.options.print) return;
  if (op.operands.empty()) print_values(env.kernel, op, 0, env.program, {}, env.options.print);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    print_values(env.kernel, op, i, env.program, env.operand(op, i), env.options.print);
  }
}

void assertion(Environment& env, const Op& op) {
  const Cells& condition = env.operand(op, 0);
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i].i != 0 || (op.operands.size() > 1 && env.operand(op, 1)[i].i == 0)) continue;
    fail_assertion(env.kernel, op, env.program, static_cast<int64_t>(i));
  }
}

}  // namespace

bool run_effect_op(Environment& env, const Op& op) {
  switch (op.code) {
    case OpCode::kPrint:
      print(env, op);
      return true;
    case OpCode::kAssert:
      assertion(env, op);
      return true;
    case OpCode::kBarrier:
      return true;
    case OpCode::kAssume:
      if (env.options.checked && env.operand(op, 0)[0].i == 0) {
        fail(ErrorCode::kValueOutOfRange, env.memory.where(0), "what the kernel assumes does not hold");
      }
      return true;
    case OpCode::kInlineAsm:
      fail(ErrorCode::kUnsupportedOperator, env.memory.where(0), "inline assembly of a GPU runs on a GPU only",
           "Write the operation in the tile language, or choose the target cuda");
    default:
      return false;
  }
}

}  // namespace heddle::lang
