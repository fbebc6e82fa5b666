#include "driver/verify/verify.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread/contention.h"
#include "driver/compile/compile.h"
#include "driver/plan/reference.h"
#include "driver/shapes/guess.h"
#include "driver/target/backend.h"
#include "driver/verify/random_inputs.h"
#include "ir/analysis/placement.h"
#include "ir/analysis/sensitivity.h"
#include "ir/reference/eval.h"
#include "runtime/executor.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

std::vector<ir::Array> to_arrays(const std::vector<Tensor>& tensors) {
  std::vector<ir::Array> arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(ir::to_array(tensor));
  return arrays;
}

std::vector<Tensor> in_order(const runtime::Plan& plan, const std::map<std::string, Tensor>& inputs) {
  std::vector<Tensor> ordered;
  for (const runtime::Port& port : plan.inputs) {
    const Tensor& tensor = inputs.at(port.name);
    if (tensor.dtype() != port.dtype || tensor.shape() != port.shape) {
      fail(ErrorCode::kInvalidInput, "input " + port.name,
           fmt::format("it is {}{}, the model takes {}{}", to_string(tensor.dtype()), to_string(tensor.shape()),
                       to_string(port.dtype), to_string(port.shape)));
    }
    ordered.push_back(tensor);
  }
  return ordered;
}

// What lies at a place of a tensor.
Tensor part_of(const Tensor& host, const ir::Placement& place, const Shape& shape) {
  Tensor part(host.dtype(), shape);
  const auto element = static_cast<int64_t>(size_of(host.dtype()));
  const int64_t row = shape.empty() ? 1 : shape.back(), rows = row == 0 ? 0 : element_count(shape) / row;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = 0, stride = 1, rest = r * row;
    for (size_t d = shape.size(); d-- > 0;) {
      at += (rest % shape[d] + place.start[d]) * stride;
      stride *= place.shape[d], rest /= shape[d];
    }
    std::memcpy(static_cast<std::byte*>(part.mutable_data()) + r * row * element,
                static_cast<const std::byte*>(host.data()) + at * element, static_cast<size_t>(row * element));
  }
  return part;
}

// The groups of which a step runs the last kernel.
std::vector<int64_t> groups_ending_with(const BuiltPlan& built, size_t step) {
  const auto joined = built.joined_groups.find(step);
  std::vector<int64_t> groups =
      joined == built.joined_groups.end() ? std::vector<int64_t>{built.step_group[step]} : joined->second;
  const bool goes_on = step + 1 < built.step_group.size() && built.step_group[step + 1] == groups.back();
  if (goes_on) groups.pop_back();
  std::erase_if(groups, [&](int64_t group) { return static_cast<size_t>(group) >= built.grouping.groups.size(); });
  return groups;
}

// Every value that leaves a group, as the plan computed it.
using Values = std::unordered_map<ir::ValueId, Tensor>;

Values run_and_keep(const CompiledModel& model, const runtime::Executor& executor, const std::vector<Tensor>& inputs) {
  const BuiltPlan& built = model.built;
  const ir::Placements placed = ir::find_placements(*model.optimised);
  Values values;
  executor.run(inputs, [&](size_t step, const std::function<Tensor(uint32_t)>& read) {
    for (const int64_t group : groups_ending_with(built, step)) {
      for (const ir::ValueId value : built.grouping.groups[static_cast<size_t>(group)].outputs) {
        const auto place = placed.find(value);
        values[value] = place == placed.end() ? read(built.buffer_of.at(value))
                                              : part_of(read(built.buffer_of.at(place->second.host)), place->second,
                                                        model.optimised->shape(value));
      }
    }
  });
  return values;
}

// The second chance of outputs outside their bounds: what rounding does to this model on these inputs is measured, and
// the bounds of all values are widened by it.
void allow_for_sensitivity(const ir::Graph& graph, const std::vector<ir::Array>& inputs,
                           const std::vector<ir::Array>& expected, const std::vector<Tensor>& outputs, uint64_t seed,
                           std::vector<double>& bounds, VerifyReport& report) {
  const ir::Sensitivity sensitivity = ir::measure_sensitivity(graph, inputs, seed);
  report.ok = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    OutputCheck& check = report.outputs[i];
    if (!check.comparison.ok) {
      const ir::Comparison widened =
          ir::compare(expected[i], ir::to_array(outputs[i]), check.comparison.bound, sensitivity.slack[i]);
      check.sensitivity = sensitivity.bounds[graph.outputs()[i].value];
      check.comparison.ok = widened.ok;
      // The element that is still outside is the one to show.
      if (!widened.ok) check.comparison = widened;
    }
    report.ok = report.ok && check.comparison.ok;
  }
  for (size_t v = 0; v < bounds.size(); ++v) {
    if (bounds[v] > 0) bounds[v] += sensitivity.bounds[v];
  }
}

std::optional<Divergence> find_divergence(const CompiledModel& model, const runtime::Executor& executor,
                                          const std::vector<Tensor>& inputs, const std::vector<double>& bounds) {
  const Values values = run_and_keep(model, executor, inputs);
  const auto& groups = model.built.grouping.groups;
  std::unordered_map<ir::ValueId, size_t> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const ir::ValueId value : groups[g].outputs) group_of[value] = g;
  }
  std::optional<Divergence> first;
  ir::EvalOptions options;
  options.observe = [&](ir::ValueId value, const ir::Array& expected) {
    const auto actual = values.find(value);
    if (actual == values.end() || (first && first->group <= group_of.at(value))) return;
    const ir::Comparison comparison = ir::compare(expected, ir::to_array(actual->second), bounds[value]);
    if (comparison.ok) return;
    const size_t group = group_of.at(value);
    first = Divergence{group, groups[group].kind, {}, {}, model.optimised->type(value), comparison};
  };
  ir::evaluate(*model.optimised, to_arrays(inputs), options);
  if (!first) return first;
  for (size_t s = 0; s < model.built.step_group.size(); ++s) {
    const std::vector<int64_t> ending = groups_ending_with(model.built, s);
    if (std::find(ending.begin(), ending.end(), static_cast<int64_t>(first->group)) == ending.end()) continue;
    first->label = model.plan->steps[s].label;
    first->origins = model.plan->steps[s].origin;
  }
  return first;
}

CompiledModel compile_with_values(const std::string& path, CompileOptions options) {
  const std::map<std::string, Tensor> values = std::exchange(options.values, {});
  try {
    return compile_model(path, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnknownShape || values.empty()) throw;
  }
  options.values = values;
  return compile_model(path, options);
}

}  // namespace

VerifyReport verify(const std::string& path, const CompileOptions& options, std::map<std::string, Tensor> given,
                    uint64_t seed) {
  if (runtime::is_plan_file(path)) {
    fail(ErrorCode::kInvalidArgument, path, "a plan holds no graph to compare with", "Verify the ONNX model");
  }
  const Settings settings = resolve(options);
  require_device(settings);
  const CompiledModel model = compile_with_values(path, options);
  const auto pool = std::make_shared<ThreadPool>(settings.target.cpu.threads);
  const auto executor = runtime::make_executor(model.plan, pool, reference_interpreter(), {.device = settings.device});
  check_memory(path, executor->bytes_per_run(), "its intermediate values and outputs");
  const std::string guess = branch_guess(*model.plan, given);
  const std::vector<Tensor> inputs = in_order(*model.plan, random_inputs(*model.plan, seed, std::move(given)));

  VerifyReport report;
  report.inputs = inputs_of(*model.plan);
  report.branch_guess = guess;
  report.threads = settings.target.cpu.threads;
  const Contention contention;
  const double run_start = wall_seconds();
  const std::vector<Tensor> outputs = executor->run(inputs);
  report.run_seconds = wall_seconds() - run_start;

  const double reference_start = wall_seconds();
  const std::vector<ir::Array> expected = ir::evaluate(*model.imported, to_arrays(inputs));
  report.reference_seconds = wall_seconds() - reference_start;
  report.waiting = contention.waiting();
  std::vector<double> bounds = ir::error_bounds(*model.optimised);
  const std::vector<double> imported_bounds = ir::error_bounds(*model.imported);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Graph::Port& port = model.optimised->outputs()[i];
    // What passes folded is rounded, too, though nothing is left to compute.
    double bound = bounds[port.value];
    if (bound == 0) bound = imported_bounds[model.imported->outputs()[i].value];
    report.outputs.push_back(
        {port.name, model.optimised->type(port.value), ir::compare(expected[i], ir::to_array(outputs[i]), bound)});
    report.ok = report.ok && report.outputs.back().comparison.ok;
  }
  if (!report.ok) {
    allow_for_sensitivity(*model.optimised, to_arrays(inputs), expected, outputs, seed, bounds, report);
  }
  if (!report.ok) report.first = find_divergence(model, *executor, inputs, bounds);
  return report;
}

}  // namespace heddle::driver
