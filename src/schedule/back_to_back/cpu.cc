#include "schedule/back_to_back/cpu.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/back_to_back/cpu_cost.h"
#include "schedule/back_to_back/cpu_links.h"
#include "schedule/backend.h"
#include "schedule/config/config_source.h"
#include "schedule/floor.h"
#include "schedule/product/blocking.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {
namespace {

// Numbers of rows that a link makes at a time.
using Counts = std::set<int64_t>;

// The greatest height of micro tiles of which, and of one row fewer, each of these numbers of rows can be made.
int64_t common_height(const Counts& counts, int64_t pixels, int64_t most) {
  for (int64_t height = most; height > 1; --height) {
    const auto fits = [&](int64_t count) {
      const int64_t rows = count * pixels;
      return rows >= ceil_div(rows, height) * (height - 1);
    };
    if (std::all_of(counts.begin(), counts.end(), fits)) return height;
  }
  return 1;
}

Config for_rows(const CpuLink& link, const Counts& counts, const Target& target) {
  const int64_t most = *counts.rbegin(), limit = micro_limits(target).rows;
  Config config = link.config;
  if (const auto* gemm = config.get<CpuGemmConfig>()) {
    CpuGemmConfig c = *gemm;
    c.micro_m = common_height(counts, link.pixels, limit);
    c.tile_m = most * link.pixels;
    config.choice = c;
  } else if (const auto* conv = config.get<CpuConvConfig>()) {
    CpuConvConfig c = *conv;
    c.rows = most;
    config.choice = c;
  } else if (const auto* winograd = config.get<CpuWinogradConfig>()) {
    const tile::WinogradShape& s = link.body().get<WinogradDesc>()->shape;
    CpuWinogradConfig c = *winograd;
    c.tiles = ceil_div(most, tile::kWinogradOut) * s.tiles_x();
    c.micro_m = tile::split_rows(c.tiles, limit).mr;
    config.choice = c;
  }
  return config;
}

std::vector<ScheduledKernel> kernels_of(const ir::Graph& graph, const std::vector<ir::Group>& parts,
                                        const Target& target) {
  std::vector<ScheduledKernel> kernels;
  for (const ir::Group& part : parts) {
    ContractionBuilder builder(graph, part, target, nullptr);
    builder.keep_rows();
    ScheduledGroup scheduled = backend_of(target).contraction(builder);
    if (scheduled.kernels.size() != 1) refuse_back_to_back("its weights are no constants");
    kernels.push_back(std::move(scheduled.kernels[0]));
  }
  return kernels;
}

// Values between the links move through caches only. A link whose floor exceeds its memory traffic's is bound by
// arithmetic.
double chain_floor(const ir::Graph& graph, const std::vector<ir::Group>& parts, const std::vector<ir::ValueId>& inner,
                   const std::vector<ScheduledKernel>& kernels, const Target& target) {
  double bytes = 0, arithmetic = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ScheduledKernel& kernel = kernels[i];
    const std::vector<double> moved = operand_traffic(graph, parts[i], kernel);
    const double all = std::accumulate(moved.begin(), moved.end(), 0.0);
    if (kernel.floor_seconds > least_seconds(all, target)) arithmetic += kernel.floor_seconds;
    for (size_t k = 0; k < moved.size(); ++k) {
      if (std::find(inner.begin(), inner.end(), kernel.bindings[k].value) == inner.end()) bytes += moved[k];
    }
  }
  return std::max(arithmetic, least_seconds(bytes, target));
}

// Strips and steps: rows of a step such that all of its maps take a part of the second-level cache, strips so that each
// thread has several.
std::vector<Config> candidates(const CpuBackToBackDesc& desc, const Target& target) {
  const CpuTarget& cpu = target.cpu;
  const CpuChainCosts costs(desc, target);
  const int64_t rows = desc.links.back().rows.rows, units = ceil_div(rows, desc.unit);
  std::set<std::pair<int64_t, int64_t>> tried;
  std::vector<Config> configs;
  const auto add = [&](int64_t strips, int64_t steps) {
    strips = std::clamp<int64_t>(strips, 1, units);
    steps = std::clamp<int64_t>(steps, 1, ceil_div(units, strips));
    if (!tried.emplace(strips, steps).second) return;
    const CpuBackToBackConfig c{strips, steps};
    const CpuChain chain = blocked_chain(desc, c, target);
    const int64_t bytes = chain.shape.buffer[chain.shape.links - 1];
    if (bytes > cpu.l2_bytes * 3 / 4) return;
    const double us = costs.one_kernel_us(chain);
    configs.push_back({c, chain.shape.tasks(),
                       fmt::format("{} rows a step ({} KiB of what is handed on stay in L2), {} steps a task, {} tasks "
                                   "for {} threads, {:.1f} us predicted",
                                   ceil_div(ceil_div(units, strips), steps) * desc.unit, bytes >> 10, steps,
                                   chain.shape.tasks(), cpu.threads, us),
                       us});
  };
  const int64_t wanted = cpu.threads <= 1 ? 1 : 4 * cpu.threads;
  for (const int64_t tasks : {wanted, 4 * wanted, int64_t{cpu.threads}}) {
    const int64_t strips = ceil_div(tasks, desc.images);
    for (const int64_t part : {8, 4, 16, 2, 32}) {
      // Steps so that a step's maps take a part of the cache.
      const CpuChain whole = blocked_chain(desc, {std::min(strips, units), 1}, target);
      const int64_t bytes = whole.shape.buffer[whole.shape.links - 1];
      add(strips, ceil_div(bytes, cpu.l2_bytes / part));
    }
  }
  if (configs.empty()) {
    refuse_back_to_back("rows that are handed on do not stay in the second-level cache");
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& x, const Config& y) { return x.predicted_us < y.predicted_us; });
  constexpr size_t kMost = 8;
  if (configs.size() > kMost) configs.resize(kMost);
  return configs;
}

std::string problem_text(const CpuBackToBackDesc& desc, const std::vector<std::string>& labels) {
  std::string text = fmt::format("cpu back to back, {} images", desc.images);
  for (size_t i = 0; i < labels.size(); ++i) {
    text += fmt::format("; {} {}", labels[i], name_of(desc.links[i].config));
  }
  return text;
}

}  // namespace

CpuChain blocked_chain(const CpuBackToBackDesc& desc, const CpuBackToBackConfig& config, const Target& target) {
  CpuChain chain;
  tile::ChainShape& s = chain.shape;
  s.images = desc.images, s.unit = desc.unit, s.strips = config.strips, s.steps = config.steps;
  s.links = static_cast<int>(desc.links.size());
  for (size_t i = 0; i < desc.links.size(); ++i) s.link[i] = desc.links[i].rows;
  std::array<Counts, tile::kMostLinks> counts;
  std::array<int64_t, tile::kMostLinks> most{};
  for (int64_t strip = 0; strip < s.strips; ++strip) {
    s.for_parts(strip, [&](int link, auto, tile::RowRange need, tile::RowRange make) {
      const auto i = static_cast<size_t>(link);
      if (make.count() > 0) counts[i].insert(make.count());
      most[i] = std::max(most[i], need.count());
    });
  }
  int64_t at = 0;
  for (size_t i = 0; i < desc.links.size(); ++i) {
    s.buffer[i] = at;
    if (i + 1 < desc.links.size()) at = round_up(at + most[i] * s.link[i].row_bytes, 64);
    chain.links.push_back(for_rows(desc.links[i], counts[i], target));
  }
  return chain;
}

namespace {

class CpuBackToBack : public BackToBackBackend {
 public:
  ScheduledGroup schedule(const ir::Graph& graph, const BackToBackForm& form, const Target& target,
                          ConfigSource* configs) const override {
    std::vector<ir::Group> parts;
    std::vector<ir::ValueId> inner;
    take_apart(graph, form, parts, inner);
    if (configs != nullptr && configs->for_any_extents()) return apart(graph, parts, inner, target, configs);
    std::vector<ScheduledKernel> kernels = kernels_of(graph, parts, target);
    std::vector<std::string> labels;
    for (const ScheduledKernel& kernel : kernels) labels.push_back(kernel.label);
    const double floor = chain_floor(graph, parts, inner, kernels, target);
    CpuChainParts chain = link_kernels(std::move(kernels), inner);
    const Config config =
        choose_config(configs, {problem_text(chain.desc, labels)}, [&] { return candidates(chain.desc, target); });
    ScheduledGroup result;
    const std::string label = fmt::format("{}", fmt::join(labels, " -> "));
    result.notes = {label + ": " + config.reason};
    ScheduledKernel kernel{{std::move(chain.operands), {}}, config, std::move(chain.bindings), label, floor};
    kernel.desc.body = std::make_shared<const CpuBackToBackDesc>(std::move(chain.desc));
    result.kernels.push_back(std::move(kernel));
    return result;
  }

  BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const override {
    std::vector<ir::Group> parts;
    std::vector<ir::ValueId> inner;
    take_apart(graph, form, parts, inner);
    const CpuChainParts chain = link_kernels(kernels_of(graph, parts, target), inner);
    const CpuChainCosts costs(chain.desc, target);
    if (costs.saved_bytes() <= static_cast<double>(target.cpu.l2_bytes)) {
      refuse_back_to_back("what lies between is so small that it stays in the second-level cache anyway");
    }
    BackToBackTimes times{candidates(chain.desc, target).front().predicted_us, costs.apart_us()};
    if (parts.size() > 2) {  // all but the last are one kernel already
      CpuBackToBackDesc before = chain.desc;
      before.links.pop_back();
      times.two_kernels += candidates(before, target).front().predicted_us - CpuChainCosts(before, target).apart_us();
    }
    return times;
  }
  double least_gain() const override { return kLeastGain; }

 private:
  static constexpr double kLeastGain = 1.15;

  static void take_apart(const ir::Graph& graph, const BackToBackForm& form, std::vector<ir::Group>& parts,
                         std::vector<ir::ValueId>& inner) {
    if (form.first.kind == ir::GroupKind::kBackToBack) {
      take_apart(graph, back_to_back_form(graph, form.first), parts, inner);
    } else {
      parts.push_back(form.first);
    }
    inner.push_back(form.inner);
    parts.push_back(form.second);
    if (parts.size() > tile::kMostLinks)
      refuse_back_to_back(fmt::format("a kernel runs {} contractions at most", tile::kMostLinks));
  }

  // Kernels for any extents, which other plans share: one for each contraction.
  static ScheduledGroup apart(const ir::Graph& graph, const std::vector<ir::Group>& parts,
                              const std::vector<ir::ValueId>& inner, const Target& target, ConfigSource* configs) {
    ScheduledGroup result;
    for (const ir::Group& part : parts) {
      ScheduledGroup scheduled = schedule_contraction(graph, part, target, configs);
      const auto before = static_cast<uint32_t>(result.workspaces.size());
      for (ScheduledKernel& kernel : scheduled.kernels) {
        for (Binding& b : kernel.bindings) {
          if (b.kind == Binding::Kind::kWorkspace) b.workspace += before;
        }
        result.kernels.push_back(std::move(kernel));
      }
      result.workspaces.insert(result.workspaces.end(), scheduled.workspaces.begin(), scheduled.workspaces.end());
      result.notes.insert(result.notes.end(), scheduled.notes.begin(), scheduled.notes.end());
    }
    for (const ir::ValueId value : inner) {
      const auto index = static_cast<uint32_t>(result.workspaces.size());
      result.workspaces.push_back(
          {element_count(graph.shape(value)) * static_cast<int64_t>(size_of(graph.dtype(value)))});
      for (ScheduledKernel& kernel : result.kernels) {
        for (Binding& b : kernel.bindings) {
          if (b.kind == Binding::Kind::kValue && b.value == value) b = {Binding::Kind::kWorkspace, 0, index};
        }
      }
    }
    return result;
  }
};

}  // namespace

const BackToBackBackend& cpu_back_to_back() {
  static const CpuBackToBack backend;
  return backend;
}

}  // namespace heddle::schedule
