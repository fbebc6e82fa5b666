#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// A loop of known length whose body multiplies rows by constant matrices and is elementwise otherwise, as one kernel
// that runs all steps (docs/design/cuda/recurrence.md).
//
// Everything that the body makes is a matrix of `rows` rows, row-major; its element (row, unit) is computed from row
// `row` only. A step is a sequence of phases; a phase computes for every (row, unit) some sums (elements of products)
// and from them its results. A result goes to registers of the unit (a state of the next step), into a vector that
// later products read, and to memory.

// A left-hand side of products: a row of `length` elements for each row, rounded to `dtype`.
struct RecurrentVector {
  int64_t length = 0;
  DType dtype = DType::kF32;
  std::optional<uint32_t> state;  // it is that state, as the last step left it; else a phase makes it in every step
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
  std::vector<uint32_t> states;           // that it is, where expressions read them
  std::vector<uint32_t> vectors;          // of which it is an element
  std::vector<uint32_t> stacked, finals;  // operands: all steps one behind another; the last step
  Index place, place_of_step;             // in those
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
  std::optional<uint32_t> local;  // Expr::id under which expressions read it; none: only products do
  bool operator==(const RecurrentState&) const = default;
};

// How it lies on the device: tile/kernel/cuda/recurrence/recurrent.h.
struct RecurrentMapping {
  int cluster = 1, rows = 1, lanes = 1, threads = 32;
  bool registers = true;  // hold the weights; else shared memory does
  int64_t shared_bytes = 0;
  double step_us = 0;  // predicted
  // Of a row of `length` elements: how many a lane multiplies, in pieces of how many neighbours; what a row takes.
  int width(int64_t length) const;
  int share(int64_t length) const;
  int64_t pitch(int64_t length) const { return int64_t{share(length)} * lanes; }
  // Of both buffers of a vector; pieces are read at their full width.
  int64_t vector_bytes(int64_t length) const { return (2 * rows * pitch(length) * 4 + 15) / 16 * 16; }
  int units(int64_t of_phase) const { return static_cast<int>((of_phase + cluster - 1) / cluster); }  // of a block
};

struct RecurrentDesc {
  ExprPool pool;
  VarId step = 0, row = 0;
  int64_t steps = 0, rows = 0;
  int loops = 1;               // of equal text, side by side
  uint32_t loop_operands = 0;  // of each; those of one loop come after those of the one before
  std::vector<RecurrentState> states;
  std::vector<RecurrentVector> vectors;
  std::vector<RecurrentPhase> phases;
  RecurrentMapping mapping;

  int64_t clusters() const { return clusters_of(mapping); }
  int64_t clusters_of(const RecurrentMapping& m) const { return (rows + m.rows - 1) / m.rows; }
};

// How the kernel is launched, without its symbol.
CudaLaunch plan_launch(const RecurrentDesc& desc, size_t operands);

// The loops, independent of each other, as one kernel; nullopt where one is no such loop, where they differ, or where
// launches of the body in every step are expected to be faster; `why` says so.
std::optional<ScheduledGroup> schedule_recurrence(const ir::Graph& graph, const std::vector<ir::NodeId>& loops,
                                                  const Target& target, std::string* why);

}  // namespace heddle::schedule
