#include "profile/gpu/operation_tree.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace heddle::profile {
namespace {

using Kind = GpuOperation::Kind;
using Direction = GpuOperation::Direction;
using GpuSync = GpuOperation::Sync;

// A name like "a" would be that of a type.
std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

const char* word_of(Direction direction) {
  constexpr const char* kWords[] = {"other", "H2D", "D2H", "D2D", "P2P", "H2H"};
  return kWords[static_cast<size_t>(direction)];
}

Frame frame_of(const GpuOperation& operation) {
  switch (operation.kind) {
    case Kind::kKernel:
      return {"kernel", operation.name == nullptr ? "(without a name)" : demangled(*operation.name)};
    case Kind::kCopy:
      return {"copy", fmt::format("{}{}", word_of(operation.direction), operation.pageable ? ", pageable" : "")};
    case Kind::kMemset:
      return {"memset", "memset"};
    case Kind::kSync:
      return {"sync", operation.sync == GpuSync::kEvent    ? "wait for an event"
                      : operation.sync == GpuSync::kStream ? "wait for a stream"
                                                           : "wait for the device"};
    case Kind::kAllocate:
      return {"memory", "allocate"};
    case Kind::kFree:
    case Kind::kOverhead:
      break;
  }
  return {"memory", "free"};
}

// Whether the device is at work, as opposed to the host.
bool works(const GpuOperation& operation) {
  return operation.kind == Kind::kKernel || operation.kind == Kind::kCopy || operation.kind == Kind::kMemset;
}

}  // namespace

OperationTree::OperationTree(Profile& profile, std::function<NodeId(uint64_t)> node_of, Limits limits)
    : profile_(profile), context_node_(std::move(node_of)), limits_(limits) {}

void OperationTree::add(std::span<const GpuOperation> operations) {
  for (const GpuOperation& operation : operations) add_one(operation);
}

void OperationTree::add_one(const GpuOperation& operation) {
  const bool device_waits = operation.kind == Kind::kSync && operation.sync == GpuSync::kStreamWait;
  if (operation.kind == Kind::kOverhead || device_waits) return;
  const NodeId parent = parent_of(operation);
  const NodeId leaf = leaf_of(operation, parent);
  switch (operation.kind) {
    case Kind::kKernel:
      add_kernel(operation, leaf);
      break;
    case Kind::kCopy:
      add_copy(operation, leaf);
      break;
    case Kind::kMemset:
      add_value(leaf, metrics::kGpuMemset, operation.duration());
      break;
    case Kind::kSync:
      add_value(leaf, metrics::kGpuSync, operation.duration());
      break;
    case Kind::kAllocate:
      add_value(leaf, metrics::kGpuAllocated, operation.bytes);
      break;
    case Kind::kFree:
      add_value(leaf, metrics::kGpuFreed, operation.bytes);
      break;
    case Kind::kOverhead:
      break;
  }
  if (operation.kind == Kind::kAllocate || operation.kind == Kind::kFree) {
    devices_[operation.device].memory_call = operation.start;
    devices_[operation.device].memory_caller = parent;
  }
  if (!works(operation) || !operation.has_times()) return;
  add_idle(operation, parent);
  add_slice(operation, leaf);
}

// A metric is there when it has a value. What is no part of a signed sum is no value, either.
void OperationTree::add_value(NodeId node, const Metric& metric, uint64_t value) {
  profile_.tree.add(node, profile_.tree.add_metric(metric),
                    static_cast<int64_t>(std::min(value, static_cast<uint64_t>(INT64_MAX) / 2)));
}

// Operations come in order of start. Up to where the ones before run, an instant is theirs: they began first.
void OperationTree::add_kernel(const GpuOperation& operation, NodeId leaf) {
  uint64_t& until = devices_[operation.device].computing_until;
  const uint64_t from = std::max(operation.start, until);
  add_value(leaf, metrics::kGpuBusy, operation.end > from ? operation.end - from : 0);
  add_value(leaf, metrics::kGpuKernels, operation.duration());
  add_value(leaf, metrics::kLaunches, 1);
  until = std::max(until, operation.end);
}

void OperationTree::add_copy(const GpuOperation& operation, NodeId leaf) {
  const std::string name = fmt::format("GXCOPY:{}", word_of(operation.direction));
  const std::string title = fmt::format("GPU copies {}", word_of(operation.direction));
  add_value(leaf, {name, "ns", title}, operation.duration());
  const bool blocks = operation.pageable && operation.direction == Direction::kDeviceToHost && operation.has_times();
  if (blocks && operation.launched != 0 && operation.start > operation.launched) {
    add_value(leaf, metrics::kGpuSync, operation.start - operation.launched);
  }
  add_value(leaf, {name + ":B", "bytes", title + ", bytes"}, operation.bytes);
}

// A launch that came when the device had ended already is what it waited for, or the allocation or free that the host
// made before it: these take long, and a free waits for the device. Between launches that are there in time lies what
// the device needs to begin the next one.
void OperationTree::add_idle(const GpuOperation& operation, NodeId parent) {
  constexpr uint64_t kLaunchBoundary = 2000;
  Device& device = devices_[operation.device];
  const uint64_t until = device.working_until;
  const uint64_t gap = until != 0 && operation.start > until ? operation.start - until : 0;
  if (gap > 0 && limits_.idle) {
    const char* why = gap < kLaunchBoundary ? "between launches" : "other";
    if (operation.launched > until) {
      const bool by_memory = device.memory_call > device.launched && device.memory_call <= operation.launched;
      why = by_memory ? "waits for an allocation" : "waits for the host";
      if (by_memory) parent = device.memory_caller;
    }
    add_value(profile_.tree.child(parent, Frame{"idle", why}), metrics::kGpuIdle, gap);
  }
  device.working_until = std::max(until, operation.end);
  device.launched = std::max(device.launched, operation.launched);
}

// Slices of one track do not overlap: what does gets a track of its own.
void OperationTree::add_slice(const GpuOperation& operation, NodeId leaf) {
  Timeline& timeline = profile_.timeline;
  if (origin_ == 0) origin_ = operation.start;
  if (timeline.slices.size() >= limits_.slices || operation.start < origin_) {
    ++left_out_;
    return;
  }
  std::vector<Lane>& lanes = lanes_[{operation.device, operation.stream}];
  auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& l) { return l.until <= operation.start; });
  if (lane == lanes.end()) {
    const std::string also = lanes.empty() ? "" : fmt::format(" ({})", lanes.size() + 1);
    timeline.tracks.push_back(
        {fmt::format("GPU {}", operation.device), fmt::format("stream {}{}", operation.stream, also)});
    lane = lanes.insert(lanes.end(), {static_cast<uint32_t>(timeline.tracks.size() - 1), 0});
  }
  lane->until = operation.end;
  timeline.slices.push_back(
      {lane->track, static_cast<int64_t>(operation.start - origin_), static_cast<int64_t>(operation.duration()), leaf});
}

NodeId OperationTree::parent_of(const GpuOperation& operation) {
  const NodeId launch = operation.context == 0 ? 0 : context_node_(operation.context);
  if (operation.graph_node == 0 || operation.captured_context == 0) return launch;
  const auto [found, is_new] = graph_parents_.try_emplace({operation.context, operation.captured_context}, 0);
  if (!is_new) return found->second;
  // What both paths have in common is there once.
  CallingContextTree& tree = profile_.tree;
  std::set<NodeId> common = {0};
  for (NodeId at = launch; at != 0; at = tree.parent(at)) common.insert(at);
  std::vector<FrameId> path;
  for (NodeId at = context_node_(operation.captured_context); !common.contains(at); at = tree.parent(at)) {
    path.push_back(tree.frame_id(at));
  }
  NodeId node = path.empty() ? launch : tree.child(launch, Frame{"graph", "captured at"});
  for (auto frame = path.rbegin(); frame != path.rend(); ++frame) node = tree.child(node, *frame);
  return found->second = node;
}

NodeId OperationTree::leaf_of(const GpuOperation& operation, NodeId parent) {
  if (operation.kind != Kind::kKernel) return profile_.tree.child(parent, frame_of(operation));
  const auto [found, is_new] = kernel_frames_.try_emplace(operation.name, 0);
  if (is_new) found->second = profile_.tree.add_frame(frame_of(operation));
  return profile_.tree.child(parent, found->second);
}

void add_operations(Profile& profile, std::span<const GpuOperation> operations,
                    const std::function<NodeId(uint64_t context)>& node_of) {
  OperationTree(profile, node_of).add(operations);
}

}  // namespace heddle::profile
