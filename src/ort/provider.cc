#include "ort/provider.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/check.h"
#include "driver/options/options.h"
#include "heddle/version.h"
#include "ort/graph/capability.h"

namespace heddle::ort {
namespace {

Provider& provider_of(OrtEp* ep) {
  return *static_cast<Provider*>(ep);
}

// The region of a fused node: all nodes of its graph, with the node's inputs and outputs.
Region whole(const Graph& graph, const FusedNode::Place& place) {
  std::map<std::string_view, size_t> values;
  for (size_t i = 0; i < graph.values.size(); ++i) values.emplace(graph.values[i].name, i);
  Region region;
  for (size_t i = 0; i < graph.nodes.size(); ++i) region.nodes.push_back(i);
  const auto add = [&](const std::vector<std::string>& names, std::vector<size_t>& to) {
    for (const std::string& name : names) {
      const auto found = values.find(name);
      HEDDLE_CHECK(found != values.end(), "{} has no value {}", place.name, name);
      if (!graph.values[found->second].is_constant) to.push_back(found->second);
    }
  };
  add(place.inputs, region.inputs);
  add(place.outputs, region.outputs);
  return region;
}

bool has_fixed_shapes(const Graph& graph, const Region& region) {
  return std::all_of(region.inputs.begin(), region.inputs.end(), [&](size_t value) {
    const GraphValue& input = graph.values[value];
    return !input.is_inferred &&
           std::all_of(input.extents.begin(), input.extents.end(), [](int64_t extent) { return extent >= 0; });
  });
}

// Ranges and aliases that name a part of the region; others are those of other regions of the model.
CompileOptions options_of(const Graph& graph, const Region& region, CompileOptions options) {
  std::set<std::string, std::less<>> extents, inputs, outputs;
  for (const size_t index : region.inputs) {
    const GraphValue& value = graph.values[index];
    inputs.insert(value.name);
    for (size_t i = 0; i < value.symbols.size(); ++i) {
      extents.insert(value.symbols[i]);
      extents.insert(fmt::format("{}.{}", value.name, i));
    }
  }
  for (const size_t index : region.outputs) outputs.insert(graph.values[index].name);
  std::erase_if(options.ranges, [&](const auto& range) { return !extents.contains(range.first); });
  std::erase_if(options.alias, [&](const auto& alias) {
    const bool is_pattern = alias.first.find('*') != std::string::npos;
    return !is_pattern && (!outputs.contains(alias.first) || !inputs.contains(alias.second));
  });
  return options;
}

}  // namespace

Provider::Provider(const Runtime& runtime, Options options, const OrtLogger* logger, Gpu* gpu)
    : runtime_(runtime), options_(std::move(options)), logger_(logger), gpu_(gpu) {
  OrtEp::get_name = get_name;
  OrtEp::get_capability = get_capability;
  OrtEp::compile = compile;
  OrtEp::release_compute_infos = release_compute_infos;
  OrtEp::get_compatibility_info = get_compatibility_info;
  OrtEp::sync = sync;
  OrtEp::create_profiler = create_profiler;
  trace_ = std::make_shared<Trace>(runtime, gpu == nullptr ? nullptr : runtime::CudaContext::of_device(gpu->ordinal()));
  if (options_.captures_graphs) enable_replays();
  pool_ = std::make_shared<ThreadPool>(driver::resolve(options_.compile).target.cpu.threads);
}

// ONNX Runtime asks for a replay instead of a run as soon as there is a graph.
void Provider::enable_replays() {
  replays_ = std::make_shared<Replays>(gpu_->memory());
  OrtEp::is_concurrent_run_supported = [](OrtEp*, bool* is_supported) {
    *is_supported = false;
    return static_cast<OrtStatus*>(nullptr);
  };
  OrtEp::on_run_start = [](OrtEp* self, const OrtRunOptions* run) {
    const Provider& provider = provider_of(self);
    return provider.runtime_.guarded([&] {
      const char* const number = provider.runtime_.api()(api::kGetRunConfigEntry, run, "gpu_graph_id");
      provider.replays_->begin(number == nullptr ? 0 : std::atoi(number));
    });
  };
  OrtEp::on_run_end = [](OrtEp* self, const OrtRunOptions*, bool) {
    const Provider& provider = provider_of(self);
    return provider.runtime_.guarded([&] { provider.replays_->end(provider.regions_); });
  };
  OrtEp::is_graph_capture_enabled = [](const OrtEp*) { return true; };
  OrtEp::is_graph_captured = [](const OrtEp* self, int number) {
    return static_cast<const Provider*>(self)->replays_->has(number);
  };
  OrtEp::replay_graph = [](OrtEp* self, int number) {
    const Provider& provider = provider_of(self);
    return provider.runtime_.guarded([&] { provider.replays_->replay(number); });
  };
  OrtEp::get_graph_node_policy = [](const OrtEp*) { return GraphNodePolicy::kAllOnProvider; };
}

// Work of the session's streams on the GPU. On a CPU a run returns when its work is done.
OrtStatus* Provider::sync(OrtEp* self) {
  const Provider& provider = provider_of(self);
  return provider.runtime_.guarded([&] {
    if (provider.gpu_ != nullptr) provider.gpu_->memory().synchronize();
  });
}

OrtStatus* Provider::create_profiler(OrtEp* self, OrtEpProfilerImpl** profiler) {
  const Provider& provider = provider_of(self);
  return provider.runtime_.guarded([&] { *profiler = provider.trace_->create_profile(); });
}

OrtStatus* Provider::get_capability(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  return provider_of(self).runtime_.guarded([&] { provider_of(self).take_regions(graph, info); });
}

void Provider::take_regions(const OrtGraph* handle, OrtEpGraphSupportInfo* info) {
  const Graph graph = read_graph(runtime_, handle);
  model_ = graph.path.empty() ? fmt::format("graph '{}'", graph.name) : graph.path;
  for (const GraphValue& value : graph.values) {
    if (value.is_inferred) inferred_.insert(value.name);
  }
  const auto take = [&](const std::vector<size_t>& members) {
    std::vector<const OrtNode*> nodes;
    for (const size_t node : members) nodes.push_back(graph.nodes[node].node);
    const OrtNodeFusionOptions fusion{.drop_constant_initializers = true};
    runtime_.check(runtime_.ep_api()(ep_api::kAddNodesToFuse, info, nodes.data(), nodes.size(), &fusion));
  };
  bool has_plans = false;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (!is_context(runtime_, graph.nodes[node])) continue;
    has_plans = true;
    take({node});
  }
  if (has_plans) return;  // what is not in plans was left to ONNX Runtime when they were made
  // ONNX Runtime asks for a body before the graph around it. A loop that is taken needs its body as it is.
  if (const std::optional<Graph> loop = read_loop(runtime_, handle, graph)) {
    if (!find_capability(runtime_, *loop, options_).regions.empty()) return;
  }
  const Capability capability = find_capability(runtime_, graph, options_);
  for (const auto& region : capability.regions) take(region);
  runtime_.log(logger_, Severity::kInfo, describe(capability, graph));
}

OrtStatus* Provider::compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                             OrtNodeComputeInfo** compute_infos, OrtNode** context_nodes) {
  Provider& provider = provider_of(self);
  return provider.runtime_.guarded([&] {
    OrtNode* unused = nullptr;
    std::vector<std::unique_ptr<FusedNode>> compiled;
    for (size_t i = 0; i < count; ++i) {
      OrtNode** const context = provider.options_.writes_context ? &context_nodes[i] : &unused;
      compiled.push_back(provider.compile_region(graphs[i], fused_nodes[i], context));
    }
    for (size_t i = 0; i < count; ++i) compute_infos[i] = compiled[i].release();
    provider.regions_ += count;
  });
}

// The graph of a fused node. It does not say which of its inputs are those of the model.
Graph Provider::read_fused(const OrtGraph* handle) const {
  Graph graph = read_graph(runtime_, handle);
  for (GraphValue& value : graph.values) value.is_inferred = inferred_.contains(value.name);
  return graph;
}

std::unique_ptr<FusedNode> Provider::compile_region(const OrtGraph* handle, const OrtNode* fused, OrtNode** context) {
  const Graph graph = read_fused(handle);
  const FusedNode::Place place{runtime_.get<const char*>(api::kNodeGetName, fused),
                               model_,
                               input_names(runtime_, fused),
                               output_names(runtime_, fused),
                               pool_,
                               gpu_,
                               trace_,
                               replays_};
  if (graph.nodes.size() == 1 && is_context(runtime_, graph.nodes[0])) {
    return checked(load_context(runtime_, graph.nodes[0], place, graph.path, options_));
  }
  const Region region = whole(graph, place);
  Options options = options_;
  options.compile = options_of(graph, region, options_.compile);
  options.compile.shapes = inferred_shapes(graph, region);
  auto folder = std::make_shared<const ModelFolder>(runtime_, graph, region);
  const std::string path = folder->path();
  auto node =
      std::make_unique<FusedNode>(runtime_, place, path, has_fixed_shapes(graph, region) ? nullptr : folder, options);
  if (options.writes_context) *context = make_context(runtime_, *node, plans_++, graph.path, options);
  return checked(std::move(node));
}

std::unique_ptr<FusedNode> Provider::checked(std::unique_ptr<FusedNode> node) const {
  if (replays_ != nullptr && node->needs_host()) {
    fail(ErrorCode::kUnsupportedOperator, model_, "a step runs on the host, which a CUDA graph cannot contain",
         fmt::format("Leave the option graph_capture of {} out", kName));
  }
  return node;
}

void Provider::release_compute_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  for (size_t i = 0; i < count; ++i) delete static_cast<FusedNode*>(infos[i]);
}

const char* Provider::get_compatibility_info(OrtEp* self, const OrtGraph*) {
  Provider& provider = provider_of(self);
  OrtStatus* const status =
      provider.runtime_.guarded([&] { provider.compatibility_ = compatibility_of(provider.options_.compile); });
  if (status != nullptr) provider.runtime_.api()(api::kReleaseStatus, status);
  return provider.compatibility_.c_str();
}

std::string compatibility_of(const CompileOptions& options) {
  return fmt::format("{} {}", heddle::version(), driver::resolve(options).target.fingerprint());
}

bool is_compatible(const std::string& description) {
  const std::string version = fmt::format("{} ", heddle::version());
  if (!description.starts_with(version)) return false;
  try {
    driver::check_runs_here("the plan", description.substr(version.size()), 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace heddle::ort
