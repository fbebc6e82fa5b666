#include "driver/report/inside/sample_inside.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/clock.h"
#include "codegen/text/line_nodes.h"
#include "driver/report/node_work.h"
#include "jit/library.h"
#include "profile/code/elf.h"
#include "profile/code/line_table.h"
#include "profile/code/sampler.h"
#include "schedule/backend.h"

namespace heddle::driver {
namespace {

constexpr double kFewest = 100;  // samples of a kernel that shares are made of

// The same graph, in which the kinds of nodes say which node it is.
ir::Graph tagged(const ir::Graph& graph) {
  ir::Graph copy;
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == ir::Op::kParameter) {
      copy.parameter(node.attrs);
    } else {
      copy.add(node.op, node.inputs, node.attrs, {copy.origin({"", codegen::node_tag(id)})});
    }
  }
  for (const auto& port : graph.outputs()) copy.output(port.name, port.value, port.alias);
  return copy;
}

// By line of a text: positions of nodes in their group.
using LineMap = std::vector<std::vector<size_t>>;

LineMap line_map(const std::string& text, const ir::Group& group, bool is_region) {
  LineMap map;
  for (const std::vector<uint32_t>& nodes : codegen::nodes_by_line(text)) {
    map.emplace_back();
    for (const uint32_t node : nodes) {
      const auto at = std::find(group.nodes.begin(), group.nodes.end(), node);
      if (at != group.nodes.end()) map.back().push_back(static_cast<size_t>(at - group.nodes.begin()));
    }
  }
  // What a generated loop nest does beside is for the value that comes next. Elsewhere it may be the template's.
  for (size_t i = map.size(); is_region && i-- > 1;) {
    if (map[i - 1].empty()) map[i - 1] = map[i];
  }
  return map;
}

// A kernel that several nodes share, and what was sampled in it.
struct Inside {
  const ir::Group* group = nullptr;      // that its lines were found for
  std::map<std::string, LineMap> lines;  // by symbol: its own text, and those that it calls
  std::vector<double> samples;           // by node of the group
  double elsewhere = 0;                  // samples at lines of no node
};

bool alike(const ir::Graph& graph, const ir::Group& a, const ir::Group& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [&](ir::NodeId x, ir::NodeId y) { return graph.node(x).op == graph.node(y).op; });
}

// Kernels by symbol.
class Kernels {
 public:
  Kernels(const CompiledModel& model, const Target& target) : model_(model), target_(target), tuned_(target, true) {
    for (size_t step = 0; step < model.plan->steps.size(); ++step) add(step);
  }

  bool empty() const { return kernels_.empty(); }
  std::map<std::string, Inside>& all() { return kernels_; }
  const ir::Group* group_of(size_t step) const {
    const auto group = static_cast<size_t>(model_.built.step_group[step]);
    return group < model_.built.grouping.groups.size() ? &model_.built.grouping.groups[group] : nullptr;
  }
  // Null: the step has no kernel, or one whose lines are not known.
  Inside* of(size_t step) {
    const auto* kernel = std::get_if<runtime::KernelStep>(&model_.plan->steps[step].action);
    if (kernel == nullptr) return nullptr;
    const auto found = kernels_.find(kernel->symbol);
    return found == kernels_.end() ? nullptr : &found->second;
  }

 private:
  void add(size_t step) {
    const ir::Group* group = group_of(step);
    const auto* kernel = std::get_if<runtime::KernelStep>(&model_.plan->steps[step].action);
    if (group == nullptr || kernel == nullptr || kernels_.contains(kernel->symbol)) return;
    if (group->kind == ir::GroupKind::kTile || !has_several(*group)) return;
    for (codegen::KernelSource& source : write_again(*group)) {
      if (!wanted(source.symbol)) continue;
      Inside inside{group, {}, std::vector<double>(group->nodes.size()), 0};
      const bool is_region = group->kind == ir::GroupKind::kStitch;
      inside.lines.emplace(source.symbol, line_map(source.text, *group, is_region));
      for (const codegen::KernelText& other : source.others) {
        inside.lines.emplace(other.symbol, line_map(other.text, *group, is_region));
      }
      kernels_.emplace(source.symbol, std::move(inside));
    }
  }

  bool has_several(const ir::Group& group) const {
    std::set<ir::OriginId> origins;
    for (const ir::NodeId id : group.nodes) {
      const auto& own = model_.optimised->node(id).origins;
      origins.insert(own.begin(), own.end());
    }
    return origins.size() > 1;
  }
  bool wanted(const std::string& symbol) const {
    const auto& steps = model_.plan->steps;
    return !kernels_.contains(symbol) && std::any_of(steps.begin(), steps.end(), [&](const runtime::Step& step) {
      const auto* kernel = std::get_if<runtime::KernelStep>(&step.action);
      return kernel != nullptr && kernel->symbol == symbol;
    });
  }

  // By the tuner's and the cost model's choices: a kernel that was made by other options has another symbol, and is
  // left to the estimate.
  std::vector<codegen::KernelSource> write_again(const ir::Group& group) {
    if (!graph_) graph_ = tagged(*model_.optimised);
    std::vector<codegen::KernelSource> sources;
    try {
      const schedule::ScheduledGroup scheduled =
          schedule::backend_of(target_).bundled(schedule::schedule(*graph_, group, target_, &tuned_), target_);
      for (const schedule::ScheduledKernel& kernel : scheduled.kernels) {
        sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target_), target_));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupportedOperator) throw;
    }
    return sources;
  }

  const CompiledModel& model_;
  const Target& target_;
  TunedConfigs tuned_;
  std::optional<ir::Graph> graph_;
  std::map<std::string, Inside> kernels_;
};

// Where the texts of kernels lie in the units of a library.
class Units {
 public:
  Units(const LinedLibrary& library, const KernelSet& kernels, const std::set<std::string>& symbols) {
    for (size_t unit = 0; unit < library.units.size(); ++unit) {
      const std::string& all = library.units[unit];
      for (const std::string& symbol : symbols) {
        const std::string text = codegen::without_comments(kernels.text_of(symbol).text);
        const size_t at = all.find(text);
        if (at == std::string::npos) continue;
        const auto first = static_cast<size_t>(std::count(all.begin(), all.begin() + static_cast<int64_t>(at), '\n'));
        const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
        texts_[fmt::format("k{}.cc", unit)].push_back({first, first + lines, symbol});
      }
    }
  }

  // The text, and its line from 0, of the innermost of some places that lies in one.
  std::optional<std::pair<std::string, size_t>> text_at(const std::vector<profile::code::Place>& places) const {
    for (const profile::code::Place& place : places) {
      const auto unit = texts_.find(std::string(place.file));
      if (unit == texts_.end() || place.line == 0) continue;
      for (const Text& text : unit->second) {
        if (text.begin < place.line && place.line <= text.end) {
          return std::pair(text.symbol, static_cast<size_t>(place.line) - 1 - text.begin);
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Text {
    size_t begin, end;  // lines of the unit, from 0
    std::string symbol;
  };
  std::map<std::string, std::vector<Text>> texts_;  // by file
};

// What a node's part of a line weighs beside others of the line.
double weight_of(const ir::Graph& graph, const ir::Node& node) {
  const bool counted = ir::is_elementwise(node.op);
  return counted ? std::max(1.0, static_cast<double>(ir::cost_of(node.op).cycles(graph.dtype(node.outputs[0])))) : 1.0;
}

void count(Inside& kernel, const ir::Graph& graph, const std::optional<std::pair<std::string, size_t>>& at) {
  const auto text = at ? kernel.lines.find(at->first) : kernel.lines.end();
  const bool known = text != kernel.lines.end() && at->second < text->second.size();
  if (!known || text->second[at->second].empty()) {
    ++kernel.elsewhere;
    return;
  }
  const std::vector<size_t>& nodes = text->second[at->second];
  const auto weight = [&](size_t node) { return weight_of(graph, graph.node(kernel.group->nodes[node])); };
  double sum = 0;
  for (const size_t node : nodes) sum += weight(node);
  for (const size_t node : nodes) kernel.samples[node] += weight(node) / sum;
}

// Samples at no node's line are those of the nodes that have no line: the product in front of an epilogue.
std::vector<double> shares_in(const Inside& kernel, const ir::Graph& graph, const Target& target) {
  const double total = std::accumulate(kernel.samples.begin(), kernel.samples.end(), kernel.elsewhere);
  if (total < kFewest) return {};
  std::vector<bool> has_line(kernel.samples.size());
  for (const auto& [symbol, lines] : kernel.lines) {
    for (const std::vector<size_t>& nodes : lines) {
      for (const size_t node : nodes) has_line[node] = true;
    }
  }
  const double rate = target.cpu.peak_gflops() * 1e9 * target.cpu.threads;
  std::vector<double> rest = shares_of(work_of(graph, *kernel.group), target.cpu.copy_gbps * 1e9, rate);
  for (size_t i = 0; i < rest.size(); ++i) {
    if (has_line[i]) rest[i] = 0;
  }
  double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
  // Several of them, as in an attention or in products back to back, would be told apart by the estimate alone.
  constexpr double kMuch = 0.1;
  const auto large = std::count_if(rest.begin(), rest.end(), [&](double share) { return share > kMuch * sum; });
  if (large > 1 && kernel.elsewhere > kMuch * total) return {};
  if (sum <= 0) {
    rest = kernel.samples;
    sum = total - kernel.elsewhere;
  }
  if (sum <= 0) return {};
  std::vector<double> shares;
  for (size_t i = 0; i < rest.size(); ++i) {
    shares.push_back((kernel.samples[i] + kernel.elsewhere * rest[i] / sum) / total);
  }
  return shares;
}

// None, and why, where another profile of this process is taking samples.
std::vector<profile::code::Sample> samples_of(double seconds, const RunSteps& run, std::string& why) {
  constexpr int64_t kPeriod = 200'000;
  constexpr size_t kMost = 1 << 16;
  constexpr uint32_t kNoStep = 0;
  std::optional<profile::code::Sampler> sampler;
  try {
    sampler.emplace(kPeriod, kMost);
  } catch (const Error& error) {
    why = error.why();
    return {};
  }
  sampler->set_context(kNoStep);
  const double begin = wall_seconds();
  do {
    run([&](int64_t step) { sampler->set_context(static_cast<uint32_t>(step + 1)); });
  } while (wall_seconds() - begin < seconds);
  sampler->stop();
  return sampler->samples();
}

}  // namespace

std::string InsideShares::fact() const {
  if (!why_none.empty()) return "no samples: " + why_none;
  const auto steps = std::count_if(by_step.begin(), by_step.end(), [](const auto& shares) { return !shares.empty(); });
  return fmt::format("{} kernels of several nodes divided by samples, {} in all", steps, samples);
}

InsideShares sample_inside(const CompiledModel& model, const Target& target, double seconds, const RunSteps& run) {
  InsideShares result;
  result.by_step.resize(model.plan->steps.size());
  Kernels kernels(model, target);
  if (kernels.empty()) return result;

  const std::string& plain = model.plan->library;
  LinedLibrary lined;
  profile::code::LineTable table;
  try {
    lined = compile_lined_library(model.kernels, target.cpu, Target::host_cpu().cpu.threads);
    table = profile::code::LineTable::of(lined.bytes);
  } catch (const Error& error) {
    result.why_none = error.why();
    return result;
  }
  const profile::code::Section text = profile::code::section_of(plain, ".text");
  const profile::code::Section same = profile::code::section_of(lined.bytes, ".text");
  if (text.bytes != same.bytes || text.address != same.address) {
    result.why_none = "the compiler makes other code when it writes tables of lines";
    return result;
  }
  std::set<std::string> symbols;
  for (const auto& [symbol, kernel] : kernels.all()) {
    for (const auto& [of_text, lines] : kernel.lines) symbols.insert(of_text);
  }
  const Units units(lined, model.kernels, symbols);
  // Equal bytes are one library: this is the one that the executor runs.
  const auto library = jit::Library::load(plain);
  Dl_info object = {};
  if (::dladdr(reinterpret_cast<void*>(library->find(kernels.all().begin()->first)), &object) == 0) {
    result.why_none = "the loader does not say where the kernels lie";
    return result;
  }
  const auto base = reinterpret_cast<uint64_t>(object.dli_fbase);

  std::map<uint64_t, std::optional<std::pair<std::string, size_t>>> known;  // by address
  for (const profile::code::Sample& sample : samples_of(seconds, run, result.why_none)) {
    const uint64_t address = sample.pc - base;
    const bool inside = sample.context > 0 && address - text.address < text.bytes.size();
    Inside* const kernel = inside ? kernels.of(sample.context - 1) : nullptr;
    if (kernel == nullptr) continue;
    auto found = known.find(address);
    if (found == known.end()) found = known.emplace(address, units.text_at(table.at(address))).first;
    count(*kernel, *model.optimised, found->second);
    ++result.samples;
  }
  for (size_t step = 0; step < result.by_step.size(); ++step) {
    const Inside* const kernel = kernels.of(step);
    const ir::Group* const group = kernels.group_of(step);
    if (kernel == nullptr || group == nullptr || !alike(*model.optimised, *group, *kernel->group)) continue;
    result.by_step[step] = shares_in(*kernel, *model.optimised, target);
  }
  return result;
}

}  // namespace heddle::driver
