#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// A loop with a known number of steps, as a single kernel that runs all of these steps
// (docs/design/cuda/recurrence.md). The loop body consists of products of rows by constant matrices and of elementwise
// ops.
//
// Every value of the body is a row-major matrix of `rows` rows. A unit is one of its columns, as in the hidden units of
// an RNN. Element (row, unit) depends on row `row` only. A step is a sequence of phases. For every (row, unit), a phase
// computes some sums (elements of products) and then computes its results from these sums. A result is stored in up to
// three locations: registers of the threads that compute the unit (if it is a state of the next step), a vector that
// later products read, and memory.

// The left-hand operand of products: a row of `length` elements for each row of the loop, rounded to `dtype`.
struct RecurrentVector {
  int64_t length = 0;
  DType dtype = DType::kF32;
  std::optional<uint32_t> state;  // holds this state after the previous step; nullopt: a phase computes it in each step
  bool operator==(const RecurrentVector&) const = default;
};

// A sum that a phase computes for each of its units: the product of a vector and column (unit + offset) of `matrix`.
struct RecurrentSum {
  Tensor matrix;            // [length, columns]
  bool transposed = false;  // true: `matrix` is [columns, length]
  int64_t offset = 0;
  uint32_t local = 0;  // Expr::id of the sum
};

struct RecurrentProduct {
  uint32_t vector = 0;
  std::vector<RecurrentSum> sums;
  uint32_t operand = 0;  // operand number of the weights, which pack_shares() packs
};

struct RecurrentResult {
  ExprId value = 0;
  DType dtype = DType::kF32;              // the type that the value is rounded to
  std::vector<uint32_t> states;           // numbers of those states that the result updates and expressions read
  std::vector<uint32_t> vectors;          // numbers of the vectors that the result is an element of
  std::vector<uint32_t> stacked, finals;  // operands that receive the results of all steps; of the last step
  Index place, place_of_step;             // indices of the element in `finals` and in `stacked`
  bool operator==(const RecurrentResult&) const = default;
};

struct RecurrentPhase {
  int64_t units = 0;
  VarId unit = 0;
  std::vector<RecurrentProduct> products;
  std::vector<RecurrentResult> results;
};

struct RecurrentState {
  DType dtype = DType::kF32;
  int64_t units = 0;
  uint32_t initial = 0;           // operand number
  std::optional<uint32_t> local;  // Expr::id under which expressions read the state; nullopt: only products read it
  bool operator==(const RecurrentState&) const = default;
};

// The mapping of a RecurrentDesc to the device: tile/kernel/cuda/recurrence/recurrent.h.
struct RecurrentMapping {
  int cluster = 1, rows = 1, lanes = 1, threads = 32;
  bool registers = true;  // true: weights are in registers; false: in shared memory
  int64_t shared_bytes = 0;
  double step_us = 0;  // predicted time of a step in microseconds
  // For a row of `length` elements: width() is the number of contiguous elements that a lane reads at once, share() the
  // number of elements that a lane multiplies, and pitch() the number of elements that a row occupies, with padding.
  int width(int64_t length) const;
  int share(int64_t length) const;
  int64_t pitch(int64_t length) const { return int64_t{share(length)} * lanes; }
  // The bytes of a vector's two buffers. Lanes read pieces of full width, so the rows are padded.
  int64_t vector_bytes(int64_t length) const { return (2 * rows * pitch(length) * 4 + 15) / 16 * 16; }
  int units(int64_t of_phase) const { return static_cast<int>((of_phase + cluster - 1) / cluster); }  // per block
};

struct RecurrentDesc {
  ExprPool pool;
  VarId step = 0, row = 0;
  int64_t steps = 0, rows = 0;
  int loops = 1;               // independent loops with equal bodies, run side by side
  uint32_t loop_operands = 0;  // operands per loop; each loop's operands are contiguous
  std::vector<RecurrentState> states;
  std::vector<RecurrentVector> vectors;
  std::vector<RecurrentPhase> phases;
  RecurrentMapping mapping;

  int64_t clusters() const { return clusters_of(mapping); }
  int64_t clusters_of(const RecurrentMapping& m) const { return (rows + m.rows - 1) / m.rows; }
};

// The launch of the kernel, without the kernel's symbol.
CudaLaunch plan_launch(const RecurrentDesc& desc, size_t operands);

// Schedules independent loops as one kernel. Returns nullopt, with the reason in `why`, if RecurrentDesc cannot
// describe a loop, if the loops differ, or if separate launches for every step of the body are expected to be faster.
std::optional<ScheduledGroup> schedule_recurrence(const ir::Graph& graph, const std::vector<ir::NodeId>& loops,
                                                  const Target& target, std::string* why);

}  // namespace heddle::schedule
