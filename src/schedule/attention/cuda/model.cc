#include "schedule/attention/cuda/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

// Bytes of an operand that are read from memory once.
double distinct_bytes(const OperandView& o, int64_t lines, int64_t depth) {
  double bytes = static_cast<double>(lines * depth) * static_cast<double>(size_of(o.dtype));
  for (const auto& [extent, stride] : o.batch) bytes *= stride == 0 ? 1.0 : static_cast<double>(extent);
  return bytes;
}

// Of K and V, so many keys of each sequence.
double key_bytes(const AttentionDesc& d, int64_t keys) {
  if (!d.pages) return distinct_bytes(d.k, keys, d.depth) + distinct_bytes(d.v, keys, d.width);
  const auto of_sequence = [&](OperandView o, int64_t depth) {
    o.batch.erase(o.batch.begin());
    return distinct_bytes(o, keys, depth);
  };
  return static_cast<double>(d.batch / d.pages->heads) * (of_sequence(d.k, d.depth) + of_sequence(d.v, d.width));
}

// Of all operands, of K and V so many rows, and the result, once.
double memory_bytes(const AttentionDesc& d, int64_t keys) {
  return distinct_bytes(d.q, d.m, d.depth) + key_bytes(d, keys) +
         static_cast<double>(d.batch * d.m * d.width * element_bytes(d));
}

// Batches in a row that have their keys in common.
int64_t shared_heads(const AttentionDesc& d) {
  return !d.k.batch.empty() && d.k.batch.back().second == 0 ? d.k.batch.back().first : 1;
}

// Into how many parts the keys of each of so many units may be cut: two tiles each, at least.
std::vector<int64_t> split_counts(int64_t units, int64_t tiles, const GpuTarget& target) {
  const int64_t most = std::min<int64_t>({target.sms / units, tiles / 2, 32});
  if (most < 2) return {1};
  return most > 3 ? std::vector<int64_t>{1, most / 2, most} : std::vector<int64_t>{1, most};
}

}  // namespace

int64_t padded_head(int64_t elements) {
  constexpr int64_t kInstruction = 16;
  return round_up(elements, kInstruction);
}

int64_t panel_width(const AttentionDesc& d, const CudaAttentionConfig& c) {
  return padded_head(ceil_div(d.width, c.panels));
}

int64_t fewest_panels(const AttentionDesc& d) {
  return ceil_div(d.width, kPanelColumns);
}

std::vector<Config> with_fewest_panels(const AttentionDesc& d,
                                       const std::function<std::vector<Config>(int64_t panels)>& candidates) {
  const int64_t fewest = fewest_panels(d);
  std::vector<Config> result;
  for (int64_t panels = fewest; result.empty() && panels <= 2 * fewest; ++panels) result = candidates(panels);
  return result;
}

void AttentionModel::set_tile(int64_t tile_m, int64_t tile_n) {
  tiles_ = key_tiles(d_, tile_m, tile_n);
  const auto by_length = [](const KeyTiles& a, const KeyTiles& b) { return a.last - a.first < b.last - b.first; };
  const auto [least, most] = std::minmax_element(tiles_.begin(), tiles_.end(), by_length);
  least_ = least->last - least->first, most_ = most->last - most->first;
  int64_t first = tiles_[0].first, last = 0;
  for (const KeyTiles& t : tiles_) first = std::min(first, t.first), last = std::max(last, t.last);
  keys_ = std::min((last - first) * tile_n, d_.n);
}

int64_t AttentionModel::units(const CudaAttentionConfig& c) const {
  return d_.batch * c.panels * static_cast<int64_t>(tiles_.size()) * c.splits;
}

double AttentionModel::together(const CudaAttentionConfig& c) const {
  return static_cast<double>(ceil_div(std::min<int64_t>(units(c), target_.sms * c.blocks), target_.sms));
}

double AttentionModel::cycles(const CudaAttentionConfig& c, const AttentionTileCosts& costs) const {
  const int64_t blocks = std::min<int64_t>(units(c), target_.sms * c.blocks);
  const double of_sm = together(c), l2 = target_.model.attention.l2_per_cycle;
  double sum = 0, longest = 0, shortest = 0;
  for (const KeyTiles& t : tiles_) {
    const auto all = static_cast<double>(t.last - t.first) / static_cast<double>(c.splits);
    const auto free = std::min(all, static_cast<double>(d_.scaled ? t.last - t.first : t.plain_last - t.plain_first));
    double unit = free * costs.plain + (all - free) * costs.masked + costs.fixed;
    if (all <= 1) unit += costs.alone;
    unit = std::max(unit, loaded_bytes(c, all) * of_sm / l2);
    sum += unit, longest = std::max(longest, unit), shortest = shortest == 0 ? unit : std::min(shortest, unit);
  }
  const double mean = sum / static_cast<double>(tiles_.size());
  if (c.dynamic) {
    return std::max(longest, mean * static_cast<double>(units(c)) / static_cast<double>(blocks)) + shortest / 2;
  }
  const auto rounds = static_cast<double>(ceil_div(units(c), blocks));
  // Blocks whose units are of different lengths end at different times.
  return is_even() || units(c) <= blocks ? rounds * longest : std::max(longest, 1.15 * rounds * mean);
}

double AttentionModel::memory_us(const CudaAttentionConfig& c) const {
  const double bytes = memory_bytes(d_, keys_);
  constexpr double kReached = 0.9;
  const auto blocks = static_cast<double>(std::min<int64_t>(units(c), target_.sms));
  const double of_blocks = blocks * target_.model.chip.sm_gbps * 1e-3;
  return bytes / (std::min(kReached * target_.model.chip.read_tbps, of_blocks) * 1e6);
}

// Of 64 rows: more than 16 are read by one thread each.
double AttentionModel::parts_cycles(const CudaAttentionConfig& c) const {
  if (c.splits == 1 || c.combines) return 0;
  constexpr int64_t kFewRows = tile::kAttentionFewRows;
  const auto& a = target_.model.attention;
  const auto bytes = static_cast<double>(tile::kAttentionGroupRows * panel_width(d_, c)) * sizeof(float);
  const double part = a.part_cycles + (d_.m > kFewRows ? bytes / a.l2_per_cycle : 0);
  return a.parts_cycles + part * static_cast<double>(c.splits);
}

double AttentionModel::predicted_us(const CudaAttentionConfig& c, double cycles) const {
  const auto& a = target_.model.attention;
  const double combine = c.combines ? target_.model.chip.graph_boundary_us + a.latency_us : 0;
  const double cycles_per_us = target_.model.chip.clock_ghz * 1e3;
  return std::max(cycles / cycles_per_us, memory_us(c)) + a.first_load_us + parts_cycles(c) / cycles_per_us + combine;
}

void AttentionModel::for_splits(CudaAttentionConfig c, const std::function<void(const CudaAttentionConfig&)>& f) const {
  c.splits = 1;
  for (const int64_t splits : split_counts(units(c), least_, target_)) {
    c.splits = splits;
    for (const bool combines : {false, true}) {
      c.combines = combines;
      if (splits > 1 || !combines) f(c);
    }
  }
}

double AttentionModel::loaded_bytes(const CudaAttentionConfig& c, double tiles) const {
  return (static_cast<double>(c.tile_m()) + tiles * static_cast<double>(c.tile_n)) *
         static_cast<double>((padded_head(d_.depth) + panel_width(d_, c)) * element_bytes(d_));
}

int64_t section_of(const AttentionDesc& d) {
  constexpr int64_t kBytes = 32 << 20;
  const int64_t group = shared_heads(d), heads = kBytes / (d.n * (d.depth + d.width) * element_bytes(d));
  return std::min(d.batch,
                  group * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(heads, 1)))));
}

std::vector<Config> least_predicted(std::vector<Config> configs, size_t most) {
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
  if (configs.size() > most) configs.resize(most);
  return configs;
}

std::string parts_text(const CudaAttentionConfig& c) {
  std::string text = c.panels > 1 ? fmt::format(", columns in {} panels", c.panels) : "";
  if (c.splits > 1)
    text += fmt::format(", keys in {} parts{}", c.splits, c.combines ? " that a second launch adds" : "");
  return text;
}

// Three boundaries, scores written and read in f32, probabilities in the operands' type; products that take as long as
// their operations or their operands do.
double separate_us(const AttentionDesc& d, const GpuTarget& target) {
  const double scores = static_cast<double>(d.batch) * static_cast<double>(d.m) * static_cast<double>(d.n);
  const double operations = 2 * scores * static_cast<double>(d.depth + d.width);
  const auto bytes = static_cast<double>(2 * (sizeof(float) + size_of(d.type)));
  // Keys and values in pages are brought together first.
  const double gathers = d.pages ? 2 : 0;
  return (3 + gathers) * (target.model.chip.graph_boundary_us + target.model.attention.latency_us) +
         gathers * key_bytes(d, d.n) / (target.model.chip.copy_tbps * 1e6) +
         scores * bytes / (target.model.chip.copy_tbps * 1e6) +
         std::max(operations * multiply_cost(d) / target.model.attention.operations_per_us,
                  memory_bytes(d, d.n) / (target.model.chip.read_tbps * 1e6));
}

}  // namespace heddle::schedule
