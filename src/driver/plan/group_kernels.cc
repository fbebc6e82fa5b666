#include "driver/plan/group_kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "driver/tile/tile_group.h"
#include "ir/reference/scalar.h"
#include "schedule/backend.h"

namespace heddle::driver {
namespace {

// What decides the schedule of a group, with values by their order of appearance: groups with equal keys have equal
// kernels over other values. Nothing where a node holds what is not compared (bodies, large constants).
class KeyWriter {
 public:
  KeyWriter(const ir::Graph& graph, const ir::Group& group, const std::vector<std::vector<ir::NodeId>>& users)
      : graph_(graph), group_(group), users_(users) {}

  std::optional<std::string> run() {
    number(static_cast<int64_t>(group_.kind));
    for (const ir::NodeId id : group_.nodes) {
      const ir::Node& node = graph_.node(id);
      number(static_cast<int64_t>(node.op));
      number(group_.kind == ir::GroupKind::kContraction && id == group_.anchor);
      number(static_cast<int64_t>(node.inputs.size()));
      for (const ir::ValueId v : node.inputs) value(v);
      for (const auto& [name, attr] : node.attrs) {
        text(name);
        if (!std::visit([this](const auto& v) { return attribute(v); }, attr)) return std::nullopt;
      }
      // Comments and labels name the ops of the model, not its nodes.
      for (const ir::OriginId origin : node.origins) text(graph_.origin(origin).op_type);
      number(static_cast<int64_t>(node.outputs.size()));
      for (const ir::ValueId v : node.outputs) define(v);
    }
    for (const ir::ValueId v : group_.outputs) value(v);
    return std::move(key_);
  }

 private:
  void number(int64_t v) { key_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void text(const std::string& s) {
    number(static_cast<int64_t>(s.size()));
    key_ += s;
  }

  bool attribute(int64_t v) { return number(v), true; }
  bool attribute(DType v) { return number(static_cast<int64_t>(v)), true; }
  bool attribute(const std::string& v) { return text(v), true; }
  bool attribute(double v) {
    key_.append(reinterpret_cast<const char*>(&v), sizeof v);
    return true;
  }
  bool attribute(const ir::Ints& v) {
    number(static_cast<int64_t>(v.size()));
    for (const int64_t n : v) number(n);
    return true;
  }
  template <typename Other>
  bool attribute(const Other&) {
    return false;
  }

  void define(ir::ValueId v) {
    known_.emplace(v, known_.size());
    const ir::TensorType& type = graph_.type(v);
    attribute(type.dtype);
    attribute(type.shape);
    const auto placed = group_.placed.find(v);
    number(placed != group_.placed.end());
    if (placed == group_.placed.end()) return;
    attribute(placed->second.shape);
    attribute(placed->second.start);
  }

  void value(ir::ValueId v) {
    if (const auto known = known_.find(v); known != known_.end()) return number(static_cast<int64_t>(known->second));
    number(-1);
    define(v);
    // Constants of one value become literals. Where a value comes from and who reads it says what caches may forget.
    const Tensor* constant = graph_.constant_of(v);
    const bool is_literal = constant != nullptr && ir::is_splat(*constant);
    number(is_literal);
    if (is_literal) key_.append(static_cast<const char*>(constant->data()), size_of(constant->dtype()));
    number(static_cast<int64_t>(graph_.producer(v).op));
    number(std::all_of(users_[v].begin(), users_[v].end(), [this](ir::NodeId id) {
      return std::binary_search(group_.nodes.begin(), group_.nodes.end(), id);
    }));
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  const std::vector<std::vector<ir::NodeId>>& users_;
  std::string key_;
  std::unordered_map<ir::ValueId, size_t> known_;
};

}  // namespace

void GroupMemo::next_plan(uint64_t version) {
  constexpr uint64_t kPlansKept = 2;
  ++plan_;
  const bool all = std::exchange(version_, version) != version;
  std::erase_if(known_, [&](const auto& entry) { return all || entry.second.used + kPlansKept < plan_; });
}

CompiledGroup GroupKernels::compile(const ir::Group& group) {
  CompiledGroup made{schedule::schedule(graph_, group, context_.target, context_.configs, context_.stitch), {}};
  if (context_.fusion == passes::FusionPolicy::kStitch && context_.stitch.dominant_merging) {
    made.scheduled = schedule::backend_of(context_.target).bundled(std::move(made.scheduled), context_.target);
  }
  for (const schedule::ScheduledKernel& kernel : made.scheduled.kernels) {
    const schedule::KernelPlan plan = schedule::plan_kernel(kernel, context_.target);
    // A product is worth its own text: its tiles are made for its extents, but not for where its operands begin.
    const bool is_product = kernel.desc.get<schedule::ContractionDesc>() != nullptr;
    if (context_.numbers != nullptr) {
      made.sources.push_back(codegen::emit(plan, context_.target, context_.numbers));
    } else if (is_product) {
      made.sources.push_back(codegen::emit(plan, context_.target, &places_, codegen::Marks::kPlaces));
    } else {
      made.sources.push_back(codegen::emit(plan, context_.target, &literals_));
    }
  }
  return made;
}

CompiledGroup GroupKernels::make(const ir::Group& group) {
  if (group.kind == ir::GroupKind::kContraction) {
    if (auto early = early_.extract(group.anchor)) return std::move(early.mapped());
  }
  return make_now(group);
}

const CompiledGroup& GroupKernels::make_early(const ir::Group& group) {
  return early_.insert_or_assign(group.anchor, make_now(group)).first->second;
}

CompiledGroup GroupKernels::make_now(const ir::Group& group) {
  if (group.kind == ir::GroupKind::kTile) return compile_tile_group(graph_, group, context_.target);
  const bool comparable =
      group.kind == ir::GroupKind::kStitch ||
      (group.kind == ir::GroupKind::kContraction && schedule::backend_of(context_.target).contractions_by_shape());
  if (!comparable) return compile(group);
  const std::optional<std::string> key = KeyWriter(graph_, group, users_).run();
  if (!key) return compile(group);
  auto found = memo_.known_.find(*key);
  if (found == memo_.known_.end()) {
    found = memo_.known_.emplace(*key, GroupMemo::Known{group.inputs, group.outputs, compile(group), 0}).first;
  }
  GroupMemo::Known& known = found->second;
  known.used = memo_.plan_;
  CompiledGroup result = known.compiled;
  std::map<ir::ValueId, ir::ValueId> here;
  for (size_t i = 0; i < group.inputs.size(); ++i) here.emplace(known.inputs[i], group.inputs[i]);
  for (size_t i = 0; i < group.outputs.size(); ++i) here.emplace(known.outputs[i], group.outputs[i]);
  for (schedule::ScheduledKernel& kernel : result.scheduled.kernels) {
    for (schedule::Binding& binding : kernel.bindings) {
      if (binding.kind == schedule::Binding::Kind::kValue) binding.value = here.at(binding.value);
    }
  }
  return result;
}

}  // namespace heddle::driver
