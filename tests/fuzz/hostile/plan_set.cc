#include "tests/fuzz/hostile/plan_set.h"

#include "base/thread/thread_pool.h"
#include "driver/options/options.h"
#include "driver/plan/reference.h"
#include "driver/target/backend.h"
#include "passes/pass.h"
#include "runtime/executor.h"

namespace heddle::fuzz {
namespace {

const Target& host() {
  static const Target host = Target::host_cpu();
  return host;
}

const Target& small_target() {
  static const Target small = [] {
    Target t = host();
    t.cpu.threads = 4;
    t.cpu.l1_bytes = 2 << 10, t.cpu.l2_bytes = 16 << 10, t.cpu.l3_bytes = 64 << 10;
    t.cpu.ghz = 0.1, t.cpu.copy_gbps = 0.1, t.cpu.barrier_us = 0.5;
    return t;
  }();
  return small;
}

}  // namespace

PlanSet::PlanSet(passes::FusionPolicy fusion, const std::string& target, bool use_cache)
    : fusion_(fusion), device_(driver::device_of(target)), use_cache_(use_cache), target_(host()) {
  if (target == "cpu") return;
  const bool is_hip = target.starts_with("hip");
  target_ = is_hip ? Target::hip_device(device_) : Target::cuda_device(device_);
  context_ = runtime::CudaContext::of_device(device_, is_hip ? runtime::GpuApi::kHip : runtime::GpuApi::kCuda);
}

size_t PlanSet::add(const ir::Graph& graph, bool small) {
  const Target& machine = small && context_ == nullptr ? small_target() : target_;
  driver::Settings settings;
  settings.target = machine, settings.fusion = fusion_;
  const ir::Graph optimised = passes::run_pipeline(graph, driver::pass_context(settings));
  driver::BuildContext context{machine, fusion_, kernels_, report_};
  plans_.push_back(driver::build_plan(optimised, context).plan);
  plans_.back()->target = target_.fingerprint();
  return plans_.size() - 1;
}

void PlanSet::compile() {
  if (kernels_.size() > 0) {
    const int jobs = host().cpu.threads;
    const driver::MachineCode code = driver::compile_kernels(kernels_, target_, jobs, use_cache_);
    for (const auto& plan : plans_) {
      plan->library = code.library;
      plan->cubins = code.cubins;
    }
  }
  for (const auto& plan : plans_) runtime::validate(*plan);
}

std::vector<ir::Array> PlanSet::run(size_t index, const std::vector<ir::Array>& inputs, int threads) const {
  const auto executor = runtime::make_executor(plans_[index], std::make_shared<ThreadPool>(threads),
                                               driver::reference_interpreter(), {.device = device_});
  std::vector<Tensor> tensors;
  for (const ir::Array& x : inputs) tensors.push_back(ir::to_tensor(x));
  std::vector<ir::Array> outputs;
  for (const Tensor& y : executor->run(tensors)) outputs.push_back(ir::to_array(y));
  return outputs;
}

PlanSet::Steps PlanSet::steps(size_t index) const {
  Steps steps;
  for (const runtime::Step& step : plans_[index]->steps) {
    steps.kernels += std::holds_alternative<runtime::KernelStep>(step.action) ||
                     std::holds_alternative<runtime::CudaStep>(step.action);
    steps.references += std::holds_alternative<runtime::ReferenceStep>(step.action);
  }
  return steps;
}

}  // namespace heddle::fuzz
