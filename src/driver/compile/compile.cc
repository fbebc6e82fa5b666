#include "driver/compile/compile.h"

#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "base/interface/option.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread/cancel.h"
#include "driver/compile/kernel_override.h"
#include "driver/compile/open_batch.h"
#include "driver/plan/alias.h"
#include "driver/shapes/branch_values.h"
#include "driver/shapes/import.h"
#include "driver/shapes/index_bounds.h"
#include "driver/target/backend.h"
#include "driver/tile/inline_neighbours.h"
#include "ir/rewrite.h"
#include "passes/fusion/basic.h"

namespace heddle::driver {
namespace {

// Tells the user's progress display and the report what is going on.
class Stages {
 public:
  Stages(const CompileOptions& options, CompileReport& report) : options_(options), report_(report) {}

  void begin(const std::string& stage, double fraction) {
    check_cancelled();
    end();
    current_ = stage;
    start_ = wall_seconds();
    if (options_.progress) options_.progress(stage, fraction);
  }
  void end() {
    if (!current_.empty()) {
      report_.stages.push_back({current_, wall_seconds() - start_});
    }
    current_.clear();
  }

 private:
  const CompileOptions& options_;
  CompileReport& report_;
  std::string current_;
  double start_ = 0;
};

int64_t constant_bytes(const ir::Graph& graph) {
  int64_t bytes = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kConstant) bytes += static_cast<int64_t>(node.attrs.tensor("value").bytes());
  }
  return bytes;
}

// Of the operators that compute something, bodies of branches and loops included. Constant nodes do not count.
size_t distinct_origins(const ir::Graph& graph) {
  std::set<ir::OriginId> ids;
  size_t in_bodies = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::kConstant) ids.insert(node.origins.begin(), node.origins.end());
    for (const auto& [name, attr] : node.attrs) {
      const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr);
      if (body != nullptr) in_bodies += distinct_origins(**body);
    }
  }
  return ids.size() + in_bodies;
}

// Throws kOutOfMemory for a value that fits no machine, before passes make larger ones of it: within this bound their
// sizes do not overflow.
void check_extents(const std::string& model, const ir::Graph& graph) {
  constexpr int64_t kMost = int64_t{1} << 54;
  const std::vector<bool> live = ir::live_nodes(graph);
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    for (const ir::ValueId v : node.outputs) {
      const ir::TensorType& type = graph.type(v);
      if (!live[id] || type.dtype == DType::kString) continue;
      const int64_t bytes = runtime::dense_bytes(type.dtype, type.shape);
      if (bytes >= 0 && bytes <= kMost) continue;
      const std::string of = node.origins.empty() ? "" : " of " + graph.origin(node.origins[0]).node;
      fail(ErrorCode::kOutOfMemory, model,
           fmt::format("{}{} makes a value {}, which fits no memory", ir::to_string(node.op), of, ir::to_string(type)),
           fmt::format("Reduce the batch, the sequence length or the picture ({})", option::shape()));
    }
  }
}

void add_remarks(const onnx::Imported& imported, CompileReport& report) {
  report.has_guess = !imported.guess.empty();
  if (report.has_guess) report.remarks.push_back(imported.guess);
  for (const onnx::FailingBranch& branch : imported.failing_branches) {
    report.remarks.push_back(fmt::format("the {} of {} does not hold for these shapes; a run that takes it fails: {}",
                                         branch.branch, branch.node, branch.error.what()));
  }
  for (const std::string& name : imported.specialised_inputs) {
    report.remarks.push_back(fmt::format("the plan holds for this value of input {} only", name));
  }
}

// Adds what the plan of a model has beyond its graph: fixed inputs, text, defaults of inputs, ranges of indices.
void add_interface(const onnx::Imported& imported, const CompileOptions& options, runtime::Plan& plan) {
  for (const std::string& name : imported.specialised_inputs) {
    for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
      if (plan.inputs[i].name == name && options.values.contains(name)) {
        plan.fixed.push_back({i, options.values.at(name)});
      }
    }
  }
  for (const onnx::Imported::Text& text : imported.texts) {
    plan.text_inputs.push_back({text.position, text.name, text.value});
  }
  for (const onnx::Imported::Default& input : imported.defaults) {
    plan.defaults.push_back({input.name, input.dtype, input.shape});
  }
  for (uint32_t i = 0; i < imported.outputs.size(); ++i) {
    const onnx::OutputInfo& output = imported.outputs[i];
    if (output.kind == onnx::OutputInfo::Kind::kStrings) plan.texts.push_back({i, output.name, output.strings});
  }
  const std::vector<int64_t> bounds = index_bounds(imported.graph);
  const std::vector<std::optional<int64_t>> values = branch_values(imported.graph);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    plan.inputs[i].index_bound = bounds[i];
    plan.inputs[i].branch_value = values[i];
  }
}

// The values that have memory of their own in every plan. Others may exist as parts only, inside of a kernel.
std::vector<bool> stored_values(const ir::Graph& graph) {
  std::vector<bool> stored(graph.value_count(), false);
  for (const ir::Graph::Port& port : graph.outputs()) stored[port.value] = true;
  for (const ir::Node& node : graph.nodes()) {
    const ir::OpClass op_class = ir::class_of(node.op);
    if (node.op != ir::Op::kParameter && op_class != ir::OpClass::kContraction && op_class != ir::OpClass::kControl)
      continue;
    for (const ir::ValueId v : node.outputs) stored[v] = true;
  }
  return stored;
}

// Throws kOutOfMemory where a value alone is larger than the target's memory, or than any memory: the schedule counts
// on sizes that fit into 64 bits.
void check_values(const std::string& model, const ir::Graph& graph, const Target& target) {
  constexpr int64_t kMostBytes = int64_t{1} << 46;
  const int64_t memory = target.memory_bytes();
  const std::vector<bool> stored = stored_values(graph);
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::ValueId v : node.outputs) {
      const int64_t bytes = runtime::dense_bytes(graph.dtype(v), graph.shape(v));
      if (bytes >= 0 && bytes <= (stored[v] ? memory : kMostBytes)) continue;
      fail(ErrorCode::kOutOfMemory, model,
           fmt::format("{} makes a value {}, {:.1f} GB are available", to_string(node.op), to_string(graph.type(v)),
                       static_cast<double>(memory) * 1e-9),
           fmt::format("Reduce the batch or the sequence length ({})", option::shape()));
    }
  }
}

}  // namespace

Session::Session(const std::string& path, const CompileOptions& options, Kind kind) : path_(path), kind_(kind) {
  if (!is_ir_file(path)) file_ = std::make_unique<onnx::ModelFile>(path, import_options(options));
}

const Settings& Session::settings(const CompileOptions& options) {
  if (!settings_) settings_ = resolve(options);
  return *settings_;
}

onnx::Imported Session::import(const CompileOptions& options) {
  if (file_ == nullptr) return import_file(path_, options);
  onnx::Imported imported = file_->import(import_options(options));
  change_interface(path_, options, imported.graph);
  return imported;
}

std::vector<onnx::ModelFile::InputDims> Session::input_dims(const CompileOptions& options) const {
  return file_ != nullptr ? file_->input_dims(import_options(options)) : std::vector<onnx::ModelFile::InputDims>();
}

namespace {

// The kernels of a plan and, as far as that takes little more time, some that other batches have.
KernelSet with_other_forms(const KernelSet& kernels, const KernelSet& others) {
  constexpr double kMost = 1.1;
  KernelSet all = kernels;
  all.add_cheapest(others, kMost * kernels.cost());
  return all;
}

void add_machine_code(const KernelSet& kernels, const Target& target, const CompileOptions& options,
                      CompileReport& report, runtime::Plan& plan) {
  const auto told = [&](size_t done, size_t count, double share) {
    if (options.progress) options.progress(fmt::format("kernels {} of {}", done, count), 0.4 + 0.59 * share);
  };
  MachineCode code = compile_kernels(kernels, target, Target::host_cpu().cpu.threads, options.use_cache, told);
  report.library_from_cache = code.from_cache;
  plan.library = std::move(code.library);
  plan.cubins = std::move(code.cubins);
}

// Takes the texts that the user edited in place of the generated ones.
void take_edited_texts(const Target& target, KernelSet& kernels) {
  if (const std::optional<std::string> folder = override_folder()) kernels.replace(read_edited_texts(*folder, target));
}

// What the plans of a session have in common.
void share(Session& session, bool takes_numbers, BuildContext& build) {
  if (session.kind() == Session::Kind::kVariants) build.constants = &session.constants;
  if (!takes_numbers) return;
  build.numbers = &session.numbers;
  build.groups = &session.groups;
  session.groups.next_plan(session.numbers.version());
}

void prepare_fusion(passes::FusionPolicy policy, CompileReport& report, ir::Graph& graph) {
  if (policy == passes::FusionPolicy::kBasic) graph = passes::duplicate_cheap_producers(graph);
  if (policy == passes::FusionPolicy::kStitch) graph = inline_neighbours(graph, report.decisions);
}

CompileReport report_for(const std::string& path, const CompileOptions& options, const Target& target) {
  CompileReport report;
  report.model = path;
  report.target = target.fingerprint();
  report.asked = {options.target, options.precision, options.threads};
  report.takes_tuned = options.tuned;
  report.threads = target.cpu.threads;
  report.sms = target.gpu().sms;
  return report;
}

// `guess` is what the import took for open extents.
CompiledModel compile_stages(const std::string& path, const CompileOptions& options, bool with_kernels,
                             bool with_constants, Session& session, std::string& guess) {
  const Settings settings = session.settings(options);
  const bool is_variant = session.kind() == Session::Kind::kVariants;
  const bool takes_numbers = session.takes_numbers(options) && (is_variant || session.batch_is_open);
  CompiledModel result;
  CompileReport& report = result.report;
  report = report_for(path, options, settings.target);
  Stages stages(options, report);

  stages.begin("import", 0);
  onnx::Imported imported = session.import(options);
  guess = imported.guess;
  report.nodes_imported = imported.graph.nodes().size();
  report.model_nodes = distinct_origins(imported.graph);
  add_remarks(imported, report);
  check_memory(path, constant_bytes(imported.graph), "the weights");
  check_extents(path, imported.graph);
  const std::vector<size_t> optional_aliases = set_aliases(options, imported.graph);

  stages.begin("passes", 0.1);
  passes::PipelineOptions pipeline;
  pipeline.disabled = options.disabled_passes;
  pipeline.observe = [&](const passes::PassReport& pass, const ir::Graph&) {
    report.stages.push_back({"pass " + std::string(pass.name), pass.seconds});
  };
  passes::PassContext context = pass_context(settings);
  context.quantised = &report.quantised;
  if (is_variant) {
    pipeline.verify = false;  // it takes a tenth of the time, and the model's first shape was verified
    session.constants.next_plan();
  }
  if (is_variant || takes_numbers) {
    session.folded.next_run();
    context.folded = &session.folded;
  }
  auto optimised = std::make_shared<ir::Graph>(passes::run_pipeline(imported.graph, context, pipeline));
  drop_copied_aliases(optional_aliases, *optimised);
  report.nodes_optimised = optimised->nodes().size();
  prepare_fusion(settings.fusion, report, *optimised);

  check_values(path, *optimised, settings.target);
  stages.begin("schedule", 0.3);
  KernelSet& kernels = result.kernels;
  TunedConfigs tuned(settings.target, options.tuned, takes_numbers);
  BuildContext build{settings.target, settings.fusion, kernels, report, &tuned, settings.stitch, settings.rules};
  std::optional<ReusedConfigs> reused;
  if (is_variant) build.configs = &reused.emplace(tuned, session.known_choices, session.most_slower);
  share(session, takes_numbers, build);
  result.built = plan_without_constants(*optimised, build);
  if (reused) result.chosen = reused->take_chosen();
  take_edited_texts(settings.target, kernels);
  runtime::Plan& plan = *result.built.plan;
  plan.model = path.substr(path.rfind('/') + 1);
  plan.target = report.target;
  add_interface(imported, options, plan);
  backend_of(settings.target).check_memory(path, plan, settings.target);
  if (with_kernels && with_constants) {
    runtime::make_constants(plan, result.built.makers);
    result.built.makers.clear();
  }

  result.choices = tuned.choices();
  report.contractions = result.choices.problems.size();
  report.tuned = tuned.used();
  report.distinct_kernels = kernels.size();
  if (with_kernels && kernels.size() > 0) {
    stages.begin("kernels", 0.4);
    result.compiled = with_other_forms(kernels, session.other_forms);
    add_machine_code(result.compiled, settings.target, options, report, plan);
  }
  stages.end();
  runtime::validate(plan);
  result.plan = result.built.plan;
  result.imported = std::make_shared<const ir::Graph>(std::move(imported.graph));
  result.optimised = std::move(optimised);
  if (options.progress) options.progress("done", 1);
  return result;
}

}  // namespace

passes::QuantisedProducts quantised_products(const ir::Graph& imported, const Settings& settings) {
  return passes::find_quantised_products(imported, pass_context(settings));
}

CompiledModel compile_model(const std::string& path, const CompileOptions& options, bool with_kernels,
                            bool with_constants, Session* session) {
  std::string guess;
  const auto compile = [&](const CompileOptions& shapes, bool is_whole, Session& of) {
    return compile_stages(path, shapes, is_whole && with_kernels, is_whole && with_constants, of, guess);
  };
  try {
    if (session != nullptr) {
      CompiledModel variant = compile(options, true, *session);
      tell_used_texts(variant.kernels);
      return variant;
    }
    if (options.progress) options.progress("import", 0);
    Session first(path, options, Session::Kind::kFirst);
    const auto texts = [&](const CompileOptions& shapes) { return compile(shapes, false, first); };
    for (const CompileOptions& other : learn_batch(first, options, texts)) {
      if (with_kernels) first.other_forms.add(texts(other).kernels);
    }
    CompiledModel model = compile(options, true, first);
    // Once for all shapes, since only one of them may have the kernel that a text belongs to.
    tell_used_texts(with_other_forms(model.kernels, first.other_forms));
    if (options.ranges.empty()) tell_unused_texts(path, first.settings(options).target);
    return model;
  } catch (const Error& error) {
    if (guess.empty() || error.code() == ErrorCode::kInternal) throw;
    fail(error.code(), error.where(), error.why(),
         fmt::format("{}{}Extents of inputs: {}", error.remedy(), error.remedy().empty() ? "" : ". ", guess));
  }
}

}  // namespace heddle::driver
