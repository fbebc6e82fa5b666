#include "schedule/attention/cuda/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "heddle/error.h"
#include "schedule/attention/mask.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kElement = 2;  // bytes

// Bytes of an operand that are read from memory once.
double distinct_bytes(const OperandView& o, int64_t lines, int64_t depth) {
  double bytes = static_cast<double>(lines * depth * kElement);
  for (const auto& [extent, stride] : o.batch) bytes *= stride == 0 ? 1.0 : static_cast<double>(extent);
  return bytes;
}

// Of all operands, of K and V so many rows, and the result, once.
double memory_bytes(const AttentionDesc& d, int64_t keys) {
  return distinct_bytes(d.q, d.m, d.depth) + distinct_bytes(d.k, keys, d.depth) + distinct_bytes(d.v, keys, d.width) +
         static_cast<double>(d.batch * d.m * d.width * kElement);
}

// Batches in a row that have their keys in common.
int64_t shared_heads(const AttentionDesc& d) {
  return !d.k.batch.empty() && d.k.batch.back().second == 0 ? d.k.batch.back().first : 1;
}

// What the tiles of a batch cost.
class Model {
 public:
  Model(const AttentionDesc& d, const CudaTarget& target) : d_(d), target_(target) {}

  // For tiles of so many rows and keys.
  void set_tile(int64_t tile_m, int64_t tile_n) {
    tiles_ = key_tiles(d_, tile_m, tile_n);
    const auto by_length = [](const KeyTiles& a, const KeyTiles& b) { return a.last - a.first < b.last - b.first; };
    const auto [least, most] = std::minmax_element(tiles_.begin(), tiles_.end(), by_length);
    least_ = least->last - least->first, most_ = most->last - most->first;
    int64_t first = tiles_[0].first, last = 0;
    for (const KeyTiles& t : tiles_) first = std::min(first, t.first), last = std::max(last, t.last);
    keys_ = std::min((last - first) * tile_n, d_.n);
  }
  int64_t least_tiles() const { return least_; }
  bool is_even() const { return least_ == most_ && !d_.length; }

  // Cycles of an SM.
  double cycles(const AttentionConfig& c) const {
    const int64_t units = d_.batch * static_cast<int64_t>(tiles_.size()) * c.splits;
    const int64_t blocks = std::min<int64_t>(units, target_.sms * c.blocks);
    const double together = static_cast<double>(ceil_div(blocks, target_.sms));  // blocks of an SM
    const double plain = tile_cycles(c, together, d_.scaled), masked = tile_cycles(c, together, false);
    const auto& a = target_.model.attention;
    double fixed = a.tile_cycles + a.column_cycles * wide(d_.width);
    if (c.q_stages == 1 && units > target_.sms) fixed += a.late_rows_cycles;
    if (c.splits > 1 && !c.combines) fixed += a.parts_cycles + part_cycles() * static_cast<double>(c.splits);
    double sum = 0, longest = 0, shortest = 0;
    for (const KeyTiles& t : tiles_) {
      const auto all = static_cast<double>(t.last - t.first) / static_cast<double>(c.splits);
      const auto free = std::min(all, static_cast<double>(d_.scaled ? t.last - t.first : t.plain_last - t.plain_first));
      double unit = free * plain + (all - free) * masked + fixed;
      if (all <= 1) unit += multiply_cycles(c);  // beside which there is no other tile's softmax
      unit = std::max(unit, loaded_bytes(c, all) * together / a.l2_per_cycle);
      sum += unit, longest = std::max(longest, unit), shortest = shortest == 0 ? unit : std::min(shortest, unit);
    }
    const double mean = sum / static_cast<double>(tiles_.size());
    if (c.dynamic) {
      return std::max(longest, mean * static_cast<double>(units) / static_cast<double>(blocks)) + shortest / 2;
    }
    const auto rounds = static_cast<double>(ceil_div(units, blocks));
    // Blocks whose units are of different lengths end at different times.
    return is_even() || units <= blocks ? rounds * longest : std::max(longest, 1.15 * rounds * mean);
  }

  // What memory takes at least: all of it, or what a block keeps on its way.
  double memory_us(const AttentionConfig& c) const {
    const double bytes = memory_bytes(d_, keys_);
    constexpr double kReached = 0.9;
    const int64_t units = d_.batch * static_cast<int64_t>(tiles_.size()) * c.splits;
    const auto blocks = static_cast<double>(std::min<int64_t>(units, target_.sms));
    const double of_blocks = blocks * target_.model.chip.sm_gbps * 1e-3;
    return bytes / (std::min(kReached * target_.model.chip.read_tbps, of_blocks) * 1e6);
  }

  // What adding up the parts in a launch of its own takes.
  double combine_us() const { return target_.model.chip.graph_boundary_us + target_.model.attention.latency_us; }

 private:
  // Of one warpgroup that adds a part to its rows: more than 8 rows are read by one thread each.
  double part_cycles() const {
    constexpr int64_t kFewRows = 8, kGroupRows = 64;
    const auto& a = target_.model.attention;
    const double bytes = static_cast<double>(kGroupRows) * wide(d_.width) * sizeof(float);
    return a.part_cycles + (d_.m > kFewRows ? bytes / a.l2_per_cycle : 0);
  }
  static double wide(int64_t x) { return static_cast<double>(round_up(x, 16)); }
  static double elements(const AttentionConfig& c) { return 64.0 * static_cast<double>(c.tile_n); }
  double multiply_cycles(const AttentionConfig& c) const {
    return elements(c) * (wide(d_.depth) + wide(d_.width)) / target_.model.attention.products_per_cycle;
  }
  double tile_cycles(const AttentionConfig& c, double together, bool scaled) const {
    const auto& a = target_.model.attention;
    const double multiply = multiply_cycles(c);
    const double soften = elements(c) / a.exponentials_per_cycle + elements(c) * (scaled ? 4 : 9) / 128;
    // A warpgroup does one after the other, and waits between an instruction's result and the next's begin; several
    // fill each other's gaps.
    constexpr double kOthers = 1.08;
    const double groups = static_cast<double>(c.consumers) * together;
    return std::max(multiply + soften + a.wait_cycles, std::max(multiply, soften) * groups * kOthers + a.step_cycles);
  }
  double loaded_bytes(const AttentionConfig& c, double tiles) const {
    return (static_cast<double>(c.tile_m()) + tiles * static_cast<double>(c.tile_n)) *
           (wide(d_.depth) + wide(d_.width)) * kElement;
  }

  const AttentionDesc& d_;
  const CudaTarget& target_;
  std::vector<KeyTiles> tiles_;
  int64_t least_ = 1, most_ = 1;  // tiles of keys of the rows with the fewest, the most
  int64_t keys_ = 0;              // that any rows see
};

int64_t shared_bytes(const AttentionDesc& d, const AttentionConfig& c) {
  return tile::attention_shared_bytes(static_cast<int>(c.tile_m()), static_cast<int>(c.tile_n),
                                      static_cast<int>(round_up(d.depth, 16)), static_cast<int>(round_up(d.width, 16)),
                                      d.k_along_depth(), d.v_along_width(), static_cast<int>(c.q_stages),
                                      static_cast<int>(c.stages));
}

// Stages that fit the shared memory of a block; whether there are any.
bool fit_stages(const AttentionDesc& d, AttentionConfig& c, const CudaTarget& target) {
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
bool fits_registers(const AttentionDesc& d, const AttentionConfig& c) {
  constexpr int64_t kMost = 240, kLeastWithFunctor = 128;
  const tile::AttentionBudget budget =
      tile::attention_budget(static_cast<int>(c.consumers), static_cast<int>(c.blocks), c.dynamic);
  if (!d.scaled && budget.consumer < kLeastWithFunctor) return false;
  const int64_t width = round_up(d.width, 16);
  if (!d.scaled && width > 192 && c.splits > 1 && c.consumers > 1) return false;
  const int64_t beside_accumulators = d.scaled ? 30 : 34;
  int64_t others = c.consumers == 3 ? 32 : 40;
  if (!d.scaled) others = c.consumers == 3 ? 44 : width > 128 ? 66 : 62;
  return c.tile_n / 2 + c.tile_n / 4 + width / 2 <= std::min<int64_t>(budget.consumer, kMost) - others &&
         std::max(c.tile_n, width) / 2 + beside_accumulators <= budget.entry;
}

// Heads whose keys and values fit the L2 together, all query heads of each.
int64_t section_of(const AttentionDesc& d) {
  constexpr int64_t kBytes = 32 << 20;
  const int64_t group = shared_heads(d), heads = kBytes / (d.n * (d.depth + d.width) * kElement);
  return std::min(d.batch,
                  group * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(heads, 1)))));
}

// Into how many parts the keys of each of so many units may be cut: two tiles each, at least.
std::vector<int64_t> split_counts(int64_t units, int64_t tiles, const CudaTarget& target) {
  const int64_t most = std::min<int64_t>({target.sms / units, tiles / 2, 32});
  if (most < 2) return {1};
  return most > 3 ? std::vector<int64_t>{1, most / 2, most} : std::vector<int64_t>{1, most};
}

}  // namespace

std::vector<AttentionChoice> attention_candidates(const AttentionDesc& d, const CudaTarget& target, size_t most) {
  std::vector<AttentionChoice> result;
  Model model(d, target);
  const int64_t longest = std::min<int64_t>(round_up(d.n, 16), 256);
  const auto add = [&](AttentionConfig c) {
    const int64_t units = d.batch * ceil_div(d.m, c.tile_m()) * c.splits;
    if (c.blocks > 1 && units <= target.sms * (c.blocks - 1)) return;
    c.dynamic = !model.is_even() && units > target.sms * c.blocks;
    if (c.dynamic) c.section = section_of(d);
    if (!fits_registers(d, c) || !fit_stages(d, c, target)) return;
    AttentionChoice choice{c, std::max(model.cycles(c) / (target.model.chip.clock_ghz * 1e3), model.memory_us(c)), {}};
    choice.predicted_us += target.model.attention.first_load_us + (c.combines ? model.combine_us() : 0);
    result.push_back(choice);
  };
  for (const int64_t consumers : {1, 2, 3}) {
    if (consumers == 3 && std::max(d.depth, d.width) > 64) continue;
    for (int64_t tile_n = longest; tile_n >= 16; tile_n -= 16) {  // of equals the widest
      AttentionConfig c;
      c.consumers = consumers, c.tile_n = tile_n;
      model.set_tile(c.tile_m(), tile_n);
      const int64_t units = d.batch * ceil_div(d.m, c.tile_m());
      for (c.blocks = 1; c.blocks <= (consumers == 3 ? 1 : 3); ++c.blocks) {
        for (const int64_t splits : split_counts(units, model.least_tiles(), target)) {
          c.splits = splits;
          for (const bool combines : {false, true}) {
            c.combines = combines;
            if (splits > 1 || !combines) add(c);
          }
        }
      }
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const AttentionChoice& a, const AttentionChoice& b) { return a.predicted_us < b.predicted_us; });
  if (result.size() > most) result.resize(most);
  for (AttentionChoice& choice : result) {
    const AttentionConfig& c = choice.config;
    choice.reason = fmt::format("{}x{} s{} q{}{}{}{}{}, {:.1f} us predicted", c.tile_m(), c.tile_n, c.stages,
                                c.q_stages, c.blocks > 1 ? fmt::format(", {} blocks an SM", c.blocks) : "",
                                c.splits > 1 ? fmt::format(", keys in {} parts", c.splits) : "",
                                c.combines ? " that a second launch adds" : "", c.dynamic ? ", longest rows first" : "",
                                choice.predicted_us);
  }
  return result;
}

// Three boundaries, scores written and read in f32, probabilities in 16 bits; products that take as long as their
// operations or their operands do.
double separate_us(const AttentionDesc& d, const CudaTarget& target) {
  const double scores = static_cast<double>(d.batch) * static_cast<double>(d.m) * static_cast<double>(d.n);
  const double operations = 2 * scores * static_cast<double>(d.depth + d.width);
  constexpr double kBytes = 4 + 4 + 2 + 2;
  return 3 * (target.model.chip.graph_boundary_us + target.model.attention.latency_us) +
         scores * kBytes / (target.model.chip.copy_tbps * 1e6) +
         std::max(operations / target.model.attention.operations_per_us,
                  memory_bytes(d, d.n) / (target.model.chip.read_tbps * 1e6));
}

}  // namespace heddle::schedule
