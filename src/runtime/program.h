#pragma once

#include <memory>
#include <vector>

#include "jit/library.h"
#include "runtime/interpreter.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// A plan prepared to run: symbols are resolved, bodies are numbered, and every pointer table has an offset in one flat
// table per context. Bodies are not recursive, so each body needs only one pointer table.
struct Program {
  struct Loop {
    std::unique_ptr<Program> body;
    LoopLayout layout;
    std::vector<int64_t> state_bytes, slice_bytes;
    size_t current_at = 0;  // offset of the states' pointers in the flat table
  };
  struct Op {
    const Step* step = nullptr;
    // For kernels.
    jit::Kernel kernel = nullptr;
    size_t operands_at = 0;     // offset of the operand pointers in the flat table
    int64_t longest_range = 0;  // in tasks; set if the kernel runs long enough to be cancelled (each_part())
    bool fixed = false;         // all operands are constants or in the arena, so their pointers never change
    // For reference steps.
    std::shared_ptr<const void> prepared;
    // For loops and branches.
    std::unique_ptr<Loop> loop;
    std::unique_ptr<Program> then_body, else_body;
  };

  const Plan* plan = nullptr;
  Libraries libraries;  // set in the outermost program only
  std::vector<Op> ops;
  size_t pointers_at = 0;  // offset of the buffers' pointers in the flat table
  // By port: its kInput or kOutput buffers. A port has several buffers if views of it are used.
  std::vector<std::vector<uint32_t>> inputs, outputs;
  // Sizes of a context. Set in the outermost program only.
  size_t pointers = 0;
  int64_t scratch_bytes = 0;  // per thread
};

// Prepares a plan. Looks up each kernel in the plan's library and, if the kernel is not there, in `libraries`. Throws
// kDamagedArtefact if a kernel is missing.
std::unique_ptr<const Program> make_program(const Plan& plan, const Interpreter* interpreter,
                                            const Libraries& libraries = {});

}  // namespace heddle::runtime
