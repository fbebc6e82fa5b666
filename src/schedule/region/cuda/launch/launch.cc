#include "schedule/region/cuda/launch/launch.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/region/cuda/scatter.h"
#include "target/argument_block.h"
#include "tile/core/cuda_standalone.h"

namespace heddle::schedule {
namespace {

using Over = CudaReduction::Over;

int64_t computed_bytes(DType dtype) {
  return static_cast<int64_t>(size_of(compute_dtype(dtype)));
}

// Of one running result where threads hand it over.
int64_t element_bytes(const CudaReduction& r) {
  return is_arg(r.combine) ? 16 : r.squares ? 12 : computed_bytes(r.dtype);
}

// Of a team, as tile::columns_apart() and tile::columns_reduce() lay them out.
int64_t column_bytes(const CudaStitchDesc& body, const CudaStage& stage, const CudaReduction& r) {
  const int64_t active = std::min(stage.layout.active, body.threads), columns = body.columns(stage.layout);
  if (r.over != Over::kColumn || columns >= active) return 0;
  const bool whole = active == body.threads && active % body.lanes == 0 && active % columns == 0;
  const bool together = whole && columns < body.lanes && body.lanes % columns == 0;
  const int64_t all = columns * stage.layout.vector;
  const int64_t elements =
      (together ? active / body.lanes * columns : active / columns * columns) * stage.layout.vector;
  const int64_t bytes = (r.squares && all > active ? 16 : element_bytes(r)) * elements;
  return body.whole_grid ? std::max(bytes, element_bytes(r) * body.threads) : bytes;
}

// Of all teams, where they combine what they carried through the serial loop.
int64_t carried_bytes(const CudaStitchDesc& body, const CudaStage& stage, const CudaReduction& r) {
  if (!body.serial || body.teams() == 1 || r.over != Over::kCarried) return 0;
  return body.columns(stage.layout) * stage.layout.vector * computed_bytes(r.dtype) * body.teams();
}

// A launch whose one argument is a block of them.
template <typename Args>
CudaLaunch launch_of(const Args& args, int64_t blocks, int64_t threads) {
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(blocks);
  launch.block = static_cast<uint32_t>(threads);
  launch.arguments = {argument_bytes(args)};
  return launch;
}

KernelLaunches plan_selection(const StandaloneDesc& desc, const Config& config, int own) {
  const StandaloneDesc::Columns columns = desc.columns();
  const auto item = tile::select_item_bytes(columns.bytes);
  tile::SelectArgs args{};
  args.n = columns.rows, args.k = desc.k, args.inner = columns.inner;
  KernelLaunches plan{{launch_of(args, config.tasks, config.as<SelectConfig>().threads)}};
  CudaLaunch& launch = plan.launches.front();
  launch.shared_bytes = static_cast<uint32_t>(tile::kSelectTile * item + tile::kSelectCountBytes);
  launch.pointers = {{0, offsetof(tile::SelectArgs, x), 0},
                     {0, offsetof(tile::SelectArgs, values), 1},
                     {0, offsetof(tile::SelectArgs, positions), 2}};
  if (desc.k > tile::kSelectTile) {
    plan.workspace_bytes = columns.outer * columns.inner * desc.k * item;
    launch.pointers.push_back({0, offsetof(tile::SelectArgs, list), own});
  }
  return plan;
}

}  // namespace

int64_t handed_over_bytes(const CudaStitchDesc& body, const ThreadLayout& layout, const CudaReduction& r) {
  if (body.cta_group == 1 || r.over != Over::kColumn) return 0;
  // As tile::detail::grid_packet and cta_group_packet have them.
  const int64_t cluster = r.squares ? 16 : round_up(element_bytes(r), 4), grid = ceil_div(element_bytes(r), 12) * 16;
  const int64_t element = body.whole_grid ? grid : cluster;
  return round_up(element * body.columns(layout) * layout.vector * body.cta_group, 16);
}

SharedMemory shared_memory(const CudaStitchDesc& body) {
  SharedMemory m;
  const bool cluster = body.cta_group > 1 && !body.whole_grid;
  int64_t slots = 0, carried = 0;
  for (const Scratch& s : body.scratch) {
    m.scratch_bytes += round_up(s.elements * static_cast<int64_t>(size_of(s.dtype)), 16);
  }
  for (const CudaStage& stage : body.stages) {
    for (const CudaReduction& r : stage.reductions) {
      slots += body.team > body.lanes && (stage.scan || (r.over == Over::kTeam && !stage.layout.replicated));
      m.column_bytes = std::max(m.column_bytes, round_up(column_bytes(body, stage, r), 16));
      m.handed_over_bytes += handed_over_bytes(body, stage.layout, r);
      m.barrier_count += cluster;
      carried = std::max(carried, carried_bytes(body, stage, r));
    }
  }
  m.slots = m.scratch_bytes * body.teams();
  m.columns = m.slots + slots * SharedMemory::kSlotBytes;
  m.handed_over = m.columns + m.column_bytes * body.teams();
  m.barriers = m.handed_over + (cluster ? m.handed_over_bytes : 0);
  // The turns' results take it all when the serial loop has ended.
  m.bytes = std::max(m.barriers + m.barrier_count * SharedMemory::kBarrierBytes, carried);
  return m;
}

KernelLaunches plan_launches(const CudaStitchDesc& body, size_t operands) {
  constexpr int64_t kGridHead = 128;  // bytes of tile::grid_cta_group ahead of its packets
  const SharedMemory memory = shared_memory(body);
  KernelLaunches plan;
  CudaLaunch& l = plan.launches.emplace_back();
  l.grid[0] = static_cast<uint32_t>(body.blocks);
  l.block = static_cast<uint32_t>(body.threads);
  l.cluster = body.whole_grid ? 1 : static_cast<uint32_t>(body.cta_group);
  l.cooperative = body.whole_grid;
  l.shared_bytes = static_cast<uint32_t>(memory.bytes);
  const auto point_to = [&](size_t operand) {
    l.pointers.push_back({static_cast<int>(l.arguments.size()), 0, static_cast<int>(operand)});
    l.arguments.emplace_back(sizeof(uint64_t), uint8_t{0});
  };
  for (size_t i = 0; i < operands; ++i) point_to(i);
  if (body.whole_grid) {
    point_to(operands + 1);  // counters lie behind the workspace
    plan.counter_bytes = body.blocks / body.cta_group * (kGridHead + memory.handed_over_bytes);
  }
  if (body.counts_iterations()) {
    const int64_t count = body.iterations();
    l.arguments.push_back(body.wide_index ? argument_bytes(count) : argument_bytes(static_cast<int32_t>(count)));
  }
  return plan;
}

KernelLaunches plan_launches(const StandaloneDesc& desc, const Config& config, size_t operands) {
  return desc.op == ir::Op::kTopK ? plan_selection(desc, config, static_cast<int>(operands))
                                  : plan_scatter(desc, config, static_cast<int>(operands));
}

KernelLaunches plan_launches(const CudaBundleDesc& bundle, size_t operands) {
  CudaLaunch launch;
  launch.grid[0] = 0;
  for (const CudaBundleDesc::Part& part : bundle.parts) launch.grid[0] += static_cast<uint32_t>(part.body->blocks);
  launch.block = static_cast<uint32_t>(bundle.threads);
  for (const CudaBundleDesc::Part* part : bundle.all()) {
    launch.shared_bytes = std::max(launch.shared_bytes, static_cast<uint32_t>(shared_memory(*part->body).bytes));
  }
  launch.arguments.emplace_back(operands * sizeof(uint64_t), uint8_t{0});
  KernelLaunches plan{{std::move(launch)}};
  if (bundle.last) plan.counter_bytes = bundle.last->part.body->blocks * static_cast<int64_t>(sizeof(uint32_t));
  return plan;
}

}  // namespace heddle::schedule
