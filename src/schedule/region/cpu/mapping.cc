#include "schedule/region/cpu/mapping.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/cpu/share.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kMinColumns = 64;        // narrower column blocks waste the lines that the prefetcher brings
constexpr int64_t kMaxColumns = 32768;     // running results of a column block stay in L1
constexpr double kShortRow = 16;           // shorter rows fill no vector
constexpr int64_t kTileBytes = 256;        // of a transposed block in both directions: a few lines for the prefetcher
constexpr int64_t kTileMinimum = 4;        // dimensions shorter than this are not worth a transposition
constexpr int64_t kPackedRow = 64;         // longer rows fill vectors by themselves
constexpr int64_t kPackedBytes = 2 << 10;  // of a block of packed rows
constexpr int64_t kFoldedRow = 512;        // elements that rows are joined to where their columns are reduced
constexpr int64_t kGatheredRows = 64;      // whose positions are computed together; fewer where threads want more
constexpr int64_t kFoldedTotal = kFoldedRow * 4096;

// How many bytes are walked with unit stride along each variable, short variables counting less.
std::map<VarId, double> unit_stride_bytes(const KernelExprs& exprs, const ir::Graph& graph) {
  std::map<VarId, double> weight;
  const auto access = [&](const Index& index, double bytes) {
    for (const auto& [id, c] : index.terms) {
      const Atom& atom = exprs.pool.indices.atom(id);
      if (atom.kind != Atom::Kind::kVar || c != 1) continue;
      const auto extent = static_cast<double>(exprs.pool.indices.extent(atom.id));
      weight[atom.id] += bytes * std::min(1.0, extent / kShortRow);
    }
  };
  const auto sweep = [&](ExprId e, double points) {
    visit_exprs(exprs.pool, {e}, [&](ExprId id) {
      const Expr& expr = exprs.pool[id];
      if (expr.kind != Expr::Kind::kLoad) return;
      // Loads that do not vary with every loop are hoisted.
      const double own = std::min(points, static_cast<double>(exprs.volume(exprs.pool.vars(id))));
      access(expr.index, own * static_cast<double>(size_of(expr.dtype)));
    });
  };
  for (const ReductionSite& i : exprs.sites) sweep(i.operand, static_cast<double>(exprs.volume(i.kept | i.reduced)));
  for (const Root& root : exprs.roots) {
    const auto points = static_cast<double>(element_count(graph.shape(root.value)));
    sweep(root.expr, points);
    // A store with a stride costs more than a load with one: it also reads the line.
    access(root.at, 1.5 * points * static_cast<double>(size_of(graph.dtype(root.value))));
  }
  return weight;
}

// A variable along which loads have unit stride while they jump along the vector variable: their blocks are transposed.
std::optional<VarId> transposed_variable(const KernelExprs& exprs, VarId vector, uint64_t parallel) {
  std::map<VarId, int> votes;
  for (const Root& root : exprs.roots) {
    visit_exprs(exprs.pool, {root.expr}, [&](ExprId id) {
      const Expr& expr = exprs.pool[id];
      if (expr.kind != Expr::Kind::kLoad || stride_along(exprs.pool, expr.index, vector).value_or(1) <= 1) return;
      for (const auto& [atom_id, c] : expr.index.terms) {
        const Atom& atom = exprs.pool.indices.atom(atom_id);
        if (atom.kind != Atom::Kind::kVar || c != 1 || !(parallel >> atom.id & 1)) continue;
        if (exprs.pool.indices.extent(atom.id) >= kTileMinimum) ++votes[atom.id];
      }
    });
  }
  const auto best = std::max_element(votes.begin(), votes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (best == votes.end() || exprs.pool.indices.extent(vector) < kTileMinimum) return std::nullopt;
  return best->first;
}

int64_t wanted_tasks(double seconds, const CpuTarget& cpu) {
  if (cpu.threads == 1 || seconds < 4e-6 * cpu.barrier_us) return 1;
  const auto tasks = static_cast<int64_t>(seconds / (1e-6 * cpu.model.task_us)) + 1;
  return round_up(std::clamp<int64_t>(tasks, cpu.threads, 16 * cpu.threads), cpu.threads);
}

class Mapper {
 public:
  Mapper(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
         const Frontier& frontier)
      : exprs_(exprs), graph_(graph), cpu_(target.cpu), options_(options), frontier_(frontier) {}

  MapResult run() {
    cut_recomputed(exprs_, graph_, frontier_, result_);
    parallel_ = parallel_vars(exprs_);
    if (!result_.cuts.empty() || repeats_roots(exprs_, parallel_, result_)) return std::move(result_);
    work_ = result_.work = work_of(exprs_, graph_, cpu_);
    tasks_ = options_.adaptive_mapping ? wanted_tasks(work_.seconds(cpu_), cpu_) : cpu_.threads;
    choose_vector();
    fold_columns();
    make_grid();
    if (options_.adaptive_mapping && tasks_ > 1 && !exprs_.sites.empty()) {
      if (grid_size() < cpu_.threads) {
        more_parallelism(fmt::format("{} grid iterations do not fill {} threads", grid_size(), cpu_.threads));
      } else if (column_blocks_ > 1 && (work_.bytes > static_cast<double>(cached_bytes(cpu_)) ||
                                        (exprs_.sites.size() > 1 && columns_in_l2() < kMinColumns))) {
        // From memory, whole rows stream better than blocks of columns.
        more_parallelism(fmt::format("{} blocks of columns would read {:.3g} MB from memory in short pieces",
                                     column_blocks_, work_.bytes * 1e-6));
      }
    }
    if (result_.cuts.empty()) result_.mapping = std::make_shared<const Mapping>(std::move(mapping_));
    return std::move(result_);
  }

 private:
  void choose_vector() {
    const std::map<VarId, double> weight = unit_stride_bytes(exprs_, graph_);
    double most = 0;
    for (const auto& [var, bytes] : weight) {
      if (bytes >= most && exprs_.pool.indices.extent(var) > 1) {
        most = bytes;
        mapping_.vector = var;
      }
    }
    if (!mapping_.vector && !exprs_.domain.vars.empty()) mapping_.vector = exprs_.domain.vars.back();
    for (const ReductionSite& i : exprs_.sites) {
      // The steps of a scan wait for each other: they are not lanes.
      if (i.node->op == ir::Op::kScan && mapping_.vector && (i.reduced >> *mapping_.vector & 1))
        mapping_.vector.reset();
    }
    const bool scans = std::any_of(exprs_.sites.begin(), exprs_.sites.end(),
                                   [](const ReductionSite& i) { return i.node->op == ir::Op::kScan; });
    if (!options_.adaptive_mapping) return;
    if (options_.data_reuse) mapping_.rows = gathered_rows(exprs_, mapping_.vector, parallel_, cpu_);
    if (!scans && !mapping_.rows) pack_rows();
    if (mapping_.vector && exprs_.sites.empty() && !mapping_.packed && !mapping_.rows) {
      mapping_.transposed = transposed_variable(exprs_, *mapping_.vector, parallel_ & ~bit(*mapping_.vector));
    }
  }

  // Accesses that walk a short row with unit stride while they jump along a parallel variable.
  struct Crossing {
    VarId rows, along;
    double accesses = 0;
    int64_t stride = 0;  // the smallest along `rows`
  };

  std::vector<Crossing> crossings() const {
    std::vector<Crossing> found;
    const IndexPool& indices = exprs_.pool.indices;
    const auto access = [&](const Index& index, double weight) {
      for (VarId v = 0; v < indices.var_count(); ++v) {
        if (indices.extent(v) < 2 || indices.extent(v) > kPackedRow || stride_along(exprs_.pool, index, v) != 1)
          continue;
        for (VarId u = 0; u < indices.var_count(); ++u) {
          const int64_t stride = stride_along(exprs_.pool, index, u).value_or(0);
          if (u == v || stride <= 1 || !(parallel_ >> u & 1) || indices.extent(u) < 2 * cpu_.lanes_f32()) continue;
          auto at = std::find_if(found.begin(), found.end(), [&](auto& c) { return c.rows == u && c.along == v; });
          if (at == found.end()) at = found.insert(at, {u, v, 0, stride});
          at->accesses += weight;
          at->stride = std::min(at->stride, stride);
        }
      }
    };
    visit_exprs(exprs_.pool, exprs_.values(), [&](ExprId e) {
      const Expr& expr = exprs_.pool[e];
      if (expr.kind == Expr::Kind::kLoad && !is_narrow_float(expr.dtype)) access(expr.index, 1);
    });
    for (const Root& root : exprs_.roots) access(root.at, 1);
    return found;
  }

  // Short rows: several in one vector, transposed on their way in and out, where that costs less than a vector that is
  // mostly empty and its reduction across lanes.
  void pack_rows() {
    const std::vector<Crossing> found = crossings();
    const auto best = std::max_element(found.begin(), found.end(), [](const Crossing& a, const Crossing& b) {
      return std::pair(a.accesses, -a.stride) < std::pair(b.accesses, -b.stride);
    });
    if (best == found.end()) return;
    const auto length = static_cast<double>(exprs_.pool.indices.extent(best->along));
    const auto lanes = static_cast<double>(cpu_.lanes_f32());
    double accesses = static_cast<double>(exprs_.roots.size());
    visit_exprs(exprs_.pool, exprs_.values(), [&](ExprId e) { accesses += exprs_.pool[e].kind == Expr::Kind::kLoad; });
    // Rows far apart are no block: every one would be read from lines of its own, without prefetching.
    constexpr int64_t kNeighbours = 4;
    if (best->stride > kNeighbours * exprs_.pool.indices.extent(best->along)) return;
    // Where most bytes lie along a long variable, short rows are a side matter (the weights of a group, say).
    if (mapping_.vector && exprs_.pool.indices.extent(*mapping_.vector) > kPackedRow) return;
    uint64_t swept = bit(best->along) | parallel_;
    for (const ReductionSite& i : exprs_.sites) {
      if (exprs_.volume(i.kept | i.reduced) > exprs_.volume(swept)) swept = i.kept | i.reduced;
    }
    const double points = static_cast<double>(exprs_.volume(swept));
    const CpuModel& model = cpu_.model;
    const double body = work_.cycles * lanes / points + accesses * model.access_cycles;
    const double transposed =
        model.transpose_cycles + model.exchange_cycles * std::ceil(std::log2(std::min(length, lanes)));
    const double packed = length / lanes * (body + best->accesses * transposed);
    // What is computed once a row takes a vector of lanes for one result there.
    double once = 0;
    visit_exprs(exprs_.pool, exprs_.values(), [&](ExprId e) {
      const uint64_t vars = exprs_.pool.vars(e);
      if ((vars >> best->rows & 1) && !(vars >> best->along & 1)) once += node_cycles(exprs_.pool, e);
    });
    double rows = 0;
    if (mapping_.vector == best->along) {
      int across = 0;
      for (const ReductionSite& i : exprs_.sites) across += (i.reduced >> best->along & 1) != 0;
      // Rows of one reduction overlap; where several follow each other, each waits for the one before.
      rows = std::ceil(length / lanes) * body + across * (model.across_cycles + (across > 1 ? model.wait_cycles : 0)) +
             once * (1 - 1 / lanes);
    } else {
      // Lanes along another variable: accesses along the row go element by element.
      rows = length / lanes * (body + best->accesses * 2 * lanes);
    }
    if (packed >= rows) return;
    mapping_.vector = best->rows;
    mapping_.transposed = best->along;
    mapping_.packed = true;
  }

  // Small blocks: the processor reads on while it computes only as far as its window reaches.
  int64_t packed_block() const {
    const VarId u = *mapping_.vector;
    const int64_t row = exprs_.pool.indices.extent(*mapping_.transposed) * widest_element();
    const int64_t unit = cpu_.lanes_f32(), extent = exprs_.pool.indices.extent(u);
    const int64_t share = tasks_ > 1 ? (extent + tasks_ - 1) / tasks_ : extent;
    return round_up(std::clamp(std::min(kPackedBytes / row, share), 2 * unit, int64_t{256}), unit);
  }

  // Short rows under each other, reduced down their columns: several of them as one row fill the vectors, keep their
  // alignment, and are a stream in memory.
  void fold_columns() {
    if (!mapping_.vector || mapping_.packed || exprs_.sites.size() != 1) return;
    const ReductionSite& i = exprs_.sites[0];
    const VarId v = *mapping_.vector;
    const int64_t columns = exprs_.pool.indices.extent(v), lanes = cpu_.lanes_f32();
    const int64_t reduced = exprs_.volume(i.reduced);
    if (i.node->op != ir::Op::kReduce || (i.kept >> v & 1) == 0 || columns * kFoldedRow > kFoldedTotal) return;
    if (columns >= kFoldedRow && columns % lanes == 0) return;
    int64_t rows = lanes / std::gcd(columns, lanes);
    while (rows * columns < kFoldedRow) rows *= 2;
    if (rows < 2 || rows * columns > 8 * kFoldedRow || reduced < 64 * rows) return;
    for (VarId r = 0; r < exprs_.pool.indices.var_count(); ++r) {
      if ((i.reduced >> r & 1) && is_row_major(i.operand, r, v)) result_.fold = i.value;
    }
    result_.fold_rows = rows;
  }

  // Whether all loads of an expression walk one matrix of `rows` by `columns` in the order of memory, so that several
  // of its rows are one.
  bool is_row_major(ExprId operand, VarId rows, VarId columns) const {
    bool loads = false, all = true;
    visit_exprs(exprs_.pool, {operand}, [&](ExprId e) {
      const Expr& expr = exprs_.pool[e];
      if (expr.kind != Expr::Kind::kLoad) return;
      loads = true;
      all = all && stride_along(exprs_.pool, expr.index, columns) == 1 &&
            stride_along(exprs_.pool, expr.index, rows) == exprs_.pool.indices.extent(columns);
    });
    return loads && all;
  }

  void make_grid() {
    mapping_.fixed = parallel_;
    const auto leave = [&](std::optional<VarId> v) {
      if (v) mapping_.fixed &= ~bit(*v);
    };
    leave(mapping_.vector);
    leave(mapping_.transposed);
    leave(mapping_.rows);
    SharedLoops shared;
    if (options_.adaptive_mapping && options_.data_reuse && mapping_.vector && !mapping_.packed &&
        !mapping_.transposed && !mapping_.rows) {
      shared = shared_loops(exprs_, *mapping_.vector, parallel_, cpu_);
      for (VarId v : shared.vars) leave(v);
    }
    for (VarId v : exprs_.domain.vars) {
      if (mapping_.fixed >> v & 1) mapping_.grid.push_back({v, 1, 0});
    }
    const int64_t others = exprs_.volume(mapping_.fixed);
    if (mapping_.rows) {
      const int64_t block =
          std::clamp<int64_t>(exprs_.pool.indices.extent(*mapping_.rows) * others / tasks_, 1, kGatheredRows);
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.rows, round_up(block, cpu_.lanes_f32()));
    }
    if (mapping_.packed) {
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.vector, packed_block());
    } else if (mapping_.transposed) {
      const int64_t side = kTileBytes / std::clamp<int64_t>(widest_element(), 2, 8);
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.transposed, side);
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.vector, side);
    } else if (mapping_.vector && (parallel_ >> *mapping_.vector & 1)) {
      const int64_t block = shared.vars.empty() ? vector_block(others) : shared_block(others, shared.block);
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.vector, block);
      column_blocks_ = (exprs_.pool.indices.extent(*mapping_.vector) + block - 1) / block;
    }
    divide_loops(shared);
    const int64_t grid = grid_size();
    mapping_.tasks = std::min(grid, tasks_);
    mapping_.reason = fmt::format("{:.3g} MB, {:.3g} us of arithmetic, {} grid iterations", work_.bytes * 1e-6,
                                  1e6 * work_.cycles / (cpu_.ghz * 1e9), grid);
  }

  // Wide blocks, in which positions are computed, as far as what is shared has room.
  int64_t shared_block(int64_t others, int64_t room) const {
    constexpr int64_t kWide = 256;
    const int64_t extent = exprs_.pool.indices.extent(*mapping_.vector), unit = 4 * cpu_.lanes_f32();
    const int64_t blocks = std::clamp<int64_t>((tasks_ + others - 1) / others, 1, std::max<int64_t>(extent / kWide, 1));
    const int64_t block = round_up((extent + blocks - 1) / blocks, unit);
    return block <= room ? block : std::max(unit, room / unit * unit);
  }

  // Loops that an iteration has to itself go in blocks as far as the threads want more iterations.
  void divide_loops(const SharedLoops& shared) {
    for (VarId v : shared.vars) {
      const int64_t extent = exprs_.pool.indices.extent(v), wanted = (tasks_ + grid_size() - 1) / grid_size();
      if (wanted <= 1) return;
      add_blocked(mapping_, exprs_.pool.indices, v, (extent + wanted - 1) / wanted);
    }
  }

  int64_t vector_block(int64_t others) {
    const VarId v = *mapping_.vector;
    const int64_t extent = exprs_.pool.indices.extent(v);
    const int64_t unit = 4 * cpu_.lanes_f32();
    // Narrow column blocks read memory in small pieces: as few as the threads need.
    const int64_t wanted = exprs_.sites.empty() ? tasks_ : std::min<int64_t>(tasks_, 2 * cpu_.threads);
    int64_t blocks = std::max<int64_t>(1, (wanted + others - 1) / others);
    int64_t block = round_up((extent + blocks - 1) / blocks, unit);
    if (!options_.adaptive_mapping) return std::min(extent, kMinColumns);
    if (exprs_.sites.empty()) return block;
    block = std::min(block, kMaxColumns);
    // A block of columns that several stages read again should stay in L2.
    const int64_t fit = columns_in_l2() / unit * unit;
    if (exprs_.sites.size() > 1 && fit >= kMinColumns) block = std::min(block, fit);
    return std::min(extent, std::max(block, std::min(kMinColumns, extent)));
  }

  // How many columns of one buffer stay in half of L2 from one sweep to the next.
  int64_t columns_in_l2() const { return cpu_.l2_bytes / 2 / std::max<int64_t>(reduced_volume(exprs_) * 4, 1); }

  int64_t widest_element() const {
    size_t bytes = 1;
    for (const InputOperand& leaf : exprs_.inputs) bytes = std::max(bytes, size_of(compute_dtype(leaf.dtype)));
    return static_cast<int64_t>(bytes);
  }

  int64_t grid_size() const { return iterations_of(exprs_.pool.indices, mapping_.grid); }

  // Too few iterations for the threads: hand reductions over through a workspace, or split them in two steps.
  void more_parallelism(const std::string& reason) {
    std::set<ir::ValueId> cuts = first_results(exprs_, frontier_);
    // What a cut costs: a step boundary, and the values that it stores and loads. What it saves: the idle threads.
    double bytes = 0;
    for (const ir::ValueId v : cuts) {
      bytes += 2 * static_cast<double>(element_count(graph_.shape(v))) * static_cast<double>(size_of(graph_.dtype(v)));
    }
    const double threads = cpu_.threads, busy = static_cast<double>(std::clamp<int64_t>(grid_size(), 1, cpu_.threads));
    const double here = work_.seconds(cpu_) / busy;
    const double apart = work_.seconds(cpu_) / threads + cpu_.barrier_us * 1e-6 + bytes / (cpu_.copy_gbps * 1e9);
    result_.reason = fmt::format("{}: {:.3g} us in one kernel, {:.3g} us in two", reason, here * 1e6, apart * 1e6);
    if (column_blocks_ <= 1 && apart >= here) return;
    result_.cuts = std::move(cuts);
    if (!result_.cuts.empty()) return;
    const ReductionSite* widest = widest_reduction(exprs_);
    if (widest == nullptr) return;
    result_.split = widest->value;
    result_.parts = tasks_;
  }

  KernelExprs& exprs_;
  const ir::Graph& graph_;
  const CpuTarget& cpu_;
  const StitchOptions& options_;
  const Frontier& frontier_;
  MapResult result_;
  Mapping mapping_;
  uint64_t parallel_ = 0;
  Work work_;
  int64_t tasks_ = 1;
  int64_t column_blocks_ = 1;
};

}  // namespace

MapResult map_kernel(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
                     const Frontier& frontier) {
  return Mapper(exprs, graph, target, options, frontier).run();
}

}  // namespace heddle::schedule
