#include "source.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "array.h"
#include "base/file/file.h"
#include "cli/capture.h"
#include "cli/commands/kernel_texts.h"
#include "cli/commands/profile_text.h"
#include "driver/options/options.h"
#include "driver/report/profile_model.h"
#include "driver/report/svg.h"
#include "driver/shapes/ranges.h"
#include "driver/verify/verify.h"
#include "errors.h"
#include "narrow.h"
#include "operators.h"
#include "profile/exports.h"
#include "profile/json.h"
#include "profile/page.h"
#include "report.h"
#include "runtime/plan_io.h"
#include "text.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

template <typename T>
void take(const nb::dict& options, const char* name, T& value) {
  if (!options.contains(name)) return;
  const nb::object given = options[name];
  if (given.is_none()) return;
  if (!nb::try_cast(given, value)) {
    refuse_argument(name, fmt::format("a {} is no value of it", class_name(given)),
                    fmt::format("It is by default {}", nb::cast<std::string>(nb::repr(nb::cast(value)))));
  }
}

Shape shape_of(nb::handle given, const std::string& name) {
  Shape shape;
  if (!nb::try_cast(given, shape)) {
    refuse_argument("shapes", fmt::format("what is given for {} is no sequence of numbers", name),
                    fmt::format("Write shapes={{\"{}\": (1, 3, 224, 224)}}", name));
  }
  return shape;
}

// Symbolic extents that get one value are shapes; those with several stay ranges, for kernels compiled ahead.
CompileOptions with_dims(const std::string& path, CompileOptions options) {
  if (options.ranges.empty() || runtime::is_plan_file(path)) return options;
  options = driver::with_largest_extents(path, std::move(options));
  const bool keeps = options.target == "cpu";
  std::erase_if(options.ranges, [&](const auto& range) { return !keeps || range.second.min == range.second.max; });
  return options;
}

// "auto", or a mapping of outputs to inputs.
void take_aliases(const nb::dict& given, CompileOptions& options) {
  if (!given.contains("alias") || given["alias"].is_none()) return;
  const nb::object alias = given["alias"];
  if (nb::isinstance<nb::str>(alias) && nb::cast<std::string>(alias) == "auto") {
    options.alias_updates = true;
  } else if (!nb::try_cast(alias, options.alias)) {
    refuse_argument("alias",
                    fmt::format("{} is no mapping of outputs to inputs", nb::cast<std::string>(nb::repr(alias))),
                    "Write {\"present.*\": \"past.*\"}, or \"auto\" for all outputs that are updates of inputs");
  }
}

void take_limits(const nb::dict& given, ImportLimits& limits) {
  nb::dict named;
  take(given, "limits", named);
  for (const auto [key, value] : named) {
    const std::string name = nb::cast<std::string>(key);
    const auto take_one = [&](auto& limit) {
      if (!nb::try_cast(value, limit))
        refuse_argument("limits", fmt::format("what is given for {} is no number", name));
    };
    if (name == "nodes") {
      take_one(limits.nodes);
    } else if (name == "bytes") {
      take_one(limits.bytes);
    } else if (name == "depth") {
      take_one(limits.depth);
    } else if (name == "seconds") {
      take_one(limits.seconds);
    } else {
      refuse_argument("limits", fmt::format("there is no limit {}", name), "They are nodes, bytes, depth and seconds");
    }
  }
}

// The tensor in the memory of `object`, which it keeps.
Tensor kept(const Tensor& tensor, const nb::object& object) {
  const auto* const both = new std::pair<Tensor, nb::object>(tensor, object);
  return Tensor::borrow(tensor.dtype(), tensor.shape(), tensor.data(),
                        std::shared_ptr<const void>(both, [both](const void*) {
                          const nb::gil_scoped_acquire gil;
                          delete both;
                        }));
}

CompileOptions options_of(const nb::dict& given) {
  CompileOptions options;
  take(given, "target", options.target);
  take(given, "precision", options.precision);
  take(given, "threads", options.threads);
  take(given, "fusion", options.fusion);
  take(given, "cache", options.use_cache);
  take(given, "tuned", options.tuned);
  take(given, "background", options.background);
  take(given, "max_plans", options.max_plans);
  take(given, "max_plan_bytes", options.max_plan_bytes);
  take(given, "callers_memory", options.callers_memory);
  take(given, "external_data_links", options.external_data_links);
  nb::dict shapes, dims, values, constants;
  if (given.contains("kernels")) options.operators = operators_of(given["kernels"]);
  take(given, "shapes", shapes);
  take(given, "dims", dims);
  take(given, "values", values);
  take(given, "constants", constants);
  for (const auto [name, shape] : shapes) {
    const std::string key = nb::cast<std::string>(name);
    options.shapes[key] = shape_of(shape, key);
  }
  take_aliases(given, options);
  take(given, "rows", options.rows);
  take(given, "appended", options.appended);
  take_limits(given, options.limits);
  for (const auto [name, extents] : dims) {
    const std::string key = nb::cast<std::string>(name);
    options.ranges[key] = range_of(extents, key);
  }
  for (auto& [name, value] : host_tensors(values)) {
    if (value.dtype() == DType::kString) {
      options.values[name] = value;
      continue;
    }
    Tensor copy(value.dtype(), value.shape());
    if (copy.bytes() > 0) std::memcpy(copy.mutable_data(), value.data(), copy.bytes());
    options.values[name] = std::move(copy);
  }
  for (const auto& [name, value] : host_tensors(constants)) {
    options.constants[name] = kept(value, constants[name.c_str()]);
  }
  return options;
}

// What only the model itself can tell.
void require_model(const Source& source, const char* remedy) {
  if (runtime::is_plan_file(source.path())) {
    fail(ErrorCode::kInvalidArgument, source.path(), "a plan no longer knows how it was made", remedy);
  }
}

driver::CompiledModel compiled(const Source& source) {
  require_model(source, "Name the ONNX model");
  driver::CompiledModel model = source.with_progress(
      [&](const CompileOptions& options) { return driver::compile_model(source.path(), options, false); });
  model.report.model = source.name();
  return model;
}

std::string explain(const Source& source, bool verbose) {
  const driver::CompiledModel model = compiled(source);
  return interruptible([&] {
    const Target target = driver::resolve(source.options()).target;
    return cli::captured([&] { cli::print_report(model, target, verbose); });
  });
}

std::string explain_json(const Source& source) {
  return cli::json_of(compiled(source).report).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nb::object svg(const Source& source) {
  return text_object(driver::draw_svg(compiled(source)));
}

nb::list kernels(const Source& source) {
  const driver::CompiledModel model = compiled(source);
  const Target target = driver::resolve(source.options()).target;
  const cli::KernelTexts texts(model, target);
  nb::list all;
  for (size_t n = 1; n <= texts.size(); ++n) {
    all.append(nb::make_tuple(texts.symbol(n), texts.file_name(n), text_object(texts.file(n))));
  }
  return all;
}

nb::tuple verify(const Source& source, const nb::dict& inputs, uint64_t seed) {
  const std::map<std::string, Tensor> given = host_tensors(inputs);
  return told(source.with_progress([&](CompileOptions options) {
    for (const auto& [name, tensor] : given) {
      options.shapes.emplace(name, tensor.shape());
      options.values[name] = tensor;
    }
    return driver::verify(source.path(), options, given, seed);
  }));
}

std::string text_of(const profile::Profile& profile) {
  constexpr int kRows = 20;
  return cli::captured([&] { cli::print_profile(profile, kRows); });
}

// The profile as text and as JSON.
nb::tuple profile_of(const Source& source, const nb::dict& inputs, double seconds, uint64_t seed) {
  require_model(source, "Profile the ONNX model");
  const std::map<std::string, Tensor> given = host_tensors(inputs);
  const profile::Profile profile = source.with_progress([&](CompileOptions options) {
    for (const auto& [name, tensor] : given) {
      options.shapes.emplace(name, tensor.shape());
      if (tensor.dtype() == DType::kString) options.values[name] = tensor;
    }
    const driver::Settings settings = driver::resolve(options);
    driver::require_device(settings);
    driver::CompiledModel model = driver::compile_model(source.path(), options);
    model.report.model = source.name();
    return driver::profile_model(model, settings.target,
                                 {.seconds = seconds,
                                  .threads = settings.target.cpu.threads,
                                  .device = settings.device,
                                  .seed = seed,
                                  .inputs = given});
  });
  return nb::make_tuple(text_of(profile), profile::to_json(profile));
}

std::string profile_text(const std::string& json) {
  return text_of(profile::parse(json, "profile"));
}

// A profile in the form of a viewer.
nb::bytes profile_in_form(const std::string& json, const std::string& form) {
  if (form == "html") {
    const std::string page = profile::page(json, profile::parse(json, "profile").title);
    return nb::bytes(page.data(), page.size());
  }
  const profile::Profile profile = profile::parse(json, "profile");
  const std::string content = form == "speedscope" ? profile::speedscope(profile)
                              : form == "pprof"    ? profile::pprof(profile)
                              : form == "folded"   ? profile::folded_stacks(profile, 0)
                                                   : profile::perfetto(profile);
  return nb::bytes(content.data(), content.size());
}

nb::tuple tune(const Source& source, double seconds, int candidates, bool again, bool by_energy) {
  require_model(source, "Tune the ONNX model");
  return told(source.with_progress([&](const CompileOptions& options) {
    driver::TuneOptions tuning;
    tuning.budget_seconds = seconds;
    tuning.most = candidates;
    tuning.again = again;
    tuning.by_energy = by_energy;
    if (options.progress) {
      tuning.progress = [&](const driver::TunedProblem& problem, size_t, size_t, double fraction) {
        options.progress("tune " + problem.label, fraction);
      };
    }
    return driver::tune_model(source.path(), options, tuning);
  }));
}

nb::tuple inspect(const Source& source) {
  driver::ModelSummary summary = source.with_progress(
      [&](const CompileOptions& options) { return driver::inspect_model(source.path(), options); });
  summary.path = source.name();
  return told(summary);
}

}  // namespace

Source::Source(nb::handle model, const nb::dict& options) : options_(options_of(options)) {
  if (nb::isinstance<nb::bytes>(model)) {
    const auto bytes = nb::borrow<nb::bytes>(model);
    const std::string_view content(bytes.c_str(), bytes.size());
    const auto folder = std::make_shared<TempDir>("heddle-model");
    // No message of protobuf begins with this word.
    given_as_ = content.starts_with("graph") ? "model.hir" : "model.onnx";
    path_ = folder->path() + "/" + given_as_;
    write_file(path_, content, Sync::kNo);
    file_ = folder;
  } else {
    path_ = path_of(model);
  }
  if (options.contains("progress") && !nb::object(options["progress"]).is_none()) progress_ = options["progress"];
  options_ = interruptible([&] { return with_dims(path_, std::move(options_)); });
}

std::shared_ptr<Source::Progress> Source::progress() const {
  return progress_.is_valid() ? std::make_shared<Progress>(progress_) : nullptr;
}

Source::Progress::~Progress() {
  const nb::gil_scoped_acquire gil;
  raised_.reset();
  function_.reset();
}

void Source::Progress::tell(const std::string& stage, double fraction) {
  const nb::gil_scoped_acquire gil;
  if (raised_ != nullptr || !function_.is_valid()) return;
  try {
    function_(stage, fraction);
  } catch (nb::python_error& error) {
    raised_ = std::make_unique<nb::python_error>(std::move(error));
    if (Cancellation* const cancellation = Cancellation::current()) cancellation->cancel();
  }
}

void Source::Progress::end() {
  function_.reset();
}

void Source::Progress::rethrow() {
  if (raised_ != nullptr) throw nb::python_error(std::move(*std::exchange(raised_, nullptr)));
}

std::map<std::string, Tensor> host_tensors(const nb::dict& arrays) {
  std::map<std::string, Tensor> tensors;
  for (const auto [key, object] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    const std::string where = "input " + name;
    if (holds_text(object)) {
      tensors[name] = text_tensor(object, where);
      continue;
    }
    const Family& family = family_of(object, where);
    Array array = family.view(object, where, nullptr);
    if (array.device != kHost) {
      fail(ErrorCode::kInvalidInput, where, "it lies on " + array.place() + ", host memory is needed",
           family.how_to_move(kHost));
    }
    if (!array.is_dense()) fail(ErrorCode::kInvalidInput, where, "its memory is not dense", family.how_to_make_dense());
    array = widened(std::move(array));
    tensors[name] = Tensor::borrow(array.dtype, array.shape, array.data, array.hold);
  }
  return tensors;
}

ExtentRange range_of(nb::handle extents, const std::string& name) {
  int64_t one = 0;
  std::vector<int64_t> two;
  if (nb::try_cast(extents, one)) return {one, one};
  if (nb::try_cast(extents, two) && two.size() == 2) return {two[0], two[1]};
  refuse_argument("dims", fmt::format("what is given for {} is neither a number nor a pair", name),
                  fmt::format("Write dims={{\"{}\": 8}}, or (1, 512) for a range", name));
}

void register_source(nb::module_& module) {
  nb::class_<Source>(module, "Source", "A model and how it is to be compiled.")
      .def(nb::init<nb::handle, nb::dict>(), nb::arg("model"), nb::arg("options"))
      .def_prop_ro("path", [](const Source& source) { return path_object(source.path()); })
      .def_prop_ro("target", [](const Source& source) { return source.options().target; })
      .def("explain", &explain, nb::arg("verbose"))
      .def("explain_json", &explain_json)
      .def("svg", &svg)
      .def("kernels", &kernels)
      .def("inspect", &inspect)
      .def("verify", &verify, nb::arg("inputs"), nb::arg("seed"))
      .def("profile", &profile_of, nb::arg("inputs"), nb::arg("seconds"), nb::arg("seed"))
      .def("tune", &tune, nb::arg("seconds"), nb::arg("candidates"), nb::arg("again"), nb::arg("by_energy"));
  module.def("profile_text", &profile_text, nb::arg("json"));
  module.def("profile_in_form", &profile_in_form, nb::arg("json"), nb::arg("form"));
}

}  // namespace heddle::python
