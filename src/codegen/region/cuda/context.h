#pragma once

#include <map>
#include <optional>
#include <string>

#include "codegen/names.h"
#include "codegen/scalar/scalar.h"
#include "schedule/region/cuda/launch/launch.h"

namespace heddle::codegen {

// State that the writers of one kernel's sweeps share: the output text, the names of values and the loop counts.
struct SweepContext {
  SweepContext(const schedule::CudaStitchDesc& kernel, Writer& text);

  const schedule::CudaStitchDesc& body;
  Writer& out;
  ScalarEmitter emitter;
  const schedule::SharedMemory memory;
  uint64_t bound = 0;     // set of variables that are bound outside the sweeps
  bool has_live = false;  // some teams of a warp have no iteration left: they compute but do not store
  std::map<uint32_t, std::string> stored_texts;  // of kept loads in the type of the memory, by Expr::id of the kLocal
  bool columns_dirty = false;  // a reduction of a block's columns used shared memory since the last barrier

  std::string index_type() const { return body.wide_index ? "int64_t" : "int"; }
  // The number of steps of one thread: outer steps times inner steps.
  int64_t steps(const schedule::ThreadLayout& layout) const {
    return body.outer_steps(layout) * body.inner_steps(layout);
  }

  // The text of a pointer to byte `offset` of the block's shared memory.
  static std::string shared(int64_t offset) { return sum("raw_shared", fmt::format("{}", offset)); }
  // The text of the last argument of a team's reduction: the shared-memory slot through which the team's warps exchange
  // values. Each slot is used only once.
  std::string next_slot();
  void sync(int team);

  void begin_lanes(const schedule::ThreadLayout& layout);
  void end_lanes() { emitter.set_lanes(std::nullopt); }
  // Declares the variables of loops [first, last). `position` is the text of their linear index, in which the last loop
  // varies fastest.
  void decode(const schedule::ThreadLayout& layout, size_t first, size_t last, const std::string& position);
  void forget(const schedule::ThreadLayout& layout, size_t first, size_t last);
  // The condition that the variables of loops [first, last) are within their extents. The last block of a blocked
  // variable may exceed the extent. "": always true.
  std::string bounds_of(const schedule::ThreadLayout& layout, size_t first, size_t last) const;

  // The text of a value as a number. A bool becomes 0 or 1, since reductions need numbers.
  std::string number(schedule::ExprId e, DType dtype);
  // Writes code that computes the values of a stage that depend only on the variables in `known`, and names these
  // values.
  void hoist(const schedule::CudaStage& stage, uint64_t known);
  void write_stores(const schedule::CudaStage& stage);

 private:
  size_t next_slot_ = 0;
};

}  // namespace heddle::codegen
