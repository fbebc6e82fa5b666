#include "heddle/model.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/near_miss.h"
#include "base/thread/cancel.h"
#include "driver/api/enqueue.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
#include "driver/compile/kernel_override.h"
#include "driver/compile/plan_cache.h"
#include "driver/plan/constant_pool.h"
#include "driver/plan/reference.h"
#include "driver/report/profile_model.h"
#include "driver/shapes/import.h"
#include "driver/shapes/ranges.h"
#include "driver/target/backend.h"
#include "profile/json.h"
#include "runtime/plan_io.h"

namespace heddle {
namespace {

std::vector<std::string_view> names_of(const std::vector<PortInfo>& ports) {
  std::vector<std::string_view> names;
  for (const PortInfo& port : ports) names.push_back(port.name);
  return names;
}

// Values that plans depend on must outlive the run that passed them: plans are made from them in the background.
Tensor copy_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) return tensor;
  Tensor copy(tensor.dtype(), tensor.shape());
  if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

[[noreturn]] void refuse_enqueue(ErrorCode code, const std::string& why) {
  fail(code, "enqueue", why, "Use run() for this model");
}

// A plan holds for the shapes that it was made for.
void check_shapes(const std::string& path, const runtime::Plan& plan, const std::map<std::string, Shape>& wanted) {
  for (const runtime::Port& port : plan.inputs) {
    const auto found = wanted.find(port.name);
    if (found == wanted.end() || found->second == port.shape) continue;
    fail(
        ErrorCode::kInvalidInput, fmt::format("{}: input {}", path, port.name),
        fmt::format("its shape is to be {}, the plan was made for {}", to_string(found->second), to_string(port.shape)),
        "Compile the ONNX model for this shape");
  }
}

// Puts text among the other ports; `position` counts all of them.
void insert_texts(const std::vector<runtime::Text>& texts, std::vector<PortInfo>& ports) {
  for (const runtime::Text& text : texts) {
    const auto at = std::min<size_t>(text.position, ports.size());
    ports.insert(ports.begin() + static_cast<int64_t>(at), {text.name, DType::kString, text.value.shape(), ""});
  }
}

std::vector<PortInfo> output_infos(const runtime::Plan& plan) {
  std::vector<PortInfo> infos;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const runtime::Port& port = plan.outputs[i];
    const int64_t input = runtime::alias_of(plan, i);
    infos.push_back({port.name, port.dtype, port.shape, input < 0 ? "" : plan.inputs[static_cast<size_t>(input)].name});
  }
  return infos;
}

struct PlanOf {
  std::shared_ptr<const runtime::Plan> plan;
  std::string file;  // of the cache that holds it; "": none
  FromCache from_cache;
};

// A plan holds for what the tuner's database says of its problems, which are known since it was first compiled.
std::optional<PlanOf> find_plan(const driver::PlanCache& cache, const Hash128& base, const CompileOptions& options,
                                const Target& target, int threads) {
  const auto problems = cache.find_problems(base);
  if (!problems) return std::nullopt;
  const Hash128 key = driver::tuned_key(base, driver::current_winners(*problems, target, options.tuned));
  auto plan = cache.find(key, threads);
  if (plan == nullptr) return std::nullopt;
  return PlanOf{std::move(plan), cache.path_of(key), {true, true}};
}

// `is_same`: whether the model's files still are what the key says.
template <typename IsSame>
PlanOf make_plan(const std::string& path, const driver::PlanCache& cache, const Hash128& base,
                 const CompileOptions& options, const IsSame& is_same) {
  // The result of compile_model (with its graphs) ends before the plan is mapped, so both are not in memory at once.
  driver::TuningChoices choices;
  std::shared_ptr<runtime::Plan> plan;
  runtime::ConstantMakers makers;
  FromCache from_cache;
  {
    driver::CompiledModel compiled = driver::compile_model(path, options, true, false);
    choices = std::move(compiled.choices);
    plan = std::move(compiled.built.plan);
    makers = std::move(compiled.built.makers);
    from_cache.kernels = compiled.report.library_from_cache;
  }
  if (is_same()) {
    const Hash128 key = driver::tuned_key(base, choices.winners);
    cache.store_problems(base, choices.text());
    if (auto stored = cache.store(key, *plan, makers)) return {std::move(stored), cache.path_of(key), from_cache};
  } else {
    log(LogLevel::kWarning, fmt::format("{} changed while it was compiled; its plan is not cached", path));
  }
  runtime::make_constants(*plan, makers);
  return {std::move(plan), "", from_cache};
}

// The options with the shapes of the inputs, and the values of texts.
CompileOptions options_with(const std::map<std::string, Tensor>& inputs, CompileOptions options) {
  options.progress = nullptr;
  for (const auto& [name, tensor] : inputs) {
    options.shapes[name] = tensor.shape();
    if (tensor.dtype() == DType::kString) options.values[name] = tensor;
  }
  return options;
}

PlanOf plan_for(const std::string& path, const CompileOptions& options) {
  // Plans of edited kernels are no plans of the model, and those with the caller's constants would fill the disk with
  // them.
  if (!options.use_cache || driver::override_folder() || !options.constants.empty()) {
    driver::CompiledModel compiled = driver::compile_model(path, options);
    if (!options.constants.empty()) driver::share_constants(compiled.built.plan->constants, options.constants);
    return {std::move(compiled.built.plan), "", {false, compiled.report.library_from_cache}};
  }
  const driver::Settings settings = driver::resolve(options);
  const int threads = Target::host_cpu().cpu.threads;
  const Hash128 model = driver::model_hash(path, options, threads);
  const Hash128 base = Hasher()
                           .add(model)
                           .add(driver::settings_hash(options, settings))
                           .add(driver::operators_hash(path, options))
                           .finish();
  const driver::PlanCache cache;
  const auto find = [&] { return find_plan(cache, base, options, settings.target, threads); };
  if (auto found = find()) return *std::move(found);
  FileLock lock = cache.lock(base);
  if (lock.waited()) {
    if (auto found = find()) return *std::move(found);
    lock.release();  // who made it could not store it: all who waited make their own now
  }
  const auto is_same = [&] {
    try {
      return driver::model_hash(path, options, threads) == model;
    } catch (const Error&) {
      return false;  // it is not there any more, or no model
    }
  };
  return make_plan(path, cache, base, options, is_same);
}

}  // namespace

// Values of inputs are used only where shapes depend on them, which shows when it does not work without.
std::shared_ptr<const runtime::Plan> plan_of_model(const std::string& path, const CompileOptions& options,
                                                   FromCache* from_cache, std::string* file) {
  const auto take = [&](const CompileOptions& chosen) {
    PlanOf found = plan_for(path, chosen);
    if (from_cache != nullptr) *from_cache = found.from_cache;
    if (file != nullptr) *file = std::move(found.file);
    return std::move(found.plan);
  };
  CompileOptions without = options;
  for (const auto& [name, value] : options.values) without.shapes.emplace(name, value.shape());
  without.values.clear();
  try {
    return take(without);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnknownShape || options.values.empty()) throw;
  }
  return take(options);
}

Model::Impl::Impl(std::string path, CompileOptions options, std::shared_ptr<ThreadPool> pool)
    : path_(std::move(path)),
      options_(std::move(options)),
      is_plan_(runtime::is_plan_file(path_)),
      pool_(pool != nullptr ? std::move(pool)
                            : std::make_shared<ThreadPool>(driver::resolve(options_).target.cpu.threads)) {
  const bool has_ranges = !options_.ranges.empty() && !is_plan_ && options_.target == "cpu";
  if (has_ranges) options_ = driver::with_largest_extents(path_, std::move(options_));
  auto first = make_variant(options_);
  set_ports(*first->plan);
  find_places(*first);
  primary_ = std::move(first);
  if (!is_plan_) maker_ = std::make_unique<driver::VariantMaker>(path_, primary().plan);
  if (maker_ != nullptr && has_ranges) maker_->prepare(driver::samples_of_ranges(path_, options_));
}

void Model::Impl::set_ports(const runtime::Plan& plan) {
  for (const runtime::Port& port : plan.inputs) inputs_.push_back({port.name, port.dtype, port.shape, ""});
  insert_texts(plan.text_inputs, inputs_);
  outputs_ = output_infos(plan);
  insert_texts(plan.texts, outputs_);
  has_default_.assign(inputs_.size(), false);
  for (size_t i = 0; i < inputs_.size(); ++i) places_.emplace(inputs_[i].name, i);
  for (const runtime::DefaultInput& input : plan.defaults) {
    const auto [place, is_new] = places_.emplace(input.name, inputs_.size() + optional_.size());
    if (is_new) {
      optional_.push_back({input.name, input.dtype, input.shape, ""});
      has_default_.push_back(true);
    } else {
      has_default_[place->second] = true;
    }
  }
  ports_ = inputs_;
  ports_.insert(ports_.end(), optional_.begin(), optional_.end());
}

// ports_.size() where there is none.
size_t Model::Impl::port_of(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? ports_.size() : found->second;
}

void Model::Impl::find_places(ModelVariant& variant) const {
  const auto place = [&](const std::string& name) {
    const size_t at = port_of(name);
    if (at == ports_.size()) {
      fail(ErrorCode::kDamagedArtefact, path_, fmt::format("a plan of it has the input {}, the model has not", name),
           "Load the model again");
    }
    return at;
  };
  for (const runtime::Port& port : variant.plan->inputs) variant.inputs.push_back(place(port.name));
  for (const runtime::Text& text : variant.plan->text_inputs) variant.texts.push_back(place(text.name));
}

std::unique_ptr<ModelVariant> Model::Impl::make_variant(const CompileOptions& options) const {
  auto variant = std::make_unique<ModelVariant>();
  if (is_plan_) {
    variant->plan = runtime::read_plan(path_, pool_->threads());
    driver::check_runs_here(path_, variant->plan->target, driver::device_of(options.target));
    check_shapes(path_, *variant->plan, options.shapes);
  } else {
    driver::require_device(driver::resolve(options));
    variant->plan = plan_of_model(path_, options, &variant->from_cache);
  }
  variant->executor =
      runtime::make_executor(variant->plan, pool_, driver::reference_interpreter(),
                             {.device = driver::device_of(options.target), .callers_memory = options.callers_memory});
  driver::check_memory(path_, variant->executor->bytes_per_run(), "its intermediate values and outputs");
  return variant;
}

Model::Impl::Variant Model::Impl::with_executor(driver::VariantMaker::Made made) const {
  auto variant = std::make_shared<ModelVariant>();
  variant->plan = std::move(made.plan);
  variant->executor = runtime::make_executor(variant->plan, pool_, driver::reference_interpreter(),
                                             {.device = driver::device_of(options_.target),
                                              .libraries = made.libraries,
                                              .callers_memory = options_.callers_memory});
  find_places(*variant);
  driver::check_memory(path_, variant->executor->bytes_per_run(), "its intermediate values and outputs");
  return variant;
}

Model::Impl::Variant Model::Impl::find_variant(const GivenInputs& given) const {
  if (fits(primary(), given)) return primary_;
  const std::lock_guard lock(mutex_);
  for (auto variant = others_.begin(); variant != others_.end(); ++variant) {
    if (!fits(**variant, given)) continue;
    others_.splice(others_.begin(), others_, variant);
    return others_.front();
  }
  return nullptr;
}

void Model::Impl::keep(const Variant& variant) const {
  const auto bytes = [](const Variant& v) { return std::max(v->executor->bytes_per_run(), v->plan->arena_bytes); };
  const std::lock_guard lock(mutex_);
  others_.push_front(variant);
  size_t count = 0;
  int64_t total = 0;
  for (auto at = others_.begin(); at != others_.end(); ++at) {
    total += bytes(*at);
    if (++count == 1 || (count <= options_.max_plans && total <= options_.max_plan_bytes)) continue;
    others_.erase(at, others_.end());
    return;
  }
}

// Runs that began with `variant` end with it. Where it was dropped meanwhile, nothing takes its place.
void Model::Impl::improve(const Variant& variant, const CompileOptions& options) const {
  const std::weak_ptr<const ModelVariant> old = variant;
  maker_->improve(options, old, [this, old](driver::VariantMaker::Made made) {
    const Variant better = with_executor(std::move(made));
    const Variant replaced = old.lock();
    const std::lock_guard lock(mutex_);
    std::replace(others_.begin(), others_.end(), replaced, better);
  });
}

// `with_values`: the data is in host memory, so a plan may depend on it.
CompileOptions Model::Impl::options_for(const GivenInputs& given, bool with_values) const {
  CompileOptions options = options_;
  options.progress = nullptr;
  std::vector<bool> decides(ports_.size(), false);
  for (const runtime::FixedInput& fixed : primary().plan->fixed) decides[primary().inputs[fixed.input]] = true;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const std::string& name = ports_[i].name;
    options.values.erase(name);
    if (given[i] == nullptr) {
      options.shapes.erase(name);
      continue;
    }
    if (has_default_[i] || given[i]->shape() != ports_[i].shape) options.shapes[name] = given[i]->shape();
    const bool may_decide = decides[i] || has_default_[i] || ports_[i].dtype == DType::kString;
    if (with_values && may_decide) options.values[name] = copy_of(*given[i]);
  }
  return options;
}

Model::Impl::Variant Model::Impl::variant_for(const GivenInputs& given, bool with_values) const {
  if (Variant variant = find_variant(given)) return variant;
  const auto compiling = lock_or_cancel(compiling_);
  if (Variant variant = find_variant(given)) return variant;  // made by another thread meanwhile
  if (is_plan_) refuse(primary(), ports_, given);
  const CompileOptions options = options_for(given, with_values);
  using Aim = driver::VariantMaker::Aim;
  driver::VariantMaker::Made made = maker_->make(options, options.background ? Aim::kSoon : Aim::kBest);
  const bool is_best = made.is_best;
  const Variant variant = with_executor(std::move(made));
  if (!fits(*variant, given)) refuse(*variant, ports_, given);
  keep(variant);
  if (!is_best) improve(variant, options);
  return variant;
}

// Shapes are checked later, since another shape may have another plan.
void Model::Impl::check_given(const GivenInputs& given) const {
  for (size_t i = 0; i < ports_.size(); ++i) {
    const PortInfo& port = ports_[i];
    if (given[i] == nullptr) {
      if (has_default_[i]) continue;
      fail(ErrorCode::kInvalidInput, fmt::format("input {}", port.name), "it is missing",
           fmt::format("The model's inputs are {}", fmt::join(names_of(inputs_), ", ")));
    }
    if (given[i]->defined() && given[i]->dtype() == port.dtype) continue;
    fail(ErrorCode::kInvalidInput, fmt::format("input {}", port.name),
         fmt::format("its dtype is {}, the model takes {}",
                     given[i]->defined() ? to_string(given[i]->dtype()) : "undefined", to_string(port.dtype)),
         fmt::format("Convert the data to {}", to_string(port.dtype)));
  }
}

GivenInputs Model::Impl::look_up(const std::map<std::string, Tensor>& inputs) const {
  GivenInputs given(ports_.size(), nullptr);
  const std::string* unknown = nullptr;
  for (const auto& [name, tensor] : inputs) {
    const size_t port = port_of(name);
    if (port < ports_.size()) {
      given[port] = &tensor;
    } else {
      unknown = &name;
    }
  }
  check_given(given);
  if (unknown == nullptr) return given;
  fail(ErrorCode::kInvalidInput, fmt::format("input {}", *unknown), "the model has no such input",
       did_you_mean(*unknown, names_of(ports_)) +
           fmt::format("The model's inputs are {}", fmt::join(names_of(inputs_), ", ")));
}

std::vector<Tensor> Model::Impl::run(const std::map<std::string, Tensor>& inputs) const {
  return run_given(look_up(inputs), {});
}

std::vector<Tensor> Model::Impl::run_into(const std::map<std::string, Tensor>& inputs,
                                          const std::map<std::string, Tensor>& outputs) const {
  std::vector<Tensor> into(outputs_.size());
  for (const auto& [name, tensor] : outputs) {
    const auto found =
        std::find_if(outputs_.begin(), outputs_.end(), [&](const PortInfo& port) { return port.name == name; });
    if (found == outputs_.end()) {
      const std::vector<std::string_view> names = names_of(outputs_);
      fail(ErrorCode::kInvalidInput, "output " + name, "the model has no such output",
           did_you_mean(name, names) + fmt::format("The model's outputs are {}", fmt::join(names, ", ")));
    }
    into[static_cast<size_t>(found - outputs_.begin())] = tensor;
  }
  return run_given(look_up(inputs), std::move(into));
}

GivenInputs Model::Impl::in_order(const std::vector<Tensor>& inputs) const {
  HEDDLE_CHECK(inputs.size() == inputs_.size());
  GivenInputs given(ports_.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) given[i] = &inputs[i];
  return given;
}

std::vector<Tensor> Model::Impl::run_in_order(const std::vector<Tensor>& inputs, std::vector<Tensor> into) const {
  const GivenInputs given = in_order(inputs);
  const Variant variant = variant_for(given, true);
  const bool as_they_are = variant->texts.empty() && std::is_sorted(variant->inputs.begin(), variant->inputs.end());
  return finish(*variant, as_they_are ? inputs : operands_of(*variant, given), std::move(into));
}

void Model::Impl::run_in_memory(const std::vector<Tensor>& inputs, const OutputMemory& memory,
                                const OnStep& on_step) const {
  const GivenInputs given = in_order(inputs);
  const Variant variant = variant_for(given, true);
  const runtime::Plan& plan = *variant->plan;
  std::vector<Tensor> into;
  for (const runtime::Port& port : plan.outputs)
    into.push_back(Tensor::borrow(port.dtype, port.shape, memory(into.size(), port.shape), nullptr));
  runtime::Executor::Observer tell;
  if (on_step) tell = [&](size_t step, const auto&) { on_step(plan.steps[step]); };
  finish(*variant, operands_of(*variant, given), std::move(into), tell);
}

std::vector<Tensor> Model::Impl::run_given(const GivenInputs& given, std::vector<Tensor> into) const {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr && !has_default_[i]) check_given(given);
  }
  const Variant variant = variant_for(given, true);
  return finish(*variant, operands_of(*variant, given), std::move(into));
}

std::vector<Tensor> Model::Impl::finish(const ModelVariant& variant, const std::vector<Tensor>& inputs,
                                        std::vector<Tensor> into, const runtime::Executor::Observer& observe) const {
  if (!into.empty()) check_outputs(*variant.plan, inputs, into);
  std::vector<Tensor> outputs = variant.executor->run(inputs, observe, into);
  for (const runtime::Text& text : variant.plan->texts) {
    const auto at = std::min<size_t>(text.position, outputs.size());
    outputs.insert(outputs.begin() + static_cast<int64_t>(at), text.value);
  }
  return outputs;
}

// The plan for these shapes, whose data only the device can see. Once told, it stays: the device may be at work with
// its kernels long after enqueue() has returned, and the caller has a workspace of its size.
Model::Impl::Variant Model::Impl::variant_on_device(const std::vector<Shape>& shapes) const {
  const runtime::Plan& known = *primary().plan;
  if (shapes.size() != inputs_.size()) {
    fail(ErrorCode::kInvalidInput, "enqueue",
         fmt::format("{} inputs are given, the model has {}", shapes.size(), inputs_.size()),
         "Give each input in the model's order");
  }
  if (!known.text_inputs.empty()) {
    refuse_enqueue(ErrorCode::kUnsupportedType, fmt::format("input {} is text", known.text_inputs.front().name));
  }
  if (!known.fixed.empty()) {
    refuse_enqueue(ErrorCode::kUnknownShape,
                   fmt::format("the value of input {} decides shapes", known.inputs[known.fixed.front().input].name));
  }
  if (!known.texts.empty()) {
    refuse_enqueue(ErrorCode::kUnsupportedType, fmt::format("output {} is text", known.texts.front().name));
  }
  std::vector<Tensor> inputs;  // whose shapes alone are looked at
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(Tensor::borrow(known.inputs[i].dtype, shapes[i], &known, nullptr));
  }
  const GivenInputs given = in_order(inputs);
  const auto prepared = [&]() -> Variant {
    const auto found =
        std::find_if(prepared_.begin(), prepared_.end(), [&](const Variant& variant) { return fits(*variant, given); });
    return found == prepared_.end() ? nullptr : *found;
  };
  {
    const std::lock_guard lock(mutex_);
    if (Variant variant = prepared()) return variant;
  }
  Variant variant = variant_for(given, false);
  wait_for_background();  // for the best plan
  if (Variant best = find_variant(given)) variant = std::move(best);
  variant->executor->workspace_bytes();  // what cannot be enqueued is not kept
  const std::lock_guard lock(mutex_);
  if (Variant first = prepared()) return first;  // another thread's by now
  prepared_.push_back(variant);
  return variant;
}

EnqueueNeeds Model::Impl::prepare(const std::vector<Shape>& inputs) const {
  const Variant variant = variant_on_device(inputs);
  EnqueueNeeds needs;
  needs.workspace_bytes = variant->executor->workspace_bytes();
  needs.outputs = output_infos(*variant->plan);
  return needs;
}

void Model::Impl::enqueue(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs,
                          void* workspace, void* stream) const {
  std::vector<Shape> shapes;
  for (const DeviceTensor& input : inputs) shapes.push_back(input.shape);
  const Variant variant = variant_on_device(shapes);
  const size_t bytes = variant->executor->workspace_bytes();
  variant->executor->enqueue(addresses_of(*variant->plan, inputs, outputs, workspace, bytes), stream);
}

std::string Model::Impl::profile(const std::map<std::string, Tensor>& inputs, double seconds) const {
  if (is_plan_) {
    fail(ErrorCode::kInvalidArgument, path_, "a plan no longer knows the nodes of its model", "Profile the ONNX model");
  }
  const CompileOptions options = options_with(inputs, options_);
  const driver::Settings settings = driver::resolve(options);
  return profile::to_json(driver::profile_model(
      driver::compile_model(path_, options), settings.target,
      {.seconds = seconds, .threads = pool_->threads(), .device = settings.device, .inputs = inputs}));
}

Model Model::load(const std::string& path, const CompileOptions& options) {
  return Model(std::make_shared<const Impl>(path, options));
}

const std::vector<PortInfo>& Model::inputs() const {
  return impl_->inputs();
}

const std::vector<PortInfo>& Model::optional_inputs() const {
  return impl_->optional_inputs();
}

const std::vector<PortInfo>& Model::outputs() const {
  return impl_->outputs();
}

std::vector<Tensor> Model::run(const std::map<std::string, Tensor>& inputs) const {
  return impl_->run(inputs);
}

std::vector<Tensor> Model::run_into(const std::map<std::string, Tensor>& inputs,
                                    const std::map<std::string, Tensor>& outputs) const {
  return impl_->run_into(inputs, outputs);
}

EnqueueNeeds Model::prepare(const std::vector<Shape>& inputs) const {
  return impl_->prepare(inputs);
}

void Model::enqueue(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs, void* workspace,
                    void* stream) const {
  impl_->enqueue(inputs, outputs, workspace, stream);
}

std::string Model::profile(const std::map<std::string, Tensor>& inputs, double seconds) const {
  return impl_->profile(inputs, seconds);
}

void Model::save(const std::string& path) const {
  runtime::write_plan(*impl_->primary().plan, path);
}

}  // namespace heddle
