#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "driver/target/machine_code.h"
#include "ir/graph.h"
#include "lang/program/program.h"
#include "runtime/plan.h"
#include "schedule/kernel_desc.h"
#include "target/target.h"
#include "tune/cpu_trial.h"

namespace heddle::driver {

// The parts of the driver that differ between kinds of target; those of scheduling and code generation are in
// schedule/backend.h and codegen/backend.h. There is one stateless object per kind.
class Backend {
 public:
  virtual ~Backend() = default;

  // Throws kDevice, with the missing part, if this machine has no such device (`device` is negative then: Settings).
  virtual void require_device(int device) const = 0;
  // Throws kOutOfMemory if a plan needs more memory than the target has.
  virtual void check_memory(const std::string& model, const runtime::Plan& plan, const Target& target) const = 0;

  // Suffix of files with a kernel's source text: ".cc".
  virtual std::string_view text_suffix() const = 0;
  // Implements compile_kernels().
  virtual MachineCode compile(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                              const KernelProgress& progress) const = 0;
  // The action of a plan step that runs a kernel. `operands`: those of the kernel's description, then those that its
  // text adds.
  virtual decltype(runtime::Step::action) step(const codegen::KernelSource& source,
                                               std::vector<uint32_t> operands) const = 0;

  // A launch of a tile program (lang/program/program.h) as a kernel of a plan. `bytes` has the size of each operand.
  // Throws kUnsupportedOperator if such devices cannot run the program.
  virtual codegen::KernelSource tile_launch(const lang::Kernel& kernel, const lang::Launch& launch,
                                            std::span<const int64_t> bytes, const Target& target) const = 0;
  // Bandwidth of a copy in memory, reads and writes together; on a CPU for one thread.
  virtual double copy_bytes_per_second(const Target& target) const = 0;

  // Prepares candidates for one group to be timed on the device. Before each run a CPU reads `flush_bytes` of other
  // memory, so that its caches hold as little of the operands as they would in a model.
  virtual std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates,
                                                  const Target& target, int device, const tune::GraphValues& graph,
                                                  int64_t flush_bytes) const = 0;
};

const Backend& backend_of(const Target& target);

// Compiles kernels, `jobs` units at a time. Throws what jit::compile and jit::compile_cubin throw. An error about an
// edited kernel text names its file.
MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                            const KernelProgress& progress = {});

// Throws kOutOfMemory if this machine does not have `needed` bytes for `what` of a model.
void check_memory(const std::string& model, int64_t needed, const char* what);

// For Backend::trial(). The graph must outlive the result.
tune::GraphValues values_of(const ir::Graph& graph);

}  // namespace heddle::driver
