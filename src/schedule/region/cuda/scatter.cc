#include "schedule/region/cuda/scatter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/divide.h"
#include "target/argument_block.h"

namespace heddle::schedule {
namespace {

using tile::ScatterFrom;

constexpr int64_t kMostSorted = (int64_t{1} << 32) - 2;  // rows and updates of a list's entries
constexpr int64_t kSector = 32;                          // bytes that memory moves together

// A scatter as updates of rows: count updates of `inner` elements each. For a scatter of elements, a row is an element.
struct Updates {
  int64_t rows, inner, count, bytes;  // of an element

  explicit Updates(const StandaloneDesc& desc) {
    const StandaloneDesc::Columns c = desc.columns();
    const bool elements = desc.op == ir::Op::kScatterElements;
    rows = elements ? element_count(desc.data) : c.rows;
    inner = elements ? 1 : c.inner;
    count = elements ? element_count(desc.indices) : c.updates;
    bytes = c.bytes;
  }
  int64_t vector(int64_t most) const {
    int64_t v = 1;
    while (2 * v <= most && inner % (2 * v) == 0 && 2 * v * bytes <= 16) v *= 2;
    return v;
  }
  int64_t runs(int64_t run) const { return ceil_div(count, run); }
};

int64_t partial_bytes(const StandaloneDesc& desc, const Updates& u) {
  return desc.reduction == "none" ? u.bytes : static_cast<int64_t>(size_of(compute_dtype(desc.dtype)));
}

// The predicted times of the forms, in seconds.
class ScatterModel {
 public:
  ScatterModel(const StandaloneDesc& desc, const GpuTarget& cuda)
      : desc_(desc),
        updates_(desc),
        sms_(static_cast<double>(cuda.sms)),
        chip_(cuda.model.chip),
        m_(cuda.model.scatter) {}

  // Of blocks with so many threads in total, each of which looks at `count` updates and applies its share of them.
  double owners(int64_t threads, double looks, double applied, double width) const {
    const double warps = std::max(1.0, static_cast<double>(threads) / (32 * sms_));
    const double cycles = looks * std::max(m_.look_cycles, m_.issue_cycles * warps) + applied * m_.update_cycles;
    // Threads that are too few to load at the rate of the memory have one packet of 4 elements each on its way.
    const double rate = std::min(1.0, warps * 32 * 4 * width / kBusyBytes);
    return start() + seconds(cycles) + begin_bytes() / (rate * bandwidth());
  }
  double atomic() const { return (desc_.in_place ? 1 : 2) * start() + begin_bytes() / bandwidth() + traffic(); }
  double sorted(int64_t run) const {
    const double count = static_cast<double>(updates_.count);
    const double chunks = std::ceil(count / static_cast<double>(tile::kScatterSortChunk));
    const double sorts = 1e-6 * m_.sort_us * std::ceil(chunks / sms_);
    const double searches = chunks > 1 ? start() + seconds(count / 32 * chunks * m_.search_cycles / sms_) : 0;
    const double partial = static_cast<double>(updates_.runs(run)) * 4 * static_cast<double>(updates_.inner) *
                           static_cast<double>(partial_bytes(desc_, updates_));
    return (updates_.runs(run) > 1 ? 3 : 2) * start() + std::max(sorts, begin_bytes() / bandwidth()) + searches +
           traffic() + (partial + count * 3 * tile::kScatterEntryBytes) / bandwidth();
  }

 private:
  static constexpr double kBusyBytes = 32e3;  // on their way to an SM when the memory is busy

  double start() const { return 1e-6 * m_.start_us; }
  double seconds(double cycles) const { return cycles / (chip_.clock_ghz * 1e9); }
  double bandwidth() const { return chip_.copy_tbps * 1e12; }
  double begin_bytes() const {
    const double bytes = static_cast<double>(element_count(desc_.data)) * static_cast<double>(size_of(desc_.dtype));
    return desc_.in_place ? 0 : desc_.fill ? bytes : 2 * bytes;
  }
  // Of the updates, their indices, and the rows that they change.
  double traffic() const {
    const int64_t row = updates_.inner * updates_.bytes;
    const auto index = static_cast<int64_t>(size_of(desc_.index_dtype));
    return static_cast<double>(updates_.count) * static_cast<double>(row + index + round_up(row, kSector)) /
           bandwidth();
  }

  const StandaloneDesc& desc_;
  Updates updates_;
  double sms_;
  const decltype(CudaModel::chip)& chip_;
  const decltype(CudaModel::scatter)& m_;
};

// The configurations with their predicted times, of which the best is taken.
class ScatterMapping {
 public:
  ScatterMapping(Config& config, const StandaloneDesc& desc, const GpuTarget& cuda)
      : config_(config), desc_(desc), updates_(desc), columns_(desc.columns()), sms_(cuda.sms), model_(desc, cuda) {}

  int64_t run() {
    if (desc_.op == ir::Op::kScatterElements) {
      try_element_owners();
    } else {
      try_slice_owners();
    }
    if (adds_atomically()) try_atomic();
    if (updates_.rows <= kMostSorted && updates_.count <= kMostSorted) try_sorted();
    return threads_;
  }

 private:
  void consider(double seconds, Choice choice, int64_t blocks, int64_t threads) {
    const double us = 1e6 * seconds;
    if (threads_ > 0 && us >= config_.predicted_us) return;
    config_.predicted_us = us, config_.choice = std::move(choice), config_.tasks = blocks, threads_ = threads;
  }

  // Threads share a column, down to one row for each.
  void try_element_owners() {
    const int64_t number = columns_.outer * columns_.inner;
    for (ScatterElementsConfig c;; c.sharers *= 2) {
      c.threads = number * c.sharers < sms_ * 256 ? 64 : 256;
      const double looks = static_cast<double>(columns_.updates), applied = looks / static_cast<double>(c.sharers);
      const double seconds = model_.owners(number * c.sharers, looks, std::max(1.0, applied), double(columns_.bytes));
      consider(seconds, c, ceil_div(number * c.sharers, c.threads), c.threads);
      if (desc_.in_place || c.sharers >= columns_.rows || number * c.sharers >= sms_ * 2048) return;
    }
  }

  // All warps look at all updates.
  void try_slice_owners() {
    constexpr int64_t kWarps = ScatterSlicesConfig::kThreads / 32, kMostColumns = 128;
    ScatterSlicesConfig c;
    c.columns = std::min(columns_.inner, kMostColumns);
    const int64_t chunks = ceil_div(columns_.inner, c.columns);
    for (const int64_t wanted : {8 * sms_, 32 * sms_}) {
      c.rows = ceil_div(columns_.rows, std::clamp<int64_t>(wanted / chunks, 1, columns_.rows));
      const int64_t warps = ceil_div(columns_.rows, c.rows) * chunks;
      // A warp's updates of one row wait for each other; only sums are read first.
      const double elements = static_cast<double>(ceil_div(c.columns, 32));
      const double each =
          static_cast<double>(columns_.updates) * static_cast<double>(c.rows) / static_cast<double>(columns_.rows);
      const double applied = desc_.reduction == "none" ? 0 : std::max(1.0, each) * elements;
      const double seconds =
          model_.owners(32 * warps, static_cast<double>(columns_.updates), applied, double(columns_.bytes));
      consider(seconds, c, ceil_div(warps, kWarps), c.kThreads);
    }
  }

  // Sums of integers are the same in any order.
  bool adds_atomically() const {
    if (desc_.reduction != "add" || size_of(desc_.dtype) < 4) return false;
    return desc_.unordered || !is_float(desc_.dtype);
  }
  void try_atomic() {
    constexpr int64_t kMostRun = 16, kBusyThreads = 1024;  // of an SM
    ScatterAtomicConfig c{updates_.vector(4), kMostRun};
    const int64_t vectors = updates_.inner / c.vector;
    while (c.run > 1 && updates_.runs(c.run) * vectors < sms_ * kBusyThreads) c.run /= 2;
    consider(model_.atomic(), c, ceil_div(updates_.runs(c.run) * vectors, c.kThreads), c.kThreads);
  }

  void try_sorted() {
    constexpr int64_t kLongRun = 32, kBusyThreads = 512;  // of an SM
    ScatterSortedConfig c{desc_.reduction == "none" ? 1 : updates_.vector(4)};
    const int64_t vectors = updates_.inner / c.vector;
    if (updates_.runs(kLongRun) * vectors >= sms_ * kBusyThreads) c.run = kLongRun;
    consider(model_.sorted(c.run), c, ceil_div(updates_.runs(c.run) * vectors, c.kThreads), c.kThreads);
  }

  Config& config_;
  const StandaloneDesc& desc_;
  Updates updates_;
  StandaloneDesc::Columns columns_;
  int64_t sms_, threads_ = 0;
  ScatterModel model_;
};

CudaLaunch launch_of(const auto& args, std::string symbol, int64_t blocks, int64_t threads) {
  CudaLaunch launch;
  launch.symbol = std::move(symbol);
  launch.grid[0] = static_cast<uint32_t>(blocks);
  launch.block = static_cast<uint32_t>(threads);
  launch.arguments = {argument_bytes(args)};
  return launch;
}

tile::ScatterArgs common_args(const StandaloneDesc& desc, int64_t rows, int64_t inner, int64_t count) {
  tile::ScatterArgs args{};
  args.rows = rows, args.inner = inner, args.count = count;
  uint64_t bits = desc.fill.value_or(0);
  for (size_t have = size_of(desc.dtype); have < sizeof(bits); have *= 2) bits |= bits << (8 * have);
  args.fill[0] = args.fill[1] = bits;
  return args;
}

void add_operands(CudaLaunch& launch, const StandaloneDesc& desc) {
  int operand = 0;
  if (starts_from(desc) == ScatterFrom::kData) {
    launch.pointers.push_back({0, offsetof(tile::ScatterArgs, data), operand++});
  }
  for (const size_t at :
       {offsetof(tile::ScatterArgs, indices), offsetof(tile::ScatterArgs, updates), offsetof(tile::ScatterArgs, y)}) {
    launch.pointers.push_back({0, static_cast<int>(at), operand++});
  }
}

// The dimensions of the columns, last first; those that both shapes have whole are one with the one before.
tile::ScatterElementsArgs elements_args(const StandaloneDesc& body, const ScatterElementsConfig& config) {
  tile::ScatterElementsArgs args{};
  const StandaloneDesc::Columns columns = body.columns();
  args.common = common_args(body, columns.rows, columns.inner, columns.updates);
  args.threads = columns.outer * config.sharers * columns.inner;
  while (int64_t{1} << args.shares < config.sharers) ++args.shares;
  HEDDLE_CHECK(int64_t{1} << args.shares == config.sharers, "{} threads share a column", config.sharers);
  const auto scattered = static_cast<size_t>(body.dim);
  const Shape index_strides = body.index_strides();
  int64_t stride = 1;
  bool joins = false;
  for (size_t d = body.data.size(); d-- > 0; stride *= body.indices[d]) {
    if (d == scattered) {
      args.step = stride;
      args.index_step = index_strides[d];
      args.inner_dims = args.dims;
      joins = false;
      continue;
    }
    const bool whole = body.indices[d] == body.data[d];
    if (joins && index_strides[d] == args.dim[args.dims - 1].index_stride * args.dim[args.dims - 1].indexed) {
      tile::ScatterDim& last = args.dim[args.dims - 1];
      last.indexed *= body.indices[d];
      last.extent *= body.data[d];
    } else {
      args.dim[args.dims++] = {body.data[d], body.indices[d], stride, index_strides[d]};
    }
    joins = whole;
  }
  return args;
}

tile::ScatterNdArgs nd_args(const StandaloneDesc& body, const ScatterSlicesConfig& config) {
  tile::ScatterNdArgs args{};
  const StandaloneDesc::Columns columns = body.columns();
  args.common = common_args(body, columns.rows, columns.inner, columns.updates);
  args.block_rows = config.rows, args.chunk = config.columns;
  args.chunks = ceil_div(args.common.inner, args.chunk);
  args.depth = static_cast<int32_t>(body.indices.back());
  for (size_t d = 0; d < static_cast<size_t>(args.depth); ++d) args.extent[d] = body.data[d];
  return args;
}

// The steps of the updates' dimensions, last dimension first; those that the strides allow are joined.
void set_element_steps(tile::ScatterUpdatesArgs& args, const StandaloneDesc& desc) {
  const auto axis = static_cast<size_t>(desc.dim);
  const Shape index_strides = desc.index_strides();
  int64_t stride = 1;
  for (size_t d = desc.data.size(); d-- > 0; stride *= desc.data[d]) {
    const tile::ScatterStep step{desc.indices[d], d == axis ? 0 : stride, index_strides[d]};
    if (d == axis) args.axis_extent = desc.data[d], args.axis_stride = stride;
    tile::ScatterStep* inner = args.dims > 0 ? &args.dim[args.dims - 1] : nullptr;
    if (inner != nullptr && step.stride == inner->stride * inner->extent &&
        step.index_stride == inner->index_stride * inner->extent && d != axis && inner->stride != 0) {
      inner->extent *= step.extent;
    } else {
      args.dim[args.dims++] = step;
    }
  }
}

tile::ScatterUpdatesArgs updates_args(const StandaloneDesc& desc, const Updates& u) {
  tile::ScatterUpdatesArgs args{};
  args.common = common_args(desc, u.rows, u.inner, u.count);
  args.bytes = element_count(desc.data) * static_cast<int64_t>(size_of(desc.dtype));
  if (desc.op == ir::Op::kScatterElements) {
    set_element_steps(args, desc);
    return args;
  }
  args.dims = static_cast<int32_t>(desc.indices.back());
  for (size_t d = 0; d < static_cast<size_t>(args.dims); ++d) args.dim[d].extent = desc.data[d];
  return args;
}

// Blocks of a launch whose threads move four packets of 16 bytes each.
int64_t begin_blocks(const tile::ScatterUpdatesArgs& args, int64_t threads) {
  return std::max<int64_t>(1, ceil_div(args.bytes, 4 * 16 * threads));
}

KernelLaunches plan_atomic(const StandaloneDesc& desc, const Config& config) {
  const tile::ScatterUpdatesArgs args = updates_args(desc, Updates(desc));
  KernelLaunches plan;
  if (!desc.in_place) {
    constexpr int64_t kThreads = ScatterAtomicConfig::kThreads;
    plan.launches.push_back(launch_of(args, "scatter_begin", begin_blocks(args, kThreads), kThreads));
  }
  plan.launches.push_back(launch_of(args, "scatter", config.tasks, ScatterAtomicConfig::kThreads));
  for (CudaLaunch& launch : plan.launches) add_operands(launch, desc);
  return plan;
}

KernelLaunches plan_sorted(const StandaloneDesc& desc, const Config& config, int own) {
  const auto& c = config.as<ScatterSortedConfig>();
  const Updates u(desc);
  const tile::ScatterUpdatesArgs args = updates_args(desc, u);
  const int64_t chunks = ceil_div(u.count, int64_t{tile::kScatterSortChunk}), runs = u.runs(c.run);
  const int64_t list_bytes = round_up(u.count * tile::kScatterEntryBytes, 16);
  const int64_t partials = (chunks > 1 ? 2 : 1) * list_bytes;
  const auto shared = [](int64_t bytes) { return static_cast<uint32_t>(bytes); };
  KernelLaunches plan;
  plan.workspace_bytes = partials + (runs > 1 ? runs * 2 * u.inner * partial_bytes(desc, u) : 0);

  constexpr int64_t kSortThreads = tile::kScatterSortThreads;
  const int64_t begins = desc.in_place ? 0 : begin_blocks(args, kSortThreads);
  plan.launches.push_back(launch_of(args, "scatter_sort", chunks + begins, kSortThreads));
  plan.launches.back().shared_bytes = shared(tile::kScatterSortChunk * tile::kScatterEntryBytes);
  if (chunks > 1) {
    constexpr int64_t kThreads = 32 * tile::kScatterMergeWarps;
    plan.launches.push_back(launch_of(args, "scatter_merge", ceil_div(u.count, int64_t{32}), kThreads));
    plan.launches.back().shared_bytes = shared(kThreads * int64_t{sizeof(int64_t)});
  }
  plan.launches.push_back(launch_of(args, "scatter", config.tasks, c.kThreads));
  if (runs > 1) {
    constexpr int64_t kThreads = tile::kScatterStrips * tile::kScatterStripColumns;
    const int64_t blocks = ceil_div(u.inner, tile::kScatterStripColumns * c.vector);
    plan.launches.push_back(launch_of(args, "scatter_rows", runs * blocks, kThreads));
    plan.launches.back().shared_bytes = shared(kThreads * c.vector * partial_bytes(desc, u));
  }
  for (CudaLaunch& launch : plan.launches) {
    add_operands(launch, desc);
    launch.pointers.push_back({0, offsetof(tile::ScatterUpdatesArgs, list), own});
    launch.pointers.push_back({0, offsetof(tile::ScatterUpdatesArgs, merged), own, chunks > 1 ? list_bytes : 0});
    launch.pointers.push_back({0, offsetof(tile::ScatterUpdatesArgs, partials), own, runs > 1 ? partials : 0});
  }
  return plan;
}

}  // namespace

int64_t map_scatter_to_cuda(Config& config, const StandaloneDesc& desc, const GpuTarget& cuda) {
  return ScatterMapping(config, desc, cuda).run();
}

ScatterFrom starts_from(const StandaloneDesc& desc) {
  return desc.in_place ? ScatterFrom::kPlace : desc.fill ? ScatterFrom::kValue : ScatterFrom::kData;
}

KernelLaunches plan_scatter(const StandaloneDesc& desc, const Config& config, int own) {
  if (config.get<ScatterAtomicConfig>() != nullptr) return plan_atomic(desc, config);
  if (config.get<ScatterSortedConfig>() != nullptr) return plan_sorted(desc, config, own);
  KernelLaunches plan;
  if (const auto* slices = config.get<ScatterSlicesConfig>()) {
    plan.launches = {launch_of(nd_args(desc, *slices), "scatter", config.tasks, slices->kThreads)};
    plan.launches.front().shared_bytes = static_cast<uint32_t>(tile::kScatterChunk * sizeof(int64_t));
  } else {
    const auto& c = config.as<ScatterElementsConfig>();
    plan.launches = {launch_of(elements_args(desc, c), "scatter", config.tasks, c.threads)};
  }
  add_operands(plan.launches.front(), desc);
  return plan;
}

}  // namespace heddle::schedule
