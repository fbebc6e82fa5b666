#include "schedule/product/cuda/tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.h"
#include "schedule/product/cuda/engine.h"
#include "schedule/product/cuda/reduce.h"
#include "target/argument_block.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kMaxWorkspace = int64_t{64} << 20;

bool is_integer(DType type) {
  return type != DType::kF64 && type != DType::kF32 && type != DType::kF16 && type != DType::kBF16 &&
         type != DType::kF8E4M3 && type != DType::kF8E5M2;
}

std::string reject(const CudaTileConfig& c, const CudaTileProblem& p, const CudaTarget& target) {
  const CudaEngine& engine = engine_of(c);
  if (engine.tensor_cores && !p.on_tensor_cores(target)) return "no tensor core multiplies this type";
  if (c.shared_bytes(p) > target.shared_bytes_per_block) return "its shared memory exceeds the device's";
  if (std::string why = engine.reject(c, p, target); !why.empty()) return why;
  if (p.reduces && (c.engine != CudaTileConfig::Engine::kMma || c.splits > 1 ||
                    c.tile_n / c.warps_n % tile::kGemmPartialColumns != 0)) {
    return "neighbours are reduced in fragments of whole sums, 32 columns and more";
  }
  if (tiles_of(p, c) * c.splits > std::numeric_limits<int32_t>::max()) return "more than 2^31 tiles";
  if (c.splits > 1) {
    const PartialSums sums{p.m, p.n, p.batch};
    if (p.sum_bytes() * sums.part() * c.splits > kMaxWorkspace) return "the partial sums exceed the workspace";
  }
  return {};
}

void add_operand(CudaLaunch& launch, const CudaOperand& o) {
  const auto argument = static_cast<int>(launch.arguments.size());
  launch.arguments.push_back(o.block);
  for (PointerPatch patch : o.pointers) {
    patch.argument = argument;
    launch.pointers.push_back(patch);
  }
}

}  // namespace

double CudaTileProblem::bytes() const {
  return a.bytes + b.bytes + static_cast<double>(m) * n * batch * out_bytes;
}

bool CudaTileProblem::on_tensor_cores(const CudaTarget& target) const {
  switch (a_in) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return true;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return target.sm >= 89;
    case DType::kI8:
    case DType::kU8:
      return true;
    default:
      return false;
  }
}

DType CudaTileProblem::accumulator() const {
  if (a_in == DType::kF64) return DType::kF64;
  if (!is_integer(a_in)) return DType::kF32;
  return size_of(a_in) == 8 ? DType::kI64 : DType::kI32;
}

int CudaTileProblem::sum_bytes() const {
  return static_cast<int>(size_of(accumulator()));
}

std::string_view multiplied_type(const CudaTileProblem& problem, const CudaTileConfig& config, bool is_a) {
  if (!engine_of(config).tensor_cores) return cuda_storage(problem.accumulator());
  const DType type = is_a ? problem.a_in : problem.b_in;
  if (type == DType::kF32) return problem.tf32 ? "tile::cuda::tf32" : "tile::cuda::tf32x2";
  return cuda_storage(type);
}

std::span<const CudaEngine* const> cuda_engines() {
  static constexpr std::array kAll = {&kMmaEngine, &kSimtEngine, &kSkinnyEngine, &kUnalignedEngine, &kDirectEngine};
  return kAll;
}
const CudaEngine& engine_of(const CudaTileConfig& c) {
  return *cuda_engines()[static_cast<size_t>(c.engine)];
}

CudaTileView view_of(const CudaTileProblem& p, bool swapped) {
  return swapped ? CudaTileView{p.n, p.m, &p.b, &p.a} : CudaTileView{p.m, p.n, &p.a, &p.b};
}

int64_t tiles_of(const CudaTileProblem& p, const CudaTileConfig& c) {
  const CudaTileView v = view_of(p, c.swapped);
  return ceil_div(v.m, c.tile_m) * ceil_div(v.n, c.tile_n) * p.batch;
}

int line_alignment(const CudaOperand& o) {
  return o.width * static_cast<int>(size_of(o.element));
}

// Tensor cores through mma.sync: sm_90 reaches some 60% of what its own instruction does.
double multiply_rate(const CudaTileProblem& p, bool tensor_cores, const CudaTarget& target) {
  const DType acc = p.accumulator();
  if (tensor_cores) {
    const double sixteen = target.model.chip.mma_per_cycle;
    if (p.a_in == DType::kF32) return p.tf32 ? sixteen / 2 : sixteen / 6;
    return is_integer(p.a_in) ? sixteen * 2 : sixteen;
  }
  if (acc == DType::kF64) return target.model.chip.f64_per_cycle;
  return acc == DType::kI64 ? 16 : acc == DType::kI32 ? 64 : 128;
}

int blocks_of_sm(const CudaTileProblem& p, const CudaTileConfig& c, int wanted, const CudaTarget& target) {
  const int threads = c.threads(), registers = std::min(256, (wanted + 7) / 8 * 8);
  const int by_registers = target.registers_per_sm / (registers * threads);
  const int64_t shared = target.shared_bytes_per_block + 1024;
  const auto by_shared = static_cast<int>(shared / (c.shared_bytes(p) + 1024));
  return std::max(1, std::min({by_registers, by_shared, 2048 / threads, 32}));
}

void add_splits(std::vector<CudaTileConfig>& found, const CudaTileProblem& p, CudaTileConfig c, int least,
                const CudaTarget& target) {
  c.splits = 1;
  found.push_back(c);
  const int64_t k_tiles = ceil_div(p.k, c.tile_k), tiles = tiles_of(p, c);
  if (tiles == 0 || tiles > target.sms) return;
  const int64_t full = target.sms / tiles;
  std::vector<int64_t> tried = {1};
  for (const int64_t wanted : {int64_t{2}, int64_t{4}, full / 2, full, 2 * full}) {
    const int64_t splits = std::min(wanted, k_tiles / least);
    if (splits <= 1 || std::find(tried.begin(), tried.end(), splits) != tried.end()) continue;
    tried.push_back(splits);
    c.splits = static_cast<int>(splits);
    found.push_back(c);
  }
}

CudaLaunch tiles_launch(const CudaTileProblem& p, const CudaTileConfig& c, int workspace) {
  const CudaTileView v = view_of(p, c.swapped);
  const PartialSums sums{p.m, p.n, p.batch};
  tile::GemmArgs args{};
  args.m = static_cast<int32_t>(v.m);
  args.n = static_cast<int32_t>(v.n);
  args.k = static_cast<int32_t>(p.k);
  args.batch = static_cast<int32_t>(p.batch);
  args.tiles_m = static_cast<int32_t>(ceil_div(args.m, c.tile_m));
  args.tiles_n = static_cast<int32_t>(ceil_div(args.n, c.tile_n));
  args.k_tiles = static_cast<int32_t>(ceil_div(p.k, c.tile_k));
  args.splits = c.splits;
  HEDDLE_CHECK(c.splits <= args.k_tiles);
  args.raster_group = c.raster_group;
  tile::set_divisors(args);
  args.p_row = sums.row(), args.p_batch = sums.matrix(), args.p_split = sums.part();
  CudaLaunch launch;
  launch.symbol = "gemm";
  launch.grid[0] = static_cast<uint32_t>(tiles_of(p, c) * c.splits);
  launch.block = static_cast<uint32_t>(c.threads());
  launch.shared_bytes = static_cast<uint32_t>(c.shared_bytes(p));
  launch.arguments = {argument_bytes(args)};
  if (c.splits > 1) launch.pointers = {{0, static_cast<int>(offsetof(tile::GemmArgs, partial)), workspace}};
  return launch;
}

int CudaTileConfig::threads() const {
  return 32 * warps_m * warps_n * (engine_of(*this).parts_are_warps ? parts : 1);
}

int CudaTileConfig::shared_bytes(const CudaTileProblem& p) const {
  return engine_of(*this).shared_bytes(p, *this);
}

std::string CudaTileConfig::name() const {
  std::string text = fmt::format("{} {}x{}x{} w{}x{} s{} k/{}", engine_of(*this).name, tile_m, tile_n, tile_k, warps_m,
                                 warps_n, stages, splits);
  if (parts > 0) text += fmt::format(" parts {}", parts);
  if (rows > 0) text += fmt::format(" rows {}", rows);
  return swapped ? text + " swapped" : text;
}

double floor_us(const CudaTileProblem& p, const CudaTarget& target) {
  const double per_sm = multiply_rate(p, p.on_tensor_cores(target), target);
  return std::max(p.operations() / 2 / (per_sm * target.sms * target.model.chip.clock_ghz * 1e3),
                  p.bytes() / target.model.mma.memory_per_us);
}

double predict_us(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target) {
  double us = engine_of(c).predict_us(p, c, target);
  if (c.splits > 1) {
    const double partial = p.sum_bytes() * static_cast<double>(p.m) * p.n * p.batch * c.splits;
    us += target.model.mma.reduce_us + 2 * partial / target.model.mma.partial_per_us;
  }
  return std::max(us, floor_us(p, target));
}

std::vector<CudaTileCandidate> enumerate(const CudaTileProblem& problem, const CudaTarget& target) {
  for (const DType type : {problem.a_in, problem.b_in}) {
    if (cuda_storage(type).empty()) {
      fail(ErrorCode::kUnsupportedType, "gemm", fmt::format("{} has no arithmetic on a GPU", to_string(type)),
           "Convert the operands to another type first");
    }
  }
  std::vector<CudaTileCandidate> found;
  for (const CudaEngine* engine : cuda_engines()) {
    for (const CudaTileConfig& c : engine->configs(problem, target)) {
      CudaTileCandidate candidate{c, 0, reject(c, problem, target)};
      if (candidate.rejected.empty()) candidate.predicted_us = predict_us(problem, c, target);
      found.push_back(std::move(candidate));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const CudaTileCandidate& a, const CudaTileCandidate& b) {
    if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
    return a.predicted_us < b.predicted_us;
  });
  return found;
}

CudaGemmLaunches make_launches(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target,
                               int workspace) {
  CudaGemmLaunches result;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return result;
  const PartialSums sums{p.m, p.n, p.batch};
  if (p.k > 0) {
    CudaLaunch launch = engine_of(c).launch(p, c, workspace);
    const CudaTileView v = view_of(p, c.swapped);
    add_operand(launch, *v.a);
    add_operand(launch, *v.b);
    result.launches.push_back(std::move(launch));
  }
  if (p.k > 0 && c.splits > 1) {
    result.workspace_bytes = ceil_div(p.sum_bytes() * sums.part() * c.splits, 256) * 256;
  }
  if (p.k == 0 || c.splits > 1) {
    result.launches.push_back(reduce_launch(sums, p.k > 0 ? c.splits : 0, target, workspace));
  }
  result.epilogue_launch = static_cast<int>(result.launches.size()) - 1;
  return result;
}

}  // namespace heddle::schedule
