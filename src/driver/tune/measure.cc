#include "driver/tune/measure.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/thread/contention.h"
#include "driver/plan/reference.h"
#include "driver/verify/random_inputs.h"

namespace heddle::driver {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

const Tensor* constant_in(const runtime::Plan& plan, uint32_t buffer) {
  const runtime::Buffer& b = plan.buffers[buffer];
  return b.place == runtime::Place::kConstant ? &plan.constants[b.index] : nullptr;
}

// Iterations of a loop that every run executes: its constant trip count, or none if a condition may end the loop.
int64_t certain_trips(const runtime::Plan& plan, const runtime::LoopStep& loop) {
  const Tensor *trip = constant_in(plan, loop.trip), *condition = constant_in(plan, loop.condition);
  if (trip == nullptr || condition == nullptr || condition->values<bool>()[0] == false) return 0;
  const runtime::Buffer& next = loop.body->buffers[loop.body->outputs[0].buffer];
  constexpr uint32_t kCondition = 1;  // among the body's inputs
  const bool stays = next.place == runtime::Place::kInput && next.index == kCondition;
  if (!stays) return 0;
  const int64_t trips = trip->values<int64_t>()[0];
  return std::max<int64_t>(0, loop.trip_bound < 0 ? trips : std::min(trips, loop.trip_bound));
}

}  // namespace

void measure(CompiledModel& model, int threads, std::map<std::string, Tensor> inputs, uint64_t seed, double seconds,
             int device) {
  constexpr int kWarm = 2;
  constexpr size_t kFewest = 5, kMost = 10000;
  const auto executor = runtime::make_executor(model.plan, std::make_shared<ThreadPool>(threads),
                                               reference_interpreter(), {.device = device});
  inputs = random_inputs(*model.plan, seed, std::move(inputs));
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : model.plan->inputs) ordered.push_back(inputs.at(port.name));
  for (int i = 0; i < kWarm; ++i) executor->run(ordered);
  const auto report = [&](size_t step, double median) {
    const auto [group, kernel] = model.built.step_report[step];
    GroupReport& of = model.report.groups[group];
    (kernel < 0 ? of.measured_seconds : of.kernels[static_cast<size_t>(kernel)].measured_seconds) = median;
  };
  if (runtime::runs_on_gpu(*model.plan)) {
    constexpr int kRuns = 50;
    const std::vector<double> medians = executor->step_seconds(ordered, kRuns);
    for (size_t step = 0; step < medians.size(); ++step) report(step, medians[step]);
    return;
  }
  std::vector<std::vector<double>> times(model.plan->steps.size());
  const Contention contention;
  const Clock::time_point start = Clock::now();
  for (size_t n = 0; n < kMost && (n < kFewest || seconds_between(start, Clock::now()) < seconds); ++n) {
    Clock::time_point last = Clock::now();
    executor->run(ordered, [&](size_t step, const auto&) {
      const Clock::time_point now = Clock::now();
      times[step].push_back(seconds_between(last, now));
      last = Clock::now();
    });
  }
  model.report.waiting = contention.waiting();
  for (size_t step = 0; step < times.size(); ++step) {
    std::sort(times[step].begin(), times[step].end());
    report(step, times[step][times[step].size() / 2]);
  }
}

EnergyFigure energy_of_runs(const runtime::Executor& executor, std::span<const Tensor> inputs, int device,
                            double seconds) {
  std::unique_ptr<EnergyCounter> counter;
  try {
    counter = EnergyCounter::of(executor.plan().target, device);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDevice) throw;
    EnergyFigure none;
    none.why_not = error.why() + (error.remedy().empty() ? "" : "; " + error.remedy());
    return none;
  }
  EnergyFigure figure;
  executor.repeat(inputs, [&](const auto& run) { figure = measure_energy(*counter, seconds, run); });
  return figure;
}

double floor_seconds(const runtime::Plan& plan) {
  double seconds = 0;
  for (const runtime::Step& step : plan.steps) {
    seconds += step.floor_seconds;
    if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) {
      seconds += floor_seconds(*loop->body) * static_cast<double>(certain_trips(plan, *loop));
    }
    if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      seconds += std::min(floor_seconds(*branch->then_body), floor_seconds(*branch->else_body));
    }
  }
  return seconds;
}

size_t kernel_count(const runtime::Plan& plan) {
  size_t count = 0;
  for (const runtime::Step& step : plan.steps) {
    if (std::holds_alternative<runtime::KernelStep>(step.action)) ++count;
    if (const auto* gpu = std::get_if<runtime::CudaStep>(&step.action)) count += gpu->launches.size();
    if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) count += kernel_count(*loop->body);
    if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      count += kernel_count(*branch->then_body) + kernel_count(*branch->else_body);
    }
  }
  return count;
}

}  // namespace heddle::driver
