// The families that multiply by wgmma.
#include <algorithm>
#include <utility>

#include "base/divide.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/cluster_splitk.h"
#include "schedule/product/cuda/wgmma/misaligned.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {
namespace {

using tile::GemmStore;
using Argument = CudaInstance::Argument;
using Parameter = CudaInstance::Parameter;

std::vector<WgmmaConfig> configs_of(const WgmmaProblem& p, const GpuTarget& target, const WgmmaConfig*) {
  return wgmma_configs(p, target);
}
std::vector<ClusterSplitKConfig> configs_of(const WgmmaProblem& p, const GpuTarget& target,
                                            const ClusterSplitKConfig*) {
  return cluster_configs(p, target);
}

// Of k.
int64_t parts_of(const WgmmaConfig& c) {
  return c.splits;
}
int64_t parts_of(const ClusterSplitKConfig& c) {
  return int64_t{c.splits} * c.cluster_k;
}

// A family whose configurations are of type C. What a subclass adds is how the operands arrive.
template <typename C>
class WgmmaFamily : public Family {
 public:
  std::string_view name() const override { return C::kName; }
  bool uses_wgmma() const override { return true; }

  std::string refuse(const ProductTask& task, const GpuTarget& target) const override {
    std::string why = "the device has none";
    if (target.has_wgmma() && problem(task, &why)) why.clear();
    return why;
  }

  std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const override {
    std::string why = "the device has none";
    const auto p = target.has_wgmma() ? problem(task, &why) : std::nullopt;
    if (!p) return {{{C{}}, why}};
    std::vector<CudaCandidate> found;
    const C* type = nullptr;
    for (const auto& config : configs_of(*p, target, type)) {
      CudaCandidate candidate{{C{config}}, reject(config, *p, target)};
      candidate.additions = ceil_div(p->k, joined_of(*p) * parts_of(config));
      if (candidate.rejected.empty()) candidate.config.predicted_us = predict_us(*p, config, target);
      found.push_back(std::move(candidate));
    }
    return found;
  }

  KernelLaunches launches(const ProductTask& task, const Config& config, const GpuTarget& target) const override {
    const WgmmaProblem p = checked_problem(task);
    KernelLaunches made = make_launches(p, config.as<C>(), target);
    const auto d = task.epilogue.stores.empty() ? 0 : task.epilogue.stores.front().operand;
    const uint32_t operands[] = {task.product.a.operand,
                                 task.product.b.operand,
                                 d,
                                 static_cast<uint32_t>(task.workspace()),
                                 static_cast<uint32_t>(task.counters()),
                                 p.residual ? p.residual->operand : 0};
    const auto number = [&](int& operand) { operand = static_cast<int>(operands[operand]); };
    for (CudaLaunch& launch : made.launches) {
      for (TensorMapDesc& map : launch.maps) number(map.operand);
      for (PointerPatch& patch : launch.pointers) number(patch.operand);
    }
    return made;
  }

  CudaInstance instance(const ProductTask& task, const Config& config) const override {
    WgmmaProblem p = checked_problem(task);
    const bool in_place = !needs_repack(p) && !p.classed && !p.views;
    p.constant_a = in_place && !p.windows && task.operands[task.product.a.operand].constant;
    p.constant_b = in_place && task.operands[task.product.b.operand].constant;
    return instance_of(p, config.as<C>());
  }

 protected:
  virtual std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const = 0;

 private:
  WgmmaProblem checked_problem(const ProductTask& task) const {
    std::string why;
    auto p = problem(task, &why);
    HEDDLE_CHECK(p.has_value(), "{} for a product that it does not serve: {}", name(), why);
    return *std::move(p);
  }
};

template <typename C>
class TmaFamily : public WgmmaFamily<C> {
  std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const override {
    return wgmma_problem(task, why);
  }
};

template <typename C>
class Im2colFamily : public WgmmaFamily<C> {
  std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const override {
    return wgmma_im2col_problem(task, why);
  }
};

class WgradFamily : public WgmmaFamily<WgmmaWgradConfig> {
  std::optional<OperandView::Form> summed_windows() const override { return OperandView::Form::kSummedWindows; }
  std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const override {
    return wgmma_wgrad_problem(task, why);
  }
};

class MisalignedFamily : public WgmmaFamily<MisalignedConfig> {
  std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const override {
    auto p = wgmma_problem(task, why);
    if (p) p->classed = true;
    return p;
  }
};

// Registers for the pieces of an operand that a thread of the loading warpgroup holds at once: none where cp.async
// brings them to shared memory.
int64_t held_registers(const OperandTraits& o, DType in, bool k_major, int64_t rows, int64_t tile_k) {
  constexpr int64_t kLoaders = 128, kWord = 4;
  const auto element = static_cast<int64_t>(size_of(in));
  if (o.shifted) return 0;
  if (o.view && o.element == in && k_major == o.along_k && o.width * element >= kWord) return 0;
  const int64_t pieces = std::max<int64_t>(rows * tile_k / (o.width * kLoaders), 1);
  return pieces * std::max<int64_t>(o.width * static_cast<int64_t>(size_of(o.element)) / kWord, 1);
}

// Pieces of 16 bytes keep up with wgmma; each that is smaller, computed or converted costs instructions: how much
// slower than by TMA.
double slowness(const OperandTraits& o, DType in) {
  constexpr double kWholePieces = 1.4, kSmallPieces = 2.5, kShiftedPieces = 4.2;
  if (o.shifted) return kShiftedPieces;
  const bool whole = o.view && o.element == in && o.width * static_cast<int>(size_of(in)) == kCopyBytes;
  return whole ? kWholePieces : kSmallPieces;
}

// Threads load both operands. `kMostHeld`: registers for pieces on their way.
template <typename C, int64_t kMostHeld>
class GatherFamily : public WgmmaFamily<C> {
 public:
  LinesOf lines() const override { return LinesOf::kShifted; }

  std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const override {
    std::vector<CudaCandidate> found = WgmmaFamily<C>::candidates(task, target);
    const TileProblem views = tile_problem(task);
    const DType in = task.product.multiply_a;
    const double slower = std::max(slowness(views.a, in), slowness(views.b, task.product.multiply_b));
    std::string why;
    const auto p = problem(task, &why);
    const int64_t tile_k = tile::kGemmRowBytes / static_cast<int64_t>(size_of(in));
    for (CudaCandidate& candidate : found) {
      if (!candidate.rejected.empty()) continue;
      candidate.config.predicted_us *= slower;
      const C& c = candidate.config.template as<C>();
      if (held_registers(views.a, in, p->a_k_major, c.tile_m, tile_k) +
              held_registers(views.b, in, p->b_k_major, c.tile_n, tile_k) >
          kMostHeld) {
        candidate.config.predicted_us = 0;
        candidate.rejected = "more passes through registers than a loading thread has";
      }
    }
    return found;
  }

 private:
  std::optional<WgmmaProblem> problem(const ProductTask& task, std::string* why) const override {
    return wgmma_gather_problem(task, why);
  }
};

// What both kernels have in common.
template <typename C>
CudaInstance common_instance(const WgmmaProblem& p, const C& c) {
  CudaInstance i;
  i.tile_m = c.tile_m, i.tile_n = c.tile_n;
  i.swapped = c.swapped;
  i.split_f32 = p.split;
  i.sum = is_int(p.in) ? DType::kI32 : DType::kF32;
  i.types = {{"In", p.in}};
  i.multiplies = p.k > 0;
  i.sizes = {{{"kTileM", c.tile_m}, {"kTileN", c.tile_n}, {"kStages", c.stages}, {"kConsumers", c.consumers}}};
  if (needs_repack(p)) i.helpers.push_back({"_repack", "gemm_repack", "GemmRepackArgs", "cuda/operand/repack.h"});
  return i;
}

// Appends what differs from the defaults.
void add_flag(CudaInstance& i, const char* name, bool value, bool initial = false) {
  if (value != initial) i.flags.emplace_back(name, value);
}
void add_size(CudaInstance& i, const char* name, int64_t value) {
  if (value != 1) i.sizes.push_back({{name, value}});
}

template <typename C>
void add_layouts(CudaInstance& i, const WgmmaProblem& p, const C& c) {
  add_flag(i, "kAKMajor", c.swapped ? p.b_k_major : p.a_k_major, true);
  add_flag(i, "kBKMajor", c.swapped ? p.a_k_major : p.b_k_major, true);
}

}  // namespace

CudaInstance instance_of(const WgmmaProblem& p, const WgmmaConfig& c) {
  CudaInstance i = common_instance(p, c);
  const GemmStore store = store_of(p, c);
  i.headers = {p.views ? "cuda/gemm/sm90_gather.h" : "cuda/gemm/sm90.h"};
  if (p.windows) i.headers.emplace_back(p.sums_windows ? "cuda/gemm/sm90_wgrad.h" : "cuda/gemm/sm90_im2col.h");
  i.kernel = p.views          ? "sm90::gemm_views"
             : p.sums_windows ? "sm90::gemm_wgrad"
             : p.windows      ? "sm90::gemm_windows"
                              : "sm90::gemm";
  i.defaults = "sm90::GemmDefaults", i.traits = "sm90::GemmTraits";
  i.cluster = c.cluster_m * c.cluster_n;
  i.types.push_back({"Out", p.out, false});
  add_size(i, "kClusterM", c.cluster_m), add_size(i, "kClusterN", c.cluster_n);
  if (c.ping_pong || c.stream_k)
    i.schedule = c.ping_pong ? tile::GemmSchedule::kPingPong : tile::GemmSchedule::kStreamK;
  if (c.swapped) i.form = tile::GemmForm::kSwapped;
  if (p.gated && store != GemmStore::kPartial) i.form = tile::GemmForm::kGated;
  if (loads_residual(p, c)) i.form = tile::GemmForm::kResidual;
  add_layouts(i, p, c);
  add_flag(i, "kConstantA", c.swapped ? p.constant_b : p.constant_a);
  add_flag(i, "kConstantB", c.swapped ? p.constant_a : p.constant_b);
  add_flag(i, "kReadOnceA", streams_operand(p, c, true)), add_flag(i, "kReadOnceB", streams_operand(p, c, false));
  add_flag(i, "kWholeColumns", !c.swapped && p.n % c.tile_n == 0);
  if (store != GemmStore::kTma) i.store = store;
  i.partial = store == GemmStore::kPartial;
  i.returned = store == GemmStore::kTma || store == GemmStore::kRows;
  if (p.views) {
    i.arguments = {{store == GemmStore::kTma ? Parameter::kMap : Parameter::kNoMap, "d"},
                   {Parameter::kBlock, "args", "GemmArgs"},
                   {Parameter::kOperand, "a"},
                   {Parameter::kOperand, "b"}};
    return i;
  }
  i.arguments = {{Parameter::kMap, "a"}, {Parameter::kMap, "b"}, {Parameter::kMap, "d"}};
  if (loads_residual(p, c)) {
    i.residual = p.residual->operand;
    i.arguments.push_back({Parameter::kMapBehind, "residual"});
  }
  i.arguments.push_back({Parameter::kBlock, "args", "GemmArgs"});
  if (p.windows) i.arguments.push_back({Parameter::kBlock, "windows", "GemmWindowsArgs"});
  return i;
}

CudaInstance instance_of(const WgmmaProblem& p, const ClusterSplitKConfig& c) {
  CudaInstance i = common_instance(p, c);
  i.headers = {p.windows ? "cuda/gemm/sm90_cluster_splitk_im2col.h" : "cuda/gemm/sm90_cluster_splitk.h"};
  i.kernel = p.views     ? "sm90::gemm_cluster_splitk_views"
             : p.windows ? "sm90::gemm_cluster_splitk_im2col"
                         : "sm90::gemm_cluster_splitk";
  i.defaults = "sm90::ClusterSplitKDefaults", i.traits = "sm90::ClusterSplitKTraits", i.resident = 0;
  i.cluster = c.cluster_k;
  i.sizes[0].emplace_back("kClusterK", c.cluster_k);
  const int classes = p.classed ? classes_of(p, c.swapped) : 1;
  add_size(i, "kClasses", classes);
  add_flag(i, "kSwapped", c.swapped), add_flag(i, "kViews", p.views);
  add_layouts(i, p, c);
  add_flag(i, "kReadOnceA", streams_operand(p, c, true)), add_flag(i, "kReadOnceB", streams_operand(p, c, false));
  add_flag(i, "kConstantA", p.classed || (c.swapped ? p.constant_b : p.constant_a));
  add_flag(i, "kConstantB", c.swapped ? p.constant_a : p.constant_b);
  i.partial = c.splits > 1;
  if (i.partial) i.store = GemmStore::kPartial;
  const Argument args{Parameter::kBlock, "args", "ClusterSplitKArgs"};
  if (p.views) {
    i.arguments = {args, {Parameter::kOperand, "a"}, {Parameter::kOperand, "b"}};
  } else {
    i.arguments = {
        {p.classed ? Parameter::kMapOfClasses : Parameter::kMap, "a", {}, classes}, {Parameter::kMap, "b"}, args};
  }
  if (p.windows) i.arguments.push_back({Parameter::kBlock, "windows", "GemmWindowsArgs"});
  if (p.classed) {
    i.helpers.push_back(
        {"_copies", "gemm_misaligned_copies", "GemmClassCopiesArgs", "cuda/operand/misaligned_copies.h", true});
  }
  return i;
}

// Of equal predictions the first are taken.
std::span<const Family* const> wgmma_families() {
  static const TmaFamily<WgmmaConfig> tma;
  static const MisalignedFamily misaligned;
  static const TmaFamily<ClusterSplitKConfig> cluster_splitk;
  static const Im2colFamily<WgmmaIm2colConfig> im2col;
  static const Im2colFamily<Im2colSplitKConfig> im2col_splitk;
  static const WgradFamily wgrad;
  static const GatherFamily<WgmmaGatherConfig, 40> gather;
  static const GatherFamily<GatherSplitKConfig, 0> gather_splitk;
  static const Family* const all[] = {&tma,           &misaligned, &cluster_splitk, &im2col,
                                      &im2col_splitk, &wgrad,      &gather,         &gather_splitk};
  return all;
}

}  // namespace heddle::schedule
