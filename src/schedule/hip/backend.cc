#include "schedule/hip/backend.h"

#include <cstdint>

#include "base/check.h"
#include "heddle/error.h"
#include "schedule/floor.h"
#include "schedule/region/cuda/backend.h"
#include "schedule/region/cuda/launch/launch.h"

namespace heddle::schedule {
namespace {

constexpr const char* kNoContractions = "AMD GPUs have kernels of memory-bound operators only";

[[noreturn]] void refuse_on_hip(const char* what) {
  fail(ErrorCode::kUnsupportedOperator, what, kNoContractions);
}

class HipAttention : public AttentionBackend {
 public:
  void check_target(const Target&) const override { refuse_on_hip("attention"); }
  void check(const AttentionDesc&, const AttentionTypes&) const override { refuse_on_hip("attention"); }
  bool reads_lengths() const override { return false; }
  int64_t lanes(const Target&) const override { refuse_on_hip("attention"); }
  std::vector<Config> candidates(const AttentionDesc&, const Target&) const override { refuse_on_hip("attention"); }
  double separate_us(const AttentionDesc&, const Target&) const override { refuse_on_hip("attention"); }
  std::string_view scores_place() const override { return "LDS"; }
};

class HipBackToBack : public BackToBackBackend {
 public:
  ScheduledGroup schedule(const ir::Graph&, const BackToBackForm&, const Target&, ConfigSource*) const override {
    refuse_on_hip("back-to-back products");
  }
  BackToBackTimes times(const ir::Graph&, const BackToBackForm&, const Target&) const override {
    refuse_on_hip("back-to-back products");
  }
  double least_gain() const override { return 1; }
};

class HipBackend : public Backend {
 public:
  std::string contraction_obstacle(const ir::Graph&, const ir::Node&) const override { return kNoContractions; }
  int64_t most_selected() const override { return INT64_MAX; }
  bool has_recurrences() const override { return false; }
  bool reads_filter_gradient(const ir::Graph&, const ir::Node&, const ir::FilterGradient&,
                             const Target&) const override {
    return false;
  }
  bool contractions_by_shape() const override { return false; }
  bool pays_to_read_packed(const ir::Graph&, const ir::Group&, const ir::Group&, const Target&,
                           std::string* reason) const override {
    *reason = kNoContractions;
    return false;
  }

  std::unique_ptr<RegionBackend> region(Region& region) const override { return cuda_region(region); }
  ScheduledGroup bundled(ScheduledGroup group, const Target&) const override { return group; }
  void map(Config& config, const StandaloneDesc& desc, const std::string& what, double /*seconds*/,
           const Target& target) const override {
    map_standalone(config, desc, what, target.hip);
  }
  ScheduledGroup contraction(ContractionBuilder&) const override { refuse_on_hip("contraction"); }
  std::string placement_cost(const ir::Graph&, const ir::Group&, ir::ValueId, const ir::Placement&,
                             const Target&) const override {
    return kNoContractions;
  }
  const AttentionBackend& attention() const override {
    static const HipAttention attention;
    return attention;
  }
  const BackToBackBackend& back_to_back() const override {
    static const HipBackToBack both;
    return both;
  }
  double floor_seconds(const ContractionDesc&, double bytes, double /*operations*/,
                       const Target& target) const override {
    return least_seconds(bytes, target);
  }

  void plan_launches(KernelPlan& plan, const Target& target) const override {
    const size_t operands = plan.desc.operands.size();
    static_cast<KernelLaunches&>(plan) = plan.desc.visit(
        [&](const CudaStitchDesc& stitch) { return schedule::plan_launches(stitch, operands); },
        [&](const CudaBundleDesc& bundle) { return schedule::plan_launches(bundle, operands); },
        [&](const StandaloneDesc& standalone) { return schedule::plan_launches(standalone, plan.config, operands); },
        [](const auto&) { return KernelLaunches{}; });  // TileDesc: who wrote it has them
    check_launches(plan, target.hip);
  }
};

}  // namespace

const Backend& hip_backend() {
  static const HipBackend backend;
  return backend;
}

}  // namespace heddle::schedule
