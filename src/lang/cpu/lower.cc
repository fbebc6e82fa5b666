#include "lang/cpu/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "codegen/text/kernel_name.h"
#include "lang/cpu/control.h"
#include "lang/cpu/types.h"
#include "tile/core/cpu_program.h"

namespace heddle::lang::cpu {
namespace {

// "x_" from word i of the arguments.
std::string argument_text(const Type& type, size_t i) {
  const std::string word = fmt::format("arguments[{}]", i);
  if (is_mask(type)) return fmt::format("mask<4, 1>{{{} != 0 ? -1 : 0}}", word);
  const std::string lanes = lane_type(type);
  if (type.pointer || !is_float(type.element)) return fmt::format("vec<{0}, 1>{{{0}({1})}}", lanes, word);
  const int64_t bytes = size_of(type.element);
  return fmt::format("from_bits<{}>(vec<uint_t<{}>, 1>{{uint_t<{}>({})}})", memory_type(type.element), bytes, bytes,
                     word);
}

std::string function(const std::string& head, const Lines& body) {
  std::string text =
      "#include \"tile/op/program.h\"\nnamespace tile = heddle::tile;\n\n"
      "extern \"C\" ";
  return text + head + " {\n" + body.text(1) + "}\n";
}

}  // namespace

ProgramText lower(const Kernel& kernel) {
  State state(kernel);
  Lines arguments;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ValueId value = kernel.parameters[i].value;
    const std::string name = state.fresh(value);
    arguments.add(fmt::format("const auto {} = {};", name, argument_text(state.type(value), i + tile::kProgramWords)));
    state.set_scalar(value, name);
  }
  const Lines program = write_body(state);
  Lines task;
  task.add(
      "const int64_t program[3] = {task % arguments[0], task / arguments[0] % arguments[1], task / arguments[0] / "
      "arguments[1]};");
  task.append(program);
  Lines body;
  body.add("using namespace tile;");
  body.add("const auto* const arguments = static_cast<const int64_t*>(operands[0]);");
  body.add("const auto* const services = static_cast<const program_services*>(operands[1]);");
  body.append(arguments);
  body.append(state.buffer_declarations());
  body.block("for (int64_t task = begin; task < end; ++task)", task);
  ProgramText result;
  result.text = function(
      fmt::format("void {}(void* const* operands, void* scratch, int64_t begin, int64_t end)", codegen::kStandIn),
      body);
  result.symbol = codegen::name_kernel(result.text, kernel.name);
  result.scratch_bytes = state.scratch_bytes();
  return result;
}

}  // namespace heddle::lang::cpu
