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

// What the driver does otherwise for one kind of target than for another, beside what schedule/backend.h and
// codegen/backend.h decide. One object a kind, without state.
class Backend {
 public:
  virtual ~Backend() = default;

  // Throws kDevice, saying what is missing, where this machine has no such device: `device` is negative (Settings).
  virtual void require_device(int device) const = 0;
  // Throws kOutOfMemory where a plan needs more than the target has.
  virtual void check_memory(const std::string& model, const runtime::Plan& plan, const Target& target) const = 0;

  // Of files with a kernel's text: ".cc".
  virtual std::string_view text_suffix() const = 0;
  // As compile_kernels().
  virtual MachineCode compile(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                              const KernelProgress& progress) const = 0;
  // A kernel in a plan; operands are those of its description and what the text has after them.
  virtual decltype(runtime::Step::action) step(const codegen::KernelSource& source,
                                               std::vector<uint32_t> operands) const = 0;

  // A launch of a program of the tile language (lang/program/program.h) as a kernel of a plan, whose operands have so
  // many `bytes`. Throws kUnsupportedOperator for what such devices do not run.
  virtual codegen::KernelSource tile_launch(const lang::Kernel& kernel, const lang::Launch& launch,
                                            std::span<const int64_t> bytes, const Target& target) const = 0;
  // Of a copy in memory, read and written; on a CPU by one thread.
  virtual double copy_bytes_per_second(const Target& target) const = 0;

  // Candidates for one group, to be timed on the device. Between two runs a CPU reads `flush_bytes` of other memory, so
  // that its caches hold as little of the operands as in a model.
  virtual std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates,
                                                  const Target& target, int device, const tune::GraphValues& graph,
                                                  int64_t flush_bytes) const = 0;
};

const Backend& backend_of(const Target& target);

// `jobs` units at a time. Throws what jit::compile and jit::compile_cubin throw; an error about an edited text names
// its file.
MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                            const KernelProgress& progress = {});

// Throws kOutOfMemory where this machine has no `needed` bytes for `what` of a model.
void check_memory(const std::string& model, int64_t needed, const char* what);

// For Backend::trial(); the graph outlives the result.
tune::GraphValues values_of(const ir::Graph& graph);

}  // namespace heddle::driver
