#include "schedule/backend.h"

#include <algorithm>

#include "schedule/attention/cpu.h"
#include "schedule/attention/cuda/attention.h"
#include "schedule/back_to_back/cpu.h"
#include "schedule/back_to_back/cuda.h"
#include "schedule/floor.h"
#include "schedule/product/conv.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/filter_gradient.h"
#include "schedule/product/cuda/packed_weights.h"
#include "schedule/product/cuda/side_by_side.h"
#include "schedule/product/dot.h"
#include "schedule/region/bundle.h"
#include "schedule/region/cpu/backend.h"
#include "schedule/region/cuda/backend.h"

namespace heddle::schedule {
namespace {

class CpuBackend : public Backend {
 public:
  std::string contraction_obstacle(const ir::Graph&, const ir::Node&) const override { return ""; }
  int64_t most_selected() const override { return kMostSelectedOnCpu; }
  bool has_recurrences(const Target&) const override { return false; }
  bool reads_filter_gradient(const ir::Graph&, const ir::Node&, const ir::FilterGradient&,
                             const Target&) const override {
    return false;
  }
  bool contractions_by_shape() const override { return true; }
  bool pays_to_read_packed(const ir::Graph&, const ir::Group&, const ir::Group&, const Target&,
                           std::string*) const override {
    return true;
  }

  std::unique_ptr<RegionBackend> region(Region& region) const override { return cpu_region(region); }
  ScheduledGroup bundled(ScheduledGroup group, const Target& target) const override {
    return bundle_kernels(std::move(group), target);
  }
  void map(Config& config, const StandaloneDesc& desc, const std::string& what, double seconds,
           const Target& target) const override {
    map_standalone(config, desc, what, seconds, target.cpu);
  }
  ScheduledGroup contraction(ContractionBuilder& builder) const override {
    switch (builder.anchor().op) {
      case ir::Op::kDot:
        return schedule_dot(builder);
      case ir::Op::kConv:
        return schedule_conv(builder);
      default:
        return schedule_window(builder);
    }
  }
  std::string placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                             const ir::Placement& place, const Target& target) const override {
    return cpu_placement_cost(graph, group, value, place, target);
  }
  std::optional<ScheduledKernel> side_by_side(const std::vector<ScheduledKernel>&, const Target&) const override {
    return std::nullopt;
  }
  const AttentionBackend& attention() const override { return cpu_attention(); }
  const BackToBackBackend& back_to_back() const override { return cpu_back_to_back(); }
  double floor_seconds(const ContractionDesc& desc, double bytes, double operations,
                       const Target& target) const override {
    // 1 for f32. A lane of 32 bits multiplies all elements of a word at once.
    double lanes = desc.compute == DType::kF64 || desc.compute == DType::kI64 ? 0.5 : 1;
    if (const auto* gemm = desc.get<GemmDesc>()) lanes *= static_cast<double>(elements_of(gemm->words));
    if (const auto* conv = desc.get<ConvDesc>()) lanes *= static_cast<double>(elements_of(conv->words));
    if (const auto* winograd = desc.get<WinogradDesc>()) lanes *= static_cast<double>(winograd->shape.elements);
    return std::max(least_seconds(bytes, target), operations / (lanes * target.cpu.peak_gflops() * 1e9));
  }

  SequencePlan plan_sequences(const std::vector<PlannedKernel>&, const Target&) const override { return {}; }

  void plan_launches(KernelPlan&, const Target&) const override {}
};

// GPUs of any vendor. What a chip has decides which kernels there are.
class GpuBackend : public Backend {
 public:
  std::string contraction_obstacle(const ir::Graph& graph, const ir::Node& node) const override {
    return cuda_contraction_obstacle(graph, node);
  }
  int64_t most_selected() const override { return INT64_MAX; }
  // Their kernels exchange results by barriers in shared memory that only NVIDIA GPUs have.
  bool has_recurrences(const Target& target) const override { return target.gpu().has_tensor_cores(); }
  bool reads_filter_gradient(const ir::Graph& graph, const ir::Node& conv, const ir::FilterGradient& gradient,
                             const Target& target) const override {
    return filter_gradient_obstacle(graph, conv, gradient, target.gpu()).empty();
  }
  // What else they look at: which operands are constants, how rows are aligned.
  bool contractions_by_shape() const override { return false; }
  bool pays_to_read_packed(const ir::Graph& graph, const ir::Group& packed, const ir::Group& widened,
                           const Target& target, std::string* reason) const override {
    return schedule::pays_to_read_packed(graph, packed, widened, target, reason);
  }

  std::unique_ptr<RegionBackend> region(Region& region) const override { return cuda_region(region); }
  // Regions join theirs (CudaRegion::finish()).
  ScheduledGroup bundled(ScheduledGroup group, const Target&) const override { return group; }
  void map(Config& config, const StandaloneDesc& desc, const std::string& what, double /*seconds*/,
           const Target& target) const override {
    map_standalone(config, desc, what, target.gpu());
  }
  ScheduledGroup contraction(ContractionBuilder& builder) const override { return schedule_cuda_contraction(builder); }
  std::string placement_cost(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                             const ir::Placement& place, const Target&) const override {
    std::string why = filter_gradient_placement_obstacle(graph, group, value, place);
    return why.empty() ? cuda_placement_cost(graph.type(value), place) : why;
  }
  std::optional<ScheduledKernel> side_by_side(const std::vector<ScheduledKernel>& products,
                                              const Target& target) const override {
    return schedule::side_by_side(products, target.gpu());
  }
  const AttentionBackend& attention() const override { return cuda_attention(); }
  const BackToBackBackend& back_to_back() const override { return cuda_back_to_back(); }
  double floor_seconds(const ContractionDesc& desc, double bytes, double operations,
                       const Target& target) const override {
    return std::max(least_seconds(bytes, target), operations / cuda_peak(desc, target.gpu()));
  }

  SequencePlan plan_sequences(const std::vector<PlannedKernel>& kernels, const Target& target) const override {
    return schedule::plan_sequences(kernels, target.gpu());
  }

  void plan_launches(KernelPlan& plan, const Target& target) const override { plan_gpu_launches(plan, target.gpu()); }
};

}  // namespace

const Backend& backend_of(const Target& target) {
  static const CpuBackend cpu;
  static const GpuBackend gpu;
  return of_kind<Backend>(target.kind, cpu, gpu, gpu);
}

const Memory& memory_of(const Target& target) {
  return of_kind<Memory>(target.kind, cpu_memory(), gpu_memory(), gpu_memory());
}

}  // namespace heddle::schedule
