#include "schedule/region/cuda/mapping.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/region/cuda/cta_group.h"
#include "schedule/region/cuda/serial_rows.h"
#include "schedule/region/cuda/thread_group.h"
#include "schedule/region/cuda/variables.h"
#include "schedule/region/cuda/vector_length.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kRowThreads = 128;           // of a block that has several rows, or
constexpr int64_t kFewRowThreads = 64;         // where they are long enough
constexpr int64_t kShortColumn = 32;           // columns of up to so many rows are summed by one thread,
constexpr int64_t kShortAlone = 8;             // where there are few columns, of up to so many
constexpr int64_t kSharedPerBlock = 96 << 10;  // two blocks on a SM
constexpr int64_t kLongRow = 2048;             // vectors
constexpr int64_t kLeastOfPart = 4;            // values of a reduction in parts

int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// A scan walks along alone: what is reduced on other ways than its own is made before.
void cut_below_scans(const KernelExprs& exprs, uint64_t parallel, const Frontier& frontier, MapResult& result) {
  for (const ReductionSite& scan : exprs.sites) {
    if (scan.node->op != ir::Op::kScan || (scan.kept & ~parallel) == 0) continue;
    for (const ReductionSite& i : exprs.sites) {
      if (i.node->op == ir::Op::kScan || (scan.kept & ~i.kept) == 0) continue;
      cut_behind(i, frontier, result);
    }
    result.reason = "the lines of a scan do not share it";
  }
}

// Blocks compute parts of the rows. A reduction that is the same for all parts belongs into an earlier kernel.
void cut_shared_by_parts(const KernelExprs& exprs, const Frontier& frontier, MapResult& result) {
  for (const ReductionSite& i : exprs.sites) {
    if ((i.kept & bit(exprs.domain.vars[1])) == 0) cut_behind(i, frontier, result);
  }
  if (!result.cuts.empty()) result.reason = "all parts of the rows need it";
}

bool has_scan(const KernelExprs& exprs) {
  return std::any_of(exprs.sites.begin(), exprs.sites.end(),
                     [](const ReductionSite& i) { return i.node->op == ir::Op::kScan; });
}

bool is_root(const KernelExprs& exprs, const ReductionSite& site) {
  return std::any_of(exprs.roots.begin(), exprs.roots.end(),
                     [&](const Root& root) { return root.value == site.value; });
}

// Some reductions may have many results in each column while others have one. Columns are too few threads for the many,
// so a kernel of its own makes the single results and hands them over. The kernel that makes one cannot be cut behind
// it.
bool cut_single_results(const KernelExprs& exprs, uint64_t parallel, int sms, const Frontier& frontier,
                        MapResult& result) {
  constexpr int64_t kManyResults = 8;
  const auto results_of = [&](const ReductionSite& i) { return exprs.volume(i.kept & ~parallel); };
  const bool wide = std::any_of(exprs.sites.begin(), exprs.sites.end(),
                                [&](const ReductionSite& i) { return results_of(i) >= kManyResults; });
  if (!wide || has_scan(exprs)) return false;
  for (const ReductionSite& i : exprs.sites) {
    if (results_of(i) == 1 && !is_root(exprs, i)) cut_behind(i, frontier, result);
  }
  result.reason = fmt::format("{} columns do not fill {} SMs", exprs.volume(parallel), sms);
  return !result.cuts.empty();
}

// Bytes of shared memory for what a column reduces to several values.
int64_t scratch_of_column(const KernelExprs& exprs, uint64_t parallel) {
  int64_t bytes = 0;
  for (const ReductionSite& i : exprs.sites) {
    const int64_t kept = exprs.volume(i.kept & ~parallel);
    if (kept > 1) bytes += kept * 8;
  }
  return bytes;
}

int64_t widest_element(const KernelExprs& exprs) {
  int64_t widest = 1;
  for (const InputOperand& leaf : exprs.inputs) widest = std::max<int64_t>(widest, size_of(leaf.dtype));
  return widest;
}

// The sizes of an element of the operands that reductions read and that have so many elements at least: values of a
// column or a row, such as factors, take no room beside the columns.
ElementBytes reduced_elements(const KernelExprs& exprs, const ir::Graph& graph, int64_t elements) {
  std::set<ir::ValueId> seen;
  std::vector<ir::ValueId> open;
  for (const ReductionSite& i : exprs.sites) open.push_back(i.node->inputs[0]);
  ElementBytes sizes{0, 0};
  while (!open.empty()) {
    const ir::ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second || element_count(graph.shape(v)) < elements) continue;
    const auto leaf = std::find_if(exprs.inputs.begin(), exprs.inputs.end(),
                                   [&](const InputOperand& input) { return input.value == v; });
    if (leaf != exprs.inputs.end()) {
      const auto bytes = static_cast<int64_t>(size_of(leaf->dtype));
      sizes = {std::max(sizes.widest, bytes), sizes.together + bytes};
      continue;
    }
    const std::vector<ir::ValueId>& operands = graph.producer(v).inputs;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  const int64_t any = widest_element(exprs);
  return sizes.widest == 0 ? ElementBytes{any, any} : sizes;
}

// Whether all that is reduced is one value an iteration, known to every thread.
bool one_value_each(const KernelExprs& exprs, uint64_t fixed) {
  return std::all_of(exprs.sites.begin(), exprs.sites.end(), [&](const ReductionSite& i) {
    return i.node->op != ir::Op::kScan && exprs.volume(i.kept & ~fixed) == 1;
  });
}

// How often a row is gone over again after its first reduction: for each further one, and for what is stored.
int passes_again(const KernelExprs& exprs, uint64_t fixed) {
  const bool stored = std::any_of(exprs.roots.begin(), exprs.roots.end(),
                                  [&](const Root& root) { return exprs.volume(vars_of(root) & ~fixed) > 1; });
  const int levels = levels_of(exprs);
  return std::max(levels - 1, 0) + (stored ? 1 : 0);
}

// Results within an iteration lie in shared memory: fewer teams in a block, or a kernel of their own.
bool fit_scratch(const KernelExprs& exprs, const GpuTarget& cuda, const Frontier& frontier, CudaMapping& mapping,
                 MapResult& result) {
  int64_t bytes = 0;
  for (const ReductionSite& i : exprs.sites) {
    const int64_t kept = exprs.volume(i.kept & ~mapping.fixed);
    if (kept > 1 && !is_carried(mapping, i)) bytes += kept * 8;
  }
  const auto blocks_bytes = [&] { return bytes * mapping.teams(); };
  while (blocks_bytes() > kSharedPerBlock && mapping.threads > std::max(mapping.team, mapping.lanes))
    mapping.threads /= 2;
  if (blocks_bytes() <= cuda.shared_bytes_per_block - 8192) return true;
  for (const ReductionSite& i : exprs.sites) {
    if (exprs.volume(i.kept & ~mapping.fixed) <= 1024 || is_carried(mapping, i) || is_root(exprs, i)) continue;
    cut_behind(i, frontier, result);
  }
  // Too many results of the kernel itself: without the reductions before them, its iterations are independent.
  if (result.cuts.empty()) result.cuts = first_results(exprs, frontier);
  result.reason = fmt::format("{} bytes of results do not fit shared memory", blocks_bytes());
  return false;
}

// How a thread walks over an iteration: the vectors that it has, and the bytes of one.
struct RowWalk {
  int64_t steps = 8, access = 16;
};

// Small blocks that come and go keep the memory busier than a few large ones, as long as starting them, some 80 ns on
// each SM, takes less time than what they move.
void choose_turns(const KernelExprs& exprs, const GpuTarget& cuda, double total, const RowWalk& walk,
                  int64_t iterations, CudaMapping& mapping) {
  int64_t teams = mapping.teams();
  constexpr size_t kFewRoots = 4;
  constexpr double kBlockBytes = 4096;
  constexpr int kMostTurns = 4, kMostThreads = 256;
  if (mapping.team > mapping.lanes || mapping.serial || has_scan(exprs) || exprs.roots.size() > kFewRoots) return;
  if (mapping.team > 1 && mapping.threads == kRowThreads &&
      total * kFewRowThreads >= kBlockBytes * static_cast<double>(mapping.team * iterations)) {
    mapping.threads = kFewRowThreads;
    teams /= 2;
  }
  const double bytes = total / static_cast<double>(std::max<int64_t>(iterations, 1));
  const auto block_bytes = [&] { return bytes * static_cast<double>(teams * mapping.turns); };
  if (block_bytes() < kBlockBytes && mapping.threads < kMostThreads && iterations > 4 * teams * cuda.sms) {
    mapping.threads *= 2;
    teams *= 2;
  }
  while (block_bytes() < kBlockBytes && mapping.turns < kMostTurns && walk.steps <= 2 &&
         iterations > 64 * teams * mapping.turns * cuda.sms) {
    mapping.turns *= 2;
  }
  // Narrow loads are few bytes in flight.
  const bool narrow = mapping.team > 1 && walk.access < 16 && walk.steps * walk.access <= 16;
  if (narrow && mapping.turns == 1 && iterations > 8 * teams * cuda.sms) mapping.turns = 2;
}

// The extra time of uncoalesced loads: neighbouring lanes read different rows of a column, and each reads a whole
// sector for one element.
double uncoalesced_seconds(int64_t columns, int64_t element, double bytes, const GpuTarget& cuda) {
  const int64_t times = std::min(kSectorOfMemory / element, columns);
  return static_cast<double>(times - 1) * bytes / (cuda.model.chip.copy_tbps * 1e12);
}

double bytes_stored(const KernelExprs& exprs, const ir::Graph& graph) {
  double bytes = 0;
  for (const Store& st : stores_of(exprs, graph)) {
    bytes += static_cast<double>(exprs.volume(exprs.pool.vars(st.at)) * static_cast<int64_t>(size_of(st.dtype)));
  }
  return bytes;
}

// The smallest value that only casts, reshapes and at least one transpose follow up to `root`, and that the kernel
// computes.
std::optional<ir::ValueId> before_transpose(const KernelExprs& exprs, const ir::Graph& graph, ir::ValueId root) {
  std::optional<ir::ValueId> found;
  bool transposes = false;
  const auto is_made_here = [&](ir::ValueId v) {
    const ir::Op op = graph.producer(v).op;
    return op != ir::Op::kParameter && op != ir::Op::kConstant &&
           std::none_of(exprs.inputs.begin(), exprs.inputs.end(),
                        [&](const InputOperand& input) { return input.value == v; });
  };
  for (const ir::Node* node = &graph.producer(root);
       node->op == ir::Op::kTranspose || node->op == ir::Op::kReshape || node->op == ir::Op::kCast;
       node = &graph.producer(node->inputs[0])) {
    const ir::ValueId v = node->inputs[0];
    if (!is_made_here(v)) break;
    transposes = transposes || node->op == ir::Op::kTranspose;
    if (transposes && (!found || size_of(graph.dtype(v)) < size_of(graph.dtype(*found)))) found = v;
  }
  return found;
}

// Adds the time of accesses with a stride along the mapping's vector. Loads along a third variable are an example,
// since a tile of two variables does not help them. If that time exceeds the time to store and reload the result, one
// kernel computes it in the order of these loads, and another one transposes it. Returns true if it cuts.
bool cut_scattered(const KernelExprs& exprs, const ir::Graph& graph, const GpuTarget& cuda, const CudaMapping& mapping,
                   double& extra_seconds, MapResult& result) {
  extra_seconds += scattered_seconds(exprs, graph, *mapping.vector, mapping.transposed, cuda);
  for (const Root& root : exprs.roots) {
    const std::optional<ir::ValueId> v = before_transpose(exprs, graph, root.value);
    if (!v) continue;
    const double bytes = 2.0 * static_cast<double>(element_count(graph.shape(*v)) * size_of(graph.dtype(*v)));
    if (extra_seconds > bytes / (cuda.model.chip.copy_tbps * 1e12)) result.cuts.insert(*v);
  }
  if (result.cuts.empty()) return false;
  result.apart = true;
  result.reason = "its operands lie in another order than its transpose";
  return true;
}

class CudaMapper {
 public:
  CudaMapper(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const Frontier& frontier,
             ForcedMapping forced)
      : exprs_(exprs), graph_(graph), target_(target), cuda_(target.gpu()), frontier_(frontier), forced_(forced) {}

  MapResult run(bool carry) {
    cut_recomputed(exprs_, graph_, frontier_, result_);
    if (carry && result_.cuts.empty()) cut_shared_by_parts(exprs_, frontier_, result_);
    if (!result_.cuts.empty()) return std::move(result_);
    parallel_ = parallel_vars(exprs_);
    if (carry) mapping_.serial = serial_variable(exprs_, parallel_);
    cut_below_scans(exprs_, parallel_, frontier_, result_);
    if (!result_.cuts.empty() || repeats_roots(exprs_, parallel_, result_)) return std::move(result_);
    work_ = result_.work = work_of(exprs_, graph_, target_.cpu);
    mapping_.vector = vector_variable(exprs_, graph_, mapping_.serial);
    if (mapping_.serial) {
      if (!mapping_.vector || !can_carry(exprs_, *mapping_.serial, *mapping_.vector)) return std::move(result_);
      parallel_ &= ~bit(*mapping_.vector);
    }
    const bool tiles = mapping_.vector && exprs_.sites.empty();
    if (tiles) mapping_.transposed = most_transposed_variable(exprs_, *mapping_.vector, parallel_);
    if (exprs_.sites.empty()) {
      map_points();
    } else if (mapping_.vector && (parallel_ & bit(*mapping_.vector))) {
      map_columns();
    } else {
      map_rows(mapping_.vector ? scattered_seconds(exprs_, graph_, *mapping_.vector, {}, cuda_) : 0);
    }
    if (result_.cuts.empty()) finish();
    return std::move(result_);
  }

 private:
  int64_t extent(VarId v) const { return exprs_.pool.indices.extent(v); }

  int vector_of_kernel(bool tail) const {
    if (!mapping_.vector || has_scan(exprs_)) return 1;
    const int64_t whole = tail ? int64_t{1} << 20 : extent(*mapping_.vector);
    const uint64_t streams = streams_of_rows(mapping_, whole);
    return vector_length(exprs_.pool, {}, {*mapping_.vector, whole, streams}, exprs_.values(),
                         stores_of(exprs_, graph_));
  }

  void fix_others(uint64_t except) {
    for (VarId v : exprs_.domain.vars) {
      if ((parallel_ & bit(v)) && !(except & bit(v))) add_fixed(mapping_, v);
    }
  }

  // No reductions: a thread takes a vector of points, or a block a tile that it transposes.
  void map_points() {
    if (mapping_.transposed) {
      fix_others(bit(*mapping_.vector) | bit(*mapping_.transposed));
      const int64_t side = widest_element(exprs_) <= 2 ? 2 * kTile : kTile;
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.transposed, side);
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.vector, side);
      mapping_.team = mapping_.threads = 256;
      mapping_.reason = "tiles through shared memory";
      cut_scattered(exprs_, graph_, cuda_, mapping_, extra_seconds_, result_);
      return;
    }
    const int vector = vector_of_kernel(exprs_.domain.vars.size() == 1);
    if (mapping_.vector) {
      fix_others(bit(*mapping_.vector));
      add_blocked(mapping_, exprs_.pool.indices, *mapping_.vector, vector);
    }
    mapping_.team = 1;
    mapping_.threads = iterations_of(exprs_.pool.indices, mapping_.grid) < cuda_.sms * int64_t{256} ? 64 : 256;
    walk_.steps = 1;
    mapping_.reason = fmt::format("{} elements a thread", vector);
  }

  // Independent along the vector variable: a thread or a block takes columns.
  void map_columns() {
    const VarId v = *mapping_.vector;
    const int vector = vector_of_kernel(false);
    const int64_t others = exprs_.volume(parallel_ & ~bit(v)), rows = reduced_volume(exprs_);
    const int64_t threads = others * ceil_div(extent(v), vector);
    const bool many = threads >= cuda_.sms * int64_t{256};
    bool alone =
        has_scan(exprs_) || rows <= (many ? kShortColumn : kShortAlone) || threads >= cuda_.sms * int64_t{1024};
    if (forced_ != ForcedMapping::kNone && !has_scan(exprs_)) alone = forced_ == ForcedMapping::kWarp;
    const int64_t each = alone ? vector : columns_of_block(extent(v), vector, widest_element(exprs_), work_.bytes),
                  most = cuda_.shared_bytes_per_block - 8192;
    int threads_of_block = threads >= cuda_.sms * int64_t{256} ? 256 : 64;
    const auto bytes = [&] {
      return has_scan(exprs_) ? 0 : scratch_of_column(exprs_, parallel_) * each * (alone ? threads_of_block : 1);
    };
    while (alone && bytes() > most && threads_of_block > cuda_.lanes) threads_of_block /= 2;
    if ((bytes() > most || !many) && cut_single_results(exprs_, parallel_, cuda_.sms, frontier_, result_)) return;
    if (bytes() > most) return map_rows(uncoalesced_seconds(extent(v), widest_element(exprs_), work_.bytes, cuda_));
    if (cut_scattered(exprs_, graph_, cuda_, mapping_, extra_seconds_, result_)) return;
    fix_others(bit(v));
    if (alone) {
      add_blocked(mapping_, exprs_.pool.indices, v, vector);
      mapping_.team = 1;
      mapping_.threads = threads_of_block;
      mapping_.reason = fmt::format("{} columns a thread", vector);
      return;
    }
    if (cta_group_of_columns(v)) return;
    add_blocked(mapping_, exprs_.pool.indices, v, each);
    const int64_t points = rows * ceil_div(each, vector);
    mapping_.team = mapping_.threads = static_cast<int>(std::clamp<int64_t>(power_of_two_from(points / 4), 64, 512));
    sm_gbps_ = gbps_of_columns(iterations_of(exprs_.pool.indices, mapping_.grid), vector);
    mapping_.reason = fmt::format("{} columns a block", each);
  }

  // Of a SM, where so many blocks walk down columns.
  double gbps_of_columns(int64_t blocks, int vector) const {
    return column_gbps(cuda_, vector * widest_element(exprs_)) *
           std::max<double>(1, static_cast<double>(blocks) / cuda_.sms);
  }

  // What an output spans again after its columns are reduced stays on the chip where a cluster can hold it.
  bool cta_group_of_columns(VarId v) {
    if (has_scan(exprs_)) return false;
    uint64_t reduced = 0;
    for (const ReductionSite& i : exprs_.sites) {
      if (reduced != 0 && i.reduced != reduced) return false;
      if ((i.kept & ~parallel_) != 0) return false;
      reduced = i.reduced;
    }
    const bool again = std::any_of(exprs_.roots.begin(), exprs_.roots.end(),
                                   [&](const Root& root) { return (vars_of(root) & reduced) == reduced; });
    const bool whole = std::all_of(exprs_.roots.begin(), exprs_.roots.end(), [&](const Root& root) {
      const uint64_t own = vars_of(root) & ~parallel_;
      return own == 0 || own == reduced;
    });
    if (!whole) return false;
    if (!again) return cta_group_of_sums(v, reduced);
    const int64_t others = exprs_.volume(parallel_ & ~bit(v)), rows = exprs_.volume(reduced);
    const ElementBytes bytes = reduced_elements(exprs_, graph_, rows * extent(v) * others);
    const auto cta_group = cta_group_for_columns(cuda_, rows, extent(v), others, vector_of_kernel(false), bytes);
    if (!cta_group) return false;
    take_cta_group(v, *cta_group);
    return true;
  }

  // Nothing but the columns' results is wanted.
  bool cta_group_of_sums(VarId v, uint64_t reduced) {
    constexpr double kMuch = 16 << 20;  // bytes, for which a second kernel is little
    const bool free = forced_ == ForcedMapping::kNone && work_.bytes < kMuch;
    if (forced_ != ForcedMapping::kCluster && !free) return false;
    const int vector = vector_of_kernel(false);
    const int64_t others = exprs_.volume(parallel_ & ~bit(v)),
                  segment = columns_of_block(extent(v), vector, widest_element(exprs_), work_.bytes);
    const auto cta_group = cta_group_for_sums(cuda_, exprs_.volume(reduced), extent(v), others, segment, vector);
    if (!cta_group) return false;
    const int64_t blocks = others * ceil_div(extent(v), segment);
    const int64_t all = blocks * cta_group->blocks;
    const double apart = seconds_of(blocks, gbps_of_columns(blocks, vector));
    const double together = seconds_of(all, gbps_of_columns(all, vector));
    const double extra = 2e-6 * cuda_.model.chip.cluster_barrier_us;
    if (free && together + extra + 1e-6 * cuda_.model.chip.cluster_gain_us > apart) return false;
    take_cta_group(v, *cta_group);
    sm_gbps_ = gbps_of_columns(all, vector);
    extra_seconds_ = extra;
    return true;
  }
  void take_cta_group(VarId v, const CtaGroup& cta_group) {
    add_blocked(mapping_, exprs_.pool.indices, v, cta_group.columns);
    mapping_.cta_group = cta_group.blocks;
    mapping_.whole_grid = cta_group.whole_grid;
    mapping_.min_blocks_per_sm = cta_group.min_blocks_per_sm;
    mapping_.threads = cta_group.threads;
    mapping_.team = cta_group.threads * cta_group.blocks;
    mapping_.reason =
        fmt::format("{} columns of {} rows in {} blocks", cta_group.columns, reduced_volume(exprs_), cta_group.blocks);
  }

  // A team walks over what one iteration has left.
  void map_rows(double extra_seconds = 0) {
    extra_seconds_ += extra_seconds;
    fix_others(0);
    if (mapping_.serial) mapping_.fixed |= bit(*mapping_.serial);
    const int vector = vector_of_kernel(false);
    walk_.access = vector * widest_element(exprs_);
    int64_t points = 1;
    const auto inner = [&](uint64_t vars) { return exprs_.volume(vars & ~mapping_.fixed); };
    for (const ReductionSite& i : exprs_.sites) points = std::max(points, inner(i.kept | i.reduced));
    for (const Root& root : exprs_.roots) points = std::max(points, inner(vars_of(root)));
    const int64_t steps = ceil_div(points, vector);  // of all threads together
    const int64_t turns = mapping_.serial ? extent(*mapping_.serial) : 1;
    const int64_t iterations = iterations_of(exprs_.pool.indices, mapping_.grid) * turns;
    int64_t team = team_for_row(cuda_, steps, iterations, walk_.access, passes_again(exprs_, mapping_.fixed) > 0);
    if (!mapping_.serial && forced_ == ForcedMapping::kWarp)
      team = std::min<int64_t>(cuda_.lanes, power_of_two_from(steps));
    if (!mapping_.serial && forced_ == ForcedMapping::kBlock)
      team = std::clamp<int64_t>(ceil_div(steps, 4 * cuda_.lanes) * cuda_.lanes, kFewRowThreads, 512);
    const bool may_cta_group = forced_ != ForcedMapping::kWarp && forced_ != ForcedMapping::kBlock;
    if (!mapping_.serial && may_cta_group && one_value_each(exprs_, mapping_.fixed)) {
      const double each = work_.bytes / static_cast<double>(iterations);
      // Blocks of 512 threads that read, reduce and write by turns are alone on their SM. Where other
      // operands take registers, smaller ones are not worth the exchange.
      const bool again = passes_again(exprs_, mapping_.fixed) > 0,
                 alone = again && steps >= kLongRow && exprs_.inputs.size() == 1;
      const int least = (alone && iterations >= 2 * cuda_.sms) || forced_ == ForcedMapping::kCluster ? 2 : 1;
      if (const auto cta_group = cta_group_for_rows(cuda_, iterations, steps, vector, each, again, least)) {
        walk_.steps = ceil_div(steps, cta_group->threads * cta_group->blocks);
        pass_over(ceil_div(points, cta_group->blocks));
        mapping_.cta_group = cta_group->blocks;
        mapping_.min_blocks_per_sm = cta_group->min_blocks_per_sm;
        mapping_.threads = cta_group->threads;
        mapping_.team = cta_group->threads * cta_group->blocks;
        mapping_.reason = fmt::format("{} points an iteration in {} blocks", points, cta_group->blocks);
        return;
      }
    }
    mapping_.threads = static_cast<int>(team > cuda_.lanes ? team : kRowThreads);
    if (mapping_.serial) {
      const SerialRows rows = serial_rows(exprs_, mapping_, steps, vector, turns);
      mapping_.min_blocks_per_sm = rows.blocks;
      if (exprs_.rows) mapping_.serial_end = {exprs_.domain.vars[1], exprs_.domain.extents[1], *exprs_.rows};
      team = rows.team;
      mapping_.threads = static_cast<int>(rows.threads);
      mapping_.turns = rows.turns;
      if (!rows.fit) result_.reason = "running results of its columns do not fit registers";
      failed_ = !rows.fit;
    }
    walk_.steps = ceil_div(steps, team);
    mapping_.team = static_cast<int>(team);
    if (team <= cuda_.lanes && mapping_.threads / team > iterations) {
      mapping_.threads = static_cast<int>(std::max<int64_t>(cuda_.lanes, power_of_two_from(iterations) * team));
    }
    mapping_.reason = fmt::format("{} points an iteration", points);
    failed_ = !fit_scratch(exprs_, cuda_, frontier_, mapping_, result_) || failed_;
  }

  // Blocks that run side by side first read their part of a row, then go over it again, and exchange results.
  void pass_over(int64_t elements) {
    extra_seconds_ += passes_again(exprs_, mapping_.fixed) * static_cast<double>(elements) /
                      (cuda_.model.chip.exponentials_per_us * 1e6);
    extra_seconds_ += 2e-6 * levels_of(exprs_) * cuda_.model.chip.cluster_barrier_us;
  }

  // What so many blocks take to move everything, at `gbps` of a SM that has work.
  double seconds_of(int64_t blocks, double gbps) const {
    const double busy = static_cast<double>(std::min<int64_t>(blocks, cuda_.sms));
    return std::max(work_.bytes / (cuda_.model.chip.copy_tbps * 1e12),
                    work_.bytes / (busy * std::min(gbps, cuda_.model.chip.sm_gbps) * 1e9));
  }

  void finish() {
    const int64_t iterations = iterations_of(exprs_.pool.indices, mapping_.grid);
    choose_turns(exprs_, cuda_, work_.bytes, walk_, iterations, mapping_);
    const int64_t at_once = mapping_.serial ? 1 : mapping_.teams() * mapping_.turns;
    mapping_.blocks = std::min<int64_t>(ceil_div(iterations, at_once), INT32_MAX / 8) * mapping_.cta_group;
    const double whole = work_.bytes / (cuda_.model.chip.copy_tbps * 1e12);
    result_.seconds = seconds_of(mapping_.blocks, sm_gbps_ > 0 ? sm_gbps_ : cuda_.model.chip.sm_gbps) + extra_seconds_ +
                      cuda_.model.chip.graph_boundary_us * 1e-6;
    mapping_.reason += fmt::format(", {:.3g} MB, {} iterations, {} blocks of {} threads in teams of {}",
                                   work_.bytes * 1e-6, iterations, mapping_.blocks, mapping_.threads, mapping_.team);
    if (!failed_ && !exprs_.sites.empty() && !mapping_.serial) more_parallelism(whole);
    if (result_.cuts.empty() && !failed_) result_.mapping = std::make_shared<const CudaMapping>(std::move(mapping_));
  }

  // Too few blocks: hand reductions over through a workspace, or split them in two steps.
  void more_parallelism(double whole) {
    const int levels = levels_of(exprs_);
    const auto& chip = cuda_.model.chip;
    // Where the rows themselves are an output, they are read again when their statistics are known.
    const double again = bytes_stored(exprs_, graph_) > 0.2 * work_.bytes ? 0.5 * levels * whole : 0;
    // Columns in parts are read as columns again.
    const double second = sm_gbps_ > 0 ? chip.second_columns_us : chip.second_us;
    const double split = whole + again + 1e-6 * (levels * (chip.graph_boundary_us + chip.level_us) + second);
    const bool free = forced_ == ForcedMapping::kNone;
    if (free ? result_.seconds <= 1.15 * split : forced_ != ForcedMapping::kParts) return;
    result_.cuts = first_results(exprs_, frontier_);
    result_.reason = fmt::format("{} blocks do not fill {} SMs", mapping_.blocks, cuda_.sms);
    if (!result_.cuts.empty()) return;
    const ReductionSite* widest = widest_reduction(exprs_);
    if (widest == nullptr) return;
    // Segments of columns that begin within lines of memory do better in more blocks, which even them out.
    const bool ragged = sm_gbps_ > 0 && extent(*mapping_.vector) * widest_element(exprs_) % kColumnSegment != 0 &&
                        work_.bytes > 0.5 * static_cast<double>(cuda_.l2_bytes);
    const int64_t parts =
        std::min((ragged ? 16 : 2) * cuda_.sms / std::max<int64_t>(mapping_.blocks / mapping_.cta_group, 1),
                 exprs_.volume(widest->reduced) / kLeastOfPart);
    if (parts < 2) return;
    result_.split = widest->value;
    result_.parts = parts;
  }

  KernelExprs& exprs_;
  const ir::Graph& graph_;
  const Target& target_;
  const GpuTarget& cuda_;
  const Frontier& frontier_;
  const ForcedMapping forced_;
  MapResult result_;
  CudaMapping mapping_{{}, {.lanes = cuda_.lanes}};
  uint64_t parallel_ = 0;
  Work work_;
  bool failed_ = false;
  double extra_seconds_ = 0;  // beside moving the bytes
  double sm_gbps_ = 0;        // that a SM reaches with this mapping; 0: what it can
  RowWalk walk_;
};

}  // namespace

MapResult map_cuda(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const Frontier& frontier,
                   bool carry, ForcedMapping forced) {
  return CudaMapper(exprs, graph, target, frontier, forced).run(carry);
}

}  // namespace heddle::schedule
