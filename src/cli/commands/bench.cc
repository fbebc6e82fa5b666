#include <malloc.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/thread/contention.h"
#include "cli/commands/reports.h"
#include "cli/support.h"
#include "driver/api/model_impl.h"
#include "driver/api/run_times.h"
#include "driver/verify/random_inputs.h"
#include "jit/cache.h"

namespace heddle::cli {
namespace {

struct Measurement {
  driver::RunTimes runs;
  double cold = 0, cached = 0;  // seconds to load; cold 0: the cache had the kernels
  double ranges = 0;            // seconds until kernels for all ranges are there, behind the cold load
  uint64_t compile_peak = 0, peak = 0;
};

// For --no-cache: the folder of the user's cache replaced by an empty one, so that a first load is cold and a second
// one is not.
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

Measurement measure(const Arguments& arguments) {
  Prepared prepared = prepare(arguments, Ranges::kTaken);
  std::optional<PrivateCache> cache;
  if (!prepared.options.use_cache) cache.emplace();
  prepared.options.use_cache = true;
  Measurement m;
  {
    const double start = wall_seconds();
    const Model model = Model::load(arguments.model, prepared.options);
    const double seconds = wall_seconds() - start;
    if (!model.impl().primary().from_cache.kernels) m.cold = seconds;
    if (!prepared.options.ranges.empty()) {
      model.impl().wait_for_background();
      m.ranges = wall_seconds() - start - seconds;
    }
  }
  if (m.cold > 0) m.compile_peak = peak_memory();
  ::malloc_trim(0);
  reset_peak_memory();
  prepared.options.progress = nullptr;
  const double start = wall_seconds();
  const Model model = Model::load(arguments.model, prepared.options);
  m.cached = wall_seconds() - start;
  tell_guess(arguments, prepared.options, model.inputs());
  const runtime::Plan& plan = *model.impl().primary().plan;
  tell_branches(driver::branch_guess(plan, prepared.inputs));
  const auto inputs =
      driver::random_inputs(plan, arguments.seed, fit_types(std::move(prepared.inputs), model.inputs()));
  m.runs = driver::time_runs(model, inputs, arguments.seconds);
  m.peak = peak_memory();
  return m;
}

Table table_of(const driver::RunTimes& r) {
  Table table({"what", "value"});
  table.add({"one run, median", human_seconds(r.p50)});
  table.add({"p10 .. p90", fmt::format("{} .. {} ({} runs)", human_seconds(r.p10), human_seconds(r.p90), r.runs)});
  table.add({"runs per second", fmt::format("{:.1f}", 1 / r.p50)});
  const bool gpu = r.device_p50 > 0;
  if (gpu) {
    table.add({"of it the GPU's work, median", human_seconds(r.device_p50)});
    table.add({"p10 .. p90", fmt::format("{} .. {}", human_seconds(r.device_p10), human_seconds(r.device_p90))});
  }
  if (gpu) table.add({"with nothing in its L2, median", human_seconds(r.device_cold)});
  // What a busy machine made of a run is no share of a floor; the GPU's own work is timed by the GPU.
  const std::string reached = !gpu && is_busy(r.waiting)
                                  ? "not compared, as the machine is busy"
                                  : fmt::format("{:.0f}% of it reached", 100 * r.floor / (gpu ? r.device_p50 : r.p50));
  table.add({"hardware floor", fmt::format("{} ({})", human_seconds(r.floor), reached)});
  table.add({"threads", fmt::format("{}", r.threads)});
  if (r.energy.ok()) table.add({"joules of a run", fmt::format("{:.6g}", r.energy.joules)});
  table.add({r.energy.ok() ? "energy" : "joules of a run", text_of(r.energy)});
  if (gpu) table.add({"memory of the GPU", human_bytes(static_cast<double>(r.device_bytes))});
  return table;
}

}  // namespace

nlohmann::json json_of(const EnergyFigure& e) {
  if (!e.ok()) return {{"why_not", e.why_not}};
  return {{"joules", e.joules}, {"watts", e.watts},         {"seconds", e.seconds},
          {"runs", e.runs},     {"interval_s", e.interval}, {"source", e.source}};
}

nlohmann::json json_of(const driver::RunTimes& r) {
  nlohmann::json all = {{"p50_ms", r.p50 * 1e3}, {"p10_ms", r.p10 * 1e3}, {"p90_ms", r.p90 * 1e3},
                        {"cpu_ms", r.cpu * 1e3}, {"runs", r.runs},        {"runs_per_s", 1 / r.p50},
                        {"threads", r.threads},  {"waiting", r.waiting},  {"floor_ms", r.floor * 1e3}};
  if (r.device_p50 > 0) {
    all["device_p50_ms"] = r.device_p50 * 1e3;
    all["device_p10_ms"] = r.device_p10 * 1e3;
    all["device_p90_ms"] = r.device_p90 * 1e3;
    all["device_cold_p50_ms"] = r.device_cold * 1e3;
    all["device_bytes"] = r.device_bytes;
  }
  all["energy"] = json_of(r.energy);
  return all;
}

void print_report(const driver::RunTimes& times) {
  table_of(times).print();
  print_busy(times.waiting, times.threads);
}

int bench_command(const Arguments& arguments) {
  if (!(arguments.seconds >= 0)) {
    fail(ErrorCode::kInvalidArgument, "--seconds", fmt::format("{} is no number of seconds", arguments.seconds));
  }
  const Measurement m = measure(arguments);
  if (arguments.json) {
    nlohmann::json all = json_of(m.runs);
    if (m.cold > 0) {
      all["compile_s"] = m.cold;
      all["compile_peak_bytes"] = m.compile_peak;
    }
    all["cached_s"] = m.cached;
    all["peak_bytes"] = m.peak;
    if (m.ranges > 0) all["ranges_s"] = m.ranges;
    print_json(all);
    return 0;
  }
  Table table = table_of(m.runs);
  table.add({"load, cold", m.cold > 0 ? human_seconds(m.cold) : "not measured: the cache has it (--no-cache)"});
  table.add({"load, cached", human_seconds(m.cached)});
  if (m.ranges > 0) table.add({"kernels for ranges, cold", human_seconds(m.ranges)});
  table.add({"peak memory", human_bytes(static_cast<double>(m.peak))});
  if (m.cold > 0) table.add({"peak memory while compiling", human_bytes(static_cast<double>(m.compile_peak))});
  table.print();
  print_busy(m.runs.waiting, m.runs.threads);
  return 0;
}

}  // namespace heddle::cli
