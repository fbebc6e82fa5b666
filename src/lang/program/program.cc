#include "lang/program/program.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/check.h"
#include "lang/analysis/accesses.h"
#include "lang/interpret/interpret.h"
#include "lang/ir/parse.h"
#include "lang/ir/print.h"

namespace heddle::lang {
namespace {

constexpr std::string_view kHead = "tile_program 1";
constexpr std::string_view kKernelHead = "tile_ir ";
constexpr size_t kMostLaunches = 1024;
constexpr double kMostPrograms = 0x1p50;

[[noreturn]] void refuse(std::string why) {
  fail(ErrorCode::kInvalidIr, "tile program", std::move(why));
}

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<int64_t> integer_of(std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  uint64_t large = 0;
  const auto [large_end, large_error] = std::from_chars(word.data(), word.data() + word.size(), large);
  if (large_error == std::errc() && large_end == word.data() + word.size()) return static_cast<int64_t>(large);
  return std::nullopt;
}

int64_t size_in(std::string_view word) {
  const std::optional<int64_t> value = integer_of(word);
  if (!value || *value < 0) refuse(fmt::format("\"{}\" is no size", word));
  return *value;
}

// "%in0", "%out1", "%buffer0", "42", "0x1.8p+1"
LaunchArgument argument_of(std::string_view word) {
  using Kind = LaunchArgument::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"%in", Kind::kOperand}, {"%out", Kind::kResult}, {"%buffer", Kind::kBuffer}};
  LaunchArgument argument;
  for (const auto& [prefix, kind] : kKinds) {
    if (!word.starts_with(prefix)) continue;
    argument.kind = kind;
    argument.index = static_cast<size_t>(size_in(word.substr(prefix.size())));
    return argument;
  }
  if (const auto integer = integer_of(word)) {
    argument.number = Argument::of(*integer);
    return argument;
  }
  const std::string text(word);
  char* end = nullptr;
  argument.number = Argument::of_number(std::strtod(text.c_str(), &end));
  if (text.empty() || end != text.c_str() + text.size()) refuse(fmt::format("\"{}\" is no argument", word));
  return argument;
}

std::string argument_text(const LaunchArgument& argument, const Type& type) {
  switch (argument.kind) {
    case LaunchArgument::Kind::kOperand:
      return fmt::format("%in{}", argument.index);
    case LaunchArgument::Kind::kResult:
      return fmt::format("%out{}", argument.index);
    case LaunchArgument::Kind::kBuffer:
      return fmt::format("%buffer{}", argument.index);
    case LaunchArgument::Kind::kNumber:
      break;
  }
  return is_float(type.element) ? fmt::format("{:a}", argument.number.number) : std::to_string(argument.number.integer);
}

// "launch 0 grid 4 1 1 arguments %in0 %out0 128"
Launch launch_of(const std::vector<std::string_view>& words) {
  constexpr size_t kFirst = 7;
  if (words.size() < kFirst || words[2] != "grid" || words[6] != "arguments") {
    refuse("a launch is written `launch KERNEL grid X Y Z arguments ...`");
  }
  Launch launch;
  launch.kernel = static_cast<size_t>(size_in(words[1]));
  double programs = 1;
  for (size_t d = 0; d < 3; ++d) {
    launch.grid[d] = size_in(words[3 + d]);
    programs *= static_cast<double>(launch.grid[d]);
  }
  if (programs > kMostPrograms) refuse(fmt::format("a launch of {:g} programs never ends", programs));
  for (size_t i = kFirst; i < words.size(); ++i) launch.arguments.push_back(argument_of(words[i]));
  return launch;
}

void check_argument(const Kernel& kernel, size_t position, const LaunchArgument& argument, const Program& program,
                    const std::vector<ProgramTensor>& operands, const std::vector<ProgramTensor>& results) {
  const ValueId parameter = kernel.parameters[position].value;
  const Type& type = kernel.type(parameter);
  const std::string where = fmt::format("parameter {} of @{}", kernel.value_name(parameter), kernel.name);
  if (type.pointer != argument.is_memory()) {
    refuse(fmt::format("{} is a {}, and its argument is not", where, to_string(type)));
  }
  if (!argument.is_memory()) return;
  if (argument.kind == LaunchArgument::Kind::kBuffer) {
    if (argument.index >= program.buffers.size()) refuse(where + " gets a buffer that is not declared");
    return;
  }
  const auto& tensors = argument.kind == LaunchArgument::Kind::kOperand ? operands : results;
  if (argument.index >= tensors.size()) refuse(where + " gets a tensor that the operator does not have");
  const DType dtype = tensors[argument.index].dtype;
  const std::optional<Element> element = element_of(dtype);
  if (element && size_of(*element) == size_of(type.element)) return;
  refuse(fmt::format("{} is a {}, and its tensor has elements of {}", where, to_string(type), to_string(dtype)));
}

void refuse_reports(const Kernel& kernel) {
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.code != OpCode::kPrint && op.code != OpCode::kAssert) return;
    fail(ErrorCode::kUnsupportedOperator, kernel.place(op.frame),
         fmt::format("`{}` in a kernel of a model has nobody to report to", info_of(op.code).name),
         "Leave it out, or launch the kernel from Python");
  });
}

void check(const Program& program, const std::vector<ProgramTensor>& operands,
           const std::vector<ProgramTensor>& results) {
  for (const Kernel& kernel : program.kernels) refuse_reports(kernel);
  if (program.launches.size() > kMostLaunches) refuse(fmt::format("it has more than {} launches", kMostLaunches));
  for (const Launch& launch : program.launches) {
    if (launch.kernel >= program.kernels.size()) refuse("a launch names a kernel that is not there");
    const Kernel& kernel = program.kernels[launch.kernel];
    if (launch.arguments.size() != kernel.parameters.size()) {
      refuse(fmt::format("@{} has {} parameters, a launch gives it {} arguments", kernel.name, kernel.parameters.size(),
                         launch.arguments.size()));
    }
    const std::vector<Accesses> accesses = accesses_of(kernel);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const LaunchArgument& argument = launch.arguments[i];
      check_argument(kernel, i, argument, program, operands, results);
      if (argument.kind != LaunchArgument::Kind::kOperand || !accesses[i].writes) continue;
      fail(ErrorCode::kInvalidArgument, "kernel " + kernel.name,
           fmt::format("it writes to {}, where it gets input {} of the operator, which others read",
                       kernel.value_name(kernel.parameters[i].value), argument.index),
           "Write to an array that the operator makes, after a kernel that copies the input to it");
    }
  }
}

// Fresh memory is not a number, so that reading what was never written shows.
Tensor fresh(const ProgramTensor& type) {
  Tensor tensor(type.dtype, type.shape);
  if (tensor.bytes() > 0 && type.dtype != DType::kBool) std::memset(tensor.mutable_data(), 0xff, tensor.bytes());
  return tensor;
}

}  // namespace

std::vector<LaunchArgument> memory_of(const Launch& launch) {
  std::vector<LaunchArgument> memory;
  for (const LaunchArgument& argument : launch.arguments) {
    if (argument.is_memory() && position_of(argument, memory) == memory.size()) memory.push_back(argument);
  }
  return memory;
}

size_t position_of(const LaunchArgument& argument, const std::vector<LaunchArgument>& memory) {
  const auto found = std::find_if(memory.begin(), memory.end(),
                                  [&](const LaunchArgument& other) { return other.is_same_memory(argument); });
  return static_cast<size_t>(found - memory.begin());
}

Program parse_program(std::string_view text, const std::vector<ProgramTensor>& operands,
                      const std::vector<ProgramTensor>& results) {
  if (take_line(text) != kHead) refuse(fmt::format("its text does not begin with \"{}\"", kHead));
  Program program;
  while (!text.empty() && !text.starts_with(kKernelHead)) {
    const std::vector<std::string_view> words = words_of(take_line(text));
    if (words.empty()) continue;
    if (words[0] == "launch") {
      program.launches.push_back(launch_of(words));
    } else if (words[0] == "buffers") {
      for (size_t i = 1; i < words.size(); ++i) program.buffers.push_back(size_in(words[i]));
    } else {
      refuse(fmt::format("\"{}\" is nothing that a program has", words[0]));
    }
  }
  while (!text.empty()) {
    const size_t next = text.find("\ntile_ir ");
    const size_t end = next == std::string_view::npos ? text.size() : next + 1;
    program.kernels.push_back(parse_and_verify(text.substr(0, end)));
    text.remove_prefix(end);
  }
  check(program, operands, results);
  return program;
}

std::string print_program(const Program& program) {
  std::vector<size_t> numbers(program.kernels.size(), program.kernels.size());  // of the kernels in the text
  std::vector<size_t> order;
  std::string text = std::string(kHead) + "\n";
  if (!program.buffers.empty()) text += fmt::format("buffers {}\n", fmt::join(program.buffers, " "));
  for (const Launch& launch : program.launches) {
    size_t& number = numbers[launch.kernel];
    if (number == numbers.size()) {
      number = order.size();
      order.push_back(launch.kernel);
    }
    text += fmt::format("launch {} grid {} arguments", number, fmt::join(launch.grid, " "));
    const Kernel& kernel = program.kernels[launch.kernel];
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      text += " " + argument_text(launch.arguments[i], kernel.type(kernel.parameters[i].value));
    }
    text += "\n";
  }
  for (const size_t kernel : order) text += print(program.kernels[kernel]);
  return text;
}

std::vector<Tensor> run_reference(const Program& program, const std::vector<Tensor>& operands,
                                  const std::vector<ProgramTensor>& results) {
  std::vector<Tensor> made, buffers;
  for (const ProgramTensor& type : results) made.push_back(fresh(type));
  for (const int64_t bytes : program.buffers) buffers.push_back(fresh({DType::kU8, {bytes}}));
  InterpretOptions options;
  const auto allocate = [&](const std::vector<Tensor>& tensors, const char* what) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].bytes() == 0) continue;
      options.allocations.push_back(
          {reinterpret_cast<uintptr_t>(tensors[i].data()), tensors[i].bytes(), fmt::format("{} {}", what, i)});
    }
  };
  allocate(operands, "input");
  allocate(made, "output");
  allocate(buffers, "buffer");
  for (const Launch& launch : program.launches) {
    std::vector<Argument> arguments;
    for (const LaunchArgument& argument : launch.arguments) {
      const auto* tensors = argument.kind == LaunchArgument::Kind::kOperand  ? &operands
                            : argument.kind == LaunchArgument::Kind::kResult ? &made
                                                                             : &buffers;
      arguments.push_back(argument.is_memory() ? Argument::of((*tensors)[argument.index].data()) : argument.number);
    }
    interpret(program.kernels[launch.kernel], launch.grid, arguments, options);
  }
  return made;
}

}  // namespace heddle::lang
