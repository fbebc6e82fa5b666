#include "runtime/cpu_executor.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/memory.h"
#include "base/thread/cancel.h"
#include "runtime/program.h"

namespace heddle::runtime {

// The memory of one run. Pointers into the arena and to constants are set when it is made; those to inputs and outputs
// (of the plan and of its bodies) at each run.
struct Context {
  std::shared_ptr<std::byte> arena, scratch;
  std::vector<void*> pointers;
};

namespace {

// Fixes what does not change from run to run.
void set_static_pointers(const Program& program, std::byte* arena, std::vector<void*>& table) {
  const Plan& plan = *program.plan;
  void** pointers = table.data() + program.pointers_at;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.place == Place::kArena) pointers[i] = arena + buffer.offset;
    // Kernels take all operands as void*; they do not write to constants.
    if (buffer.place == Place::kConstant) pointers[i] = const_cast<void*>(plan.constants[buffer.index].data());
  }
  for (const Program::Op& op : program.ops) {
    if (op.kernel != nullptr) {
      const auto& step = std::get<KernelStep>(op.step->action);
      for (size_t i = 0; i < step.operands.size(); ++i) table[op.operands_at + i] = pointers[step.operands[i]];
    } else if (op.loop) {
      const auto& step = std::get<LoopStep>(op.step->action);
      auto* workspace = static_cast<std::byte*>(pointers[step.workspace]);
      set_static_pointers(*op.loop->body, workspace + op.loop->layout.arena, table);
    } else if (op.then_body) {
      auto* workspace = static_cast<std::byte*>(pointers[std::get<BranchStep>(op.step->action).workspace]);
      set_static_pointers(*op.then_body, workspace, table);
      set_static_pointers(*op.else_body, workspace, table);
    }
  }
}

// One run: walks programs over the tables of a context.
class Run {
 public:
  Run(Context& context, ThreadPool& pool, const Interpreter* interpreter, int64_t scratch_stride)
      : table_(context.pointers.data()),
        scratch_(context.scratch.get()),
        scratch_stride_(scratch_stride),
        pool_(pool),
        interpreter_(interpreter) {}

  void execute(const Program& program) {
    for (const Program::Op& op : program.ops) execute(program, op);
  }

  void execute(const Program& program, const Program::Op& op) {
    check_cancelled();
    void** pointers = table_ + program.pointers_at;
    if (op.kernel != nullptr) return run_kernel(op, pointers);
    if (op.loop) return run_loop(std::get<LoopStep>(op.step->action), *op.loop, pointers);
    if (op.then_body) return run_branch(std::get<BranchStep>(op.step->action), op, pointers);
    if (const auto* copy = std::get_if<CopyStep>(&op.step->action)) {
      copy_bytes(pointers[copy->to], pointers[copy->from], program.plan->buffers[copy->to].bytes);
    } else {
      run_reference(*program.plan, std::get<ReferenceStep>(op.step->action), op, pointers);
    }
  }

  void set_input(const Program& program, size_t port, const void* data) {
    void** pointers = table_ + program.pointers_at;
    for (uint32_t buffer : program.inputs[port]) pointers[buffer] = const_cast<void*>(data);
  }

  void set_output(const Program& program, size_t port, void* data) {
    void** pointers = table_ + program.pointers_at;
    for (uint32_t buffer : program.outputs[port]) pointers[buffer] = data;
  }

  // Where the value of an output port lies when the program has run.
  void* result(const Program& program, size_t port) const {
    return table_[program.pointers_at + program.plan->outputs[port].buffer];
  }

  static void copy_bytes(void* to, const void* from, int64_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

 private:
  void run_kernel(const Program::Op& op, void** pointers) {
    const auto& step = std::get<KernelStep>(op.step->action);
    void** operands = table_ + op.operands_at;
    if (!op.fixed) {
      for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = pointers[step.operands[i]];
    }
    if (step.tasks == 1) return op.kernel(operands, scratch_, 0, 1);
    pool_.run(step.tasks, [&](int64_t begin, int64_t end, int worker) {
      std::byte* const scratch = scratch_ + worker * scratch_stride_;
      each_part(begin, end, op.longest_range,
                [&](int64_t from, int64_t to) { op.kernel(operands, scratch, from, to); });
    });
  }

  void run_reference(const Plan& plan, const ReferenceStep& step, const Program::Op& op, void** pointers) {
    std::vector<Tensor> parameters;
    for (uint32_t index : step.parameters) {
      const Buffer& buffer = plan.buffers[index];
      parameters.push_back(Tensor::borrow(buffer.dtype, buffer.shape, pointers[index], nullptr));
    }
    const std::vector<Tensor> results = interpreter_->run(op.prepared.get(), std::move(parameters));
    HEDDLE_CHECK(results.size() == step.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Buffer& buffer = plan.buffers[step.results[i]];
      HEDDLE_CHECK(results[i].dtype() == buffer.dtype && static_cast<int64_t>(results[i].bytes()) == buffer.bytes,
                   "a reference step returned {}{} for {}{}", to_string(results[i].dtype()),
                   to_string(results[i].shape()), to_string(buffer.dtype), to_string(buffer.shape));
      copy_bytes(pointers[step.results[i]], results[i].data(), buffer.bytes);
    }
  }

  void run_loop(const LoopStep& step, const Program::Loop& loop, void** pointers) {
    const Program& body = *loop.body;
    auto* workspace = static_cast<std::byte*>(pointers[step.workspace]);
    const size_t states = step.states.size();
    void** current = table_ + loop.current_at;
    auto* iteration = reinterpret_cast<int64_t*>(workspace + loop.layout.iteration);
    auto* condition_in = reinterpret_cast<uint8_t*>(workspace + loop.layout.condition_in);

    int64_t trip = *static_cast<const int64_t*>(pointers[step.trip]);
    if (step.trip_bound >= 0) trip = std::min(trip, step.trip_bound);
    bool condition = *static_cast<const uint8_t*>(pointers[step.condition]) != 0;
    for (size_t k = 0; k < states; ++k) current[k] = pointers[step.states[k]];
    for (size_t k = 0; k < step.invariants.size(); ++k) set_input(body, 2 + states + k, pointers[step.invariants[k]]);
    set_input(body, 0, iteration);
    set_input(body, 1, condition_in);
    set_output(body, 0, workspace + loop.layout.condition_out);

    int64_t done = 0;
    for (; done < trip && condition; ++done) {
      *iteration = done;
      *condition_in = 1;
      // States alternate between two buffers such that the last iteration writes the result in place.
      const bool to_result = (trip - 1 - done) % 2 == 0;
      for (size_t k = 0; k < states; ++k) {
        set_input(body, 2 + k, current[k]);
        set_output(body, 1 + k, to_result ? pointers[step.final_states[k]] : workspace + loop.layout.spare[k]);
      }
      for (size_t k = 0; k < step.stacked.size(); ++k)
        set_output(body, 1 + states + k, slice(step, loop, k, done, pointers));
      execute(body);
      condition = *static_cast<const uint8_t*>(result(body, 0)) != 0;
      for (size_t k = 0; k < step.stacked.size(); ++k) {
        copy_bytes(slice(step, loop, k, done, pointers), result(body, 1 + states + k), loop.slice_bytes[k]);
      }
      for (size_t k = 0; k < states; ++k) current[k] = result(body, 1 + k);
    }
    for (size_t k = 0; k < states; ++k) copy_bytes(pointers[step.final_states[k]], current[k], loop.state_bytes[k]);
    for (size_t k = 0; k < step.stacked.size(); ++k) {
      const int64_t missing = (step.trip_bound - done) * loop.slice_bytes[k];
      if (missing > 0) std::memset(slice(step, loop, k, done, pointers), 0, static_cast<size_t>(missing));
    }
  }

  static void* slice(const LoopStep& step, const Program::Loop& loop, size_t k, int64_t index, void** pointers) {
    return static_cast<std::byte*>(pointers[step.stacked[k]]) + index * loop.slice_bytes[k];
  }

  void run_branch(const BranchStep& step, const Program::Op& op, void** pointers) {
    const bool taken = *static_cast<const uint8_t*>(pointers[step.condition]) != 0;
    const Program& body = taken ? *op.then_body : *op.else_body;
    for (size_t k = 0; k < step.captured.size(); ++k) set_input(body, k, pointers[step.captured[k]]);
    for (size_t k = 0; k < step.results.size(); ++k) set_output(body, k, pointers[step.results[k]]);
    execute(body);
    for (size_t k = 0; k < step.results.size(); ++k) {
      copy_bytes(pointers[step.results[k]], result(body, k), body.plan->buffers[body.plan->outputs[k].buffer].bytes);
    }
  }

  void** table_;
  std::byte* scratch_;
  int64_t scratch_stride_;
  ThreadPool& pool_;
  const Interpreter* interpreter_;
};

}  // namespace

CpuExecutor::CpuExecutor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
                         std::shared_ptr<const Interpreter> interpreter, const Libraries& libraries)
    : Executor(std::move(plan)),
      pool_(std::move(pool)),
      interpreter_(std::move(interpreter)),
      program_(make_program(*plan_, interpreter_.get(), libraries)) {}

CpuExecutor::~CpuExecutor() = default;

int64_t CpuExecutor::bytes_per_run() const {
  int64_t bytes = plan_->arena_bytes + program_->scratch_bytes * pool_->threads();
  for (const Port& port : plan_->outputs) bytes += plan_->buffers[port.buffer].bytes;
  return bytes;
}

std::unique_ptr<Context> CpuExecutor::take_context() const {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Context> context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<Context>();
  context->arena = allocate(static_cast<size_t>(plan_->arena_bytes), "arena");
  context->scratch = allocate(static_cast<size_t>(program_->scratch_bytes * pool_->threads()), "scratch");
  context->pointers.resize(program_->pointers);
  set_static_pointers(*program_, context->arena.get(), context->pointers);
  return context;
}

std::vector<Tensor> CpuExecutor::run(std::span<const Tensor> inputs, const Observer& observe,
                                     std::span<const Tensor> into) const {
  HEDDLE_CHECK(inputs.size() == plan_->inputs.size());
  std::vector<void*> addresses;
  addresses.reserve(inputs.size() + plan_->outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEDDLE_CHECK(inputs[i].bytes() == static_cast<size_t>(plan_->buffers[plan_->inputs[i].buffer].bytes));
    addresses.push_back(const_cast<void*>(inputs[i].data()));  // kernels do not write to inputs
  }
  std::vector<Tensor> outputs(into.begin(), into.end());
  for (size_t i = outputs.size(); i < plan_->outputs.size(); ++i) {
    outputs.push_back(outputs_->take(i, plan_->outputs[i].dtype, plan_->outputs[i].shape));
  }
  for (Tensor& output : outputs) addresses.push_back(output.mutable_data());
  run_at(addresses, observe);
  return outputs;
}

void CpuExecutor::run_at(std::span<void* const> addresses) const {
  run_at(addresses, {});
}

void CpuExecutor::run_at(std::span<void* const> addresses, const Observer& observe) const {
  std::unique_ptr<Context> context = take_context();
  // Also after an error: nothing in a context outlives a run.
  const std::shared_ptr<void> give_back(nullptr, [&](void*) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(context));
  });
  run_in(*context, addresses, observe);
}

void CpuExecutor::run_in(Context& context, std::span<void* const> addresses, const Observer& observe) const {
  const size_t inputs = plan_->inputs.size();
  HEDDLE_CHECK(addresses.size() == inputs + plan_->outputs.size());
  const std::span<void* const> outputs = addresses.subspan(inputs);
  const auto bytes_of = [&](size_t output) { return plan_->buffers[plan_->outputs[output].buffer].bytes; };
  Run run(context, *pool_, interpreter_.get(), program_->scratch_bytes);
  for (size_t i = 0; i < inputs; ++i) run.set_input(*program_, i, addresses[i]);
  for (size_t i = 0; i < outputs.size(); ++i) run.set_output(*program_, i, outputs[i]);
  for (const Alias& alias : plan_->aliases) {
    if (alias.partial) Run::copy_bytes(outputs[alias.output], addresses[alias.input], bytes_of(alias.output));
  }
  for (size_t i = 0; i < program_->ops.size(); ++i) {
    run.execute(*program_, program_->ops[i]);
    if (!observe) continue;
    observe(i, [&](uint32_t index) {
      const Buffer& buffer = plan_->buffers[index];
      Tensor copy(buffer.dtype, buffer.shape);
      Run::copy_bytes(copy.mutable_data(), context.pointers[program_->pointers_at + index], buffer.bytes);
      return copy;
    });
  }
  for (size_t i = 0; i < outputs.size(); ++i) Run::copy_bytes(outputs[i], run.result(*program_, i), bytes_of(i));
}

}  // namespace heddle::runtime
