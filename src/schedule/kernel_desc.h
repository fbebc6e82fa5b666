#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/group.h"
#include "schedule/config/config.h"
#include "schedule/scheme.h"
#include "target/target.h"

namespace heddle::schedule {

// The layout that a constant operand is packed into before the plan is stored, instead of dense row-major.
struct Packing {
  std::string kind;             // "" dense; else a packer's name: "panels", "rows", "diagonal", "winograd"
  std::vector<int64_t> params;  // the packer's parameters (tile/core/pack.h)
  bool operator==(const Packing&) const = default;
};

// A buffer as a kernel sees it.
struct Operand {
  enum class Role : uint8_t { kInput, kOutput };
  Role role = Role::kInput;
  DType dtype = DType::kF32;
  Shape shape;  // dense row-major, unless packed
  Packing packing;
  bool constant = false;  // nothing writes it while a plan runs
  bool in_place = false;  // a result that the kernel writes only in part: its memory already holds the rest
};

struct CpuStitchDesc;       // schedule/region/stitch.h: generated loop nest over memory-bound nodes
struct CudaStitchDesc;      // schedule/region/cuda/stitch.h: the same for a GPU, as sweeps of teams of threads
struct CudaBundleDesc;      // schedule/region/cuda/bundle.h: several GPU stitch kernels as one launch
struct CpuBundleDesc;       // schedule/region/bundle.h: several stitch kernels as one
struct ContractionDesc;     // schedule/product/contraction.h: template + epilogue (dot, conv, window)
struct RecurrentDesc;       // schedule/recurrence/recurrent.h: all steps of a loop on a GPU
struct AttentionDesc;       // schedule/attention/attention.h: product, softmax, product on a GPU
struct CudaBackToBackDesc;  // schedule/back_to_back/back_to_back.h: two contractions
struct CpuBackToBackDesc;   // schedule/back_to_back/cpu.h: the same for a CPU, two or more
struct StandaloneDesc;      // schedule/region/standalone.h: a node with a kernel of its own (scatter, top-k)
// A kernel written in the tile language. The driver emits it, since only the driver knows that language.
struct TileDesc {
  std::string name;
};

// One function of several: an answer for each kind of body.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

// Everything that decides a kernel's text apart from its Config: pure data, printable; equal descriptions give equal
// kernels, so the layers of a model share them.
struct KernelDesc {
  std::vector<Operand> operands;
  std::variant<std::shared_ptr<const CpuStitchDesc>, std::shared_ptr<const CudaStitchDesc>,
               std::shared_ptr<const ContractionDesc>, std::shared_ptr<const StandaloneDesc>,
               std::shared_ptr<const CpuBundleDesc>, std::shared_ptr<const CudaBundleDesc>,
               std::shared_ptr<const RecurrentDesc>, std::shared_ptr<const AttentionDesc>,
               std::shared_ptr<const CudaBackToBackDesc>, std::shared_ptr<const CpuBackToBackDesc>,
               std::shared_ptr<const TileDesc>>
      body;

  // The body if it is of this kind, else null.
  template <typename Body>
  std::shared_ptr<const Body> get() const {
    const auto* found = std::get_if<std::shared_ptr<const Body>>(&body);
    return found != nullptr ? *found : nullptr;
  }
  // Calls the function that takes the kind that the body has.
  template <typename... Functions>
  auto visit(Functions... functions) const {
    const Overloaded<Functions...> overloaded{std::move(functions)...};
    return std::visit([&](const auto& found) { return overloaded(*found); }, body);
  }
};

// The source of an operand of a scheduled kernel.
struct Binding {
  enum class Kind : uint8_t { kValue, kWorkspace, kTensor };
  Kind kind = Kind::kValue;
  ir::ValueId value = 0;   // kValue: a value of the graph (a constant with packing is packed at compile time)
  uint32_t workspace = 0;  // kWorkspace: index into ScheduledGroup::workspaces
  Tensor tensor = {};      // kTensor: a constant that is not a value of the graph
};

struct ScheduledKernel {
  KernelDesc desc;
  Config config;
  std::vector<Binding> bindings;  // one per operand
  std::string label;              // short and readable: "gemm 128x768x768 + bias + gelu"
  double floor_seconds = 0;       // schedule/floor.h; on a CPU, with one thread
  StitchFacts stitch = {};        // stitch kernels only
};

struct Workspace {
  int64_t bytes = 0;
};

// A group as the sequence of kernels that compute it.
struct ScheduledGroup {
  std::vector<ScheduledKernel> kernels;
  std::vector<Workspace> workspaces;
  std::vector<std::string> notes;    // choices and their reasons, for `explain`
  std::vector<Boundary> boundaries;  // inside a stitch group
  double most_repeats = 0;           // the largest number of times that one costly value is computed
};

class ConfigSource;  // schedule/config/config_source.h

// Schedules a group. Contractions use the configuration that `configs` returns; if it is null, the cost model's. Throws
// kUnsupportedOperator if the group cannot be compiled for the target; the driver then uses the reference library.
ScheduledGroup schedule(const ir::Graph& graph, const ir::Group& group, const Target& target,
                        ConfigSource* configs = nullptr, const StitchOptions& stitch = {});

// True if schedule() can compile this node as a member of a group of this kind. The fusion rules call this.
bool can_compile(const ir::Graph& graph, const ir::Node& node, const Target& target, std::string* reason = nullptr);

}  // namespace heddle::schedule
