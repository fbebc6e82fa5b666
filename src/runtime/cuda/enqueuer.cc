#include "runtime/cuda/enqueuer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace heddle::runtime {
namespace {

// Callers' allocators come back to few sets of addresses.
constexpr size_t kMostBound = 32;

[[noreturn]] void refuse(const std::string& why) {
  fail(ErrorCode::kUnsupportedOperator, "enqueue", why, "Use run() for this model");
}

// Of a plan all of whose work goes onto a stream; null where it has none.
const CudaSegment* only_segment(const CudaProgram& program) {
  for (const CudaNode& node : program.nodes) {
    if (std::holds_alternative<CudaHostCall>(node.what)) refuse("a part of the model runs on the host");
    if (!std::holds_alternative<CudaSegment>(node.what)) {
      refuse("a loop or branch of the model asks the device for what it computed");
    }
  }
  HEDDLE_CHECK(program.nodes.size() <= 1, "{} segments", program.nodes.size());
  return program.nodes.empty() ? nullptr : &std::get<CudaSegment>(program.nodes.front().what);
}

}  // namespace

// Bound once to addresses that nothing is at, the plan tells what it needs, and its constants go to the device.
CudaEnqueuer::CudaEnqueuer(std::shared_ptr<CudaCode> code, const Plan& plan)
    : code_(std::move(code)), plan_(plan), capturing_(code_->context()) {
  constexpr uint64_t kAnywhere = uint64_t{1} << 32;
  const std::vector<uint64_t> addresses(plan.inputs.size() + plan.outputs.size() + 1, kAnywhere);
  CudaCallersMemory memory(*code_, plan, addresses);
  const CudaBinding binding = bind(plan, memory, true);
  only_segment(binding.program);
  workspace_bytes_ = memory.workspace_bytes();
}

CudaEnqueuer::Shared CudaEnqueuer::bind_to(std::vector<uint64_t> addresses) const {
  auto bound = std::make_shared<Bound>();
  bound->addresses = std::move(addresses);
  CudaCallersMemory memory(*code_, plan_, bound->addresses);
  bound->program = bind(plan_, memory, true).program;
  // Kernels leave their counters as they find them, zero; nobody says what is in the caller's memory.
  if (const auto bytes = static_cast<size_t>(code_->counter_bytes()); bytes > 0 && !bound->program.nodes.empty()) {
    auto& actions = std::get<CudaSegment>(bound->program.nodes.front().what).actions;
    actions.insert(actions.begin(), CudaAction{CudaZeros{memory.counters(), bytes}, 0});
  }
  return bound;
}

CudaEnqueuer::Run CudaEnqueuer::run_at(std::vector<uint64_t> addresses, bool captures) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(bound_.begin(), bound_.end(), [&](const Shared& b) { return b->addresses == addresses; });
  if (found == bound_.end()) {
    bound_.push_front(bind_to(std::move(addresses)));
    if (bound_.size() > kMostBound) bound_.pop_back();
    return {bound_.front()};
  }
  bound_.splice(bound_.begin(), bound_, found);
  Bound& bound = *bound_.front();
  if (captures || bound.program.nodes.empty()) return {bound_.front()};
  if (bound.graph == nullptr) {
    bound.graph = std::make_unique<CudaGraph>(
        code_->context(), [&] { put_on(capturing_.handle(), bound); }, capturing_.handle());
  }
  return {bound_.front(), bound.graph.get()};
}

void CudaEnqueuer::put_on(CudaDriver::Handle stream, const Bound& bound) const {
  const CudaSegment* segment = only_segment(bound.program);
  if (segment != nullptr) enqueue_actions(code_->context(), segment->actions, stream);
}

void CudaEnqueuer::enqueue(std::vector<uint64_t> addresses, CudaDriver::Handle stream) const {
  const CudaContext& context = code_->context();
  context.make_current();
  int captures = 0;
  context.check(context.driver().capture_state(stream, &captures), "cuStreamIsCapturing");
  const Run run = run_at(std::move(addresses), captures != 0);
  if (captures != 0) keep_for_captured_graph(context, stream, code_);
  if (run.graph != nullptr) {
    context.check(context.driver().graph_launch(run.graph->executable(), stream), "cuGraphLaunch");
  } else {
    put_on(stream, *run.bound);
  }
}

}  // namespace heddle::runtime
