#include "runtime/program.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::runtime {
namespace {

class Linker {
 public:
  Linker(const Interpreter* interpreter, const Libraries& libraries)
      : interpreter_(interpreter), libraries_(libraries) {}

  std::unique_ptr<Program> link(const Plan& plan) {
    auto program = std::make_unique<Program>();
    program->plan = &plan;
    program->pointers_at = take(plan.buffers.size());
    program->inputs.resize(plan.inputs.size());
    program->outputs.resize(plan.outputs.size());
    for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      if (buffer.place == Place::kInput) program->inputs[buffer.index].push_back(i);
      if (buffer.place == Place::kOutput) program->outputs[buffer.index].push_back(i);
    }
    for (const Step& step : plan.steps) {
      Program::Op& op = program->ops.emplace_back();
      op.step = &step;
      std::visit([&](const auto& action) { link(plan, action, op); }, step.action);
    }
    return program;
  }

  size_t pointers() const { return pointers_; }
  int64_t scratch_bytes() const { return scratch_; }

 private:
  size_t take(size_t count) {
    const size_t at = pointers_;
    pointers_ += count;
    return at;
  }

  void link(const Plan& plan, const KernelStep& step, Program::Op& op) {
    if (libraries_.empty()) {
      fail(ErrorCode::kDamagedArtefact, "plan", "it has kernels, but no library", "Compile the model again");
    }
    for (const auto& library : libraries_) {
      if (op.kernel == nullptr) op.kernel = library->find_if_there(step.symbol);
    }
    if (op.kernel == nullptr) op.kernel = libraries_[0]->find(step.symbol);
    op.operands_at = take(step.operands.size());
    op.fixed = std::all_of(step.operands.begin(), step.operands.end(), [&](uint32_t buffer) {
      return plan.buffers[buffer].place == Place::kArena || plan.buffers[buffer].place == Place::kConstant;
    });
    op.longest_range = longest_range(*op.step, step.tasks);
    scratch_ = std::max(scratch_, aligned(step.scratch_bytes));
  }

  // Parts that take long compared with the cost of a call.
  static int64_t longest_range(const Step& step, int64_t tasks) {
    constexpr double kPart = 0.03;  // seconds
    constexpr int64_t kUnknown = 16;
    const int64_t parts =
        step.floor_seconds > 0 ? static_cast<int64_t>(std::min(step.floor_seconds / kPart, 1e6)) : kUnknown;
    return parts < 2 ? 0 : std::max<int64_t>(1, tasks / parts);
  }

  void link(const Plan& plan, const ReferenceStep& step, Program::Op& op) {
    HEDDLE_CHECK(interpreter_ != nullptr, "the plan needs an interpreter");
    op.prepared = prepare(*interpreter_, plan, step);
  }

  void link(const Plan&, const CopyStep&, Program::Op&) {}

  void link(const Plan&, const CudaStep&, Program::Op&) {
    fail(ErrorCode::kDamagedArtefact, "plan", "it has kernels for a GPU, but was made for a CPU",
         "Compile the model again");
  }

  void link(const Plan&, const LoopStep& step, Program::Op& op) {
    op.loop = std::make_unique<Program::Loop>();
    op.loop->layout = layout_of(step);
    op.loop->current_at = take(step.states.size());
    const auto bytes = [&](size_t port) { return step.body->buffers[step.body->outputs[port].buffer].bytes; };
    for (size_t i = 0; i < step.states.size(); ++i) op.loop->state_bytes.push_back(bytes(1 + i));
    for (size_t i = 0; i < step.stacked.size(); ++i) {
      op.loop->slice_bytes.push_back(bytes(1 + step.states.size() + i));
    }
    op.loop->body = link(*step.body);
  }

  void link(const Plan&, const BranchStep& step, Program::Op& op) {
    op.then_body = link(*step.then_body);
    op.else_body = link(*step.else_body);
  }

  const Interpreter* interpreter_;
  const Libraries& libraries_;
  size_t pointers_ = 0;
  int64_t scratch_ = 0;
};

}  // namespace

std::unique_ptr<const Program> make_program(const Plan& plan, const Interpreter* interpreter,
                                            const Libraries& libraries) {
  Libraries all;
  if (!plan.library.empty()) all.push_back(jit::Library::load(plan.library));
  all.insert(all.end(), libraries.begin(), libraries.end());
  Linker linker(interpreter, all);
  std::unique_ptr<Program> program = linker.link(plan);
  program->libraries = std::move(all);
  program->pointers = linker.pointers();
  program->scratch_bytes = linker.scratch_bytes();
  return program;
}

}  // namespace heddle::runtime
