#include "schedule/product/cuda/tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "schedule/product/cuda/long_sums.h"
#include "schedule/product/cuda/reduce.h"
#include "target/argument_block.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {
namespace {

bool is_integer(DType type) {
  return type != DType::kF64 && type != DType::kF32 && type != DType::kF16 && type != DType::kBF16 &&
         type != DType::kF8E4M3 && type != DType::kF8E5M2;
}

}  // namespace

bool has_arithmetic(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kBool:
      return true;
    default:
      return is_int(type) && bits_of(type) >= 8;
  }
}

double TileProblem::bytes() const {
  return a.bytes + b.bytes + results() * (out_bytes + read_bytes);
}

bool multiplies_in_waves(DType type, const GpuTarget& target) {
  if (type == DType::kF16 || type == DType::kBF16) return target.has_mfma() || target.has_wmma();
  return target.has_mfma() && (type == DType::kF32 || type == DType::kF64 || type == DType::kI8);
}

bool TileProblem::on_tensor_cores(const GpuTarget& target) const {
  if (!target.has_tensor_cores()) return multiplies_in_waves(a_in, target);
  switch (a_in) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return true;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return target.has_fp8_mma();
    case DType::kI8:
    case DType::kU8:
      return true;
    default:
      return false;
  }
}

DType TileProblem::accumulator() const {
  if (a_in == DType::kF64) return DType::kF64;
  if (!is_integer(a_in)) return DType::kF32;
  return size_of(a_in) == 8 ? DType::kI64 : DType::kI32;
}

int TileProblem::sum_bytes() const {
  return static_cast<int>(size_of(accumulator()));
}

// A file of views/ each.
const ViewFamily &mma_family(), &simt_family(), &skinny_family(), &unaligned_family(), &register_direct_family(),
    &k_reduction_family(), &packed_family(), &mfma_family(), &wmma_family();

std::span<const ViewFamily* const> view_families() {
  static const std::array all = {
      &mma_family(),         &simt_family(),   &skinny_family(), &unaligned_family(), &register_direct_family(),
      &k_reduction_family(), &packed_family(), &mfma_family(),   &wmma_family()};
  return all;
}

const ViewFamily& view_family_of(const Config& config) {
  const auto all = view_families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto* f) { return f->name() == family_of(config); });
  HEDDLE_CHECK(found != all.end(), "{} is none of the kernels over views", name_of(config));
  return **found;
}

std::string ViewFamily::refuse(const ProductTask& task, const GpuTarget&) const {
  for (const DType type : {task.product.multiply_a, task.product.multiply_b}) {
    if (!has_arithmetic(type)) return fmt::format("{} has no arithmetic on a GPU", to_string(type));
  }
  return {};
}

std::vector<CudaCandidate> ViewFamily::candidates(const ProductTask& task, const GpuTarget& target) const {
  return configurations(tile_problem(task), target);
}

KernelLaunches ViewFamily::launches(const ProductTask& task, const Config& config, const GpuTarget& target) const {
  return launches_of(tile_problem(task), config, target, task.workspace());
}

CudaInstance ViewFamily::instance(const ProductTask& task, const Config& config) const {
  return instance_of(tile_problem(task), config);
}

TileView view_of(const TileProblem& p, bool swapped) {
  return swapped ? TileView{p.n, p.m, &p.b, &p.a} : TileView{p.m, p.n, &p.a, &p.b};
}

int64_t TileCut::tiles(const TileProblem& p) const {
  const TileView v = view_of(p, swapped);
  return ceil_div(v.m, tile_m) * ceil_div(v.n, tile_n) * p.batch;
}

bool deals(const OperandView& o, int64_t lines, int64_t rows, int64_t depth, int threads) {
  const OperandTraits traits = traits_of(o, lines, 1, o.dtype);
  const int64_t count = traits.along_k ? rows : depth, length = traits.along_k ? depth : rows;
  const int64_t pieces = length / traits.width, at_once = threads / std::gcd(pieces, int64_t{threads});
  return at_once > count || count % at_once == 0;
}

int line_alignment(const OperandTraits& o) {
  return o.width * static_cast<int>(size_of(o.element));
}

// Tensor cores through mma.sync: sm_90 reaches some 60% of what its own instruction does.
double multiply_rate(const TileProblem& p, bool tensor_cores, const GpuTarget& target) {
  const DType acc = p.accumulator();
  if (tensor_cores) {
    const double sixteen = target.model.chip.mma_per_cycle;
    if (!target.has_tensor_cores()) return size_of(p.a_in) >= 4 ? sixteen / 8 : sixteen;
    if (p.a_in == DType::kF32) return p.tf32 ? sixteen / 2 : sixteen / 6;
    return is_integer(p.a_in) ? sixteen * 2 : sixteen;
  }
  if (acc == DType::kF64) return target.model.chip.f64_per_cycle;
  return acc == DType::kI64 ? 16 : acc == DType::kI32 ? 64 : 128;
}

int blocks_of_sm(int threads, int shared_bytes, int wanted, const GpuTarget& target) {
  const int registers = std::min(256, (wanted + 7) / 8 * 8);
  const int by_registers = target.registers_per_sm / (registers * threads);
  const int64_t shared = target.shared_bytes_per_block + 1024;
  const auto by_shared = static_cast<int>(shared / (shared_bytes + 1024));
  return std::max(1, std::min({by_registers, by_shared, 2048 / threads, 32}));
}

std::vector<int> splits_worth_trying(const TileProblem& p, const TileCut& cut, int least, int64_t joined,
                                     const GpuTarget& target) {
  std::vector<int> found = {1};
  const int64_t k_tiles = ceil_div(p.k, cut.tile_k), tiles = cut.tiles(p);
  if (tiles == 0) return found;
  const int64_t full = target.sms / tiles, part = p.sum_bytes() * PartialSums{p.m, p.n, p.batch}.part();
  const int64_t exact = std::min(fewest_parts(p.k, joined, p.out_bytes), kMostWorkspace / std::max<int64_t>(part, 1));
  for (const int64_t wanted : {int64_t{2}, int64_t{4}, full / 2, full, 2 * full, exact}) {
    if (tiles > target.sms && wanted != exact) continue;
    const int64_t splits = std::min(wanted, k_tiles / least);
    if (splits > 1 && std::find(found.begin(), found.end(), splits) == found.end()) {
      found.push_back(static_cast<int>(splits));
    }
  }
  return found;
}

CudaLaunch tiles_launch(const TileProblem& p, const TileCut& c, int workspace) {
  constexpr int kRasterGroup = 8;
  const TileView v = view_of(p, c.swapped);
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
  if (p.gated && c.splits == 1) (c.swapped ? args.m : args.n) /= 2;
  args.raster_group = kRasterGroup;
  tile::set_divisors(args);
  args.p_row = sums.row(), args.p_batch = sums.matrix(), args.p_split = sums.part();
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(c.tiles(p) * c.splits);
  launch.arguments = {argument_bytes(args)};
  if (c.splits > 1) launch.pointers = {{0, static_cast<int>(offsetof(tile::GemmArgs, partial)), workspace}};
  return launch;
}

double floor_us(const TileProblem& p, const GpuTarget& target) {
  const double per_sm = multiply_rate(p, p.on_tensor_cores(target), target);
  return std::max(p.operations() / 2 / (per_sm * target.sms * target.model.chip.clock_ghz * 1e3),
                  p.bytes() / target.model.mma.memory_per_us);
}

double with_reduction(const TileProblem& p, double us, int splits, const GpuTarget& target) {
  if (splits > 1) {
    const double partial = p.sum_bytes() * static_cast<double>(p.m) * p.n * p.batch * splits;
    const auto& model = target.model.mma;
    constexpr double kPart = 1.0 / 75;  // of a load's latency, for each part that the second kernel adds
    us += model.reduce_us + 2 * partial / model.partial_per_us +
          kPart * splits * model.latency_cycles / (target.model.chip.clock_ghz * 1e3);
  }
  return std::max(us, floor_us(p, target));
}

std::string reject_tiles(const TileProblem& p, const TileCut& cut) {
  if (cut.tiles(p) * cut.splits > std::numeric_limits<int32_t>::max()) return "more than 2^31 tiles";
  const PartialSums sums{p.m, p.n, p.batch};
  const bool fits = cut.splits == 1 || p.sum_bytes() * sums.part() * cut.splits <= kMostWorkspace;
  return fits ? "" : "the partial sums exceed the workspace";
}

std::vector<CudaCandidate> enumerate(const TileProblem& problem, const GpuTarget& target) {
  for (const DType type : {problem.a_in, problem.b_in}) {
    if (!has_arithmetic(type)) {
      fail(ErrorCode::kUnsupportedType, "gemm", fmt::format("{} has no arithmetic on a GPU", to_string(type)),
           "Convert the operands to another type first");
    }
  }
  std::vector<CudaCandidate> found;
  for (const ViewFamily* family : view_families()) {
    for (CudaCandidate& candidate : family->configurations(problem, target)) found.push_back(std::move(candidate));
  }
  sort_by_prediction(found);
  return found;
}

KernelLaunches tile_launches(const TileProblem& p, int splits, const GpuTarget& target, int workspace) {
  KernelLaunches result;
  if (p.is_empty() || (p.k > 0 && splits == 1)) return result;
  const PartialSums sums{p.m, p.n, p.batch};
  if (p.k > 0) result.workspace_bytes = ceil_div(p.sum_bytes() * sums.part() * splits, 256) * 256;
  result.launches.push_back(reduce_launch(sums, p.k > 0 ? splits : 0, target, workspace));
  return result;
}

CudaInstance tile_instance(const TileProblem& p, const TileCut& cut, bool tensor_cores) {
  CudaInstance i;
  i.tile_m = cut.tile_m, i.tile_n = cut.tile_n;
  i.swapped = cut.swapped;
  i.split_f32 = p.splits_f32();
  i.sum = p.accumulator();
  i.multiplies = p.k > 0;
  i.partial = cut.splits > 1 || p.k == 0;
  i.store = cut.splits > 1 ? tile::GemmStore::kPartial : tile::GemmStore::kEpilogue;
  i.types = {{"In", tensor_cores ? p.a_in : p.accumulator(), tensor_cores}};
  i.arguments = {{CudaInstance::Parameter::kBlock, "args", "GemmArgs"},
                 {CudaInstance::Parameter::kOperand, "a"},
                 {CudaInstance::Parameter::kOperand, "b"}};
  return i;
}

}  // namespace heddle::schedule
