#include "schedule/attention/cuda/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "heddle/error.h"
#include "schedule/attention/chain.h"
#include "schedule/attention/cuda/bounds.h"
#include "schedule/attention/cuda/choice.h"
#include "schedule/attention/cuda/mma_choice.h"
#include "schedule/attention/cuda/model.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kMostElements = 576;  // of a head: the kernels' code grows with them

// Why TMA does not read an operand; empty: it does. `lines` and `depth`: how many of each there are; `along_k`: memory
// is to be contiguous along the depth.
// `in_pages`: batches are pages and, in each, others.
std::string why_unreadable(const char* name, const OperandView& o, int64_t lines, int64_t depth, bool along_k,
                           bool in_pages) {
  if ((along_k ? o.k : o.row) != 1) return fmt::format("{} is not contiguous along its rows", name);
  // Batches that share an operand have no stride.
  const auto moves = [](const auto& batch) { return batch.second != 0; };
  const int most = in_pages ? 1 : 2;
  if (std::count_if(o.batch.begin() + (in_pages ? 1 : 0), o.batch.end(), moves) > most) {
    return fmt::format("the batches of {} have more than {} {}", name, most, in_pages ? "stride in a page" : "strides");
  }
  const auto aligned = [](int64_t elements) { return elements * kHalfBytes % kCopyBytes == 0; };
  bool all = aligned(o.offset) && ((along_k ? lines : depth) == 1 || aligned(along_k ? o.row : o.k));
  for (const auto& [extent, stride] : o.batch) all = all && aligned(stride);
  return all ? "" : fmt::format("the rows of {} do not begin at multiples of 16 bytes", name);
}

// Why the kernel of warpgroups does not serve an attention; empty: it does.
std::string why_not_by_warpgroups(const AttentionDesc& a, const Target& target) {
  if (!target.has_wgmma()) return "the target does not multiply by warpgroups";
  if (a.type == DType::kF32) return "operands of f32 are split or rounded on their way";
  const int64_t keys = a.keys_in_line();
  const bool in_pages = a.pages.has_value();
  for (const std::string& why : {why_unreadable("Q", a.q, a.m, a.depth, true, false),
                                 why_unreadable("K", a.k, keys, a.depth, a.k_along_depth(), in_pages),
                                 why_unreadable("V", a.v, a.width, keys, !a.v_along_width(), in_pages)}) {
    if (!why.empty()) return why;
  }
  return "";
}

class CudaAttention : public AttentionBackend {
 public:
  void check_target(const Target& target) const override {
    if (!target.has_tensor_cores() && !target.gpu().has_mfma()) {
      refuse_attention("its kernels multiply on tensor cores, which the target has not");
    }
  }
  void check(const AttentionDesc& a, const AttentionTypes& types) const override {
    const bool known = a.type == DType::kF16 || a.type == DType::kBF16 || a.type == DType::kF32;
    if (!known || a.k.dtype != a.type || a.v.dtype != a.type || types.weights != a.type) {
      refuse_attention("its operands are not all f16, all bf16 or all f32");
    }
    // Results are rounded to the operands' type, as the weights were, on their way to memory.
    if (types.result != a.type && types.result != DType::kF32) refuse_attention("its result is of another type");
    if (std::max(a.depth, a.width) > kMostElements) {
      refuse_attention(fmt::format("its heads have more than {} elements", kMostElements));
    }
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
    if (std::max({a.m, a.n, a.batch * 2 * fewest_panels(a) * (a.m / 64 + 1)}) > kMost)
      refuse_attention("it is too large");
  }
  bool reads_lengths() const override { return true; }
  int64_t lanes(const Target&) const override { return 8; }
  // By warpgroups where they can, or few rows: the others are for who asks for them.
  std::vector<Config> candidates(const AttentionDesc& attention, const Target& target) const override {
    constexpr size_t kMost = 24;
    std::vector<Config> configs = few_rows_candidates(attention, target.gpu(), kMost);
    const std::string why = why_not_by_warpgroups(attention, target);
    if (why.empty()) {
      for (Config& config : attention_candidates(attention, target.gpu(), kMost)) configs.push_back(std::move(config));
    }
    configs = least_predicted(std::move(configs), 2 * kMost);
    for (Config& config : mma_attention_candidates(attention, target.gpu(), kMost)) {
      if (target.has_wgmma() && !why.empty()) config.reason += fmt::format(" ({})", why);
      configs.push_back(std::move(config));
    }
    if (configs.empty()) refuse_attention("its tiles do not fit registers and shared memory");
    for (Config& config : configs) {
      const auto& c = config.as<CudaAttentionConfig>();
      config.reason += tiles_text(attention, c.tile_m(), c.tile_n);
    }
    return configs;
  }
  double separate_us(const AttentionDesc& attention, const Target& target) const override {
    return schedule::separate_us(attention, target.gpu());
  }
  std::string_view scores_place() const override { return "registers"; }
};

}  // namespace

const AttentionBackend& cuda_attention() {
  static const CudaAttention attention;
  return attention;
}

}  // namespace heddle::schedule
