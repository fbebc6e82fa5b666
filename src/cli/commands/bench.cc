#include <malloc.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "cli/commands/reports.h"
#include "cli/support.h"
#include "driver/api/model_impl.h"
#include "driver/report/run_times.h"
#include "driver/verify/random_inputs.h"
#include "jit/cache.h"

namespace heddle::cli {
namespace {

struct Measurement {
  driver::RunTimes runs;
  double cold = 0, cached = 0;  // seconds to load; cold 0: a plan file
  double ranges = 0;            // seconds until kernels for all ranges are there, behind the cold load
  uint64_t compile_peak = 0, peak = 0;
};

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
  table.add({"hardware floor", fmt::format("{} ({:.0f}% of it reached)", human_seconds(r.floor),
                                           100 * r.floor / (gpu ? r.device_p50 : r.p50))});
  table.add({"threads", fmt::format("{}", r.threads)});
  if (gpu) table.add({"memory of the GPU", human_bytes(static_cast<double>(r.device_bytes))});
  return table;
}

}  // namespace

nlohmann::json json_of(const driver::RunTimes& r) {
  nlohmann::json all = {{"p50_ms", r.p50 * 1e3},
                        {"p10_ms", r.p10 * 1e3},
                        {"p90_ms", r.p90 * 1e3},
                        {"cpu_ms", r.cpu * 1e3},
                        {"runs", r.runs},
                        {"runs_per_s", 1 / r.p50},
                        {"threads", r.threads},
                        {"floor_ms", r.floor * 1e3}};
  if (r.device_p50 > 0) {
    all["device_p50_ms"] = r.device_p50 * 1e3;
    all["device_p10_ms"] = r.device_p10 * 1e3;
    all["device_p90_ms"] = r.device_p90 * 1e3;
    all["device_cold_p50_ms"] = r.device_cold * 1e3;
    all["device_bytes"] = r.device_bytes;
  }
  return all;
}

void print_report(const driver::RunTimes& times) {
  table_of(times).print();
}

int bench_command(const Arguments& arguments) {
  if (!(arguments.seconds >= 0)) {
    fail(ErrorCode::kInvalidArgument, "--seconds", fmt::format("{} is no number of seconds", arguments.seconds));
  }
  const Measurement m = measure(arguments);
  if (arguments.json) {
    nlohmann::json all = json_of(m.runs);
    all["compile_s"] = m.cold;
    all["cached_s"] = m.cached;
    all["peak_bytes"] = m.peak;
    all["compile_peak_bytes"] = m.compile_peak;
    if (m.ranges > 0) all["ranges_s"] = m.ranges;
    print_json(all);
    return 0;
  }
  Table table = table_of(m.runs);
  table.add({"load, cold", human_seconds(m.cold)});
  table.add({"load, cached", human_seconds(m.cached)});
  if (m.ranges > 0) table.add({"kernels for ranges, cold", human_seconds(m.ranges)});
  table.add({"peak memory", human_bytes(static_cast<double>(m.peak))});
  table.add({"peak memory while compiling", human_bytes(static_cast<double>(m.compile_peak))});
  table.print();
  return 0;
}

}  // namespace heddle::cli
