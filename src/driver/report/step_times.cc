#include "driver/report/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread/contention.h"
#include "runtime/cuda/step_scope.h"

namespace heddle::driver {
namespace {

using profile::GpuOperation;

int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// Of one run, so that profiles of different lengths compare.
void average(std::vector<int64_t>& sums, int64_t runs) {
  for (int64_t& sum : sums) sum = (sum + runs / 2) / runs;
}

// From 1; 0: of no step, as copies of inputs and outputs are.
uint64_t step_of(const GpuOperation& operation) {
  return operation.graph_node != 0 ? operation.captured_context : operation.context;
}

// What the device does for steps, as opposed to what the host waits for.
bool is_work(const GpuOperation& operation) {
  using Kind = GpuOperation::Kind;
  return operation.kind == Kind::kKernel || operation.kind == Kind::kCopy || operation.kind == Kind::kMemset;
}

// Not of a graph and of no step: copies of inputs and outputs.
bool is_of_run(const GpuOperation& operation) {
  return is_work(operation) && (operation.graph_node != 0 || operation.context != 0);
}

// The work of the steps in a run. `complete`: all of it has times and a step.
struct RunRecords {
  std::vector<const GpuOperation*> work;
  bool complete = true;

  uint64_t length() const {
    uint64_t end = 0;
    for (const GpuOperation* operation : work) end = std::max(end, operation->end);
    return end - work.front()->start;
  }

  RunRecords(const std::vector<GpuOperation>& operations, size_t steps) {
    for (const GpuOperation& operation : operations) {
      if (!is_of_run(operation)) continue;
      const uint64_t step = step_of(operation);
      if (step == 0 || step > steps || !operation.has_times()) complete = false;
      work.push_back(&operation);
    }
  }
};

void add_run(const RunRecords& run, StepTimes& times) {
  const uint64_t begin = run.work.front()->start;
  uint64_t until = begin, busy = 0;
  for (const GpuOperation* operation : run.work) {
    const size_t step = step_of(*operation) - 1;
    const uint64_t from = std::max(operation->start, until);
    const uint64_t own = operation->end > from ? operation->end - from : 0;
    until = std::max(until, operation->end);
    busy += own;
    times.steps[step] += static_cast<int64_t>(own);
    if (operation->kind != GpuOperation::Kind::kKernel) continue;
    times.kernels[step] += static_cast<int64_t>(operation->duration());
    ++times.launches[step];
  }
  times.rest += static_cast<int64_t>(until - begin - busy);
  ++times.runs;
}

}  // namespace

StepTimes time_on_cpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs, double seconds) {
  constexpr int64_t kFewest = 5, kMost = 10000;
  StepTimes times;
  times.steps.assign(executor.plan().steps.size(), 0);
  times.one_run.resize(times.steps.size());
  const Contention contention;
  const double begin = wall_seconds();
  while (times.runs < kMost && (times.runs < kFewest || wall_seconds() - begin < seconds)) {
    const double start = wall_seconds();
    double last = start;
    int64_t in_steps = 0;
    executor.run(inputs, [&](size_t step, const auto&) {
      const double now = wall_seconds();
      const int64_t taken = nanoseconds(now - last);
      times.steps[step] += taken;
      times.one_run[step] = {step, nanoseconds(last - start), taken};
      in_steps += taken;
      last = wall_seconds();
    });
    times.rest += std::max<int64_t>(nanoseconds(wall_seconds() - start) - in_steps, 0);
    ++times.runs;
  }
  times.waiting = contention.waiting();
  average(times.steps, times.runs);
  times.rest /= times.runs;
  return times;
}

StepTimes time_by_events(const runtime::Executor& executor, const std::vector<Tensor>& inputs) {
  constexpr int kRuns = 50;
  StepTimes times;
  int64_t at = 0;
  for (const double seconds : executor.step_seconds(inputs, kRuns)) {
    const int64_t taken = nanoseconds(seconds);
    times.one_run.push_back({times.steps.size(), at, taken});
    times.steps.push_back(taken);
    at += taken;
  }
  times.runs = kRuns;
  return times;
}

uint64_t step_context() {
  return static_cast<uint64_t>(runtime::cuda_step_of_thread() + 1);
}

StepTimes times_of(const std::vector<std::vector<GpuOperation>>& runs, size_t steps) {
  std::vector<RunRecords> records;
  size_t most = 0;
  for (const std::vector<GpuOperation>& run : runs) {
    records.emplace_back(run, steps);
    most = std::max(most, records.back().work.size());
  }
  StepTimes times;
  times.steps.assign(steps, 0);
  times.kernels.assign(steps, 0);
  times.launches.assign(steps, 0);
  // Runs are alike: one with fewer records has lost some.
  std::erase_if(records, [&](const RunRecords& run) { return !run.complete || run.work.size() < most || most == 0; });
  for (const RunRecords& run : records) add_run(run, times);
  if (records.empty()) {
    fail(ErrorCode::kDevice, "GPU profiling", "no run has all its records with their times and steps",
         "Profile a smaller model, or without other work on the GPU");
  }
  for (std::vector<int64_t>* sums : {&times.steps, &times.kernels, &times.launches}) average(*sums, times.runs);
  times.rest /= times.runs;
  const auto median = records.begin() + static_cast<std::ptrdiff_t>(records.size() / 2);
  std::nth_element(records.begin(), median, records.end(),
                   [](const RunRecords& a, const RunRecords& b) { return a.length() < b.length(); });
  const uint64_t begin = median->work.front()->start;
  for (const GpuOperation* operation : median->work) {
    times.one_run.push_back({step_of(*operation) - 1, static_cast<int64_t>(operation->start - begin),
                             static_cast<int64_t>(operation->duration())});
  }
  return times;
}

bool tie_by_order(std::vector<GpuOperation>& run, const std::vector<GpuOperation>& without_graphs) {
  std::vector<const GpuOperation*> order;
  for (const GpuOperation& operation : without_graphs) {
    if (is_of_run(operation)) order.push_back(&operation);
  }
  std::vector<GpuOperation*> work;
  for (GpuOperation& operation : run) {
    if (is_of_run(operation)) work.push_back(&operation);
  }
  const bool alike = std::equal(work.begin(), work.end(), order.begin(), order.end(),
                                [](const auto* a, const auto* b) { return a->kind == b->kind && a->name == b->name; });
  if (!alike) return false;
  for (size_t i = 0; i < work.size(); ++i) {
    if (work[i]->graph_node != 0) work[i]->captured_context = order[i]->context;
  }
  return true;
}

// Run by run, so that what is kept at once is bounded.
StepTimes time_by_records(const runtime::Executor& executor, const std::vector<Tensor>& inputs,
                          profile::GpuCollector& collector) {
  constexpr int kRuns = 50;
  constexpr size_t kMostRecords = 500000;
  collector.flush();
  collector.take();
  std::vector<std::vector<GpuOperation>> runs;
  size_t records = 0;
  for (int run = 0; run < kRuns && records < kMostRecords; ++run) {
    executor.device_seconds(inputs, 1);
    collector.flush();
    runs.push_back(collector.take());
    records += runs.back().size();
  }
  const auto untied = [](const GpuOperation& o) { return o.graph_node != 0 && o.captured_context == 0; };
  const bool by_order = std::any_of(runs.begin(), runs.end(),
                                    [&](const auto& run) { return std::any_of(run.begin(), run.end(), untied); });
  if (by_order) {
    executor.run(inputs, [](size_t, const auto&) {});
    collector.flush();
    const std::vector<GpuOperation> without_graphs = collector.take();
    for (std::vector<GpuOperation>& run : runs) tie_by_order(run, without_graphs);
  }
  StepTimes times = times_of(runs, executor.plan().steps.size());
  times.by_order = by_order;
  return times;
}

}  // namespace heddle::driver
