#include "schedule/floor.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "schedule/expr/expr.h"

namespace heddle::schedule {
namespace {

double count_of(const ir::Graph& graph, ir::ValueId v) {
  return static_cast<double>(element_count(graph.shape(v)));
}

// Elements of operand i that `wanted` elements of the result require.
double needed(const ir::Graph& graph, const ir::Node& node, size_t i, double wanted) {
  const double all = count_of(graph, node.inputs[i]);
  switch (node.op) {
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
      return i == 0 ? std::min(all, wanted) : all;
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kPad:
    case Op::kConcat:
      return std::min(all, wanted);
    default:
      return ir::is_elementwise(node.op) ? std::min(all, wanted) : all;
  }
}

std::map<ir::ValueId, double> elements_read(const ir::Graph& graph, const ir::Group& group) {
  std::map<ir::ValueId, double> wanted;
  for (const ir::ValueId v : group.outputs) wanted[v] = count_of(graph, v);
  for (auto id = group.nodes.rbegin(); id != group.nodes.rend(); ++id) {
    const ir::Node& node = graph.node(*id);
    double results = 0;
    for (const ir::ValueId v : node.outputs) {
      if (const auto found = wanted.find(v); found != wanted.end()) results = std::max(results, found->second);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      double& elements = wanted[node.inputs[i]];
      elements = std::min(count_of(graph, node.inputs[i]), elements + needed(graph, node, i, results));
    }
  }
  return wanted;
}

class CpuMemory : public Memory {
 public:
  double cached_bytes(const Target& target) const override {
    return static_cast<double>(target.cpu.l3_bytes) + own_bytes(target.cpu);
  }
  double memory_seconds(double bytes, const Target& target) const override {
    return bytes / (target.cpu.copy_gbps * std::max(1.0, target.cpu.model.read_over_copy) * 1e9);
  }
  double least_seconds(double bytes, const Target& target) const override {
    // A core loads two vectors and stores one per cycle; it gets at most one line per cycle from its second-level
    // cache, and half a line from the third.
    constexpr double kVectors = 3, kSecondLevel = 64, kThirdLevel = 32;
    const CpuTarget& cpu = target.cpu;
    const double l1 = static_cast<double>(cpu.l1_bytes) * static_cast<double>(cpu.threads);
    const double cycles = std::max({bytes / (kVectors * 4 * cpu.lanes_f32()), beyond(bytes, l1) / kSecondLevel,
                                    beyond(bytes, own_bytes(cpu)) / kThirdLevel});
    return std::max(cycles / (cpu.ghz * 1e9), memory_seconds(beyond(bytes, cached_bytes(target)), target));
  }

 private:
  // The private caches of each core.
  static double own_bytes(const CpuTarget& cpu) {
    return static_cast<double>(cpu.l1_bytes + cpu.l2_bytes) * static_cast<double>(cpu.threads);
  }
};

class GpuMemory : public Memory {
 public:
  double cached_bytes(const Target& target) const override { return static_cast<double>(target.gpu().l2_bytes); }
  double memory_seconds(double bytes, const Target& target) const override {
    const auto& chip = target.gpu().model.chip;
    return bytes / (std::max(chip.read_tbps, chip.copy_tbps) * 1e12);
  }
  double least_seconds(double bytes, const Target& target) const override {
    return std::max(bytes / (target.gpu().model.cluster_split.l2_per_us * 1e6),
                    memory_seconds(beyond(bytes, cached_bytes(target)), target));
  }
};

}  // namespace

const Memory& cpu_memory() {
  static const CpuMemory memory;
  return memory;
}

const Memory& gpu_memory() {
  static const GpuMemory memory;
  return memory;
}

double elements_read(const ir::Graph& graph, const ir::Group& group, ir::ValueId value) {
  const auto all = elements_read(graph, group);
  const auto found = all.find(value);
  return found == all.end() ? 0 : found->second;
}

std::vector<double> operand_traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel) {
  const auto read = elements_read(graph, group);
  std::vector<double> bytes;
  for (size_t i = 0; i < kernel.bindings.size(); ++i) {
    const Binding& binding = kernel.bindings[i];
    const Operand& operand = kernel.desc.operands[i];
    double elements = binding.kind == Binding::Kind::kWorkspace ? 0 : static_cast<double>(element_count(operand.shape));
    if (binding.kind == Binding::Kind::kValue && group.placed.contains(binding.value)) {
      elements = count_of(graph, binding.value);
    }
    if (binding.kind == Binding::Kind::kValue && operand.role == Operand::Role::kInput) {
      if (const auto found = read.find(binding.value); found != read.end())
        elements = std::min(elements, found->second);
    }
    bytes.push_back(elements * static_cast<double>(size_of(operand.dtype)));
  }
  return bytes;
}

double traffic(const ir::Graph& graph, const ir::Group& group, const ScheduledKernel& kernel) {
  const std::vector<double> bytes = operand_traffic(graph, group, kernel);
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

double cached_bytes(const Target& target) {
  return memory_of(target).cached_bytes(target);
}

double memory_seconds(double bytes, const Target& target) {
  return memory_of(target).memory_seconds(bytes, target);
}

double least_seconds(double bytes, const Target& target) {
  return memory_of(target).least_seconds(bytes, target);
}

double arithmetic_seconds(double cycles, const CpuTarget& cpu) {
  // Relative to one f32 operation per cycle: two pipes multiply and add at once, or have four times the lanes.
  constexpr double kMost = 8;
  return cycles / kMost / (cpu.ghz * 1e9);
}

double products_inside(const tile::WindowShape& s) {
  double products = static_cast<double>(s.batch) * static_cast<double>(s.c);
  for (int dim = 0; dim < 3; ++dim) {
    int64_t inside = 0;
    for (int64_t out = 0; out < s.out[dim]; ++out) {
      for (int64_t tap = 0; tap < s.kernel[dim]; ++tap) {
        const int64_t at = out * s.stride[dim] + tap * s.dilation[dim] - s.low[dim];
        inside += at >= 0 && at < s.in[dim];
      }
    }
    products *= static_cast<double>(inside);
  }
  return products;
}

double least_folds(const tile::WindowShape& s) {
  double results = static_cast<double>(s.batch) * static_cast<double>(s.c);
  int folds = 0;
  for (int dim = 0; dim < 3; ++dim) {
    results *= static_cast<double>(s.out[dim]);
    folds += std::min(s.kernel[dim], s.in[dim]) > 1;
  }
  return results * static_cast<double>(folds);
}

}  // namespace heddle::schedule
