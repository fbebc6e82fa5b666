#include "runtime/cuda/run_state.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/memory.h"
#include "runtime/cuda/step_scope.h"

namespace heddle::runtime {
namespace {

Tensor uninitialised(DType dtype, const Shape& shape, size_t bytes) {
  std::shared_ptr<std::byte> memory = allocate(bytes, "a value for the host");
  const void* data = memory.get();
  return Tensor::borrow(dtype, shape, data, std::move(memory));
}

}  // namespace

CudaRunState::CudaRunState(CudaCode& code, const Plan& plan, const Interpreter* interpreter, ThreadPool& pool,
                           OutputPool& outputs)
    : plan_(plan),
      interpreter_(interpreter),
      pool_(pool),
      output_pool_(outputs),
      context_(code.context()),
      stream_(context_),
      memory_(code, plan),
      binding_(bind(plan, memory_)),
      pinned_inputs_(plan.inputs.size()),
      pinned_outputs_(plan.outputs.size()) {
  std::vector<size_t> at;
  const auto place = [&](size_t bytes) {
    at.push_back(pinned_bytes_);
    pinned_bytes_ += static_cast<size_t>(aligned(static_cast<int64_t>(bytes)));
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    place(memory_.has_input(i) ? static_cast<size_t>(plan.buffers[plan.inputs[i].buffer].bytes) : 0);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const bool on_host = binding_.outputs[i].host() != nullptr || binding_.outputs[i].input >= 0;
    place(on_host ? 0 : static_cast<size_t>(plan.buffers[plan.outputs[i].buffer].bytes));
  }
  pinned_ = std::make_unique<CudaHostBuffer>(context_, pinned_bytes_);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (memory_.has_input(i)) pinned_inputs_[i] = pinned_->data() + at[i];
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) pinned_outputs_[i] = pinned_->data() + at[plan.inputs.size() + i];
  capture(binding_.program);
}

CudaRunState::~CudaRunState() {
  // Copies to and from memory of this state may still be under way after an error.
  context_.enter();
  context_.driver().stream_synchronize(stream_.handle());
}

void CudaRunState::capture(CudaProgram& program) {
  for (CudaNode& node : program.nodes) {
    if (auto* segment = std::get_if<CudaSegment>(&node.what)) {
      segment->graph = std::make_unique<CudaGraph>(
          context_, [&] { enqueue_actions(context_, segment->actions, stream_.handle()); }, stream_.handle());
      ++graphs_;
    } else if (auto* loop = std::get_if<std::unique_ptr<CudaLoop>>(&node.what)) {
      capture((*loop)->body);
    } else if (auto* branch = std::get_if<std::unique_ptr<CudaBranch>>(&node.what)) {
      capture((*branch)->then_body);
      capture((*branch)->else_body);
    }
  }
}

// One thread copies at a part of the memory's bandwidth, which a large input or output would wait for.
void CudaRunState::copy_bytes(void* to, const void* from, size_t bytes) const {
  constexpr size_t kPiece = size_t{256} << 10;
  if (bytes == 0) return;
  if (bytes <= 2 * kPiece) {
    std::memcpy(to, from, bytes);
    return;
  }
  pool_.run(static_cast<int64_t>((bytes + kPiece - 1) / kPiece), [&](int64_t begin, int64_t end, int) {
    const size_t first = static_cast<size_t>(begin) * kPiece, last = std::min(bytes, static_cast<size_t>(end) * kPiece);
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first, last - first);
  });
}

void CudaRunState::send_inputs(std::span<const Tensor> inputs) {
  inputs_ = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (pinned_inputs_[i] == nullptr || inputs[i].bytes() == 0) continue;
    copy_bytes(pinned_inputs_[i], inputs[i].data(), inputs[i].bytes());
    context_.check(
        context_.driver().copy_in_async(memory_.input(i), pinned_inputs_[i], inputs[i].bytes(), stream_.handle()),
        "cuMemcpyHtoDAsync");
  }
}

std::vector<Tensor> CudaRunState::fetch_outputs(std::span<const Tensor> into) {
  std::vector<Tensor> outputs;
  const auto from_device = [&](size_t i) {
    const CudaValue& value = binding_.outputs[i];
    return value.host() == nullptr && value.input < 0 && outputs[i].bytes() > 0;
  };
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Port& port = plan_.outputs[i];
    const auto bytes = static_cast<size_t>(plan_.buffers[port.buffer].bytes);
    outputs.push_back(into.empty() ? output_pool_.take(i, port.dtype, port.shape) : into[i]);
    if (!from_device(i)) continue;
    context_.check(
        context_.driver().copy_out_async(pinned_outputs_[i], binding_.outputs[i].device, bytes, stream_.handle()),
        "cuMemcpyDtoHAsync");
  }
  stream_.synchronize();
  uploads_.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const CudaValue& value = binding_.outputs[i];
    const void* from = from_device(i)            ? pinned_outputs_[i]
                       : value.host() != nullptr ? value.host()
                       : value.input >= 0        ? inputs_[static_cast<size_t>(value.input)].data()
                                                 : nullptr;
    copy_bytes(outputs[i].mutable_data(), from, outputs[i].bytes());
  }
  return outputs;
}

std::vector<Tensor> CudaRunState::run(std::span<const Tensor> inputs, std::span<const Tensor> into) {
  context_.make_current();
  send_inputs(inputs);
  execute(binding_.program);
  return fetch_outputs(into);
}

// Runs are queued without waiting for one another, so that what a launch costs the host is not in between. Overwriting
// other memory hides that, too, and a graph that is launched before its last launch has ended begins later: some 1 us.
std::vector<double> CudaRunState::time(std::span<const Tensor> inputs, int runs, const Before& before) {
  context_.make_current();
  send_inputs(inputs);
  std::vector<std::unique_ptr<CudaStopwatch>> watches;
  for (int i = 0; i < runs; ++i) {
    if (before) before(stream_.handle());
    watches.push_back(std::make_unique<CudaStopwatch>(context_));
    watches.back()->start(stream_.handle());
    execute(binding_.program);
    watches.back()->stop(stream_.handle());
    if (before) stream_.synchronize();
  }
  stream_.synchronize();
  uploads_.clear();
  std::vector<double> seconds;
  for (const auto& watch : watches) seconds.push_back(watch->seconds());
  return seconds;
}

void CudaRunState::repeat(std::span<const Tensor> inputs, const std::function<void(const Executor::Repeat&)>& use) {
  time(inputs, 0, {});  // only sends the inputs
  use([&](int64_t runs) {
    for (int64_t i = 0; i < runs; ++i) execute(binding_.program);
    stream_.synchronize();
  });
}

// Graphs like those of run(), with marks between the steps. A mark costs time itself, which two marks with nothing
// between them tell.
std::vector<double> CudaRunState::time_steps(std::span<const Tensor> inputs, int runs) {
  context_.make_current();
  send_inputs(inputs);
  struct Marked {
    explicit Marked(const CudaContext& context) : marks(context) {}
    CudaMarks marks;
    std::vector<size_t> steps;  // of mark i + 1 to mark i + 2
    std::unique_ptr<CudaGraph> graph;
  };
  std::vector<std::unique_ptr<Marked>> marked;
  for (const CudaNode& node : binding_.program.nodes) {
    marked.push_back(nullptr);
    const auto* segment = std::get_if<CudaSegment>(&node.what);
    if (segment == nullptr) continue;
    marked.back() = std::make_unique<Marked>(context_);
    Marked& m = *marked.back();
    m.graph = std::make_unique<CudaGraph>(
        context_,
        [&] {
          m.marks.mark(stream_.handle());
          m.marks.mark(stream_.handle());
          for (size_t i = 0; i < segment->actions.size(); ++i) {
            segment->actions[i].enqueue(context_, stream_.handle());
            const size_t step = segment->actions[i].step;
            if (i + 1 < segment->actions.size() && segment->actions[i + 1].step == step) continue;
            m.marks.mark(stream_.handle());
            m.steps.push_back(step);
          }
        },
        stream_.handle());
  }
  std::vector<std::vector<double>> times(plan_.steps.size());
  for (int run = 0; run < runs; ++run) {
    for (size_t n = 0; n < marked.size(); ++n) {
      if (marked[n] == nullptr) {
        std::visit([&](const auto& what) { execute(what); }, binding_.program.nodes[n].what);
        continue;
      }
      const Marked& m = *marked[n];
      m.graph->launch(stream_.handle());
      stream_.synchronize();
      const double empty = m.marks.seconds(0, 1);
      for (size_t i = 0; i < m.steps.size(); ++i) {
        times[m.steps[i]].push_back(std::max(0.0, m.marks.seconds(i + 1, i + 2) - empty));
      }
    }
    stream_.synchronize();
    uploads_.clear();
  }
  std::vector<double> medians;
  for (std::vector<double>& of_step : times) {
    std::sort(of_step.begin(), of_step.end());
    medians.push_back(of_step.empty() ? 0 : of_step[of_step.size() / 2]);
  }
  return medians;
}

std::vector<Tensor> CudaRunState::run_observed(std::span<const Tensor> inputs, const Executor::Observer& observe,
                                               std::span<const Tensor> into) {
  context_.make_current();
  send_inputs(inputs);
  direct_ = true;
  const std::shared_ptr<void> restore(nullptr, [&](void*) { direct_ = false; });
  auto node = binding_.program.nodes.begin();
  size_t action = 0;
  for (size_t step = 0; step < plan_.steps.size(); ++step) {
    for (; node != binding_.program.nodes.end(); ++node, action = 0) {
      if (const auto* segment = std::get_if<CudaSegment>(&node->what)) {
        for (; action < segment->actions.size() && segment->actions[action].step == step; ++action) {
          segment->actions[action].enqueue(context_, stream_.handle());
        }
        if (action < segment->actions.size()) break;
      } else if (node->step == step) {
        std::visit([&](const auto& what) { execute(what); }, node->what);
      } else {
        break;
      }
    }
    stream_.synchronize();
    observe(step, [&](uint32_t buffer) { return read(buffer, binding_.buffers.at(buffer)); });
  }
  return fetch_outputs(into);
}

Tensor CudaRunState::read(uint32_t index, const CudaValue& value) const {
  const Buffer& buffer = plan_.buffers[index];
  Tensor copy(buffer.dtype, buffer.shape);
  const auto bytes = static_cast<size_t>(buffer.bytes);
  if (bytes == 0 || bytes != copy.bytes()) return copy;
  if (value.host() != nullptr) {
    std::memcpy(copy.mutable_data(), value.host(), bytes);
  } else if (value.input >= 0) {
    std::memcpy(copy.mutable_data(), inputs_[static_cast<size_t>(value.input)].data(), bytes);
  } else {
    context_.check(context_.driver().copy_out(copy.mutable_data(), value.device, bytes), "cuMemcpyDtoH");
  }
  return copy;
}

// --- execution ---------------------------------------------------------------------------------------------------

void CudaRunState::execute(const CudaProgram& program) {
  for (const CudaNode& node : program.nodes) {
    const CudaStepScope scope(node.step);
    std::visit([&](const auto& what) { execute(what); }, node.what);
  }
}

void CudaRunState::execute(const CudaSegment& segment) {
  if (!direct_) return segment.graph->launch(stream_.handle());
  for (const CudaAction& action : segment.actions) action.enqueue(context_, stream_.handle());
}

void CudaRunState::execute(const CudaHostCall& call) {
  std::vector<Tensor> parameters;
  for (size_t i = 0; i < call.parameters.size(); ++i) {
    const Buffer& buffer = call.plan->buffers[call.step->parameters[i]];
    const CudaValue& value = call.parameters[i];
    if (value.host() != nullptr) {
      parameters.push_back(Tensor::borrow(buffer.dtype, buffer.shape, value.host(), nullptr));
    } else if (value.input >= 0) {
      const Tensor& input = inputs_[static_cast<size_t>(value.input)];
      parameters.push_back(Tensor::borrow(buffer.dtype, buffer.shape, input.data(), nullptr));
    } else {
      const auto bytes = static_cast<size_t>(buffer.bytes);
      parameters.push_back(uninitialised(buffer.dtype, buffer.shape, bytes));
      if (bytes == 0) continue;
      context_.check(
          context_.driver().copy_out_async(parameters.back().mutable_data(), value.device, bytes, stream_.handle()),
          "cuMemcpyDtoHAsync");
    }
  }
  stream_.synchronize();
  uploads_.clear();
  std::vector<Tensor> results = interpreter_->run(memory_.code().prepared(*call.step), std::move(parameters));
  HEDDLE_CHECK(results.size() == call.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Buffer& buffer = call.plan->buffers[call.step->results[i]];
    HEDDLE_CHECK(results[i].dtype() == buffer.dtype && static_cast<int64_t>(results[i].bytes()) == buffer.bytes,
                 "a reference step returned {}{} for {}{}", to_string(results[i].dtype()),
                 to_string(results[i].shape()), to_string(buffer.dtype), to_string(buffer.shape));
    if (buffer.bytes == 0) continue;
    context_.check(
        context_.driver().copy_in_async(call.results[i], results[i].data(), results[i].bytes(), stream_.handle()),
        "cuMemcpyHtoDAsync");
    uploads_.push_back(std::move(results[i]));
  }
}

template <typename T>
T CudaRunState::fetch(uint64_t address) {
  T value{};
  context_.check(context_.driver().copy_out_async(&value, address, sizeof value, stream_.handle()),
                 "cuMemcpyDtoHAsync");
  stream_.synchronize();
  uploads_.clear();
  return value;
}

void CudaRunState::execute(const std::unique_ptr<CudaLoop>& loop) {
  int64_t trip = loop->trip ? *loop->trip : fetch<int64_t>(loop->trip_at);
  if (loop->bound >= 0) trip = std::min(trip, loop->bound);
  bool condition = loop->first ? *loop->first : fetch<uint8_t>(loop->first_at) != 0;
  enqueue_copies(loop->begin);
  int64_t done = 0;
  for (; done < trip && condition; ++done) {
    const auto number = static_cast<uint64_t>(done);
    const auto set = [&](uint64_t at, unsigned value) {
      context_.check(context_.driver().set_d32_async(at, value, 1, stream_.handle()), "cuMemsetD32Async");
    };
    set(loop->iteration_at, static_cast<unsigned>(number));
    set(loop->iteration_at + 4, static_cast<unsigned>(number >> 32));
    execute(loop->body);
    for (const CudaLoop::Stacked& s : loop->stacked) {
      enqueue(context_, CudaCopy{s.to + number * s.slice, s.from, s.slice}, stream_.handle());
    }
    if (!loop->always && done + 1 < trip) condition = fetch<uint8_t>(loop->again_at) != 0;
    enqueue_copies(loop->next);
  }
  enqueue_copies(loop->end);
  for (const CudaLoop::Stacked& s : loop->stacked) {
    const size_t missing = static_cast<size_t>(loop->bound - done) * s.slice;
    if (missing == 0) continue;
    CudaAction{CudaZeros{s.to + static_cast<uint64_t>(done) * s.slice, missing}, 0}.enqueue(context_, stream_.handle());
  }
}

void CudaRunState::enqueue_copies(std::span<const CudaCopy> copies) const {
  for (const CudaCopy& copy : copies) enqueue(context_, copy, stream_.handle());
}

void CudaRunState::execute(const std::unique_ptr<CudaBranch>& branch) {
  execute(fetch<uint8_t>(branch->condition_at) != 0 ? branch->then_body : branch->else_body);
}

}  // namespace heddle::runtime
