#include "codegen/backend.h"

#include "codegen/attention/cpu.h"
#include "codegen/attention/cuda.h"
#include "codegen/product/cpu/contraction.h"
#include "codegen/product/cuda/contraction.h"
#include "codegen/region/cpu/standalone.h"
#include "codegen/region/cuda/standalone.h"
#include "schedule/region/cuda/launch/bundle.h"

namespace heddle::codegen {
namespace {

class CpuBackend : public Backend {
 public:
  KernelSource standalone(const schedule::KernelPlan& plan, const schedule::StandaloneDesc& desc,
                          bool marked) const override {
    return emit_cpu_standalone(plan.desc, desc, plan.config, marked);
  }
  KernelSource contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& desc,
                           const Target& target, Marks marks) const override {
    return emit_cpu_contraction(plan.desc, desc, plan.config, target, marks);
  }
  KernelSource attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& desc, const Target& target,
                         bool marked) const override {
    return emit_cpu_attention(plan, desc, target, marked);
  }
  bool takes_arguments(const schedule::KernelDesc& desc) const override {
    return desc.get<schedule::CpuBackToBackDesc>() == nullptr;
  }
};

// What fills templates has literals only.
class GpuBackend : public Backend {
 public:
  KernelSource standalone(const schedule::KernelPlan& plan, const schedule::StandaloneDesc& desc,
                          bool /*marked*/) const override {
    return emit_cuda_standalone(plan, desc);
  }
  KernelSource contraction(const schedule::KernelPlan& plan, const schedule::ContractionDesc& desc, const Target&,
                           Marks /*marks*/) const override {
    return emit_cuda_contraction(plan, desc);
  }
  KernelSource attention(const schedule::KernelPlan& plan, const schedule::AttentionDesc& desc, const Target& target,
                         bool /*marked*/) const override {
    return emit_cuda_attention(plan, desc, target.gpu());
  }
  bool takes_arguments(const schedule::KernelDesc& desc) const override {
    const auto stitch = desc.get<schedule::CudaStitchDesc>();
    const auto bundle = desc.get<schedule::CudaBundleDesc>();
    return stitch != nullptr ? !stitch->whole_grid : bundle != nullptr && !bundle->last;
  }
};

}  // namespace

const Backend& backend_of(const Target& target) {
  static const CpuBackend cpu;
  static const GpuBackend gpu;
  return of_kind<Backend>(target.kind, cpu, gpu, gpu);
}

}  // namespace heddle::codegen
