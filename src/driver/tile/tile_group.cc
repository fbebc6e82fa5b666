#include "driver/tile/tile_group.h"

#include <fmt/format.h>

#include "base/check.h"
#include "driver/target/backend.h"
#include "ir/tile_call.h"
#include "lang/program/program.h"
#include "schedule/floor.h"

namespace heddle::driver {
namespace {

using lang::LaunchArgument;
using schedule::Binding;
using schedule::Operand;

class TileGroup {
 public:
  TileGroup(const ir::Graph& graph, const ir::Node& node, const Target& target)
      : graph_(graph),
        node_(node),
        target_(target),
        program_(lang::parse_program(node.attrs.text("program"), program_tensors(graph, node.inputs),
                                     program_tensors(graph, node.outputs))),
        written_(node.outputs.size()) {}

  CompiledGroup run() {
    for (const int64_t bytes : program_.buffers) made_.scheduled.workspaces.push_back({bytes});
    made_.scheduled.notes.emplace_back("kernels of the tile language, given for this operator");
    for (const lang::Launch& launch : program_.launches) {
      if (launch.grid[0] * launch.grid[1] * launch.grid[2] > 0) add(launch);
    }
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      if (written_[i] || element_count(graph_.shape(node_.outputs[i])) == 0) continue;
      fail(ErrorCode::kInvalidIr, "tile program", fmt::format("no launch gets result {} to write it", i));
    }
    return std::move(made_);
  }

 private:
  void add(const lang::Launch& launch) {
    const lang::Kernel& kernel = program_.kernels[launch.kernel];
    schedule::ScheduledKernel scheduled;
    std::vector<int64_t> bytes;
    double written = 0;
    for (const LaunchArgument& memory : lang::memory_of(launch)) {
      scheduled.bindings.push_back(binding_of(memory));
      scheduled.desc.operands.push_back(operand_of(memory));
      bytes.push_back(bytes_of(memory));
      if (memory.kind != LaunchArgument::Kind::kResult) continue;
      written_[memory.index] = true;
      written += static_cast<double>(bytes.back());
    }
    scheduled.desc.body = std::make_shared<const schedule::TileDesc>(schedule::TileDesc{kernel.name});
    scheduled.label = fmt::format("tile {} {}x{}x{}", kernel.name, launch.grid[0], launch.grid[1], launch.grid[2]);
    const Backend& backend = backend_of(target_);
    // Nothing says whether it reads all of its operands.
    scheduled.floor_seconds = schedule::least_seconds(written, target_);
    made_.scheduled.kernels.push_back(std::move(scheduled));
    made_.sources.push_back(backend.tile_launch(kernel, launch, bytes, target_));
  }

  ir::ValueId value_of(const LaunchArgument& memory) const {
    return (memory.kind == LaunchArgument::Kind::kOperand ? node_.inputs : node_.outputs)[memory.index];
  }

  Binding binding_of(const LaunchArgument& memory) const {
    Binding binding;
    if (memory.kind == LaunchArgument::Kind::kBuffer) {
      binding.kind = Binding::Kind::kWorkspace;
      binding.workspace = static_cast<uint32_t>(memory.index);
    } else {
      binding.value = value_of(memory);
    }
    return binding;
  }

  // Results count as outputs wherever they stand: a later launch may read them, none may write an input.
  Operand operand_of(const LaunchArgument& memory) const {
    Operand operand;
    if (memory.kind == LaunchArgument::Kind::kBuffer) {
      operand.dtype = DType::kU8;
      operand.shape = {program_.buffers[memory.index]};
      return operand;
    }
    const ir::TensorType& type = graph_.type(value_of(memory));
    operand.dtype = type.dtype;
    operand.shape = type.shape;
    if (memory.kind == LaunchArgument::Kind::kResult) operand.role = Operand::Role::kOutput;
    return operand;
  }

  int64_t bytes_of(const LaunchArgument& memory) const {
    if (memory.kind == LaunchArgument::Kind::kBuffer) return program_.buffers[memory.index];
    const ir::TensorType& type = graph_.type(value_of(memory));
    return element_count(type.shape) * static_cast<int64_t>(size_of(type.dtype));
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  const Target& target_;
  const lang::Program program_;
  std::vector<bool> written_;  // by result
  CompiledGroup made_;
};

std::vector<ir::Array> evaluate(const ir::EvalContext& context) {
  std::vector<Tensor> operands;
  std::vector<lang::ProgramTensor> inputs, results;
  for (const ir::Array* array : context.inputs) {
    operands.push_back(ir::to_tensor(*array));
    inputs.push_back({array->dtype, array->shape});
  }
  for (const ir::TensorType& type : context.outputs) results.push_back({type.dtype, type.shape});
  const lang::Program program = lang::parse_program(context.attrs.text("program"), inputs, results);
  std::vector<ir::Array> arrays;
  for (const Tensor& tensor : lang::run_reference(program, operands, results)) arrays.push_back(ir::to_array(tensor));
  return arrays;
}

}  // namespace

std::vector<lang::ProgramTensor> program_tensors(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  std::vector<lang::ProgramTensor> tensors;
  for (const ir::ValueId v : values) tensors.push_back({graph.dtype(v), graph.shape(v)});
  return tensors;
}

CompiledGroup compile_tile_group(const ir::Graph& graph, const ir::Group& group, const Target& target) {
  const ir::Node& node = graph.node(group.anchor);
  try {
    return TileGroup(graph, node, target).run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal || node.origins.empty()) throw;
    const ir::Origin& origin = graph.origin(node.origins[0]);
    fail(error.code(), fmt::format("node '{}' ({}): {}", origin.node, origin.op_type, error.where()), error.why(),
         error.remedy());
  }
}

void install_tile_evaluator() {
  ir::set_tile_evaluator(&evaluate);
}

}  // namespace heddle::driver
