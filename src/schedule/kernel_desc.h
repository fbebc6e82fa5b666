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

// The layout of a constant operand that is packed before the plan is stored. Other operands are dense row-major.
struct Packing {
  std::string kind;             // "": dense; else the packer's name: "panels", "words", "rows", "diagonal", "winograd"
  std::vector<int64_t> params;  // the packer's parameters (tile/core/pack.h)
  bool operator==(const Packing&) const = default;
};

// A buffer that a kernel reads or writes.
struct Operand {
  enum class Role : uint8_t { kInput, kOutput };
  Role role = Role::kInput;
  DType dtype = DType::kF32;
  Shape shape;  // dense row-major, unless packed
  Packing packing;
  bool constant = false;  // not written while a plan runs
  bool in_place = false;  // an output that the kernel writes only partly; the memory already holds the other elements
};

struct CpuStitchDesc;       // schedule/region/stitch.h: a generated loop nest over memory-bound nodes
struct CudaStitchDesc;      // schedule/region/cuda/stitch.h: the same for a GPU, as passes of thread groups
struct CudaBundleDesc;      // schedule/region/cuda/launch/bundle.h: several GPU stitch kernels in one launch
struct CpuBundleDesc;       // schedule/region/bundle.h: several CPU stitch kernels as one kernel
struct ContractionDesc;     // schedule/product/contraction.h: template + epilogue (dot, conv, window)
struct RecurrentDesc;       // schedule/recurrence/recurrent.h: all steps of a loop on a GPU
struct AttentionDesc;       // schedule/attention/attention.h: product, softmax, product on a GPU
struct CudaBackToBackDesc;  // schedule/back_to_back/back_to_back.h: two contractions
struct CpuBackToBackDesc;   // schedule/back_to_back/cpu.h: two or more contractions on a CPU
struct SequenceDesc;        // schedule/sequence/sequence.h: several GPU kernels as phases of one launch
struct StandaloneDesc;      // schedule/region/standalone.h: a single node with a library kernel (scatter, top-k)
// A kernel written in the tile language. The driver emits its code, since only the driver knows the tile language.
struct TileDesc {
  std::string name;
};

// One function object made of several lambdas, for std::visit: one lambda for each kind of body.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

// Everything that determines a kernel's source text except its Config. A description is pure data and can be printed.
// Equal descriptions give equal kernels, so the layers of a model share kernels.
struct KernelDesc {
  std::vector<Operand> operands;
  std::variant<std::shared_ptr<const CpuStitchDesc>, std::shared_ptr<const CudaStitchDesc>,
               std::shared_ptr<const ContractionDesc>, std::shared_ptr<const StandaloneDesc>,
               std::shared_ptr<const CpuBundleDesc>, std::shared_ptr<const CudaBundleDesc>,
               std::shared_ptr<const RecurrentDesc>, std::shared_ptr<const AttentionDesc>,
               std::shared_ptr<const CudaBackToBackDesc>, std::shared_ptr<const CpuBackToBackDesc>,
               std::shared_ptr<const SequenceDesc>, std::shared_ptr<const TileDesc>>
      body;

  // The body if its type is Body, else null.
  template <typename Body>
  std::shared_ptr<const Body> get() const {
    const auto* found = std::get_if<std::shared_ptr<const Body>>(&body);
    return found != nullptr ? *found : nullptr;
  }
  // Calls the one of `functions` that accepts the body's type.
  template <typename... Functions>
  auto visit(Functions... functions) const {
    const Overloaded<Functions...> overloaded{std::move(functions)...};
    return std::visit([&](const auto& found) { return overloaded(*found); }, body);
  }
};

// The source of a scheduled kernel's operand.
struct Binding {
  enum class Kind : uint8_t { kValue, kWorkspace, kTensor };
  Kind kind = Kind::kValue;
  ir::ValueId value = 0;   // kValue: a value of the graph (a constant with a packing is packed at compile time)
  uint32_t workspace = 0;  // kWorkspace: index into ScheduledGroup::workspaces
  Tensor tensor = {};      // kTensor: a constant that is not in the graph
};

struct ScheduledKernel {
  KernelDesc desc;
  Config config;
  std::vector<Binding> bindings;  // one per operand
  std::string label;              // a short name for people: "gemm 128x768x768 + bias + gelu"
  double floor_seconds = 0;       // a lower bound of its time (schedule/floor.h); on a CPU, with one thread
  StitchFacts stitch = {};        // stitch kernels only
};

struct Workspace {
  int64_t bytes = 0;
};

// The sequence of kernels that computes a group.
struct ScheduledGroup {
  std::vector<ScheduledKernel> kernels;
  std::vector<Workspace> workspaces;
  std::vector<std::string> notes;    // choices and their reasons, for `explain`
  std::vector<Boundary> boundaries;  // between the kernels of a stitch group
  double most_repeats = 0;           // the largest number of times that one costly value is computed
};

class ConfigSource;  // schedule/config/config_source.h

// Schedules a group. `configs` chooses the configurations of contractions; if it is null, the cost model does. Throws
// kUnsupportedOperator if the group cannot be compiled for the target; the driver then uses the reference library.
ScheduledGroup schedule(const ir::Graph& graph, const ir::Group& group, const Target& target,
                        ConfigSource* configs = nullptr, const StitchOptions& stitch = {});

// True if schedule() can compile this node as a member of its group. The fusion rules call this. If the result is
// false, `reason` gets the reason.
bool can_compile(const ir::Graph& graph, const ir::Node& node, const Target& target, std::string* reason = nullptr);

}  // namespace heddle::schedule
