#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "cli/support.h"
#include "driver/api/model_impl.h"
#include "driver/tune/measure.h"
#include "driver/verify/random_inputs.h"
#include "jit/cache.h"

namespace heddle::cli {
namespace {

struct Measurement {
  double p10 = 0, p50 = 0, p90 = 0;  // seconds of one run
  double cpu = 0;                    // seconds of processor time of one run, over all threads, median
  size_t runs = 0;
  double cold = 0, cached = 0;  // seconds to load; cold 0: a plan file
  double ranges = 0;            // seconds until kernels for all ranges are there, behind the cold load
  uint64_t compile_peak = 0, peak = 0;
  double floor = 0;
  int threads = 1;
  // On a GPU: its own time for one run, without copies from and to the host, and its memory that is in use.
  // `cold`: with an L2 that holds nothing of its operands.
  double device_p10 = 0, device_p50 = 0, device_p90 = 0, device_cold = 0;
  uint64_t device_bytes = 0;
};

double quantile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// The folder of the user's cache replaced by an empty one, so that a first load is cold and a second one is not.
class PrivateCache {
 public:
  PrivateCache() {
    if (const char* value = std::getenv(kVariable)) before_ = value;
    ::setenv(kVariable, dir_.path().c_str(), 1);
  }
  ~PrivateCache() {
    if (before_) {
      ::setenv(kVariable, before_->c_str(), 1);
    } else {
      ::unsetenv(kVariable);
    }
  }
  PrivateCache(const PrivateCache&) = delete;
  PrivateCache& operator=(const PrivateCache&) = delete;

 private:
  static constexpr const char* kVariable = "HEDDLE_CACHE_DIR";
  const TempDir dir_{"bench", jit::Cache::of_user().scratch_folder()};
  std::optional<std::string> before_;
};

void measure_runs(const Model& model, const std::map<std::string, Tensor>& inputs, double seconds, Measurement& m) {
  constexpr int kWarm = 3;
  constexpr size_t kLeast = 5, kMost = 1000000;
  for (int i = 0; i < kWarm; ++i) model.run(inputs);
  std::vector<double> times, cpu_times;
  const double start = wall_seconds();
  while (times.size() < kMost && (times.size() < kLeast || wall_seconds() - start < seconds)) {
    const double begin = wall_seconds();
    const double cpu_begin = process_seconds();
    model.run(inputs);
    cpu_times.push_back(process_seconds() - cpu_begin);
    times.push_back(wall_seconds() - begin);
  }
  std::sort(times.begin(), times.end());
  std::sort(cpu_times.begin(), cpu_times.end());
  m.cpu = cpu_times[cpu_times.size() / 2];
  m.p10 = quantile(times, 0.1);
  m.p50 = quantile(times, 0.5);
  m.p90 = quantile(times, 0.9);
  m.runs = times.size();
}

void measure_device(const runtime::Executor& executor, const std::map<std::string, Tensor>& inputs, Measurement& m) {
  constexpr size_t kMost = 1000, kMostCold = 100;
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : executor.plan().inputs) ordered.push_back(inputs.at(port.name));
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

Measurement measure(const Arguments& arguments) {
  Prepared prepared = prepare(arguments, Ranges::kTaken);
  prepared.options.use_cache = true;
  const PrivateCache cache;
  Measurement m;
  {
    const double start = wall_seconds();
    const Model model = Model::load(arguments.model, prepared.options);
    m.cold = wall_seconds() - start;
    if (!prepared.options.ranges.empty()) {
      model.impl().wait_for_background();
      m.ranges = wall_seconds() - start - m.cold;
    }
  }
  m.compile_peak = peak_memory();
  ::malloc_trim(0);
  reset_peak_memory();
  prepared.options.progress = nullptr;
  const double start = wall_seconds();
  const Model model = Model::load(arguments.model, prepared.options);
  m.cached = wall_seconds() - start;
  tell_guess(arguments, prepared.options, model.inputs());
  const runtime::Plan& plan = *model.impl().primary().plan;
  const auto inputs =
      driver::random_inputs(plan, arguments.seed, fit_types(std::move(prepared.inputs), model.inputs()));
  model.impl().wait_for_background();
  measure_runs(model, inputs, arguments.seconds, m);
  m.peak = peak_memory();
  m.threads = model.impl().threads();
  const bool gpu = runtime::runs_on_gpu(plan);
  m.floor =
      gpu ? driver::floor_seconds(plan) : driver::floor_seconds(plan) / m.threads;  // a CPU's is that of one thread
  if (gpu) measure_device(*model.impl().primary().executor, inputs, m);
  return m;
}

}  // namespace

int bench_command(const Arguments& arguments) {
  if (!(arguments.seconds >= 0)) {
    fail(ErrorCode::kInvalidArgument, "--seconds", fmt::format("{} is no number of seconds", arguments.seconds));
  }
  const Measurement m = measure(arguments);
  if (arguments.json) {
    nlohmann::json all = {{"p50_ms", m.p50 * 1e3},
                          {"p10_ms", m.p10 * 1e3},
                          {"p90_ms", m.p90 * 1e3},
                          {"cpu_ms", m.cpu * 1e3},
                          {"runs", m.runs},
                          {"runs_per_s", 1 / m.p50},
                          {"threads", m.threads},
                          {"compile_s", m.cold},
                          {"cached_s", m.cached},
                          {"peak_bytes", m.peak},
                          {"compile_peak_bytes", m.compile_peak},
                          {"floor_ms", m.floor * 1e3}};
    if (m.ranges > 0) all["ranges_s"] = m.ranges;
    if (m.device_p50 > 0) {
      all["device_p50_ms"] = m.device_p50 * 1e3;
      all["device_p10_ms"] = m.device_p10 * 1e3;
      all["device_p90_ms"] = m.device_p90 * 1e3;
      all["device_cold_p50_ms"] = m.device_cold * 1e3;
      all["device_bytes"] = m.device_bytes;
    }
    print_json(all);
    return 0;
  }
  Table table({"what", "value"});
  table.add({"one run, median", human_seconds(m.p50)});
  table.add({"p10 .. p90", fmt::format("{} .. {} ({} runs)", human_seconds(m.p10), human_seconds(m.p90), m.runs)});
  table.add({"runs per second", fmt::format("{:.1f}", 1 / m.p50)});
  const bool gpu = m.device_p50 > 0;
  if (gpu) {
    table.add({"of it the GPU's work, median", human_seconds(m.device_p50)});
    table.add({"p10 .. p90", fmt::format("{} .. {}", human_seconds(m.device_p10), human_seconds(m.device_p90))});
  }
  if (gpu) table.add({"with nothing in its L2, median", human_seconds(m.device_cold)});
  table.add({"hardware floor", fmt::format("{} ({:.0f}% of it reached)", human_seconds(m.floor),
                                           100 * m.floor / (gpu ? m.device_p50 : m.p50))});
  table.add({"threads", fmt::format("{}", m.threads)});
  table.add({"load, cold", human_seconds(m.cold)});
  table.add({"load, cached", human_seconds(m.cached)});
  if (m.ranges > 0) table.add({"kernels for ranges, cold", human_seconds(m.ranges)});
  table.add({"peak memory", human_bytes(static_cast<double>(m.peak))});
  table.add({"peak memory while compiling", human_bytes(static_cast<double>(m.compile_peak))});
  if (gpu) table.add({"memory of the GPU", human_bytes(static_cast<double>(m.device_bytes))});
  table.print();
  return 0;
}

}  // namespace heddle::cli
