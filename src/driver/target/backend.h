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

// The parts of the driver that depend on the kind of target. Scheduling and code generation have their own backends
// (schedule/backend.h and codegen/backend.h). There is one stateless object per kind.
class Backend {
 public:
  virtual ~Backend() = default;

  // Throws kDevice if this machine does not have the target's device; the error names the missing part. `device` is
  // Settings::device, which is negative in this case.
  virtual void require_device(int device) const = 0;
  // Throws kOutOfMemory if a plan needs more memory than the target has.
  virtual void check_memory(const std::string& model, const runtime::Plan& plan, const Target& target) const = 0;

  // The suffix of files with a kernel's source text, such as ".cc".
  virtual std::string_view text_suffix() const = 0;
  // Implements compile_kernels().
  virtual MachineCode compile(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                              const KernelProgress& progress) const = 0;
  // Returns the action of a plan step that runs a kernel. `operands` has the operands of the kernel's description,
  // followed by the operands that the kernel's text adds.
  virtual decltype(runtime::Step::action) step(const codegen::KernelSource& source,
                                               std::vector<uint32_t> operands) const = 0;

  // Returns a plan's kernel for one launch of a tile program (lang/program/program.h). `bytes` has the size of each
  // operand. Throws kUnsupportedOperator if devices of this kind cannot run the program.
  virtual codegen::KernelSource tile_launch(const lang::Kernel& kernel, const lang::Launch& launch,
                                            std::span<const int64_t> bytes, const Target& target) const = 0;
  // The bandwidth of a memory copy, counting both reads and writes. On a CPU, the bandwidth of one thread.
  virtual double copy_bytes_per_second(const Target& target) const = 0;

  // Prepares the candidates of one group for timing on the device. On a CPU, `flush_bytes` of unrelated memory are
  // written before each run, so that the caches hold as little of the operands as they would within a model.
  virtual std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates,
                                                  const Target& target, int device, const tune::GraphValues& graph,
                                                  int64_t flush_bytes) const = 0;
};

const Backend& backend_of(const Target& target);

// Compiles kernels, `jobs` units in parallel. Throws the errors of jit::compile and jit::compile_cubin. An error in a
// kernel text that a user edited names the text's file.
MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                            const KernelProgress& progress = {});

// Throws kOutOfMemory if this machine does not have `needed` bytes for `what` of a model.
void check_memory(const std::string& model, int64_t needed, const char* what);

// Returns the graph's values for Backend::trial(). The graph must outlive the result.
tune::GraphValues values_of(const ir::Graph& graph);

}  // namespace heddle::driver
