#include "driver/api/run_times.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/thread/contention.h"
#include "driver/api/model_impl.h"
#include "driver/options/options.h"
#include "driver/tune/measure.h"

namespace heddle::driver {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5)];
}

void time_host(const Model& model, const std::map<std::string, Tensor>& inputs, double seconds, RunTimes& m) {
  constexpr int kWarm = 3;
  constexpr size_t kLeast = 5, kMost = 1000000;
  for (int i = 0; i < kWarm; ++i) model.run(inputs);
  std::vector<double> times, cpu_times;
  const Contention contention;
  const double start = wall_seconds();
  while (times.size() < kMost && (times.size() < kLeast || wall_seconds() - start < seconds)) {
    const double begin = wall_seconds();
    const double cpu_begin = process_seconds();
    model.run(inputs);
    cpu_times.push_back(process_seconds() - cpu_begin);
    times.push_back(wall_seconds() - begin);
  }
  m.waiting = contention.waiting();
  std::sort(times.begin(), times.end());
  std::sort(cpu_times.begin(), cpu_times.end());
  m.cpu = cpu_times[cpu_times.size() / 2];
  m.p10 = quantile(times, 0.1);
  m.p50 = quantile(times, 0.5);
  m.p90 = quantile(times, 0.9);
  m.runs = times.size();
}

void time_device(const runtime::Executor& executor, const std::vector<Tensor>& ordered, RunTimes& m) {
  constexpr size_t kMost = 1000, kMostCold = 100;
  std::vector<double> times = executor.device_seconds(ordered, static_cast<int>(std::min(m.runs, kMost)));
  std::sort(times.begin(), times.end());
  m.device_p10 = quantile(times, 0.1);
  m.device_p50 = quantile(times, 0.5);
  m.device_p90 = quantile(times, 0.9);
  m.device_bytes = executor.device_bytes();
  std::vector<double> cold = executor.device_seconds(ordered, static_cast<int>(std::min(m.runs, kMostCold)), true);
  std::sort(cold.begin(), cold.end());
  m.device_cold = quantile(cold, 0.5);
}

}  // namespace

RunTimes time_runs(const Model& model, const std::map<std::string, Tensor>& inputs, double seconds) {
  RunTimes m;
  const runtime::Plan& plan = *model.impl().primary().plan;
  model.impl().wait_for_background();
  time_host(model, inputs, seconds, m);
  m.threads = model.impl().threads();
  const bool gpu = runtime::runs_on_gpu(plan);
  m.floor = gpu ? floor_seconds(plan) : floor_seconds(plan) / m.threads;  // a CPU's is that of one thread
  const runtime::Executor& executor = *model.impl().primary().executor;
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : plan.inputs) ordered.push_back(inputs.at(port.name));
  const bool same = std::ranges::all_of(
      plan.inputs, [&](const runtime::Port& port) { return inputs.at(port.name).shape() == port.shape; });
  if (!same) {  // this executor's buffers have other sizes
    m.energy.why_not = "the inputs have other shapes than the model was loaded for";
    return m;
  }
  if (gpu) time_device(executor, ordered, m);
  m.energy = energy_of_runs(executor, ordered, device_of(model.impl().options().target), seconds);
  return m;
}

}  // namespace heddle::driver
