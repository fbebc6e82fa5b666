// How much shared memory and workspace a stitch kernel needs, and for what.
#include <algorithm>

#include "codegen/region/cuda/sweep.h"

namespace heddle::codegen {

using schedule::CudaReduction;
using schedule::CudaStage;
using schedule::CudaStitchDesc;
using schedule::ThreadLayout;
using Over = CudaReduction::Over;

namespace {

int64_t computed_bytes(DType dtype) {
  return static_cast<int64_t>(size_of(schedule::compute_dtype(dtype)));
}

}  // namespace

int64_t scratch_bytes_of_team(const CudaStitchDesc& body) {
  int64_t bytes = 0;
  for (const schedule::Scratch& s : body.scratch) {
    bytes += (s.elements * static_cast<int64_t>(size_of(s.dtype)) + 15) / 16 * 16;
  }
  return bytes;
}

int64_t CudaSweepWriter::slot_count() const {
  int64_t n = 0;
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions)
      n += stage.scan || (r.over == Over::kTeam && !stage.layout.replicated);
  }
  return body_.team > 32 ? n : 0;
}

// Of one running result where threads hand it over.
int64_t CudaSweepWriter::element_bytes(const CudaReduction& r) const {
  return is_arg(r.combine) ? 16 : r.squares ? 12 : computed_bytes(r.dtype);
}

int64_t CudaSweepWriter::column_bytes() const {
  // As tile::columns_apart() and tile::columns_reduce() lay them out.
  const auto elements = [&](int64_t columns, int64_t vector, int64_t active) {
    const bool whole = active == body_.threads && active % 32 == 0 && active % columns == 0;
    const bool together = whole && columns < 32 && 32 % columns == 0;
    return (together ? active / 32 * columns : active / columns * columns) * vector;
  };
  int64_t most = 0;
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      const int64_t active = std::min(stage.layout.active, body_.threads), columns = body_.columns(stage.layout);
      if (r.over != Over::kColumn || columns >= active) continue;
      const int64_t all = columns * stage.layout.vector;
      const int64_t element = r.squares && all > active ? 16 : element_bytes(r);
      most = std::max(most, element * elements(columns, stage.layout.vector, active));
      if (body_.whole_grid) most = std::max(most, element_bytes(r) * body_.threads);
    }
  }
  return (most + 15) / 16 * 16;
}

int64_t CudaSweepWriter::cta_group_bytes(const ThreadLayout& layout, const CudaReduction& r) const {
  // As tile::detail::grid_packet and cta_group_packet have them.
  const int64_t cluster = r.squares ? 16 : (element_bytes(r) + 3) / 4 * 4, grid = (element_bytes(r) + 11) / 12 * 16;
  const int64_t element = body_.whole_grid ? grid : cluster;
  return (element * body_.columns(layout) * layout.vector * body_.cta_group + 15) / 16 * 16;
}

int64_t CudaSweepWriter::cta_group_barriers() const {
  int64_t n = 0;
  for (const CudaStage& stage : body_.stages) n += static_cast<int64_t>(stage.reductions.size());
  return body_.cta_group > 1 && !body_.whole_grid ? n : 0;
}
std::string CudaSweepWriter::next_cta_group_barrier() {
  return fmt::format("reinterpret_cast<tile::cta_group_barrier*>({})",
                     shared(barriers_offset + kBarrierBytes * next_cta_group_barrier_++));
}

int64_t CudaSweepWriter::all_cta_group_bytes() const {
  int64_t bytes = 0;
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      if (body_.cta_group > 1 && r.over == Over::kColumn) bytes += cta_group_bytes(stage.layout, r);
    }
  }
  return bytes;
}

bool CudaSweepWriter::has_moments() const {
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      if (r.squares) return true;
    }
  }
  return false;
}

int64_t CudaSweepWriter::carried_bytes() const {
  if (!body_.serial || body_.teams() == 1) return 0;
  int64_t most = 0;
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      if (r.over != Over::kCarried) continue;
      const int64_t points = body_.columns(stage.layout) * stage.layout.vector;
      most = std::max(most, points * computed_bytes(r.dtype));
    }
  }
  return most * body_.teams();
}

}  // namespace heddle::codegen
