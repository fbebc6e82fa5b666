#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/text/writer.h"
#include "heddle/error.h"
#include "lang/analysis/waits.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

std::string quoted(std::string_view text) {
  std::string r = "\"";
  for (const char c : text) {
    if (c == '\n') {
      r += "\\n";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      if (c == '"' || c == '\\') r += '\\';
      r += c;
    }
  }
  return r + "\"";
}

void emit_assert(Emitter& e, const Op& op) {
  std::string message(op.attributes.find("message") == nullptr ? "" : op.attributes.find("message")->text);
  const std::string place = e.kernel.place(op.frame);
  message =
      fmt::format("{}{}assertion failed{}{}", place, place.empty() ? "" : ": ", message.empty() ? "" : ": ", message);
  std::vector<std::string> operands{e.type(op.operands[0]).is_tile() ? e.tile(op.operands[0]) : e.text(op.operands[0])};
  if (op.operands.size() > 1) {
    operands.push_back(e.type(op.operands[1]).is_tile() ? e.tile(op.operands[1], e.layout(op.operands[0]))
                                                        : e.text(op.operands[1]));
  }
  e.statement(op, fmt::format("block::check({}, {})", quoted(message), fmt::join(operands, ", ")));
}

void emit_print(Emitter& e, const Op& op) {
  const Attribute* const prefix = op.attributes.find("prefix");
  const std::string text = prefix == nullptr ? "" : prefix->text;
  const char* const hex = op.attributes.integer("hex") != 0 ? "true" : "false";
  if (op.operands.empty()) e.statement(op, fmt::format("block::print({})", quoted(text)));
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ValueId v = op.operands[i];
    const std::string words = op.operands.size() == 1 ? text : fmt::format("{}(operand {}) ", text, i);
    e.statement(
        op, fmt::format("block::print<{}>({}, {})", hex, quoted(words), e.type(v).is_tile() ? e.tile(v) : e.text(v)));
  }
}

// LLVM's `$0` is CUDA's `%0`; a `%` of its own is doubled.
std::string assembly(const std::string& text) {
  std::string r;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      r += "%%";
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      r += '$';
      ++i;
    } else {
      r += text[i] == '$' ? '%' : text[i];
    }
  }
  return r;
}

void emit_assembly(Emitter& e, const Op& op) {
  if (e.options.emulated) {
    throw Error(ErrorCode::kUnsupportedOperator, e.kernel.place(op.frame),
                "inline assembly is PTX, which the emulated GPU does not run; on a GPU it runs",
                "Write the operation in the tile language, or run the kernel on a GPU");
  }
  if (op.attributes.integer("pack", 1) != 1 || op.results.size() != 1) {
    throw Error(ErrorCode::kUnsupportedOperator, e.kernel.place(op.frame),
                "`inline_asm` of several elements or results at once has no form on a GPU yet",
                "Write one that takes one element and gives one");
  }
  std::vector<std::string> constraints, parameters, inputs;
  std::string rest = op.attributes.find("constraints")->text + ",";
  for (size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
    std::string one = rest.substr(0, comma);
    std::erase(one, ' ');
    if (!one.empty()) constraints.push_back(one);
    rest.erase(0, comma + 1);
  }
  if (constraints.size() < 1 + op.operands.size()) {
    throw Error(ErrorCode::kInvalidIr, e.kernel.place(op.frame),
                fmt::format("`inline_asm` has {} constraints for a result and {} operands", constraints.size(),
                            op.operands.size()));
  }
  std::vector<std::string> operands;
  bool tiles = false;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Type& type = e.type(op.operands[i]);
    const std::string name(1, static_cast<char>('a' + i));
    tiles = tiles || (type.is_tile() && !e.uniform(op.operands[i]));
    parameters.push_back(fmt::format("{} {}", scalar_type(type.scalar_type()), name));
    const bool word = !type.pointer && size_of(type.element) <= 2;
    inputs.push_back(
        fmt::format("\"{}\"({})", constraints[i + 1], word ? fmt::format("block::bits_of({})", name) : name));
    operands.push_back(e.text(op.operands[i]));
  }
  const std::string f = e.fresh("f"), type = scalar_type(e.type(op.results[0]).scalar_type());
  e.out.open(fmt::format("const auto {} = []({}) {{", f, fmt::join(parameters, ", ")));
  e.out.line("{} r;", type);
  e.out.line("asm volatile({} : \"{}\"(r) : {});", quoted(assembly(op.attributes.find("asm")->text)), constraints[0],
             fmt::join(inputs, ", "));
  e.out.raw("return r;");
  e.out.close("};");
  const std::string all = fmt::format("{}", fmt::join(operands, ", "));
  e.declare(op, op.results[0], tiles ? fmt::format("block::map({}, {})", f, all) : fmt::format("{}({})", f, all));
  if (!tiles && e.type(op.results[0]).is_tile()) e.bind_uniform(op.results[0], e.text(op.results[0]));
}

}  // namespace

bool emit_effect(Emitter& e, const Op& op) {
  switch (op.code) {
    case OpCode::kBarrier:
      return e.statement(op, has_volatile_load(e.kernel) ? "block::sync_memory()" : "block::sync()"), true;
    case OpCode::kAssume:
      return true;
    case OpCode::kAssert:
      return emit_assert(e, op), true;
    case OpCode::kPrint:
      return emit_print(e, op), true;
    case OpCode::kInlineAsm:
      return emit_assembly(e, op), true;
    case OpCode::kYield:
      return true;  // of a region without results
    default:
      return false;
  }
}

}  // namespace heddle::lang::cuda
