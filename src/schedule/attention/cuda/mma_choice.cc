#include "schedule/attention/cuda/mma_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "schedule/attention/cuda/model.h"
#include "schedule/attention/pages/key_pages.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {
namespace {

// Times 16 rows of a warp.
int64_t blocks_m(const AttentionDesc& d, const CudaAttentionConfig& c) {
  if (c.key_warps > 0) return 1;
  return tile::attention_blocks_m(number(c.consumers), number(padded_head(d.depth)), number(panel_width(d, c)));
}

// Of a warp.
int lanes(const CudaAttentionConfig& c) {
  return c.mfma ? 64 : 32;
}
// Threads that bring tiles of keys.
int loaders(const AttentionDesc& d, const CudaAttentionConfig& c) {
  return c.key_warps > 0 ? 32 : mma_threads(d, c);
}
// Whether operands of f32 are split into parts. MFMA multiplies them as they are.
bool splits_f32(const AttentionDesc& d, const CudaAttentionConfig& c) {
  return d.splits_f32() && !c.mfma;
}
int element_size(const AttentionDesc& d) {
  return number(element_bytes(d));
}
bool keeps_queries(const AttentionDesc& d, const CudaAttentionConfig& c) {
  return !splits_f32(d, c) &&
         tile::attention_keeps_queries(number(padded_head(d.depth)), number(blocks_m(d, c)), element_size(d));
}
bool is_along_k(const OperandView& o, int64_t lines) {
  return traits_of(o, lines, 1, o.dtype).along_k;
}
// Tiles of V of f32 lie along its width, whatever memory does.
bool turns_values(const AttentionDesc& d) {
  return d.type == DType::kF32 && is_along_k(d.v, d.width);
}

// Of a thread, by count: sums, scores, Q, a fragment of K or V, addresses, operands of scores. Pieces that pass through
// registers wait there. Of f32 that is split the parts of fragments and the sums of their products; then the places of
// pieces that are copied count, too. Pages of this tile and of the next one. Of panels the column and what follows from
// it.
int64_t registers_of(const AttentionDesc& d, const CudaAttentionConfig& c) {
  constexpr int64_t kFragments = 8, kRest = 48, kFunctor = 22, kParts = 47, kPartsOfRows = 8, kPiece = 16;
  constexpr int64_t kTable = 8, kColumn = 16;
  const int64_t depth = padded_head(d.depth), width = panel_width(d, c);
  const int64_t of_queries = keeps_queries(d, c) ? depth * element_bytes(d) / 8 : 4;
  int64_t count = blocks_m(d, c) * (width / 2 + c.tile_n / 2 + of_queries) * 32 / lanes(c) + kFragments + kRest;
  if (!d.scaled || d.sink) count += kFunctor;
  if (c.panels > 1) count += kColumn;
  if (d.pages) {
    count += kTable + 2 * std::max<int64_t>(1, c.tile_n / d.pages->keys);
    if (d.splits_f32()) count += kTable + (depth + width) / 8;  // addresses of pieces, which are read twice
  }
  if (c.mfma) {  // tiles pass through registers, one at a time
    const int64_t words = c.tile_n * std::max(depth, width) * element_bytes(d) / 4 / mma_threads(d, c);
    return count + words + (d.scaled ? 0 : kFunctor);
  }
  if (d.splits_f32()) {
    const int64_t copies = c.tile_n * std::max(depth, width) * element_bytes(d) / (kPiece * mma_threads(d, c));
    count += kParts + kPartsOfRows * blocks_m(d, c) + copies * (d.scaled ? 2 : 3);
  }
  int64_t pieces = 0;
  const auto through = [&](int64_t along, int64_t across) {
    pieces = std::max(pieces, tile::attention_slice(number(along), element_size(d)) * across / loaders(d, c));
  };
  const auto is_narrow = [&](const OperandView& o, int64_t lines) {
    return d.type != DType::kF32 && o.width(lines) == 1;
  };
  if (is_narrow(d.k, d.keys_in_line())) through(depth, c.tile_n);
  if (is_narrow(d.v, d.width)) through(d.v_along_width() ? width : c.tile_n, d.v_along_width() ? c.tile_n : width);
  if (turns_values(d)) through(width, c.tile_n);
  return count + pieces;
}

// Whether the tiles of all operands are dealt to all threads alike.
bool deals(const AttentionDesc& d, const CudaAttentionConfig& c) {
  // A part of a tile of keys that lies in one page.
  const int64_t part = d.pages ? std::min(c.tile_n, d.pages->keys) : c.tile_n;
  const auto of = [&](const OperandView& o, int64_t lines, int64_t rows, int64_t depth, int threads) {
    const bool along_k = is_along_k(o, lines);
    const int64_t slice = tile::attention_slice(number(along_k ? depth : rows), element_size(d));
    return schedule::deals(o, lines, along_k ? rows : slice, along_k ? slice : depth, threads);
  };
  const int64_t depth = padded_head(d.depth), width = panel_width(d, c);
  if (c.mfma) {  // tiles are not cut into slices
    const int threads = mma_threads(d, c);
    return schedule::deals(d.q, d.m, c.tile_m(), depth, threads) &&
           schedule::deals(d.k, d.keys_in_line(), c.tile_n, depth, threads) &&
           schedule::deals(d.v, d.width, width, c.tile_n, threads);
  }
  const int64_t rows = c.key_warps > 0 ? tile::kAttentionFewRows : c.tile_m();
  const bool deals_values =
      turns_values(d)
          ? schedule::deals(d.v, d.width, tile::attention_slice(number(width), element_size(d)), part, loaders(d, c))
          : of(d.v, d.width, width, part, loaders(d, c));
  return of(d.q, d.m, rows, depth, mma_threads(d, c)) && of(d.k, d.keys_in_line(), part, depth, loaders(d, c)) &&
         deals_values;
}

// Blocks of an SM at a time that threads, registers and shared memory leave; 0: not one.
int64_t blocks_of(const AttentionDesc& d, const CudaAttentionConfig& c, const GpuTarget& target) {
  constexpr int64_t kMostRegisters = 250, kReserved = 1024, kMostBlocks = 4;
  // Pieces of 2 or 4 bytes have many places, for which wide heads leave too few registers.
  constexpr int64_t kLeastPiece = 8;
  const bool is_wide = std::max(d.depth, d.width) > kPanelColumns;
  if (is_wide && std::min(d.k.width(d.n), d.v.width(d.width)) * element_bytes(d) < kLeastPiece) return 0;
  const int64_t registers = registers_of(d, c), shared = mma_shared_bytes(d, c);
  if (registers > kMostRegisters || shared > target.shared_bytes_per_block) return 0;
  const int64_t by_registers = target.registers_per_sm / (mma_threads(d, c) * round_up(registers, 8));
  const int64_t by_shared = (target.shared_bytes_per_block + kReserved) / (shared + kReserved);
  return std::min({by_registers, by_shared, kMostBlocks});
}

// All blocks of an SM, a tile of keys each.
double mma_tile_cycles(const AttentionDesc& d, const CudaAttentionConfig& c, const GpuTarget& target, double together,
                       bool scaled) {
  constexpr double kOfWord = 5, kStepDepth = 8;  // operations, of which those of integers take twice as long
  const auto& a = target.model.attention;
  const int64_t depth = padded_head(d.depth), width = panel_width(d, c), warps = mma_threads(d, c) / lanes(c);
  const auto elements = static_cast<double>(c.tile_m() * c.tile_n);
  const double products = elements * static_cast<double>(depth + width);
  constexpr double kF32ByMfma = 8;
  const double cost = c.mfma && d.type == DType::kF32 ? kF32ByMfma : multiply_cost(d);
  const double multiply = products * cost / target.model.chip.mma_per_cycle;
  const auto queries = static_cast<double>(c.tile_m() * depth);
  const auto keys = static_cast<double>(warps * c.tile_n * (depth + width));
  const double fragments = keys + (keeps_queries(d, c) ? 0 : queries);
  const double shared = static_cast<double>(element_bytes(d)) * fragments / target.model.mma.shared_per_cycle;
  double soften = elements / a.exponentials_per_cycle + elements * (scaled ? 4 : 9) / 128;
  // Words are rounded or split wherever a warp reads them; sums of split ones are added outside the tensor cores.
  if (d.type == DType::kF32 && !c.mfma) soften += (keys + queries + elements) * kOfWord / 128;
  if (splits_f32(d, c)) soften += products / kStepDepth / 128;
  // One limit is not reached while another is near; a warp multiplies and exponentiates in turn, which others fill.
  constexpr double kPower = 6, kSchedulers = 4;
  const double busy =
      std::pow(std::pow(multiply, kPower) + std::pow(soften, kPower) + std::pow(shared, kPower), 1 / kPower);
  double alone = (std::max(multiply, shared) + soften) * std::min(1.0, kSchedulers / static_cast<double>(warps));
  // With one buffer each, keys come beside half of the work, and values beside the other.
  if (c.stages == 1) alone = std::max(alone, 2 * target.model.mma.latency_cycles);
  return std::max(alone, busy * together) + 2 * target.model.mma.barrier_cycles + a.step_cycles;
}

double mma_cycles(const AttentionModel& model, const AttentionDesc& d, const CudaAttentionConfig& c,
                  const GpuTarget& target) {
  const auto& a = target.model.attention;
  const double together = model.together(c);
  const double fixed =
      a.tile_cycles + a.column_cycles * static_cast<double>(panel_width(d, c)) + a.late_rows_cycles / together;
  const double plain = mma_tile_cycles(d, c, target, together, d.scaled);
  return model.cycles(c, {plain, mma_tile_cycles(d, c, target, together, false), fixed, 0});
}

// Few rows: cycles of an SM for a tile of keys, which one warp issues while others wait for theirs; with few warps it
// is the wait that counts.
double few_rows_tile_cycles(const AttentionDesc& d, const CudaAttentionConfig& c, double together, bool scaled) {
  constexpr double kSchedulers = 4, kOfTile = 150, kOfCopy = 10, kWait = 1200, kWaitForScores = 800;
  const auto keys = static_cast<double>(c.tile_n);
  const auto columns = static_cast<double>(padded_head(d.depth) + panel_width(d, c));
  // A fragment and two products for 16 by 16; what a lane copies, 16 bytes at a time; scores and sums of a lane.
  const double issued = kOfTile + 3 * keys * columns / 256 + kOfCopy * keys * columns * kHalfBytes / 512 +
                        keys / 2 * (scaled ? 5 : 20) + static_cast<double>(panel_width(d, c)) / 2;
  const double wait = kWait + (scaled ? 0 : kWaitForScores);
  return std::max(together * issued / kSchedulers, wait / static_cast<double>(c.key_warps));
}

// Into how many parts the keys of few rows may be cut: a tile or more for each warp of all blocks.
std::vector<int64_t> few_rows_splits(const AttentionDesc& d, const CudaAttentionConfig& c, const GpuTarget& target) {
  constexpr int64_t kMost = 64;
  const int64_t tiles = ceil_div(d.n, c.tile_n);
  const int64_t most = std::min({target.sms * c.blocks / (d.batch * c.panels), tiles / c.key_warps, kMost});
  if (most < 2) return {1};
  return most > 3 ? std::vector<int64_t>{1, most / 2, most} : std::vector<int64_t>{1, most};
}

// `resident`: blocks that an SM has room for.
double few_rows_us(const AttentionModel& model, const AttentionDesc& d, const CudaAttentionConfig& c, int64_t resident,
                   const GpuTarget& target) {
  const double together = model.together(c);
  const double us = model.predicted_us(
      c, model.cycles(c, {few_rows_tile_cycles(d, c, together, d.scaled), few_rows_tile_cycles(d, c, together, false),
                          target.model.attention.tile_cycles, 0}));
  // While a block begins and ends, memory waits, unless the SM has others.
  const int64_t rounds = ceil_div(model.units(c), target.sms * resident);
  const double late_us = static_cast<double>(rounds - 1) * 0.5 * target.model.attention.first_load_us;
  return us + late_us;
}

std::vector<Config> warps_of_panels(const AttentionDesc& d, const GpuTarget& target, int64_t panels) {
  std::vector<Config> result;
  AttentionModel model(d, target);
  const int64_t longest = round_up(d.n, d.pages ? d.pages->keys : 16);
  const auto add = [&](CudaAttentionConfig c) {
    c.dynamic = !model.is_even() && model.units(c) > target.sms * c.blocks;
    if (c.dynamic) c.section = section_of(d);
    const double us = model.predicted_us(c, mma_cycles(model, d, c, target));
    result.push_back({c, 0,
                      fmt::format("{} {}x{} s{}, {} rows a warp{}{}{}, {:.1f} us predicted", c.mfma ? "mfma" : "mma",
                                  c.tile_m(), c.tile_n, c.stages, 16 * blocks_m(d, c),
                                  c.blocks > 1 ? fmt::format(", {} blocks an SM", c.blocks) : "", parts_text(c),
                                  c.dynamic ? ", longest rows first" : "", us),
                      us});
  };
  CudaAttentionConfig c;
  c.panels = panels;
  c.mfma = target.has_mfma();
  if (c.mfma && d.pages) return {};
  for (c.consumers = 1; c.consumers <= 4; c.consumers *= 2) {
    for (c.tile_n = 128; c.tile_n >= 16; c.tile_n /= 2) {
      if ((c.tile_n > 16 && c.tile_n >= 2 * longest) || !fits_pages(d, c.tile_n)) continue;
      model.set_tile(c.tile_m(), c.tile_n);
      for (const int64_t stages : {2, 1, 3}) {  // of equals the one that asks for keys a tile ahead
        if (c.mfma && stages > 1) continue;     // the next tile waits in registers
        c.stages = stages;
        c.blocks = blocks_of(d, c, target);
        if (c.blocks == 0 || !deals(d, c)) continue;
        if (c.mfma) {
          add(c);
        } else {
          model.for_splits(c, add);
        }
      }
    }
  }
  return result;
}

}  // namespace

bool is_by_warps(const CudaAttentionConfig& config) {
  return config.q_stages == 0;
}

int mma_threads(const AttentionDesc& d, const CudaAttentionConfig& c) {
  if (c.key_warps > 0) return number(lanes(c) * c.key_warps);
  return lanes(c) * tile::attention_warps(number(c.consumers), number(padded_head(d.depth)), number(panel_width(d, c)));
}

int mma_shared_bytes(const AttentionDesc& d, const CudaAttentionConfig& c) {
  if (c.key_warps > 0) {
    return tile::few_rows_shared_bytes(number(c.key_warps), number(c.tile_n), number(padded_head(d.depth)),
                                       number(panel_width(d, c)), number(c.stages));
  }
  if (c.mfma) {
    return tile::mfma_attention_shared_bytes(number(c.tile_m()), number(c.tile_n), number(padded_head(d.depth)),
                                             number(panel_width(d, c)), element_size(d));
  }
  return tile::mma_attention_shared_bytes(number(c.tile_m()), number(c.tile_n), number(padded_head(d.depth)),
                                          number(panel_width(d, c)), number(c.stages), element_size(d));
}

std::vector<Config> mma_attention_candidates(const AttentionDesc& d, const GpuTarget& target, size_t most) {
  return least_predicted(with_fewest_panels(d, [&](int64_t panels) { return warps_of_panels(d, target, panels); }),
                         most);
}

std::vector<Config> few_rows_candidates(const AttentionDesc& d, const GpuTarget& target, size_t most) {
  std::vector<Config> result;
  if (d.m > tile::kAttentionFewRows || d.type == DType::kF32 || target.has_mfma()) return result;
  AttentionModel model(d, target);
  const auto add = [&](const CudaAttentionConfig& c, int64_t resident) {
    const double us = few_rows_us(model, d, c, resident, target);
    result.push_back(
        {c, 0,
         fmt::format("few rows, {} warps with {} keys each, s{}{}{}, {:.1f} us predicted", c.key_warps, c.tile_n,
                     c.stages, c.blocks > 1 ? fmt::format(", {} blocks an SM", c.blocks) : "", parts_text(c), us),
         us});
  };
  CudaAttentionConfig c;
  c.panels = fewest_panels(d);
  for (c.key_warps = 8; c.key_warps >= 2; c.key_warps /= 2) {
    if (c.key_warps < 4 && !result.empty()) break;  // where shared memory holds no more rings
    for (c.tile_n = 32; c.tile_n >= 16; c.tile_n /= 2) {
      if (!fits_pages(d, c.tile_n)) continue;
      model.set_tile(c.tile_m(), c.tile_n);
      for (const int64_t stages : {3, 2, 4, 5, 6}) {  // of equals the first
        c.stages = stages;
        const int64_t resident = deals(d, c) ? blocks_of(d, c, target) : 0;
        for (c.blocks = 1; c.blocks <= std::min<int64_t>(resident, 2); ++c.blocks) {
          for (const int64_t splits : few_rows_splits(d, c, target)) {
            c.splits = splits, c.combines = false;
            add(c, resident);
            c.combines = splits > 1;
            if (c.combines) add(c, resident);
          }
        }
      }
    }
  }
  return least_predicted(std::move(result), most);
}

}  // namespace heddle::schedule
