#include "cli/commands/overview.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/interface/option.h"
#include "base/printable.h"
#include "cli/support.h"
#include "driver/model/kernel_times.h"

namespace heddle::cli {
namespace {

using driver::CompileReport;
using driver::GroupReport;
using driver::KernelReport;

// Kernels with one label: the same work in every layer.
struct Share {
  std::string label;
  double seconds = 0;
  int64_t launches = 0;
};

// Kernels with one label that take several times their floor.
struct Far {
  std::string label;
  driver::Excess excess;
  double lost = 0;  // seconds of one run beyond the floor
  int64_t launches = 0;
};

struct Overview {
  bool measured = false, gpu = false;
  size_t kernels = 0, views = 0, reference_groups = 0;
  int64_t bytes_inside = 0;
  double seconds = 0, memory_seconds = 0;  // of one run; of it what moves data and computes little
  std::vector<Share> shares;               // longest first
  std::vector<Far> far;                    // what loses most first
  std::string reference;                   // the operators of the first reference group, and why
};

class Reader {
 public:
  explicit Reader(const CompileReport& report) : report_(report), times_(report) {
    overview_.gpu = report.target.starts_with("cuda");
    overview_.measured = times_.measured();
  }

  Overview read() {
    std::vector<int64_t> runs = {1};  // by depth: how often a body runs in one run of the model
    for (const GroupReport& group : report_.groups) {
      runs.resize(static_cast<size_t>(group.depth) + 1);
      add(group, runs.back());
      if (group.kind == ir::GroupKind::kControl) runs.push_back(runs.back() * std::max<int64_t>(group.trips, 1));
    }
    for (auto& [label, share] : by_label_) overview_.shares.push_back(std::move(share));
    std::stable_sort(overview_.shares.begin(), overview_.shares.end(),
                     [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
    for (auto& [label, far] : far_by_label_) overview_.far.push_back(std::move(far));
    std::stable_sort(overview_.far.begin(), overview_.far.end(),
                     [](const Far& a, const Far& b) { return a.lost > b.lost; });
    return std::move(overview_);
  }

 private:
  void add(const GroupReport& group, int64_t runs) {
    overview_.bytes_inside += group.bytes_inside * runs;
    if (group.view) ++overview_.views;
    const bool reference = !group.view && (group.kind == ir::GroupKind::kReference || !group.fallback.empty());
    if (reference && overview_.reference_groups++ == 0) {
      overview_.reference = group.ops + (group.fallback.empty() ? "" : ": " + group.fallback);
    }
    if (group.measured_seconds > 0) add_share(group.ops, group.measured_seconds, runs, false);
    for (const KernelReport& kernel : group.kernels) {
      ++overview_.kernels;
      const bool moves =
          group.kind == ir::GroupKind::kStitch || group.kind == ir::GroupKind::kTile || kernel.moves_memory;
      add_share(kernel.label, times_.seconds(kernel), runs, moves);
      add_far(kernel, runs);
    }
  }

  void add_far(const KernelReport& kernel, int64_t runs) {
    const auto excess = times_.excess(kernel);
    if (!excess) return;
    Far& far = far_by_label_.try_emplace(kernel.label, Far{kernel.label, *excess}).first->second;
    far.lost += (times_.seconds(kernel) - times_.floor(kernel)) * static_cast<double>(runs);
    far.launches += runs;
  }

  void add_share(const std::string& label, double seconds, int64_t runs, bool moves) {
    const double all = seconds * static_cast<double>(runs);
    Share& share = by_label_.try_emplace(label, Share{label}).first->second;
    share.seconds += all;
    share.launches += runs;
    overview_.seconds += all;
    if (moves) overview_.memory_seconds += all;
  }

  const CompileReport& report_;
  const driver::KernelTimes times_;
  Overview overview_;
  std::map<std::string, Share> by_label_;
  std::map<std::string, Far> far_by_label_;
};

double percent(double part, double all) {
  return all > 0 ? 100 * part / all : 0;
}

std::string plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_fused(const CompileReport& report, const Overview& o) {
  const bool is_ir = report.model_nodes == 0;  // textual IR: nodes have no origin
  print_line(fmt::format("fused        {} -> {} ({} distinct){}; {} of memory traffic per run saved",
                         plural(is_ir ? report.nodes_imported : report.model_nodes, is_ir ? "primitive" : "operator"),
                         plural(o.kernels, "kernel"), report.distinct_kernels,
                         o.views > 0 ? fmt::format(", {} that need no kernel", o.views) : "",
                         human_bytes(static_cast<double>(o.bytes_inside))));
}

void print_time(const Overview& o) {
  constexpr size_t kShown = 3, kText = 84;
  const char* title = "time";
  for (size_t i = 0; i < std::min(kShown, o.shares.size()); ++i) {
    const Share& share = o.shares[i];
    const std::string times = share.launches > 1 ? fmt::format("{} x ", share.launches) : "";
    print_line(fmt::format("{:12} {:3.0f}%  {}", title, percent(share.seconds, o.seconds),
                           clipped(printable(times + share.label), kText)));
    title = "";
  }
}

// The most frequent reason for which a fusion was refused.
std::string refused(const CompileReport& report) {
  std::map<std::string, std::pair<size_t, std::string>> reasons;
  size_t all = 0;
  for (const ir::Decision& decision : report.decisions) {
    if (decision.yes || decision.rule == "compile") continue;
    auto& [count, example] = reasons.try_emplace(decision.reason, 0, decision.what).first->second;
    ++count, ++all;
  }
  if (all == 0) return "";
  const auto most = std::max_element(reasons.begin(), reasons.end(),
                                     [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  return fmt::format("{} refused, {} because {}", plural(all, "fusion"), most->second.first, most->first);
}

void print_held_back(const CompileReport& report, const Overview& o) {
  const char* title = "held back by";
  const auto say = [&](const std::string& text) {
    print_line(fmt::format("{:12} {}", title, printable(text)));
    title = "";
  };
  if (o.reference_groups > 0) {
    say(fmt::format("{} without a kernel, by the slow reference evaluator: {}", plural(o.reference_groups, "group"),
                    clipped(printable(o.reference), 104)));
  }
  if (o.seconds > 0) {
    const double memory = std::min(percent(o.memory_seconds, o.seconds), 100.0);  // sums round
    say(fmt::format("arithmetic of matrix products and convolutions {:.0f}%, memory {:.0f}% of the time", 100 - memory,
                    memory));
  }
  if (!o.far.empty()) {
    const Far& most = o.far.front();
    int64_t launches = 0;
    for (const Far& far : o.far) launches += far.launches;
    constexpr size_t kLabel = 48;
    say(fmt::format("{} over {:.0f} times their floor; {} x {} ({:.1f} times): {}",
                    plural(static_cast<size_t>(launches), "kernel"), driver::KernelTimes::kFar, most.launches,
                    clipped(printable(most.label), kLabel), most.excess.times, most.excess.why));
  }
  const bool room = o.far.empty() || o.reference_groups == 0;
  if (const std::string text = refused(report); room && !text.empty()) say(text);
}

// Prints how products of quantised operands are computed, and by how much their weights shrink.
void print_quantised(const CompileReport& report) {
  using Form = passes::QuantisedProduct::Form;
  std::map<std::pair<Form, int64_t>, size_t> counts;
  std::map<std::string, std::pair<size_t, std::string>> reasons;  // and an example
  int64_t saved = 0;
  for (const passes::QuantisedProduct& product : report.quantised) {
    ++counts[{product.form, product.bits}];
    saved += product.saved_bytes;
    if (product.form == Form::kFloats) ++reasons.try_emplace(product.reason, 0, product.what).first->second.first;
  }
  if (counts.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [key, count] : counts) {
    const auto& [form, bits] = key;
    if (form == Form::kIntegers) parts.push_back(fmt::format("{} in {} bits", plural(count, "product"), bits));
    if (form == Form::kPacked) parts.push_back(fmt::format("{} with weights of {} bits", count, bits));
  }
  if (saved > 0) parts.push_back(fmt::format("weights are {} smaller", human_bytes(static_cast<double>(saved))));
  for (const auto& [reason, some] : reasons) {
    parts.push_back(fmt::format("{} in floats because {}: {}", some.first, reason, some.second));
  }
  print_line(fmt::format("quantised    {}", printable(fmt::format("{}", fmt::join(parts, ", ")))));
}

// Whether products are of f32 that a narrower type could stand in for.
bool multiplies_f32(const CompileReport& report) {
  return std::any_of(report.groups.begin(), report.groups.end(), [](const GroupReport& group) {
    const bool multiplies = group.kind == ir::GroupKind::kContraction || group.kind == ir::GroupKind::kAttention ||
                            group.kind == ir::GroupKind::kBackToBack;
    return multiplies && std::any_of(group.kernels.begin(), group.kernels.end(), [](const KernelReport& kernel) {
             return !kernel.operands.empty() && kernel.operands.front().dtype == DType::kF32;
           });
  });
}

// What fits this run: nothing that it has already.
std::vector<std::string> advice(const CompileReport& report, const Overview& o) {
  std::vector<std::string> list;
  if (report.has_guess) list.push_back(option::shape() + " for your own extents");
  if (!report.takes_tuned) {
    list.push_back(option::tuned());
  } else if (report.contractions > report.tuned) {
    const driver::Asked defaults, &asked = report.asked;
    std::vector<std::string> options;
    if (asked.target != defaults.target) options.push_back(option::target(asked.target));
    if (asked.precision != defaults.precision) options.push_back(option::precision(asked.precision));
    if (asked.threads != defaults.threads) options.push_back(option::threads(asked.threads));
    list.push_back(option::tune(options));
  }
  const bool narrow = o.gpu || report.target.find("-bf16true") != std::string::npos;
  if (narrow && o.memory_seconds < o.seconds && multiplies_f32(report)) list.push_back(option::precision("bf16"));
  for (std::string& more : option::explain_more(o.measured)) list.push_back(std::move(more));
  return list;
}

}  // namespace

void print_overview(const CompileReport& report) {
  const Overview o = Reader(report).read();
  const std::string machine = driver::machine_of(report.target);
  const std::string place =
      o.gpu ? machine : fmt::format("{}, {}", machine, plural(static_cast<size_t>(report.threads), "thread"));
  print_line(fmt::format("{} on {}: one run takes {} ({})", report.model, place, human_seconds(o.seconds),
                         o.measured ? "measured, kernels alone" : "predicted"),
             Style::kBold);
  print_fused(report, o);
  print_time(o);
  print_held_back(report, o);
  print_quantised(report);
  print_line(fmt::format("memory       weights {}, intermediate values {}",
                         human_bytes(static_cast<double>(report.constant_bytes)),
                         human_bytes(static_cast<double>(report.arena_bytes))));
  print_line(fmt::format("try          {}", fmt::join(advice(report, o), ", ")));
}

}  // namespace heddle::cli
