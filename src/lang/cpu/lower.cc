#include "lang/cpu/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "codegen/text/kernel_name.h"
#include "lang/analysis/waits.h"
#include "lang/cpu/control.h"
#include "lang/cpu/types.h"
#include "lang/passes/fold_accumulation.h"
#include "lang/passes/shorten_offsets.h"
#include "lang/passes/uniform_induction.h"
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

constexpr const char* kHeader = "tile/op/program.h";

std::string function(const Writer& body) {
  Writer lines(1);
  lines.append(body);
  return fmt::format(
      "extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{\n{}}}\n",
      codegen::kStandIn, lines.text());
}

// The body of the function, below what defines `arguments` and `services`.
Writer tasks_of(const Kernel& kernel, State& state) {
  Writer body;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ValueId value = kernel.parameters[i].value;
    const std::string name = state.fresh(value);
    body.line("const auto {} = {};", name, argument_text(state.type(value), i + tile::kProgramWords));
    state.set_scalar(value, name);
  }
  const Writer program = write_body(state);
  Writer task;
  task.raw(
      "const int64_t program[3] = {task % arguments[0], task / arguments[0] % arguments[1], task / arguments[0] / "
      "arguments[1]};");
  task.append(program);
  body.append(state.buffer_declarations());
  body.block("for (int64_t task = begin; task < end; ++task)", task);
  return body;
}

// "int64_t(operands[0])", "int64_t(0x3f800000)": the words of a launch behind its grid.
std::vector<std::string> words_of(const Kernel& kernel, const Launch& launch) {
  const std::vector<LaunchArgument> memory = memory_of(launch);
  std::vector<Argument> numbers;
  for (const LaunchArgument& argument : launch.arguments) numbers.push_back(argument.number);
  std::vector<std::string> words;
  for (const int64_t extent : launch.grid) words.push_back(std::to_string(extent));
  for (const uint64_t word : argument_words(kernel, numbers)) {
    const LaunchArgument& argument = launch.arguments[words.size() - tile::kProgramWords];
    if (!argument.is_memory()) {
      words.push_back(fmt::format("int64_t({:#x}u)", word));
      continue;
    }
    words.push_back(fmt::format("int64_t(operands[{}])", position_of(argument, memory)));
  }
  return words;
}

void rewrite(Kernel& kernel) {
  fold_accumulation(kernel);
  uniform_induction(kernel);
  shorten_offsets(kernel);
}

}  // namespace

ProgramText lower(Kernel& kernel) {
  rewrite(kernel);
  State state(kernel);
  Writer body;
  body.raw("using namespace tile;");
  body.raw("const auto* const arguments = static_cast<const int64_t*>(operands[0]);");
  body.raw("const auto* const services = static_cast<const program_services*>(operands[1]);");
  body.append(tasks_of(kernel, state));
  ProgramText result;
  result.text = fmt::format("#include \"{}\"\nnamespace tile = heddle::tile;\n\n", kHeader) + function(body);
  result.symbol = codegen::name_kernel(result.text, kernel.name);
  result.scratch_bytes = state.scratch_bytes();
  return result;
}

codegen::KernelSource lower_launch(Kernel kernel, const Launch& launch) {
  rewrite(kernel);
  State state(kernel);
  Writer body;
  body.raw("using namespace tile;");
  body.line("const int64_t arguments[] = {{{}}};", fmt::join(words_of(kernel, launch), ", "));
  if (has_wait(kernel)) body.raw("constexpr const program_services* services = nullptr;");
  body.append(tasks_of(kernel, state));
  codegen::KernelSource source;
  source.includes = {kHeader};
  source.text = function(body);
  source.symbol = codegen::name_kernel(source.text, kernel.name);
  source.scratch_bytes = state.scratch_bytes();
  source.tasks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  return source;
}

}  // namespace heddle::lang::cpu
