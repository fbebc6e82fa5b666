#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// A loop of known length as one kernel that runs all steps (docs/design/cuda/recurrence.md). Its body multiplies rows
// by constant matrices and is elementwise otherwise.
//
// Every value of the body is a row-major matrix of `rows` rows; its element (row, unit) is computed from row `row`
// only. A step is a sequence of phases. For every (row, unit), a phase computes some sums (elements of products) and
// from them its results. A result goes to registers of the unit (a state of the next step), into a vector that later
// products read, and to memory.

// The left-hand side of products: a row of `length` elements for each row of the loop, rounded to `dtype`.
struct RecurrentVector {
  int64_t length = 0;
  DType dtype = DType::kF32;
  std::optional<uint32_t> state;  // this state after the previous step; nullopt: computed by a phase of every step
  bool operator==(const RecurrentVector&) const = default;
};

// Column unit + offset of a constant matrix, for every unit of a phase.
struct RecurrentSum {
  Tensor matrix;            // [length, columns]
  bool transposed = false;  // [columns, length]
  int64_t offset = 0;
  uint32_t local = 0;  // Expr::id
};

struct RecurrentProduct {
  uint32_t vector = 0;
  std::vector<RecurrentSum> sums;
  uint32_t operand = 0;  // pack_shares()
};

struct RecurrentResult {
  ExprId value = 0;
  DType dtype = DType::kF32;              // to which it is rounded
  std::vector<uint32_t> states;           // states that it updates and expressions read
  std::vector<uint32_t> vectors;          // vectors that it is an element of
  std::vector<uint32_t> stacked, finals;  // operands: all steps in sequence; the last step
  Index place, place_of_step;             // in these operands
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
  uint32_t initial = 0;           // operand
  std::optional<uint32_t> local;  // Expr::id under which expressions read it; none: only products read it
  bool operator==(const RecurrentState&) const = default;
};

// Its mapping to the device: tile/kernel/cuda/recurrence/recurrent.h.
struct RecurrentMapping {
  int cluster = 1, rows = 1, lanes = 1, threads = 32;
  bool registers = true;  // registers hold the weights; else shared memory
  int64_t shared_bytes = 0;
  double step_us = 0;  // predicted
  // For a row of `length` elements: neighbours in a piece that a lane reads at once; elements that a lane multiplies;
  // elements that a row occupies.
  int width(int64_t length) const;
  int share(int64_t length) const;
  int64_t pitch(int64_t length) const { return int64_t{share(length)} * lanes; }
  // Bytes of both buffers of a vector. Lanes read pieces at their full width.
  int64_t vector_bytes(int64_t length) const { return (2 * rows * pitch(length) * 4 + 15) / 16 * 16; }
  int units(int64_t of_phase) const { return static_cast<int>((of_phase + cluster - 1) / cluster); }  // of a block
};

struct RecurrentDesc {
  ExprPool pool;
  VarId step = 0, row = 0;
  int64_t steps = 0, rows = 0;
  int loops = 1;               // loops of equal text, side by side
  uint32_t loop_operands = 0;  // operands per loop, loop after loop
  std::vector<RecurrentState> states;
  std::vector<RecurrentVector> vectors;
  std::vector<RecurrentPhase> phases;
  RecurrentMapping mapping;

  int64_t clusters() const { return clusters_of(mapping); }
  int64_t clusters_of(const RecurrentMapping& m) const { return (rows + m.rows - 1) / m.rows; }
};

// The launch of the kernel, without its symbol.
CudaLaunch plan_launch(const RecurrentDesc& desc, size_t operands);

// Schedules independent loops as one kernel. Returns nullopt, with the reason in `why`, if one does not have this form,
// if they differ, or if launches for every step of the body are expected to be faster.
std::optional<ScheduledGroup> schedule_recurrence(const ir::Graph& graph, const std::vector<ir::NodeId>& loops,
                                                  const Target& target, std::string* why);

}  // namespace heddle::schedule
