#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "base/thread/thread_pool.h"
#include "driver/compile/compile.h"
#include "driver/plan/reference.h"
#include "driver/verify/random_inputs.h"
#include "heddle/error.h"
#include "heddle/model.h"
#include "ir/text/text.h"
#include "runtime/executor.h"
#include "runtime/plan_io.h"
#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/attack/isolation.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/hostile/mend.h"
#include "tests/fuzz/hostile/plan_editor.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

// A plan without machine code: one step of the reference evaluator for the whole graph.
runtime::Plan reference_plan(const ir::Graph& graph) {
  runtime::Plan plan;
  plan.model = "reference";
  plan.target = Target::host_cpu(1).fingerprint();
  runtime::ReferenceStep step{ir::print(graph, {.max_constant_elements = -1, .origins = false}), {}, {}};
  const auto add = [&](std::vector<runtime::Port>& ports, runtime::Place place, const ir::Graph::Port& port) {
    const DType dtype = graph.dtype(port.value);
    const Shape& shape = graph.shape(port.value);
    const auto buffer = static_cast<uint32_t>(plan.buffers.size());
    plan.buffers.push_back(
        {place, static_cast<uint32_t>(ports.size()), 0, dtype, shape, runtime::dense_bytes(dtype, shape), port.name});
    ports.push_back({port.name, dtype, shape, buffer});
    return buffer;
  };
  for (const ir::Graph::Port& port : graph.inputs()) {
    step.parameters.push_back(add(plan.inputs, runtime::Place::kInput, port));
  }
  for (const ir::Graph::Port& port : graph.outputs()) {
    step.results.push_back(add(plan.outputs, runtime::Place::kOutput, port));
  }
  plan.steps.push_back({std::move(step), "reference", "", 0});
  return plan;
}

// A plan as the compiler makes it, with bytes that are no machine code in place of machine code: what attacks is data.
runtime::Plan compiled_plan(const std::string& path, const std::string& target) {
  CompileOptions options;
  options.target = target;
  options.use_cache = false;
  options.tuned = false;
  driver::CompiledModel model = driver::compile_model(path, options, false, false);
  runtime::make_constants(*model.built.plan, model.built.makers);
  if (target == "cpu") {
    model.built.plan->library = "no machine code";
  } else {
    model.built.plan->cubins.push_back({"no machine code", {"kernel"}});
  }
  return *model.built.plan;
}

bool has_machine_code(const runtime::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const runtime::Step& step) {
    if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) return has_machine_code(*loop->body);
    if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      return has_machine_code(*branch->then_body) || has_machine_code(*branch->else_body);
    }
    return std::holds_alternative<runtime::KernelStep>(step.action) ||
           std::holds_alternative<runtime::CudaStep>(step.action);
  });
}

// Loops whose steps are of the reference evaluator may go on for longer than a test.
bool has_loop(const runtime::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const runtime::Step& step) { return std::holds_alternative<runtime::LoopStep>(step.action); });
}

class PlansAttack : public Attack {
 public:
  // Compiling starts threads, so seeds are made in a child.
  bool prepare() override {
    const std::string& folder = seeds_.path();
    const std::string death =
        run_isolated([&](const SendLine&) { write_seeds(folder); }, [](const std::string&) {}, 600);
    if (!death.empty()) throw std::runtime_error("making plans: " + death);
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".plan") files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
    const std::string whole = read_bytes(files_.at(0));
    if (mend_plan(whole) != whole) throw std::runtime_error("mend_plan() does not know the format of plans");
    return true;
  }

  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    const std::string& file = rng.pick(files_);
    const std::string path = folder + "/model.plan";
    if (rng.chance(0.5)) {
      runtime::Plan plan = *runtime::read_plan(file, 1);
      for (int64_t edits = rng.range(1, 4); edits > 0; --edits) edit_plan(plan, rng);
      try {
        return runtime::write_plan(plan, path, Sync::kNo);
      } catch (const Error&) {  // bodies in bodies, deeper than a file has them
        return write_bytes(path, read_bytes(file));
      }
    }
    std::string bytes = read_bytes(file);
    const bool mended = rng.chance(0.7);
    for (int64_t edits = rng.range(1, 3); edits > 0; --edits) edit_binary(bytes, mended ? kPlanHeader : 0, rng);
    write_bytes(path, mended ? mend_plan(bytes) : bytes);
  }

  std::string run(uint64_t seed, const std::string& folder) override {
    const std::string path = folder + "/model.plan";
    if (!runtime::is_plan_file(path)) return "no plan";
    const auto plan = runtime::read_plan(path, 1);
    if (has_machine_code(*plan)) {
      Model::load(path);
      return "ok";
    }
    if (has_loop(*plan)) return "ok";
    const auto executor =
        runtime::make_executor(plan, std::make_shared<ThreadPool>(1), driver::reference_interpreter());
    if (executor->bytes_per_run() > (int64_t{1} << 28)) return "ok";
    std::vector<Tensor> inputs;
    std::map<std::string, Tensor> values = driver::random_inputs(*plan, seed);
    for (const runtime::Port& port : plan->inputs) {
      const Tensor& value = values.at(port.name);
      if (value.dtype() != port.dtype || value.shape() != port.shape) return "ok";  // two inputs of one name
      inputs.push_back(value);
    }
    executor->run(inputs);
    return "ok, ran";
  }

 private:
  static void write_seeds(const std::string& folder) {
    int made = 0;
    for (uint64_t seed = 1; made < kInitsAccumulator; ++seed) {
      GeneratorOptions options;
      options.max_nodes = 12;
      options.max_elements = 200;
      const Case c = generate_case(seed, options);
      const std::string name = fmt::format("{}/{:02}", folder, made);
      write_bytes(name + ".hir", ir::print(c.graph, {.max_constant_elements = -1, .origins = false}));
      try {
        runtime::write_plan(compiled_plan(name + ".hir", "cpu"), name + "-cpu.plan", Sync::kNo);
        runtime::write_plan(compiled_plan(name + ".hir", "cuda"), name + "-cuda.plan", Sync::kNo);
        runtime::write_plan(reference_plan(c.graph), name + "-reference.plan", Sync::kNo);
        ++made;
      } catch (const Error&) {  // this graph has no plan for one of the targets
      }
    }
  }

  static constexpr int kInitsAccumulator = 24;
  TempDir seeds_{"heddle-fuzz-plans"};
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<Attack> make_plans_attack() {
  return std::make_unique<PlansAttack>();
}

}  // namespace heddle::fuzz
