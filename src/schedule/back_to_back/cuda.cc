#include "schedule/back_to_back/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/config/config_source.h"
#include "schedule/product/conv_problem.h"
#include "schedule/product/cuda/contraction.h"
#include "target/argument_block.h"
#include "tile/core/cuda_back_to_back.h"

namespace heddle::schedule {
namespace {

constexpr int kElementBytes = 2, kMostRegisters = 250;
constexpr int64_t kMostColumns = 256;  // of D0: what accumulators and shared memory hold

tile::BackToBackTile tile_of(const BackToBackTasks& tasks, const CudaBackToBackConfig& c) {
  return {c.tile_m,      static_cast<int>(tasks.columns0(c)), c.tile_k, c.tile_n, c.warps_m, c.warps_n, c.stages,
          c.in_registers};
}

int64_t shared_bytes(const BackToBackTasks& tasks, const CudaBackToBackConfig& c) {
  const int64_t weights = tasks.steps(c) * c.tile_n * tasks.columns0(c) * kElementBytes;
  constexpr int64_t kMost = 1 << 20;
  return weights > kMost
             ? weights
             : tile::back_to_back_shared(tile_of(tasks, c), static_cast<int>(tasks.steps(c)), kElementBytes).total;
}

// The first product as one of the mma family.
MmaConfig first_config(const BackToBackTasks& tasks, const CudaBackToBackConfig& c) {
  MmaConfig first;
  first.tile_m = c.tile_m, first.tile_n = static_cast<int>(tasks.columns0(c)), first.tile_k = c.tile_k;
  first.warps_m = c.warps_m, first.warps_n = c.warps_n, first.stages = c.stages;
  return first;
}

// What a thread needs, by count, in either product.
int registers_of(const BackToBackTasks& tasks, const TileProblem& first, const CudaBackToBackConfig& c) {
  constexpr int kRest = 54;
  const int rows = c.tile_m / c.warps_m, columns = c.tile_n / c.warps_n;
  const int inner = c.in_registers ? static_cast<int>(rows * tasks.columns0(c) / 64) : 0;
  const int second = kRest + inner + rows * columns / 32 + rows / 16 * 4 + columns / 8 * 2;
  return std::max(mma_registers(first, first_config(tasks, c)), second);
}

bool is_power_of_two(int64_t n) {
  return (n & (n - 1)) == 0;
}

// Why a configuration cannot run; empty: it can.
std::string reject(const BackToBackTasks& tasks, const TileProblem& first, const CudaBackToBackConfig& c,
                   const GpuTarget& target) {
  const Product &p = tasks.first.product, &q = tasks.second.product;
  const int64_t columns0 = tasks.columns0(c);
  const int slice = tile::back_to_back_slice(static_cast<int>(columns0), kElementBytes);
  if (columns0 > kMostColumns) return "D0 has too many columns for a block";
  if (shared_bytes(tasks, c) > target.shared_bytes_per_block) return "its shared memory exceeds the device's";
  if (registers_of(tasks, first, c) > kMostRegisters) return "it needs more registers than a thread has";
  if (!p.b.along_k() && !is_power_of_two(columns0)) return "lines of W0 along rows are cut at powers of two";
  if (!q.b.along_k() && !is_power_of_two(c.tile_n)) return "lines of W1 along rows are cut at powers of two";
  if (!deals(p.a, p.m, c.tile_m, c.tile_k, c.threads()) || !deals(p.b, p.n, columns0, c.tile_k, c.threads()) ||
      !deals(q.b, q.n, c.tile_n, slice, c.threads())) {
    return "its tiles are not dealt to the threads alike";
  }
  if (!tasks.second.epilogue.reductions.empty() && c.tile_n / c.warps_n % tile::kGemmPartialColumns != 0) {
    return "neighbours are reduced in fragments of 32 columns and more";
  }
  return "";
}

// Both products, a wave of blocks after the other.
double predict_us(const BackToBackTasks& tasks, const TileProblem& first, const CudaBackToBackConfig& c,
                  const GpuTarget& target) {
  const auto& model = target.model.mma;
  const TileProblem second = tile_problem(tasks.second);
  const auto shared = static_cast<int>(shared_bytes(tasks, c));
  const int registers = registers_of(tasks, first, c);
  const int64_t blocks = ceil_div(first.m, c.tile_m) * first.batch;
  const int at_once = blocks_of_sm(c.threads(), shared, registers, target);
  const int64_t waves = ceil_div(blocks, int64_t{target.sms} * at_once);
  const auto busy = static_cast<double>(std::min<int64_t>(ceil_div(blocks, target.sms * waves), at_once));
  const auto rows = static_cast<double>(c.tile_m), depth = static_cast<double>(tasks.columns0(c));
  const auto columns = static_cast<double>(tasks.steps(c) * c.tile_n);
  const double multiply = rows * columns * depth / multiply_rate(second, true, target);
  const double weights = columns * depth * kElementBytes;
  const double read =
      c.in_registers ? 0 : rows * depth * kElementBytes * (1 + static_cast<double>(tasks.steps(c)) * c.warps_n);
  const double loads = (weights * (1 + c.warps_m) + read) / model.shared_per_cycle;
  const double hidden = hidden_share(busy * c.threads() / 32);
  const double product = busy * std::max(multiply, loads) / hidden + busy * weights / model.l2_per_cycle;
  const double store = store_cycles(busy * rows * columns, second.out_bytes, target);
  const double us = static_cast<double>(waves) * (product + store) / (target.model.chip.clock_ghz * 1e3);
  const double share = memory_share(blocks, target);
  const double bytes = first.a.bytes + first.b.bytes + second.b.bytes +
                       static_cast<double>(second.m) * second.n * second.batch * (second.out_bytes + second.read_bytes);
  return model.first_load_us + model.tile_us +
         overlapped_us({mma_compute_us(first, first_config(tasks, c), shared, registers, target) + us,
                        bytes / (model.memory_per_us * share)});
}

std::vector<CudaBackToBackConfig> configurations(const BackToBackTasks& tasks) {
  struct Warps {
    int m, n, rows;  // rows of a warp
  };
  constexpr Warps kWarps[] = {{1, 1, 16}, {2, 1, 16}, {4, 1, 16}, {8, 1, 16}, {2, 1, 32}, {4, 1, 32},
                              {8, 1, 32}, {1, 2, 16}, {2, 2, 16}, {4, 2, 16}, {2, 2, 32}, {4, 2, 32},
                              {1, 4, 16}, {1, 4, 32}, {2, 4, 32}, {2, 4, 64}, {2, 2, 64}};
  constexpr int kMostAtOnce = 128;  // columns of D1 of a warp
  std::vector<CudaBackToBackConfig> found;
  for (const Warps& warps : kWarps) {
    std::set<int> columns;  // of D1, of a warp at once: all of them, or some
    const auto all = static_cast<int>(
        std::min<int64_t>(round_up(ceil_div(tasks.second.product.n, int64_t{warps.n}), 16), kMostAtOnce));
    for (const int some : {all, 32, 64}) columns.insert(std::min(some, all));
    for (const int some : columns) {
      CudaBackToBackConfig c;
      c.warps_m = warps.m, c.warps_n = warps.n, c.tile_m = warps.m * warps.rows, c.tile_n = some * warps.n;
      c.in_registers = warps.n == 1;
      for (const int tile_k : {32, 64}) {
        for (const int stages : {3, 4}) {  // fewer leave a load no time
          c.tile_k = tile_k, c.stages = stages;
          if (tile_k > 32 && tasks.first.product.k <= 32) continue;
          found.push_back(c);
        }
      }
    }
  }
  return found;
}

// The stride of all batches of an operand.
int64_t batch_stride(const OperandView& o) {
  if (o.batch.size() > 1) refuse_back_to_back("its batches have several strides");
  return o.batch.empty() ? 0 : o.batch.front().second;
}

class BackToBackScheduler {
 public:
  BackToBackScheduler(const ir::Graph& graph, const BackToBackForm& form, const Target& target, ConfigSource* configs)
      : form_(form), target_(target), builder_(graph, form.first, target, configs) {
    builder_.set_inner(form.inner);
  }

  ScheduledGroup run() {
    CudaProduct first = cuda_product(builder_);
    first_epilogue_ = first.builder.epilogue_label();
    Epilogue between = std::move(first.builder.desc().epilogue);
    CudaProduct second = cuda_product(ContractionBuilder(first.builder, form_.second));
    if (between.gate || second.builder.desc().epilogue.gate)
      refuse_back_to_back("its kernels do not combine pairs of columns");
    check(first, second, between);
    // For their types alone.
    between.stores[0].operand = second.product.a.operand = second.product.b.operand;
    auto desc = std::make_shared<CudaBackToBackDesc>();
    desc->first = {DType::kF32, first.product, std::move(between)};
    desc->second = {DType::kF32, second.product, second.builder.desc().epilogue};
    return finish(first, second, std::move(desc));
  }

 private:
  void check(const CudaProduct& first, const CudaProduct& second, const Epilogue& between) const {
    const Product &p = first.product, &q = second.product;
    const DType type = builder_.graph().dtype(form_.inner);
    const bool types = (type == DType::kF16 || type == DType::kBF16) && p.multiply_a == type && p.multiply_b == type &&
                       q.multiply_a == type && q.multiply_b == type && q.b.dtype == type;
    if (!types) refuse_back_to_back("not all that is multiplied is f16, or all bf16");
    if (p.n > kMostColumns)
      refuse_back_to_back(fmt::format("the first one makes {} columns, a block holds {}", p.n, kMostColumns));
    if (p.n == 0 || p.k == 0) refuse_back_to_back("there is nothing to multiply");
    if (!between.reductions.empty() || between.stores.size() != 1)
      refuse_back_to_back("the first one has other results");
    if (q.a.form != OperandView::Form::kMatrix || q.b.form != OperandView::Form::kMatrix) {
      refuse_back_to_back("the second one's operands are no matrices");
    }
    if (p.batch != q.batch || p.m != q.m || p.n != q.k)
      refuse_back_to_back("the products have other sizes than each other");
    check_rows(between, p.batch, p.m, p.n, {q.a.offset, batch_stride(q.a), q.a.row, q.a.k});
  }

  static Problem problem_of(const BackToBackTasks& tasks) {
    const Product &p = tasks.first.product, &q = tasks.second.product;
    std::string text = fmt::format("x{}x{}x{} {} a {} w {} w {} ->", p.n, p.k, q.n, to_string(p.multiply_a),
                                   view_text(p.a), view_text(p.b), view_text(q.b));
    for (const Epilogue::Store& store : tasks.second.epilogue.stores) {
      text += fmt::format(" {}", to_string(tasks.second.operands[store.operand].dtype));
    }
    text += fmt::format(" expressions {} {}", tasks.first.epilogue.pool.size(), tasks.second.epilogue.pool.size());
    return {fmt::format("cuda back_to_back {}x{}{}", p.batch, p.m, text), "cuda back_to_back" + text};
  }

  ScheduledGroup finish(const CudaProduct& first, CudaProduct& second, std::shared_ptr<CudaBackToBackDesc> desc) const {
    const std::vector<Operand> operands = second.builder.operands();
    const BackToBackTasks tasks = tasks_of(*desc, operands);
    const Config config = choose_config(second.builder.configs(), problem_of(tasks), [&] {
      std::vector<Config> configs;
      for (CudaCandidate& c : back_to_back_candidates(tasks, target_.gpu())) {
        if (c.rejected.empty()) configs.push_back(std::move(c.config));
      }
      if (configs.empty()) refuse_back_to_back("its tiles do not fit registers and shared memory");
      return configs;
    });
    second.builder.desc().problem = desc->first.problem;  // of the kind that decides the peak
    const std::string label =
        fmt::format("{}{} -> {}{}", first.label, first_epilogue_, second.label, second.builder.epilogue_label());
    ScheduledGroup result;
    result.notes = {fmt::format("{}: {}, {}", label, name_of(config), config.reason)};
    result.kernels.push_back(second.builder.finish(config, label, first.operations + second.operations));
    result.kernels[0].desc.body = std::shared_ptr<const CudaBackToBackDesc>(std::move(desc));
    return result;
  }

  const BackToBackForm& form_;
  const Target& target_;
  ContractionBuilder builder_;
  std::string first_epilogue_;
};

}  // namespace

int64_t BackToBackTasks::columns0(const CudaBackToBackConfig& c) const {
  return round_up(first.product.n, int64_t{16} * c.warps_n);
}

int64_t BackToBackTasks::steps(const CudaBackToBackConfig& c) const {
  return ceil_div(second.product.n, int64_t{c.tile_n});
}

BackToBackTasks tasks_of(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands) {
  return {{*desc.first.get<Product>(), desc.first.epilogue, operands},
          {*desc.second.get<Product>(), desc.second.epilogue, operands}};
}

KernelLaunches plan_launches(const CudaBackToBackDesc& desc, const std::vector<Operand>& operands,
                             const CudaBackToBackConfig& c) {
  const BackToBackTasks tasks = tasks_of(desc, operands);
  const Product &p = tasks.first.product, &q = tasks.second.product;
  const auto number = [](int64_t n) { return static_cast<int32_t>(n); };
  tile::BackToBackArgs args{};
  args.m = number(p.m), args.n0 = number(p.n), args.n1 = number(q.n);
  args.k_tiles = number(ceil_div(p.k, int64_t{c.tile_k}));
  args.steps = number(tasks.steps(c));
  args.tiles_m = number(ceil_div(p.m, int64_t{c.tile_m}));
  args.by_tiles = tile::GemmDivisor::of(args.tiles_m);
  KernelLaunches result;
  CudaLaunch& launch = result.launches.emplace_back();
  launch.grid[0] = static_cast<uint32_t>(args.tiles_m * p.batch);
  launch.block = static_cast<uint32_t>(c.threads());
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes(tasks, c));
  launch.arguments = {argument_bytes(args)};
  return result;
}

std::vector<CudaCandidate> back_to_back_candidates(const BackToBackTasks& tasks, const GpuTarget& target) {
  TileProblem first = tile_problem(tasks.first);
  first.out_bytes = 0;
  std::vector<CudaCandidate> found;
  for (const CudaBackToBackConfig& c : configurations(tasks)) {
    CudaCandidate& candidate = found.emplace_back();
    candidate.config.choice = c;
    candidate.rejected = reject(tasks, first, c, target);
    if (candidate.rejected.empty()) candidate.config.predicted_us = predict_us(tasks, first, c, target);
    candidate.config.reason = fmt::format("{:.1f} us predicted", candidate.config.predicted_us);
  }
  sort_by_prediction(found);
  return found;
}

namespace {

class CudaBackToBack : public BackToBackBackend {
 public:
  ScheduledGroup schedule(const ir::Graph& graph, const BackToBackForm& form, const Target& target,
                          ConfigSource* configs) const override {
    if (!target.gpu().has_tensor_cores()) refuse_back_to_back("the target has no tensor cores");
    if (form.first.kind != ir::GroupKind::kContraction) refuse_back_to_back("its kernel runs two contractions");
    const ir::Node& last = graph.node(form.second.anchor);
    if (last.op == ir::Op::kConv && !is_pointwise(conv_shape(graph, last))) {
      refuse_back_to_back("the second one has a window for each channel: it needs its neighbours' results");
    }
    return BackToBackScheduler(graph, form, target, configs).run();
  }

  BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const override {
    BackToBackTimes times;
    times.one_kernel = schedule(graph, form, target, nullptr).kernels.at(0).config.predicted_us;
    times.two_kernels = -target.gpu().model.chip.graph_boundary_us;
    for (const ir::Group* part : {&form.first, &form.second}) {
      for (const ScheduledKernel& kernel : schedule_contraction(graph, *part, target).kernels) {
        times.two_kernels += kernel.config.predicted_us + target.gpu().model.chip.graph_boundary_us;
      }
    }
    return times;
  }
  double least_gain() const override { return kLeastGain; }

 private:
  static constexpr double kLeastGain = 1 / 0.95;
};

}  // namespace

const BackToBackBackend& cuda_back_to_back() {
  static const CudaBackToBack backend;
  return backend;
}

}  // namespace heddle::schedule
