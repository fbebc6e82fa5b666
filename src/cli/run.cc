#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "cli/npy.h"
#include "cli/support.h"
#include "driver/model_impl.h"
#include "driver/random_inputs.h"
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

std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

void print_table(const std::vector<PortInfo>& ports, const std::vector<Tensor>& outputs) {
  Table table({"output", "type", "shape", "min", "max", "mean", "not finite"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() == DType::kString) {
      table.add({ports[i].name, "string", to_string(outputs[i].shape()), "", "", "", ""});
      continue;
    }
    const Statistics s = statistics(outputs[i]);
    const auto number = [&](double value) { return s.finite > 0 ? fmt::format("{:.6g}", value) : std::string("-"); };
    table.add({ports[i].name, std::string(to_string(outputs[i].dtype())), to_string(outputs[i].shape()), number(s.min),
               number(s.max), number(s.sum / static_cast<double>(s.finite)), fmt::format("{}", s.not_finite)});
  }
  table.print();
}

void print_report(const std::vector<PortInfo>& ports, const std::vector<Tensor>& outputs) {
  nlohmann::json all = nlohmann::json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    nlohmann::json one = {
        {"name", ports[i].name}, {"dtype", std::string(to_string(outputs[i].dtype()))}, {"shape", outputs[i].shape()}};
    if (outputs[i].dtype() == DType::kString) {
      one["values"] = outputs[i].strings();
    } else if (const Statistics s = statistics(outputs[i]); s.finite > 0) {
      one["min"] = s.min;
      one["max"] = s.max;
      one["mean"] = s.sum / static_cast<double>(s.finite);
    }
    all.push_back(std::move(one));
  }
  print_json(nlohmann::json{{"outputs", std::move(all)}});
}

}  // namespace

int run_command(const Arguments& arguments) {
  Prepared prepared = prepare(arguments);
  const Model model = Model::load(arguments.model, prepared.options);
  const auto inputs = driver::random_inputs(*model.impl().primary().plan, arguments.seed,
                                            fit_types(std::move(prepared.inputs), model.inputs()));
  const std::vector<Tensor> outputs = model.run(inputs);
  if (!arguments.output_dir.empty()) {
    make_directories(arguments.output_dir);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].dtype() == DType::kString) continue;
      write_npy(arguments.output_dir + "/" + file_name(model.outputs()[i].name), outputs[i]);
    }
  }
  if (arguments.json) {
    print_report(model.outputs(), outputs);
  } else {
    print_table(model.outputs(), outputs);
  }
  return 0;
}

int compile_command(const Arguments& arguments) {
  const Prepared prepared = prepare(arguments);
  // No Model: a plan can be made for a GPU that this machine lacks.
  std::string cached;
  const auto plan = runtime::is_plan_file(arguments.model)
                        ? runtime::read_plan(arguments.model, 1)
                        : plan_of_model(arguments.model, prepared.options, nullptr, &cached);
  if (cached.empty() || !duplicate_file(cached, arguments.output)) runtime::write_plan(*plan, arguments.output);
  double constants = 0;
  for (const Tensor& constant : plan->constants) constants += static_cast<double>(constant.bytes());
  print_line(fmt::format("{}: {} steps, {} of constants, {} of intermediate values, for {}", arguments.output,
                         plan->steps.size(), human_bytes(constants),
                         human_bytes(static_cast<double>(plan->arena_bytes)), plan->target));
  return 0;
}

}  // namespace heddle::cli
