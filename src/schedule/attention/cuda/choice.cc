#include "schedule/attention/cuda/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "schedule/attention/cuda/model.h"
#include "schedule/attention/pages/key_pages.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kRows = tile::kAttentionGroupRows;

// Of a warpgroup and a tile of keys. An instruction reads what it multiplies from shared memory: the rows of Q anew for
// each tile, beside which few keys are little to multiply.
double multiply_cycles(const AttentionDesc& d, const CudaAttentionConfig& c, const GpuTarget& target) {
  const int64_t depth = padded_head(d.depth), columns = depth + panel_width(d, c);
  const auto bytes = static_cast<double>((kRows * depth + c.tile_n * columns) * kHalfBytes);
  return std::max(static_cast<double>(kRows * c.tile_n * columns) / target.model.attention.products_per_cycle,
                  bytes / target.model.wgmma.shared_per_cycle);
}

// `alone`: no block has a unit before or behind another.
double tile_cycles(const AttentionDesc& d, const CudaAttentionConfig& c, const GpuTarget& target, double together,
                   bool alone, bool scaled) {
  const auto& a = target.model.attention;
  const double multiply = multiply_cycles(d, c, target), elements = static_cast<double>(kRows * c.tile_n);
  const double soften = elements / a.exponentials_per_cycle + elements * (scaled ? 4 : 9) / 128;
  // A warpgroup does one after the other, and waits between an instruction's result and the next's begin; several
  // fill each other's gaps, but only after a while: they begin a block's first unit in step.
  constexpr double kOthers = 1.08;
  const double of_all = alone ? multiply + soften : std::max(multiply, soften) * kOthers;
  const double groups = static_cast<double>(c.consumers) * together;
  return std::max(multiply + soften + a.wait_cycles, of_all * groups + a.step_cycles);
}

double cycles(const AttentionModel& model, const AttentionDesc& d, const CudaAttentionConfig& c,
              const GpuTarget& target) {
  const auto& a = target.model.attention;
  const double together = model.together(c);
  double fixed = a.tile_cycles + a.column_cycles * static_cast<double>(panel_width(d, c));
  const bool alone = c.consumers > 1 && model.units(c) <= target.sms;
  if (c.q_stages == 1 && model.units(c) > target.sms) fixed += a.late_rows_cycles;
  return model.cycles(c, {tile_cycles(d, c, target, together, alone, d.scaled),
                          tile_cycles(d, c, target, together, alone, false), fixed, multiply_cycles(d, c, target)});
}

int64_t shared_bytes(const AttentionDesc& d, const CudaAttentionConfig& c) {
  return tile::attention_shared_bytes(static_cast<int>(c.tile_m()), static_cast<int>(c.tile_n),
                                      static_cast<int>(padded_head(d.depth)), static_cast<int>(panel_width(d, c)),
                                      d.k_along_depth(), d.v_along_width(), static_cast<int>(c.q_stages),
                                      static_cast<int>(c.stages));
}

// Stages that fit the shared memory of a block; whether there are any.
bool fit_stages(const AttentionDesc& d, CudaAttentionConfig& c, const GpuTarget& target) {
  constexpr int64_t kReserved = 1024;  // of each block
  const int64_t most = target.shared_bytes_per_block, of_sm = (most + kReserved) / c.blocks - kReserved;
  const bool one_tile = d.n <= c.tile_n;
  for (const auto& [stages, buffers] : {std::pair(4, 4), {4, 2}, {3, 3}, {3, 2}, {2, 2}, {2, 1}, {1, 1}}) {
    if (!one_tile && (buffers > 2 || stages < 2)) continue;
    c.stages = stages, c.q_stages = buffers;
    if (shared_bytes(d, c) <= std::min(most, of_sm)) return true;
  }
  return false;
}

// Whether a thread holds scores, what becomes of them as an operand, and results; and one instruction its accumulators
// in the registers that the kernel begins with, for which ptxas compiles it.
bool fits_registers(const AttentionDesc& d, const CudaAttentionConfig& c) {
  constexpr int64_t kMost = 240, kLeastWithFunctor = 128;
  const tile::AttentionBudget budget =
      tile::attention_budget(static_cast<int>(c.consumers), static_cast<int>(c.blocks), c.dynamic || d.pages);
  if (!d.scaled && budget.consumer < kLeastWithFunctor) return false;
  const int64_t width = panel_width(d, c);
  if (!d.scaled && width > 192 && c.splits > 1 && c.consumers > 1) return false;
  const int64_t beside_accumulators = d.scaled ? 30 : 34;
  int64_t others = c.consumers == 3 ? 32 : 40;
  if (!d.scaled) others = c.consumers == 3 ? 44 : width > 128 ? 66 : 62;
  return c.tile_n / 2 + c.tile_n / 4 + width / 2 <= std::min<int64_t>(budget.consumer, kMost) - others &&
         std::max(c.tile_n, width) / 2 + beside_accumulators <= budget.entry;
}

std::string reason_of(const CudaAttentionConfig& c, double us) {
  return fmt::format("{}x{} s{} q{}{}{}{}, {:.1f} us predicted", c.tile_m(), c.tile_n, c.stages, c.q_stages,
                     c.blocks > 1 ? fmt::format(", {} blocks an SM", c.blocks) : "", parts_text(c),
                     c.dynamic ? ", longest rows first" : "", us);
}

std::vector<Config> warpgroups_of_panels(const AttentionDesc& d, const GpuTarget& target, int64_t panels) {
  std::vector<Config> result;
  AttentionModel model(d, target);
  const int64_t longest = std::min<int64_t>(round_up(d.n, d.pages ? d.pages->keys : 16), 256);
  const auto add = [&](CudaAttentionConfig c) {
    if (c.blocks > 1 && model.units(c) <= target.sms * (c.blocks - 1)) return;
    c.dynamic = !model.is_even() && model.units(c) > target.sms * c.blocks;
    if (c.dynamic) c.section = section_of(d);
    if (!fits_registers(d, c) || !fit_stages(d, c, target)) return;
    const double us = model.predicted_us(c, cycles(model, d, c, target));
    result.push_back({c, 0, reason_of(c, us), us});
  };
  for (const int64_t consumers : {1, 2, 3}) {
    if (consumers == 3 && std::max(d.depth, d.width) > 64) continue;
    for (int64_t tile_n = longest; tile_n >= 16; tile_n -= 16) {  // of equals the widest
      if (!fits_pages(d, tile_n)) continue;
      CudaAttentionConfig c;
      c.consumers = consumers, c.tile_n = tile_n, c.panels = panels;
      model.set_tile(c.tile_m(), tile_n);
      for (c.blocks = 1; c.blocks <= (consumers == 3 ? 1 : 3); ++c.blocks) model.for_splits(c, add);
    }
  }
  return result;
}

}  // namespace

std::vector<Config> attention_candidates(const AttentionDesc& d, const GpuTarget& target, size_t most) {
  return least_predicted(with_fewest_panels(d, [&](int64_t panels) { return warpgroups_of_panels(d, target, panels); }),
                         most);
}

}  // namespace heddle::schedule
