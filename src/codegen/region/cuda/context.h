#pragma once

#include <optional>
#include <string>

#include "codegen/names.h"
#include "codegen/scalar/scalar.h"
#include "schedule/region/cuda/launch.h"

namespace heddle::codegen {

// State shared by the code that writes the sweeps of one kernel: the text, the names of values, the counts of loops.
struct SweepContext {
  SweepContext(const schedule::CudaStitchDesc& kernel, Writer& text);

  const schedule::CudaStitchDesc& body;
  Writer& out;
  ScalarEmitter emitter;
  const schedule::SharedMemory memory;
  uint64_t bound = 0;          // variables that are bound outside of sweeps
  bool has_live = false;       // some teams of a warp have no iteration: they compute but do not store
  bool columns_dirty = false;  // a block's columns were combined since the last barrier

  std::string index_type() const { return body.wide_index ? "int64_t" : "int"; }
  // Steps of one thread over both walks.
  int64_t steps(const schedule::ThreadLayout& layout) const {
    return body.outer_steps(layout) * body.inner_steps(layout);
  }

  // A place in the block's shared memory.
  static std::string shared(int64_t offset) { return sum("raw_shared", fmt::format("{}", offset)); }
  // The last argument of a team's reduction: the slot through which its warps exchange values. Each slot is used once.
  std::string next_slot();
  void sync(int team);

  void begin_lanes(const schedule::ThreadLayout& layout);
  void end_lanes() { emitter.set_lanes(std::nullopt); }
  // Declares the variables of loops [first, last) from their joint position; the last loop varies fastest.
  void decode(const schedule::ThreadLayout& layout, size_t first, size_t last, const std::string& position);
  void forget(const schedule::ThreadLayout& layout, size_t first, size_t last);
  // The condition that those loops are within their extents, which the last block of a variable may exceed; "": always.
  std::string bounds_of(const schedule::ThreadLayout& layout, size_t first, size_t last) const;

  // A value as numbers: reductions of bool work on 0 and 1.
  std::string number(schedule::ExprId e, DType dtype);
  // Writes the values of a stage that depend only on the variables in `known`.
  void hoist(const schedule::CudaStage& stage, uint64_t known);
  void write_stores(const schedule::CudaStage& stage);

 private:
  size_t next_slot_ = 0;
};

}  // namespace heddle::codegen
