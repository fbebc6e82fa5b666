#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "cli/commands/kernel_texts.h"
#include "cli/file_names.h"
#include "cli/npy.h"
#include "cli/support.h"
#include "driver/api/model_impl.h"
#include "driver/model/kernel_times.h"
#include "driver/shapes/guess.h"
#include "driver/verify/random_inputs.h"
#include "runtime/plan_io.h"

namespace heddle::cli {
namespace {

struct Statistics {
  double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0;
  int64_t not_finite = 0, finite = 0;
};

double element(const Tensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  switch (tensor.dtype()) {
    case DType::kF64:
      return tensor.values<double>()[at];
    case DType::kF32:
      return tensor.values<float>()[at];
    case DType::kI64:
      return static_cast<double>(tensor.values<int64_t>()[at]);
    case DType::kU64:
      return static_cast<double>(tensor.values<uint64_t>()[at]);
    default:
      break;
  }
  uint64_t bits = 0;
  const size_t bytes = size_of(tensor.dtype());
  std::memcpy(&bits, static_cast<const std::byte*>(tensor.data()) + at * bytes, bytes);
  if (is_float(tensor.dtype())) return decode_float(tensor.dtype(), static_cast<uint32_t>(bits));
  if (!is_signed_int(tensor.dtype())) return static_cast<double>(bits);
  const auto unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

Statistics statistics(const Tensor& tensor) {
  Statistics s;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = element(tensor, i);
    if (!std::isfinite(value)) {
      ++s.not_finite;
      continue;
    }
    ++s.finite;
    s.min = std::min(s.min, value);
    s.max = std::max(s.max, value);
    s.sum += value;
  }
  return s;
}

// What became of a run: the outputs, the files that hold them ("" for those that are not written), and times.
struct Ran {
  std::vector<PortInfo> ports;
  std::vector<Tensor> outputs;
  std::vector<std::string> files;
  double load_seconds = 0, run_seconds = 0;
  bool from_cache = false, from_plan = false;
};

std::vector<std::string> write_outputs(const std::string& folder, const Ran& ran) {
  std::vector<std::string> names;
  for (const PortInfo& port : ran.ports) names.push_back(port.name);
  std::vector<std::string> files = output_files(names);
  make_directories(folder);
  for (size_t i = 0; i < files.size(); ++i) {
    if (ran.outputs[i].dtype() == DType::kString) {
      files[i].clear();
      continue;
    }
    files[i] = folder + (folder.ends_with('/') ? "" : "/") + files[i];
    write_npy(files[i], ran.outputs[i]);
  }
  return files;
}

std::string times_of(const Ran& ran) {
  const char* const load = ran.from_plan ? "loaded" : ran.from_cache ? "loaded from the cache" : "compiled";
  return fmt::format("{} in {}, ran once in {}", load, human_seconds(ran.load_seconds), human_seconds(ran.run_seconds));
}

void print_table(const Ran& ran) {
  std::vector<std::string> header = {"output", "type", "shape", "min", "max", "mean", "not finite"};
  if (!ran.files.empty()) header.emplace_back("file");
  Table table(std::move(header));
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    const Tensor& output = ran.outputs[i];
    std::vector<std::string> row = {ran.ports[i].name, std::string(to_string(output.dtype())),
                                    to_string(output.shape())};
    if (output.dtype() == DType::kString) {
      row.insert(row.end(), {"", "", "", ""});
    } else {
      const Statistics s = statistics(output);
      const auto number = [&](double value) { return s.finite > 0 ? fmt::format("{:.6g}", value) : std::string("-"); };
      row.insert(row.end(), {number(s.min), number(s.max), number(s.sum / static_cast<double>(s.finite)),
                             fmt::format("{}", s.not_finite)});
    }
    if (!ran.files.empty()) row.push_back(ran.files[i].empty() ? "text is not written" : ran.files[i]);
    table.add(std::move(row));
  }
  table.print();
  print_line(times_of(ran));
}

void print_report(const Ran& ran) {
  nlohmann::json all = nlohmann::json::array();
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    const Tensor& output = ran.outputs[i];
    nlohmann::json one = {
        {"name", ran.ports[i].name}, {"dtype", std::string(to_string(output.dtype()))}, {"shape", output.shape()}};
    if (output.dtype() == DType::kString) {
      one["values"] = output.strings();
    } else if (const Statistics s = statistics(output); s.finite > 0) {
      one["min"] = s.min;
      one["max"] = s.max;
      one["mean"] = s.sum / static_cast<double>(s.finite);
    }
    if (!ran.files.empty() && !ran.files[i].empty()) one["file"] = ran.files[i];
    all.push_back(std::move(one));
  }
  print_json(nlohmann::json{{"outputs", std::move(all)},
                            {"load_s", ran.load_seconds},
                            {"run_s", ran.run_seconds},
                            {"from_cache", ran.from_cache}});
}

}  // namespace

int run_command(const Arguments& arguments) {
  Prepared prepared = prepare(arguments, Ranges::kTaken);
  Ran ran;
  double start = wall_seconds();
  const Model model = Model::load(arguments.model, prepared.options);
  ran.load_seconds = wall_seconds() - start;
  ran.from_cache = model.impl().primary().from_cache.plan;
  ran.from_plan = runtime::is_plan_file(arguments.model);
  ran.ports = model.outputs();
  tell_guess(arguments, prepared.options, model.inputs());
  tell_branches(driver::branch_guess(*model.impl().primary().plan, prepared.inputs));
  const auto inputs = driver::random_inputs(*model.impl().primary().plan, arguments.seed,
                                            fit_types(std::move(prepared.inputs), model.inputs()));
  start = wall_seconds();
  ran.outputs = model.run(inputs);
  ran.run_seconds = wall_seconds() - start;
  model.impl().wait_for_background();
  if (!arguments.output_dir.empty()) ran.files = write_outputs(arguments.output_dir, ran);
  if (arguments.json) {
    print_report(ran);
  } else {
    print_table(ran);
  }
  return 0;
}

int compile_command(const Arguments& arguments) {
  Prepared prepared = prepare(arguments, Ranges::kTaken);
  if (!arguments.emit.empty()) emit_kernels(arguments.model, prepared.options, arguments.emit);
  if (arguments.output.empty()) return 0;
  if (!prepared.options.ranges.empty()) {
    const Model model = Model::load(arguments.model, prepared.options);
    model.impl().wait_for_background();
    prepared.options = model.impl().options();  // the plan is for the largest extents
  }
  // No Model: a plan can be made for a GPU that this machine lacks.
  std::string cached;
  const auto plan = runtime::is_plan_file(arguments.model)
                        ? runtime::read_plan(arguments.model, 1)
                        : plan_of_model(arguments.model, prepared.options, nullptr, &cached);
  if (cached.empty() || !duplicate_file(cached, arguments.output)) runtime::write_plan(*plan, arguments.output);
  tell_guess(arguments, prepared.options, driver::inputs_of(*plan));
  double constants = 0;
  for (const Tensor& constant : plan->constants) constants += static_cast<double>(constant.bytes());
  print_line(fmt::format("{}: {} steps, {} of constants, {} of intermediate values, for {}", arguments.output,
                         plan->steps.size(), human_bytes(constants),
                         human_bytes(static_cast<double>(plan->arena_bytes)), driver::machine_of(plan->target)));
  return 0;
}

}  // namespace heddle::cli
