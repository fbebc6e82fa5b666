#include "schedule/attention/cpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "heddle/error.h"
#include "schedule/attention/chain.h"
#include "schedule/attention/masks/constant_mask.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/product/micro_cost.h"
#include "schedule/region/cost.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kElement = sizeof(float);  // in which everything is computed

void check_operand(const char* name, const OperandView& o) {
  if (o.dtype != DType::kF32 && o.dtype != DType::kF16 && o.dtype != DType::kBF16) {
    refuse_attention(fmt::format("{} is {}; its kernel multiplies f32, f16 and bf16", name, to_string(o.dtype)));
  }
  if (o.batch.size() > tile::kBatchDims) {
    refuse_attention(fmt::format("the batches of {} have more than {} strides", name, tile::kBatchDims));
  }
}

// Predicts time, in cycles of a core, for what both ways to compute an attention do.
class Costs : public MicroCosts {
 public:
  Costs(const AttentionDesc& attention, const Target& target)
      : MicroCosts(target), a_(attention), cpu_(target.cpu), most_rows_(micro_limits(target).rows) {
    visit_exprs(a_.scores.pool, {a_.scores.stores.at(0).value},
                [&](ExprId e) { score_cycles_ += node_cycles(a_.scores.pool, e); });
    if (a_.scaled) score_cycles_ = 0;
    if (a_.ranges.empty()) return;
    double keys = 0, mixed = 0;
    for (const KeyRange& r : a_.ranges) {
      keys += static_cast<double>(r.last - r.first);
      mixed += static_cast<double>(r.last - r.first - (r.plain_last - r.plain_first));
    }
    share_ = std::max(keys / static_cast<double>(a_.n) / static_cast<double>(a_.ranges.size()), 1e-3);
    score_cycles_ *= keys > 0 ? mixed / keys : 0;
  }

  // Of all keys those that masks leave.
  double share() const { return share_; }
  int64_t panel() const { return tile::kAttentionVectors * lanes(); }
  int64_t most_rows() const { return most_rows_; }

  // A micro tile of `rows` rows times all of `columns`, over `k`.
  double products(int64_t rows, int64_t columns, int64_t k) const { return tiles(rows, columns, panel(), k); }
  // Exponentials of so many products, and what makes scores of these.
  double softmax(int64_t elements) const { return vectors(elements) * (cpu_.model.soften_cycles + score_cycles_); }

 private:
  const AttentionDesc& a_;
  const CpuTarget& cpu_;
  const int64_t most_rows_;
  double score_cycles_ = 0, share_ = 1;
};

double task_cycles(const Costs& costs, const tile::AttentionShape& s, int64_t mr) {
  const auto tiles = static_cast<double>(std::min(s.block_tiles, s.tiles));
  double cycles = costs.packing(std::min(s.block_tiles * mr, s.m) * s.depth);
  for (int64_t key = 0; key < s.n; key += s.block_keys) {
    const int64_t keys = std::min(s.block_keys, s.n - key);
    double tile = costs.products(mr, keys, s.depth) + costs.products(mr, s.width, keys) + costs.softmax(mr * keys);
    if (key > 0) tile += 2 * costs.vectors(mr * s.width);  // results of earlier keys
    cycles += costs.packing(keys * (s.depth + s.width)) + tiles * costs.share() * tile;
  }
  return cycles;
}

// Blocks of K and V take half of the second-level cache, rows of Q and of results a quarter; the scores of a micro tile
// and their exponentials stay in the first-level cache.
int64_t most_keys(const AttentionDesc& a, const CpuTarget& cpu, int64_t mr, int64_t panel) {
  const int64_t in_l1 = cpu.l1_bytes * 3 / 4 / (2 * mr * kElement);
  const int64_t in_l2 = cpu.l2_bytes / 2 / ((a.depth + a.width) * kElement);
  const int64_t most = std::max<int64_t>(1, std::min(in_l1, in_l2) / panel) * panel;
  return round_up(ceil_div(a.n, ceil_div(a.n, most)), panel);
}

class CpuAttention : public AttentionBackend {
 public:
  void check_target(const Target&) const override {}
  void check(const AttentionDesc& a, const AttentionTypes& types) const override {
    if (a.pages) refuse_attention("its keys lie in pages, and the CPU's kernel reads them side by side");
    check_operand("Q", a.q);
    check_operand("K", a.k);
    check_operand("V", a.v);
    if (!is_float(types.result) || types.result == DType::kF64) {
      refuse_attention(fmt::format("its result is {}", to_string(types.result)));
    }
  }
  bool reads_lengths() const override { return false; }
  int64_t lanes(const Target& target) const override { return micro_limits(target).vector_bytes / kElement; }

  std::vector<Config> candidates(const AttentionDesc& a, const Target& target) const override {
    const CpuTarget& cpu = target.cpu;
    const Costs costs(a, target);
    const tile::RowSplit rows = tile::split_rows(a.m, costs.most_rows());
    const int64_t most = most_keys(a, cpu, rows.mr, costs.panel());
    const int64_t row_bytes = rows.mr * (a.depth + a.width) * kElement;
    const int64_t most_tiles = std::clamp<int64_t>(cpu.l2_bytes / 4 / row_bytes, 1, rows.tiles);
    std::vector<Config> configs;
    for (int64_t blocks = ceil_div(rows.tiles, most_tiles); blocks <= rows.tiles; blocks *= 2) {
      for (const int64_t keys : {most, round_up(ceil_div(most, 2), costs.panel())}) {
        CpuAttentionConfig c{ceil_div(rows.tiles, blocks) * rows.mr, keys, rows.mr};
        const tile::AttentionShape s = attention_shape(a, c);
        const double turns = static_cast<double>(ceil_div(s.tasks(), cpu.threads));
        const double us = costs.microseconds(turns * task_cycles(costs, s, rows.mr)) + barriers_us(cpu, 1);
        configs.push_back({c, s.tasks(), reason(a, c, s.tasks(), cpu, us), us});
        if (keys == costs.panel()) break;
      }
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& x, const Config& y) { return x.predicted_us < y.predicted_us; });
    constexpr size_t kMost = 6;
    if (configs.size() > kMost) configs.resize(kMost);
    return configs;
  }

  // Products pack K and what of V does not lie in rows side by side; scores are written, read and written by the
  // softmax, which looks at them twice, and read.
  double separate_us(const AttentionDesc& a, const Target& target) const override {
    const CpuTarget& cpu = target.cpu;
    const Costs costs(a, target);
    const tile::RowSplit rows = tile::split_rows(a.m, costs.most_rows());
    const int64_t scores = a.batch * a.m * a.n;
    constexpr int64_t kFar = 2048 / kElement;  // rows of V that products copy: StridedB in tile/kernel/cpu/gemm.h
    const bool packs_v = a.v.row != 1 || a.v.k >= kFar;
    // Products know of no mask.
    const double tile = costs.products(rows.mr, a.n, a.depth) + costs.products(rows.mr, a.width, a.n);
    const double cycles = static_cast<double>(a.batch) * (static_cast<double>(rows.tiles) * tile +
                                                          costs.packing(a.n * (a.depth + (packs_v ? a.width : 0)))) +
                          costs.softmax(scores) + 2 * costs.vectors(scores);
    const double bytes = 5.0 * static_cast<double>(scores * kElement);
    const double rate = scores * kElement <= cpu.l2_bytes ? 8 : scores * kElement <= cached_bytes(cpu) ? 1.25 : 1;
    return costs.microseconds(cycles) / cpu.threads + bytes / (rate * cpu.copy_gbps * 1e3) + barriers_us(cpu, 3);
  }
  std::string_view scores_place() const override { return "the first-level cache"; }

 private:
  static std::string reason(const AttentionDesc& a, const CpuAttentionConfig& c, int64_t tasks, const CpuTarget& cpu,
                            double us) {
    return fmt::format(
               "{} rows a task, {} keys ({} KiB of K and V) a block, micro tiles of {} rows, {} tasks for {} threads, "
               "{:.1f} us predicted",
               std::min(c.tile_m, a.m), std::min(c.tile_n, a.n), c.tile_n * (a.depth + a.width) * kElement >> 10,
               c.micro_m, tasks, cpu.threads, us) +
           keys_text(a);
  }
  static std::string keys_text(const AttentionDesc& a) {
    if (a.ranges.empty()) return "";
    const auto strips = static_cast<int64_t>(a.ranges.size());
    int64_t computed = 0, plain = 0;
    for (const KeyRange& r : a.ranges) {
      computed += ceil_div(r.last, kCellKeys) - r.first / kCellKeys;
      plain += ceil_div(r.plain_last, kCellKeys) - r.plain_first / kCellKeys;
    }
    const int64_t all = strips * ceil_div(a.n, kCellKeys);
    return fmt::format(", {} of {} tiles of {} keys left out, {} masked", all - computed, all, kCellKeys,
                       computed - plain);
  }
  static double barriers_us(const CpuTarget& cpu, int kernels) {
    return cpu.threads > 1 ? kernels * cpu.barrier_us : 0;
  }
};

}  // namespace

const AttentionBackend& cpu_attention() {
  static const CpuAttention attention;
  return attention;
}

tile::AttentionShape attention_shape(const AttentionDesc& a, const CpuAttentionConfig& c) {
  const tile::RowSplit rows = tile::split_rows(a.m, c.micro_m);
  return {a.batch, a.m, a.n, a.depth, a.width, rows.tiles, rows.tall, c.tile_m / c.micro_m, c.tile_n};
}

}  // namespace heddle::schedule
