#pragma once

#include <memory>
#include <vector>

#include "jit/library.h"
#include "runtime/interpreter.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// A plan prepared to run: symbols are resolved, bodies are numbered, and every pointer table has its place in one flat
// table per context. Bodies do not recurse, so each needs only one table.
struct Program {
  struct Loop {
    std::unique_ptr<Program> body;
    LoopLayout layout;
    std::vector<int64_t> state_bytes, slice_bytes;
    size_t current_at = 0;  // place of the states' pointers in the flat table
  };
  struct Op {
    const Step* step = nullptr;
    // Kernels.
    jit::Kernel kernel = nullptr;
    size_t operands_at = 0;     // place of the operand pointers in the flat table
    int64_t longest_range = 0;  // in tasks, if a kernel is long enough to be cancelled (each_part())
    bool fixed = false;         // all operands are constants or in the arena: their pointers never change
    // Reference steps.
    std::shared_ptr<const void> prepared;
    // Control.
    std::unique_ptr<Loop> loop;
    std::unique_ptr<Program> then_body, else_body;
  };

  const Plan* plan = nullptr;
  Libraries libraries;  // outermost only
  std::vector<Op> ops;
  size_t pointers_at = 0;  // place of the buffers' pointers in the flat table
  // By port: its kInput or kOutput buffers (several if views of it are used).
  std::vector<std::vector<uint32_t>> inputs, outputs;
  // Outermost only: sizes of a context.
  size_t pointers = 0;
  int64_t scratch_bytes = 0;  // per thread
};

// Looks kernels up in the plan's library, then in `libraries`. Throws kDamagedArtefact if one is missing.
std::unique_ptr<const Program> make_program(const Plan& plan, const Interpreter* interpreter,
                                            const Libraries& libraries = {});

}  // namespace heddle::runtime
