// Which configurations of the kernels over views a problem may take, and the launches of one.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "schedule/cuda_direct.h"
#include "schedule/cuda_lines.h"
#include "schedule/cuda_reduce.h"
#include "schedule/cuda_tile.h"

namespace heddle::schedule {
namespace {

using Engine = CudaTileConfig::Engine;

constexpr int kOperandA = 1, kOperandB = 2;  // arguments of the kernel, behind what it is told of the problem
constexpr int64_t kMaxWorkspace = int64_t{64} << 20;
constexpr int kMostRegisters = 250;
constexpr int kMostFew = 8;  // as many columns as an epilogue takes at once

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

struct Tile {
  int m, n, warps_m, warps_n;
};
// Parts of warps up to 64 x 64: 128 sums a thread.
constexpr Tile kMmaTiles[] = {{256, 128, 4, 2}, {128, 256, 2, 4}, {128, 128, 2, 2}, {128, 128, 2, 4}, {256, 64, 4, 1},
                              {64, 256, 1, 4},  {128, 64, 2, 2},  {64, 128, 2, 2},  {64, 64, 2, 2},   {128, 32, 4, 1},
                              {32, 128, 1, 4},  {64, 32, 2, 1},   {32, 64, 1, 2},   {32, 32, 2, 1},   {64, 16, 4, 1},
                              {128, 16, 4, 1},  {16, 128, 1, 4},  {16, 64, 1, 4}};
// Sums of a lane: 8 x 8 of 4 bytes, 8 x 4 of 8 bytes.
constexpr Tile kSimtTiles[] = {{128, 128, 4, 2}, {128, 64, 4, 2}, {64, 128, 2, 4}, {64, 64, 2, 2}, {32, 64, 1, 2}};

bool too_large(const Tile& tile, int64_t m, int64_t n) {
  if (tile.m * tile.n <= 1024) return false;
  return (tile.m > 16 && tile.m >= 2 * std::max<int64_t>(m, 16)) ||
         (tile.n > 16 && tile.n >= 2 * std::max<int64_t>(n, 16));
}

int64_t units_of(const CudaTileProblem& p, const CudaTileConfig& c) {
  if (c.engine == Engine::kFew) return ceil_div(c.swapped ? p.m : p.n, c.tile_n) * p.batch * c.splits;
  return ceil_div(p.m, c.tile_m) * ceil_div(p.n, c.tile_n) * p.batch * c.splits;
}

std::string reject(const CudaTileConfig& c, const CudaTileProblem& p, const CudaTarget& target) {
  if ((c.engine == Engine::kMma || c.engine == Engine::kLines || c.engine == Engine::kDirect) &&
      !p.on_tensor_cores(target)) {
    return "no tensor core multiplies this type";
  }
  if (c.engine == Engine::kFew) {
    if (!p.a.view || !p.b.view) return "a computed operand has no memory to stream";
    const int64_t few = c.swapped ? p.n : p.m;
    if (few > kMostFew) return fmt::format("{} {} are more than {}", few, c.swapped ? "columns" : "rows", kMostFew);
  }
  if (c.shared_bytes(p) > target.shared_bytes_per_block) return "its shared memory exceeds the device's";
  if (c.engine == Engine::kLines) {
    if (std::string why = reject_lines(c, p, target); !why.empty()) return why;
  } else if (c.engine == Engine::kDirect) {
    if (std::string why = reject_direct(c, p, target); !why.empty()) return why;
  } else if (c.engine != Engine::kFew && c.registers(p) > kMostRegisters) {
    return "it needs more registers than a thread has";
  }
  if (units_of(p, c) > std::numeric_limits<int32_t>::max()) return "more than 2^31 tiles";
  if (c.splits > 1) {
    const int64_t bytes = static_cast<int64_t>(size_of(p.accumulator())) * p.m * round_up(p.n, 4) * p.batch * c.splits;
    if (bytes > kMaxWorkspace) return "the partial sums exceed the workspace";
  }
  return {};
}

// Parts of k worth trying: as many as fill the device, each of at least `least` k-tiles.
std::vector<int> splits_of(const CudaTileProblem& p, const CudaTileConfig& c, int least, const CudaTarget& target) {
  std::vector<int> splits = {1};
  const int64_t k_tiles = ceil_div(p.k, c.tile_k), tiles = units_of(p, c);
  if (tiles == 0 || tiles > target.sms) return splits;
  const int64_t full = target.sms / tiles;
  for (const int64_t wanted : {int64_t{2}, int64_t{4}, full / 2, full, 2 * full}) {
    const int64_t some = std::min(wanted, k_tiles / least);
    if (some > 1 && std::find(splits.begin(), splits.end(), some) == splits.end()) {
      splits.push_back(static_cast<int>(some));
    }
  }
  return splits;
}

class Enumeration {
 public:
  Enumeration(const CudaTileProblem& problem, const CudaTarget& target) : p_(problem), target_(target) {}

  std::vector<CudaTileCandidate> run() {
    for (const Tile& tile : kMmaTiles) add_mma(tile);
    for (const Tile& tile : kSimtTiles) add_simt(tile);
    for (const bool swapped : {false, true}) add_few(swapped);
    for (const CudaTileConfig& c : lines_configs(p_, target_)) add_one(c);
    for (const CudaTileConfig& c : direct_configs(p_, target_)) add_one(c);
    std::stable_sort(found_.begin(), found_.end(), [](const CudaTileCandidate& a, const CudaTileCandidate& b) {
      if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
      return a.predicted_us < b.predicted_us;
    });
    return std::move(found_);
  }

 private:
  void add(CudaTileConfig c, int least) {
    for (const int splits : splits_of(p_, c, least, target_)) {
      c.splits = splits;
      add_one(c);
    }
  }
  void add_one(const CudaTileConfig& c) {
    CudaTileCandidate candidate{c, 0, reject(c, p_, target_)};
    if (candidate.rejected.empty()) candidate.predicted_us = predict_us(p_, c, target_);
    found_.push_back(std::move(candidate));
  }

  void add_mma(const Tile& tile) {
    if (too_large(tile, p_.m, p_.n)) return;
    for (const int k_bytes : {64, 128}) {
      for (const int stages : {4, 3, 6}) {
        // Long steps and many stages serve small tiles, whose loads are the limit.
        if ((k_bytes == 128 || stages == 6) && tile.m * tile.n > 128 * 64) continue;
        CudaTileConfig c;
        c.engine = Engine::kMma;
        c.tile_m = tile.m, c.tile_n = tile.n, c.warps_m = tile.warps_m, c.warps_n = tile.warps_n;
        c.tile_k = k_bytes / static_cast<int>(size_of(p_.a_in));
        c.stages = stages;
        add(c, 4);
      }
    }
  }

  void add_simt(const Tile& tile) {
    const bool wide = size_of(p_.accumulator()) == 8;
    if (too_large(tile, p_.m, p_.n) && tile.m > 32) return;
    if (wide && tile.m * tile.n / (32 * tile.warps_m * tile.warps_n) > 32) return;
    for (const int tile_k : {8, 16}) {
      CudaTileConfig c;
      c.engine = Engine::kSimt;
      c.tile_m = tile.m, c.tile_n = tile.n, c.warps_m = tile.warps_m, c.warps_n = tile.warps_n;
      c.tile_k = tile_k;
      c.stages = 2;
      add(c, 8);
    }
  }

  void add_few(bool swapped) {
    const CudaOperand& wide = swapped ? p_.a : p_.b;
    const int64_t few = swapped ? p_.n : p_.m;
    CudaTileConfig c;
    c.engine = Engine::kFew;
    c.swapped = swapped;
    c.tile_m = 1;
    while (c.tile_m < few && c.tile_m < kMostFew) c.tile_m *= 2;
    c.warps_m = 8, c.warps_n = 1;
    for (const int rows : {1, 2, 4}) {
      c.rows = rows;
      c.tile_n = wide.along_k ? c.warps_m * rows : 32 * wide.width;
      c.tile_k = wide.along_k ? 32 * wide.width : c.warps_m * 8;
      add(c, wide.along_k ? 2 : 1);
      if (!wide.along_k) break;
    }
  }

  const CudaTileProblem& p_;
  const CudaTarget& target_;
  std::vector<CudaTileCandidate> found_;
};

template <typename T>
std::vector<uint8_t> bytes_of(const T& value) {
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

void add_operand(CudaLaunch& launch, const CudaOperand& o, int argument) {
  HEDDLE_CHECK(static_cast<int>(launch.arguments.size()) == argument);
  launch.arguments.push_back(o.block);
  for (PointerPatch patch : o.pointers) {
    patch.argument = argument;
    launch.pointers.push_back(patch);
  }
}

CudaLaunch multiply_launch(const CudaTileProblem& p, const CudaTileConfig& c, int workspace) {
  if (c.engine == Engine::kLines) {
    CudaLaunch launch = lines_launch(p, c, workspace);
    add_operand(launch, c.swapped ? p.b : p.a, kOperandA);
    add_operand(launch, c.swapped ? p.a : p.b, kOperandB);
    return launch;
  }
  if (c.engine == Engine::kDirect) {
    CudaLaunch launch = direct_launch(p, c);
    add_operand(launch, p.a, 0);
    add_operand(launch, p.b, 1);
    return launch;
  }
  const bool few = c.engine == Engine::kFew;
  const PartialSums sums{p.m, p.n, p.batch};
  tile::GemmArgs args{};
  args.m = static_cast<int32_t>(few && c.swapped ? p.n : p.m);
  args.n = static_cast<int32_t>(few && c.swapped ? p.m : p.n);
  args.k = static_cast<int32_t>(p.k);
  args.batch = static_cast<int32_t>(p.batch);
  args.tiles_m = few ? 1 : static_cast<int32_t>(ceil_div(args.m, c.tile_m));
  args.tiles_n = static_cast<int32_t>(ceil_div(args.n, c.tile_n));
  args.k_tiles = static_cast<int32_t>(ceil_div(p.k, c.tile_k));
  args.splits = c.splits;
  HEDDLE_CHECK(c.splits <= args.k_tiles);
  args.raster_group = c.raster_group;
  tile::set_divisors(args);
  args.p_row = sums.row(), args.p_batch = sums.matrix(), args.p_split = sums.part();
  CudaLaunch launch;
  launch.symbol = "gemm";
  launch.grid[0] = static_cast<uint32_t>(units_of(p, c));
  launch.block = static_cast<uint32_t>(c.threads());
  launch.shared_bytes = static_cast<uint32_t>(c.shared_bytes(p));
  launch.arguments = {bytes_of(args)};
  if (c.splits > 1) launch.pointers = {{0, static_cast<int>(offsetof(tile::GemmArgs, partial)), workspace}};
  add_operand(launch, c.swapped ? p.b : p.a, kOperandA);
  add_operand(launch, c.swapped ? p.a : p.b, kOperandB);
  return launch;
}

}  // namespace

std::vector<CudaTileCandidate> enumerate(const CudaTileProblem& problem, const CudaTarget& target) {
  for (const DType type : {problem.a_in, problem.b_in}) {
    if (cuda_storage(type).empty()) {
      fail(ErrorCode::kUnsupportedType, "gemm", fmt::format("{} has no arithmetic on a GPU", to_string(type)),
           "Convert the operands to another type first");
    }
  }
  return Enumeration(problem, target).run();
}

CudaGemmLaunches make_launches(const CudaTileProblem& p, const CudaTileConfig& c, const CudaTarget& target,
                               int workspace) {
  CudaGemmLaunches result;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return result;
  const PartialSums sums{p.m, p.n, p.batch};
  if (p.k > 0) result.launches.push_back(multiply_launch(p, c, workspace));
  if (p.k > 0 && c.splits > 1) {
    result.workspace_bytes = round_up(static_cast<int64_t>(size_of(p.accumulator())) * sums.part() * c.splits, 256);
  }
  if (p.k == 0 || c.splits > 1) {
    result.launches.push_back(reduce_launch(sums, p.k > 0 ? c.splits : 0, target, workspace));
  }
  result.epilogue_launch = static_cast<int>(result.launches.size()) - 1;
  return result;
}

}  // namespace heddle::schedule
