#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/tensor.h"
#include "lang/interpret/argument.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// The value of a kernel parameter in a launch: an operand, a result or a buffer of the program, or a number.
struct LaunchArgument {
  enum class Kind : uint8_t { kOperand, kResult, kBuffer, kNumber };
  Kind kind = Kind::kNumber;
  size_t index = 0;  // number of the operand, result or buffer
  Argument number;

  bool is_memory() const { return kind != Kind::kNumber; }
  bool is_same_memory(const LaunchArgument& other) const { return kind == other.kind && index == other.index; }
};

struct Launch {
  size_t kernel = 0;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::vector<LaunchArgument> arguments;
};

// A sequence of kernel launches. The launches work on operands, on results and on the program's own buffers
// (docs/design/tile-language.md, "Programs").
struct Program {
  std::vector<int64_t> buffers;  // size of each buffer in bytes
  std::vector<Kernel> kernels;   // verified
  std::vector<Launch> launches;
};

// A tensor that a program reads or writes.
struct ProgramTensor {
  DType dtype = DType::kF32;
  Shape shape;
};

// Returns the operands, results and buffers that a launch names: each once, in the order of the launch's arguments.
std::vector<LaunchArgument> memory_of(const Launch& launch);
// Returns the position of an argument in the list that memory_of() returned.
size_t position_of(const LaunchArgument& argument, const std::vector<LaunchArgument>& memory);

// Parses a program. Throws kInvalidIr for an error in the text or in a kernel, and for a launch that does not fit its
// kernel or the tensors (another element type, an index out of range). Throws kUnsupportedOperator for assertions and
// prints, because nobody would see their messages.
Program parse_program(std::string_view text, const std::vector<ProgramTensor>& operands,
                      const std::vector<ProgramTensor>& results);

// Returns the text of a program, including the kernels that it launches.
std::string print_program(const Program& program);

// Runs the program in the interpreter and returns its results. This defines the meaning of the program. Each access is
// checked against the bounds of its tensor. Throws the errors of interpret().
std::vector<Tensor> run_reference(const Program& program, const std::vector<Tensor>& operands,
                                  const std::vector<ProgramTensor>& results);

}  // namespace heddle::lang
