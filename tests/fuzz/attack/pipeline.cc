#include "tests/fuzz/attack/pipeline.h"

#include <fmt/format.h>

#include <exception>

#include "base/clock.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
#include "driver/report/svg.h"
#include "driver/verify/random_inputs.h"
#include "heddle/error.h"
#include "runtime/executor.h"
#include "target/cuda_driver.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {
namespace {

CompileOptions options_for(const std::string& target, Rng& rng) {
  CompileOptions options;
  options.target = target;
  options.use_cache = false;
  options.tuned = false;
  options.threads = 1;
  if (rng.chance(0.25)) options.precision = rng.pick(std::vector<std::string>{"f16", "bf16", "tf32"});
  if (rng.chance(0.2)) options.fusion = rng.pick(std::vector<std::string>{"none", "basic"});
  return options;
}

// Bytes that a run touches at least. -1: a loop may go on for ever.
int64_t work_of(const runtime::Plan& plan) {
  int64_t bytes = plan.arena_bytes;
  for (const runtime::Buffer& buffer : plan.buffers) bytes += buffer.bytes;
  for (const runtime::Step& step : plan.steps) {
    if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) {
      const int64_t body = work_of(*loop->body);
      if (body < 0 || loop->trip_bound < 0 || loop->trip_bound > 100) return -1;
      bytes += body * loop->trip_bound;
    } else if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      const int64_t a = work_of(*branch->then_body), b = work_of(*branch->else_body);
      if (a < 0 || b < 0) return -1;
      bytes += std::max(a, b);
    }
  }
  return bytes;
}

bool is_small(const runtime::Plan& plan, bool gpu) {
  double floor = 0;
  for (const runtime::Step& step : plan.steps) floor += step.floor_seconds;
  const int64_t work = work_of(plan);
  // The emulator is slower than a GPU by four orders of magnitude.
  return work >= 0 && work < (gpu ? 1 << 18 : 1 << 24) && floor < (gpu ? 1e-4 : 1e-2);
}

// Compiles as a user would, and runs. False: it is too large for a test.
bool run_model(const std::string& path, const CompileOptions& options, uint64_t seed) {
  const bool gpu = options.target != "cpu";
  if (gpu && CudaDriver::find() == nullptr) return false;
  if (!is_small(*driver::compile_model(path, options, false).plan, gpu)) return false;
  const Model model = Model::load(path, options);
  model.run(driver::random_inputs(*model.impl().primary().plan, seed));
  return true;
}

}  // namespace

std::string compile_everywhere(const PipelineCase& c) {
  Rng rng(c.seed ^ 0x5bd1e995);
  std::exception_ptr refused;
  CompileOptions options[] = {options_for("cpu", rng), options_for("cuda", rng)};
  for (const CompileOptions& option : options) {
    try {
      const driver::CompiledModel model = driver::compile_model(c.path, option, false);
      if (rng.chance(0.1)) driver::draw_svg(model);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) throw;
      if (error.code() == ErrorCode::kDamagedArtefact) return fmt::format("fail no such plan: {}", error.what());
      if (refused == nullptr) refused = std::current_exception();
    }
  }
  if (refused != nullptr) std::rethrow_exception(refused);
  if (!c.run) return "ok";
  return run_model(c.path, options[rng.range(0, 1)], c.seed) ? "ok, ran" : "ok";
}

}  // namespace heddle::fuzz
