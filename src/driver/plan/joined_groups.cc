#include "driver/plan/joined_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/thread/cancel.h"
#include "schedule/backend.h"
#include "schedule/recurrence/recurrent.h"

namespace heddle::driver {
namespace {

using ir::ValueId;
using Joined = std::map<size_t, JoinedGroups>;

// Loops that one kernel runs go where the last of them is: nothing in between reads what the others make.
void join_loops(const ir::Graph& graph, const ir::Grouping& grouping, const Target& target, Joined& joined) {
  const auto& groups = grouping.groups;
  const auto is_loop = [&](const ir::Group& group) {
    return group.kind == ir::GroupKind::kControl && graph.node(group.anchor).op == ir::Op::kLoop;
  };
  std::set<size_t> taken;
  for (size_t first = 0; first < groups.size(); ++first) {
    if (!is_loop(groups[first]) || taken.contains(first)) continue;
    std::vector<size_t> members{first};
    std::vector<ir::NodeId> loops{groups[first].anchor};
    JoinedGroups all;
    all.kernel = schedule::schedule_recurrence(graph, loops, target, &all.why);
    std::set<ValueId> made(groups[first].outputs.begin(), groups[first].outputs.end());
    for (size_t other = first + 1; all.kernel && other < groups.size(); ++other) {
      const auto& inputs = groups[other].inputs;
      if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return made.contains(v); })) break;
      if (!is_loop(groups[other]) || taken.contains(other)) continue;
      loops.push_back(groups[other].anchor);
      std::string why;
      if (auto more = schedule::schedule_recurrence(graph, loops, target, &why)) {
        all.kernel = std::move(more);
        members.push_back(other);
        made.insert(groups[other].outputs.begin(), groups[other].outputs.end());
      } else {
        loops.pop_back();
      }
    }
    taken.insert(members.begin(), members.end());
    for (const size_t member : members) joined[member].runs_at = members.back();
    joined[members.back()] = std::move(all);
    joined[members.back()].runs_at = members.back();
  }
}

// Products of equal form that do not depend on each other.
class ProductJoiner {
 public:
  ProductJoiner(const ir::Graph& graph, const ir::Grouping& grouping, GroupKernels& kernels, const Target& target,
                Joined& joined)
      : graph_(graph),
        groups_(grouping.groups),
        kernels_(kernels),
        target_(target),
        joined_(joined),
        readers_(graph.value_count()),
        maker_(graph.value_count(), kNobody) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto loop = joined.find(g);
      runs_at_.push_back(loop == joined.end() ? g : loop->second.runs_at);
      for (const ValueId v : groups_[g].inputs) readers_[v].push_back(g);
      for (const ValueId v : groups_[g].outputs) maker_[v] = g;
    }
  }

  void run() {
    std::map<std::string, std::vector<size_t>> alike;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (is_product(groups_[g])) alike[form_of(groups_[g])].push_back(g);
    }
    for (const auto& [form, candidates] : alike) {
      if (candidates.size() < 2) continue;
      std::vector<Product> products;
      for (const size_t g : candidates) {
        check_cancelled();
        if (auto kernel = kernel_of(g)) products.push_back({g, *std::move(kernel)});
      }
      for (size_t first = 0; first < products.size();) {
        const Set best = best_set(std::span(products).subspan(first));
        if (best.members.size() > 1) close(best);
        first += best.members.size();
      }
    }
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;
  static constexpr size_t kMost = 6;    // products in a launch; their tensor maps are arguments of the kernel
  static constexpr size_t kReach = 12;  // groups between the first and the last; operands wait so long in memory
  static constexpr double kLeastGain = 0.06;

  struct Product {
    size_t group;
    schedule::ScheduledKernel kernel;
  };
  // Products that run at the position of one of them.
  struct Set {
    std::vector<size_t> members;
    schedule::ScheduledKernel kernel;
    double apart_us;
    size_t runs_at;
  };

  bool is_product(const ir::Group& group) const {
    return group.kind == ir::GroupKind::kContraction && graph_.node(group.anchor).op == ir::Op::kDot &&
           group.outputs.size() == 1;
  }

  // Groups of one form are worth a closer look.
  std::string form_of(const ir::Group& group) const {
    std::string form;
    for (const ir::NodeId id : group.nodes) form += fmt::format("{} ", static_cast<int>(graph_.node(id).op));
    for (const ValueId v : group.inputs) form += ir::to_string(graph_.type(v)) + " ";
    return form + ir::to_string(graph_.type(group.outputs[0]));
  }

  // The only kernel of a group. nullopt: there are several, or none.
  std::optional<schedule::ScheduledKernel> kernel_of(size_t g) {
    try {
      const CompiledGroup& made = kernels_.make_early(groups_[g]);
      if (made.scheduled.kernels.size() != 1 || !made.scheduled.workspaces.empty()) return std::nullopt;
      made_[g] = {made.sources[0].symbol, made.sources[0].launches};
      return made.scheduled.kernels[0];
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnsupportedOperator || error.code() == ErrorCode::kUnsupportedType) {
        return std::nullopt;  // the plan says so
      }
      throw;
    }
  }

  // The position at which all members can run: behind everything that they read, and before everything that reads
  // their results.
  std::optional<size_t> position_of(const std::vector<size_t>& members) const {
    size_t ready = 0, needed = groups_.size();
    for (const size_t member : members) {
      for (const ValueId v : groups_[member].inputs) {
        if (maker_[v] != kNobody) ready = std::max(ready, runs_at_[maker_[v]] + 1);
      }
      for (const ValueId v : groups_[member].outputs) {
        for (const size_t reader : readers_[v]) {
          if (std::find(members.begin(), members.end(), reader) != members.end()) return std::nullopt;
          needed = std::min(needed, runs_at_[reader]);
        }
      }
    }
    const auto found = std::lower_bound(members.begin(), members.end(), ready);
    return found != members.end() && *found < needed ? std::optional(*found) : std::nullopt;
  }

  // The first products of the list that gain most side by side; the first one alone if none do.
  Set best_set(std::span<const Product> products) const {
    Set best{{products[0].group}, products[0].kernel, products[0].kernel.config.predicted_us, products[0].group};
    std::vector<size_t> members;
    std::vector<schedule::ScheduledKernel> kernels;
    double apart = 0, gain = 0;
    for (const Product& product : products.first(std::min(products.size(), kMost))) {
      if (product.group - products[0].group > kReach || made_.at(product.group) != made_.at(products[0].group)) break;
      members.push_back(product.group);
      kernels.push_back(product.kernel);
      apart += product.kernel.config.predicted_us;
      if (members.size() == 1) continue;
      const std::optional<size_t> position = position_of(members);
      if (!position) break;
      auto all = schedule::backend_of(target_).side_by_side(kernels, target_);
      if (!all) break;
      const double saved = apart - all->config.predicted_us;
      if (saved < std::max(gain, kLeastGain * apart)) continue;
      gain = saved;
      best = {members, *std::move(all), apart, *position};
    }
    return best;
  }

  void close(const Set& set) {
    schedule::ScheduledGroup kernel;
    kernel.notes.push_back(fmt::format("{}: {}, {:.1f} us predicted, {:.1f} us apart", set.kernel.label,
                                       schedule::name_of(set.kernel.config), set.kernel.config.predicted_us,
                                       set.apart_us));
    kernel.kernels.push_back(set.kernel);
    for (const size_t member : set.members) {
      joined_[member].runs_at = set.runs_at;
      runs_at_[member] = set.runs_at;
    }
    joined_[set.runs_at].kernel = std::move(kernel);
  }

  const ir::Graph& graph_;
  const std::vector<ir::Group>& groups_;
  GroupKernels& kernels_;
  const Target& target_;
  Joined& joined_;
  std::vector<size_t> runs_at_;                                             // by group
  std::vector<std::vector<size_t>> readers_;                                // by value: groups
  std::vector<size_t> maker_;                                               // by value: the group that makes it
  std::map<size_t, std::pair<std::string, std::vector<CudaLaunch>>> made_;  // by group: text and launches of its kernel
};

}  // namespace

std::map<size_t, JoinedGroups> join_groups(const ir::Graph& graph, const ir::Grouping& grouping, GroupKernels& kernels,
                                           const BuildContext& context) {
  Joined joined;
  if (context.fusion != passes::FusionPolicy::kStitch) return joined;
  if (schedule::backend_of(context.target).has_recurrences(context.target))
    join_loops(graph, grouping, context.target, joined);
  if (context.stitch.global && context.target.traits().merges_dots && context.numbers == nullptr) {
    ProductJoiner(graph, grouping, kernels, context.target, joined).run();
  }
  return joined;
}

}  // namespace heddle::driver
