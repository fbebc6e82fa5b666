#include "schedule/attention/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "heddle/error.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kElement = 2;  // bytes

// Cycles of an SM.
double predict_cycles(const AttentionDesc& d, const AttentionConfig& c, const CudaTarget& target) {
  const auto& a = target.model.attention;
  const int sms = target.sms;
  const auto wide = [](int64_t x) { return static_cast<double>(round_up(x, 16)); };
  const int64_t units = d.batch * ceil_div(d.m, c.tile_m()), blocks = std::min<int64_t>(units, sms);
  const auto tiles = static_cast<double>(ceil_div(d.n, c.tile_n)), groups = static_cast<double>(c.consumers);
  const double elements = 64.0 * static_cast<double>(c.tile_n);
  const double multiply = elements * (wide(d.depth) + wide(d.width)) / a.products_per_cycle;
  const double soften = elements / a.exponentials_per_cycle + elements * (d.scaled ? 4 : 9) / 128;
  // A warpgroup does one after the other, and waits between an instruction's result and the next's begin; several fill
  // each other's gaps.
  constexpr double kOthers = 1.15;
  double tile = std::max(multiply + soften + a.wait_cycles, std::max(multiply, soften) * groups * kOthers);
  if (tiles > 2 && c.stages < 3) tile *= 1.2;  // loads come late
  double unit = tiles * tile + a.tile_cycles + a.column_cycles * wide(d.width);
  if (tiles == 1) unit += multiply;  // beside which there is no other tile's softmax
  if (c.q_stages == 1 && units > sms) unit += a.late_rows_cycles;
  const double rows = static_cast<double>(c.tile_m()) * (wide(d.depth) + wide(d.width)) +
                      tiles * static_cast<double>(c.tile_n) * (wide(d.depth) + wide(d.width));
  return static_cast<double>(ceil_div(units, blocks)) * std::max(unit, rows * kElement / a.l2_per_cycle);
}

int64_t shared_bytes(const AttentionDesc& d, const AttentionConfig& c) {
  return tile::attention_shared_bytes(static_cast<int>(c.tile_m()), static_cast<int>(c.tile_n),
                                      static_cast<int>(round_up(d.depth, 16)), static_cast<int>(round_up(d.width, 16)),
                                      d.k_along_depth(), d.v_along_width(), static_cast<int>(c.q_stages),
                                      static_cast<int>(c.stages));
}

// Stages that fit shared memory; whether there are any.
bool fit_stages(const AttentionDesc& d, AttentionConfig& c, int64_t bytes) {
  const bool one_tile = d.n <= c.tile_n;
  for (const auto& [stages, buffers] : {std::pair(4, 4), {4, 2}, {3, 3}, {3, 2}, {2, 2}, {2, 1}, {1, 1}}) {
    if (!one_tile && (buffers > 2 || stages < 2)) continue;
    c.stages = stages, c.q_stages = buffers;
    if (shared_bytes(d, c) <= bytes) return true;
  }
  return false;
}

}  // namespace

AttentionChoice choose_attention(const AttentionDesc& d, const CudaTarget& target) {
  AttentionChoice best;
  double least = 0;
  const int64_t width = round_up(d.width, 16), longest = std::min<int64_t>(round_up(d.n, 16), 256);
  const int64_t most = d.depth > 64 || d.width > 64 ? 2 : 3;  // warpgroups: three have 160 registers a thread
  for (int64_t consumers = 1; consumers <= most; ++consumers) {
    for (int64_t tile_n = longest; tile_n >= 16; tile_n -= 16) {  // of equals the widest
      // Scores, what becomes of them as an operand, results: registers of a thread.
      const int64_t held = tile_n / 2 + tile_n / 4 + width / 2;
      if (held > (consumers == 3 ? 128 : d.scaled ? 200 : 180)) continue;
      AttentionChoice choice;
      AttentionConfig& c = choice.config;
      c.consumers = consumers, c.tile_n = tile_n;
      if (!fit_stages(d, c, target.shared_bytes_per_block)) continue;
      const double cycles = predict_cycles(d, c, target);
      if (best.predicted_us != 0 && cycles >= least) continue;
      least = cycles;
      choice.predicted_us = cycles / (target.model.chip.clock_ghz * 1e3) + target.model.attention.first_load_us;
      best = choice;
    }
  }
  if (best.predicted_us == 0)
    fail(ErrorCode::kUnsupportedOperator, "attention", "its tiles do not fit registers and shared memory");
  best.reason = fmt::format("{}x{} s{} q{}, {:.1f} us predicted", best.config.tile_m(), best.config.tile_n,
                            best.config.stages, best.config.q_stages, best.predicted_us);
  return best;
}

// Three boundaries, scores written and read in f32, probabilities in 16 bits.
double separate_us(const AttentionDesc& d, const CudaTarget& target) {
  const double scores = static_cast<double>(d.batch) * static_cast<double>(d.m) * static_cast<double>(d.n);
  const double operations = 2 * scores * static_cast<double>(d.depth + d.width);
  constexpr double kBytes = 4 + 4 + 2 + 2;
  return 3 * (target.model.chip.graph_boundary_us + target.model.attention.latency_us) +
         scores * kBytes / (target.model.chip.copy_tbps * 1e6) + operations / target.model.attention.operations_per_us;
}

}  // namespace heddle::schedule
