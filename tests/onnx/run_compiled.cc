#include <memory>

#include "base/check.h"
#include "base/thread/thread_pool.h"
#include "driver/plan/plan_builder.h"
#include "driver/plan/reference.h"
#include "driver/target/backend.h"
#include "passes/pass.h"
#include "run_case.h"
#include "runtime/cuda/device.h"
#include "runtime/executor.h"

namespace heddle::node_tests {
namespace {

struct Prepared {
  ImportedCase imported;
  std::shared_ptr<runtime::Plan> plan;
  Verdict verdict;  // where there is no plan
};

Target target_of(std::string_view mode) {
  if (mode == "cuda") return Target::cuda_device(0);
  if (mode == "hip") return Target::hip_device(0);
  HEDDLE_CHECK(mode == "cpu", "{}", mode);
  return Target::host_cpu();
}

std::shared_ptr<const runtime::CudaContext> context_of(std::string_view mode) {
  if (mode == "cpu") return nullptr;
  return runtime::CudaContext::of_device(0, mode == "hip" ? runtime::GpuApi::kHip : runtime::GpuApi::kCuda);
}

Verdict run_plan(const Prepared& prepared, const std::shared_ptr<ThreadPool>& pool) {
  const runtime::Plan& plan = *prepared.plan;
  runtime::validate(plan);
  const auto executor = runtime::make_executor(prepared.plan, pool, driver::reference_interpreter(), {});
  std::vector<Tensor> inputs;
  for (const runtime::Port& port : plan.inputs) inputs.push_back(prepared.imported.options.values.at(port.name));
  const std::vector<Tensor> results = executor->run(inputs);
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) outputs[plan.outputs[i].name] = results[i];
  return check_outputs(prepared.imported, outputs);
}

}  // namespace

void run_compiled(const std::string& data, std::span<const std::string> folders, std::string_view mode,
                  const Report& report) {
  const Target target = target_of(mode);
  // Held, so that it does not end with each plan and begin anew for the next.
  const auto context = context_of(mode);
  driver::KernelSet kernels;
  driver::CompileReport remarks;
  std::vector<Prepared> all(folders.size());
  for (size_t i = 0; i < folders.size(); ++i) {
    all[i].verdict = guarded([&]() -> Verdict {
      NodeCase test = read_case(data, folders[i]);
      all[i].imported.test = test;
      all[i].imported = import_case(std::move(test));
      const passes::PassContext context{target, passes::Precision::kF32};
      const ir::Graph optimised = passes::run_pipeline(all[i].imported.model.graph, context);
      driver::BuildContext build{target, passes::FusionPolicy::kStitch, kernels, remarks};
      all[i].plan = driver::build_plan(optimised, build).plan;
      all[i].plan->target = target.fingerprint();
      return {};
    });
  }
  driver::MachineCode code;
  const Verdict compiled = guarded([&]() -> Verdict {
    code = driver::compile_kernels(kernels, target, 1, true);
    return {};
  });
  const auto pool = std::make_shared<ThreadPool>(2);
  for (size_t i = 0; i < folders.size(); ++i) {
    Prepared& prepared = all[i];
    if (prepared.plan && !compiled.text.empty()) {
      if (folders.size() > 1) continue;  // not reported: it gets a library of its own
      prepared.verdict = compiled;
    } else if (prepared.plan) {
      prepared.plan->library = code.library;
      prepared.plan->cubins = code.cubins;
      prepared.verdict = guarded([&] { return run_plan(prepared, pool); });
    }
    report(i, prepared.imported.test.op, prepared.verdict);
  }
}

}  // namespace heddle::node_tests
