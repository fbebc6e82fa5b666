#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/gpu/operation.h"
#include "profile/profile.h"

namespace heddle::profile {

// Adds GPU operations to a profile. Each operation becomes a frame of kind "kernel", "copy", "memset", "sync" or
// "memory" below the node of its context. An operation of a CUDA graph is added below the node of the graph's launch,
// under "captured at" and the path of the context that added the operation to the graph. The prefix that this path
// shares with the path of the launch is left out.
//
//   GKER        ns     kernels, as recorded; time in which kernels overlap counts once for each of them
//   GBUSY       ns     if several kernels run on the device, time counts only for the kernel that began first; the sum
//                      is the time in which at least one kernel runs
//   GXCOPY:H2D  ns     copies by direction (H2D, D2H, D2D, P2P, H2H); GXCOPY:H2D:B has their bytes
//   GMSET       ns     memsets
//   GSYNC       ns     the host waits for the device: in a synchronisation, or until a copy to pageable memory begins
//   GMEM        bytes  allocated memory; GMEM:free has the freed memory
//   GIDLE       ns     the device neither computes nor copies; counts for the operation that ends the idle time. If the
//                      host launched this operation after the idle time began, and allocated or freed memory between
//                      the previous launch and this one, counts for the last such allocation or free instead
//   LAUNCHES           number of kernels
//
// Operations with unknown times contribute to launches and bytes, but not to times.
class OperationTree {
 public:
  struct Limits {
    size_t slices = 50000;  // maximum number of slices in the timeline; later slices are left out
    bool idle = true;       // add GIDLE
  };
  OperationTree(Profile& profile, std::function<NodeId(uint64_t context)> node_of)
      : OperationTree(profile, std::move(node_of), Limits{}) {}
  OperationTree(Profile& profile, std::function<NodeId(uint64_t context)> node_of, Limits limits);

  // Call this in the order of GpuCollector::take(). An operation that began before an operation of an earlier call
  // counts as busy only from the end of the earlier operations on.
  void add(std::span<const GpuOperation> operations);
  uint64_t slices_left_out() const { return left_out_; }

 private:
  // The state of a device so far.
  struct Device {
    uint64_t computing_until = 0, working_until = 0;
    uint64_t launched = 0;     // when the host requested the last operation
    uint64_t memory_call = 0;  // last allocation or free by the host; memory_caller is its node
    NodeId memory_caller = 0;
  };
  struct Lane {
    uint32_t track = 0;
    uint64_t until = 0;
  };

  NodeId parent_of(const GpuOperation& operation);
  NodeId leaf_of(const GpuOperation& operation, NodeId parent);
  void add_one(const GpuOperation& operation);
  void add_kernel(const GpuOperation& operation, NodeId leaf);
  void add_copy(const GpuOperation& operation, NodeId leaf);
  void add_idle(const GpuOperation& operation, NodeId parent);
  void add_slice(const GpuOperation& operation, NodeId leaf);
  void add_value(NodeId node, const Metric& metric, uint64_t value);

  Profile& profile_;
  std::function<NodeId(uint64_t)> context_node_;
  Limits limits_;
  std::map<uint32_t, Device> devices_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Lane>> lanes_;  // by device and stream
  std::map<const std::string*, FrameId> kernel_frames_;
  std::map<std::pair<uint64_t, uint64_t>, NodeId> graph_parents_;  // by contexts of the launch and of the graph node
  uint64_t origin_ = 0;                                            // start of the timeline; 0: not set yet
  uint64_t left_out_ = 0;
};

// Adds all operations at once.
void add_operations(Profile& profile, std::span<const GpuOperation> operations,
                    const std::function<NodeId(uint64_t context)>& node_of);

}  // namespace heddle::profile
