#include "driver/report/inside/fused_kernels.h"

#include <algorithm>
#include <numeric>

#include "codegen/text/line_nodes.h"
#include "runtime/executor.h"
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

bool alike(const ir::Graph& graph, const ir::Group& a, const ir::Group& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [&](ir::NodeId x, ir::NodeId y) { return graph.node(x).op == graph.node(y).op; });
}

// What a node's part of a line weighs beside others of the line.
double weight_of(const ir::Graph& graph, const ir::Node& node) {
  const bool counted = ir::is_elementwise(node.op);
  return counted ? std::max(1.0, static_cast<double>(ir::cost_of(node.op).cycles(graph.dtype(node.outputs[0])))) : 1.0;
}

// Symbols of what a step runs.
std::vector<std::string> symbols_in(const runtime::Step& step) {
  std::vector<std::string> symbols;
  if (const auto* kernel = std::get_if<runtime::KernelStep>(&step.action)) symbols.push_back(kernel->symbol);
  if (const auto* cuda = std::get_if<runtime::CudaStep>(&step.action)) {
    for (const CudaLaunch& launch : cuda->launches) symbols.push_back(launch.symbol);
  }
  return symbols;
}

// Makes these numbers arguments, if a kernel has as many.
class GivenArguments : public codegen::NumberChoice {
 public:
  explicit GivenArguments(const std::vector<bool>& arguments) : arguments_(arguments) {}
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool) override {
    const size_t numbers = kernel.numbers.size();
    return arguments_.size() == numbers ? arguments_ : std::vector<bool>(numbers);
  }

 private:
  const std::vector<bool>& arguments_;
};

// What steps name it by.
std::vector<std::string> names_of(const codegen::KernelSource& source) {
  std::vector<std::string> names;
  for (const CudaLaunch& launch : source.launches) names.push_back(launch.symbol);
  if (names.empty()) names.push_back(source.symbol);
  return names;
}

}  // namespace

FusedKernels::FusedKernels(const CompiledModel& model, const Target& target)
    : model_(model), target_(target), tuned_(target, true) {
  for (const runtime::Step& step : model.plan->steps) {
    for (const std::string& symbol : symbols_in(step)) symbols_.insert(symbol);
  }
  for (const std::string& symbol : model.kernels.step_symbols()) {
    const std::vector<bool>& arguments = model.kernels.text_of(symbol).as_arguments;
    if (!arguments.empty()) arguments_.insert(arguments);
  }
  for (size_t step = 0; step < model.plan->steps.size(); ++step) add(step);
}

const ir::Group* FusedKernels::group_of(size_t step) const {
  const auto group = static_cast<size_t>(model_.built.step_group[step]);
  return group < model_.built.grouping.groups.size() ? &model_.built.grouping.groups[group] : nullptr;
}

FusedKernel* FusedKernels::of_symbol(const std::string& symbol) {
  const auto name = by_symbol_.find(symbol);
  return name == by_symbol_.end() ? nullptr : &kernels_.at(name->second);
}

FusedKernel* FusedKernels::of(size_t step) {
  for (const std::string& symbol : symbols_in(model_.plan->steps[step])) {
    if (FusedKernel* const kernel = of_symbol(symbol)) return kernel;
  }
  return nullptr;
}

size_t FusedKernels::steps() {
  size_t count = 0;
  for (size_t step = 0; step < model_.plan->steps.size(); ++step) count += of(step) != nullptr;
  return count;
}

void FusedKernels::add(size_t step) {
  const ir::Group* group = group_of(step);
  if (group == nullptr || group->kind == ir::GroupKind::kTile || of(step) != nullptr) return;
  if (symbols_in(model_.plan->steps[step]).empty() || !has_several(*group)) return;
  for (codegen::KernelSource& source : write_again(*group)) {
    if (kernels_.contains(source.symbol)) continue;
    FusedKernel kernel{group, {}, {}, std::vector<double>(group->nodes.size()), 0, 0};
    const bool is_region = group->kind == ir::GroupKind::kStitch;
    kernel.lines.emplace(source.symbol, line_map(source.text, *group, is_region));
    for (const codegen::KernelText& other : source.others) {
      kernel.lines.emplace(other.symbol, line_map(other.text, *group, is_region));
    }
    for (const std::string& name : names_of(source)) by_symbol_.emplace(name, source.symbol);
    for (const CudaLaunch& launch : source.launches) kernel.launches.insert(launch.symbol);
    kernels_.emplace(source.symbol, std::move(kernel));
  }
}

bool FusedKernels::has_several(const ir::Group& group) const {
  std::set<ir::OriginId> origins;
  for (const ir::NodeId id : group.nodes) {
    const auto& own = model_.optimised->node(id).origins;
    origins.insert(own.begin(), own.end());
  }
  return origins.size() > 1;
}

bool FusedKernels::runs(const codegen::KernelSource& source) const {
  const std::vector<std::string> names = names_of(source);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return symbols_.contains(name); });
}

// What depends on an open extent was made an argument, as shapes of this run alone cannot tell.
std::optional<codegen::KernelSource> FusedKernels::emitted(const schedule::KernelPlan& plan) const {
  codegen::KernelSource source = codegen::emit(plan, target_);
  if (runs(source)) return source;
  for (const std::vector<bool>& arguments : arguments_) {
    GivenArguments given(arguments);
    source = codegen::emit(plan, target_, &given);
    if (runs(source)) return source;
  }
  return std::nullopt;
}

std::vector<codegen::KernelSource> FusedKernels::write_again(const ir::Group& group) {
  if (!graph_) graph_ = tagged(*model_.optimised);
  std::vector<codegen::KernelSource> sources;
  try {
    const schedule::ScheduledGroup scheduled =
        schedule::backend_of(target_).bundled(schedule::schedule(*graph_, group, target_, &tuned_), target_);
    for (const schedule::ScheduledKernel& kernel : scheduled.kernels) {
      if (auto source = emitted(schedule::plan_kernel(kernel, target_))) sources.push_back(std::move(*source));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator) throw;
  }
  return sources;
}

void FusedKernels::count(FusedKernel& kernel, const std::optional<TextLine>& at, double samples) const {
  const auto text = at ? kernel.lines.find(at->first) : kernel.lines.end();
  const bool known = text != kernel.lines.end() && at->second < text->second.size();
  if (!known || text->second[at->second].empty()) {
    kernel.elsewhere += samples;
    return;
  }
  const ir::Graph& graph = *model_.optimised;
  const std::vector<size_t>& nodes = text->second[at->second];
  const auto weight = [&](size_t node) { return weight_of(graph, graph.node(kernel.group->nodes[node])); };
  double sum = 0;
  for (const size_t node : nodes) sum += weight(node);
  for (const size_t node : nodes) kernel.samples[node] += samples * weight(node) / sum;
}

// Samples at no node's line are those of the nodes that have no line: the product in front of an epilogue. Empty: it is
// not known whose they are.
std::vector<double> FusedKernels::by_lines(const FusedKernel& kernel, const std::vector<NodeWork>& work) const {
  std::vector<double> samples = kernel.samples;
  if (kernel.elsewhere <= 0) return samples;
  std::vector<bool> has_line(samples.size());
  for (const auto& [symbol, lines] : kernel.lines) {
    for (const std::vector<size_t>& nodes : lines) {
      for (const size_t node : nodes) has_line[node] = true;
    }
  }
  const bool gpu = runtime::runs_on_gpu(*model_.plan);
  const double bandwidth = gpu ? target_.gpu().model.chip.copy_tbps * 1e12 : target_.cpu.copy_gbps * 1e9;
  const double rate =
      gpu ? target_.gpu().model.chip.sustained_tflops * 1e12 : target_.cpu.peak_gflops() * 1e9 * target_.cpu.threads;
  std::vector<double> rest = shares_of(work, bandwidth, rate);
  for (size_t i = 0; i < rest.size(); ++i) {
    if (has_line[i]) rest[i] = 0;
  }
  double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
  // Several of them, as in an attention or in products back to back, would be told apart by the estimate alone.
  constexpr double kMuch = 0.1;
  const double total = std::accumulate(samples.begin(), samples.end(), kernel.elsewhere + kernel.memory);
  const auto large = std::count_if(rest.begin(), rest.end(), [&](double share) { return share > kMuch * sum; });
  if (large > 1 && kernel.elsewhere > kMuch * total) return {};
  if (sum <= 0) {
    rest = samples;
    sum = std::accumulate(rest.begin(), rest.end(), 0.0);
  }
  if (sum <= 0) return {};
  for (size_t i = 0; i < rest.size(); ++i) samples[i] += kernel.elsewhere * rest[i] / sum;
  return samples;
}

std::vector<double> FusedKernels::shares_in(const FusedKernel& kernel) const {
  const std::vector<NodeWork> work = work_of(*model_.optimised, *kernel.group);
  std::vector<double> shares = by_lines(kernel, work);
  const double lines = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (shares.empty() || lines + kernel.memory < kFewest) return {};
  double bytes = 0;
  for (const NodeWork& of_node : work) bytes += static_cast<double>(of_node.bytes);
  if (bytes <= 0 && lines <= 0) return {};
  for (size_t i = 0; i < shares.size(); ++i) {
    const double of_memory = bytes > 0 ? static_cast<double>(work[i].bytes) / bytes : shares[i] / lines;
    shares[i] = (shares[i] + kernel.memory * of_memory) / (lines + kernel.memory);
  }
  return shares;
}

std::vector<std::vector<double>> FusedKernels::shares() {
  std::vector<std::vector<double>> by_step(model_.plan->steps.size());
  for (size_t step = 0; step < by_step.size(); ++step) {
    const FusedKernel* const kernel = of(step);
    const ir::Group* const group = group_of(step);
    if (kernel == nullptr || group == nullptr || !alike(*model_.optimised, *group, *kernel->group)) continue;
    by_step[step] = shares_in(*kernel);
  }
  return by_step;
}

void TextPlaces::add(const std::string& file, const std::string& content, const std::string& text,
                     const std::string& symbol) {
  const size_t at = content.find(text);
  if (text.empty() || at == std::string::npos) return;
  const auto first = static_cast<size_t>(std::count(content.begin(), content.begin() + static_cast<int64_t>(at), '\n'));
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  texts_[file].push_back({first, first + lines, symbol});
}

}  // namespace heddle::driver
