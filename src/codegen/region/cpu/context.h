#pragma once

#include <optional>
#include <string>
#include <utility>

#include "codegen/names.h"
#include "codegen/scalar/scalar.h"

namespace heddle::codegen {

// State shared by the code that generates the stages of one kernel: the text, the names of values, the open loops.
struct StitchContext {
  StitchContext(const schedule::CpuStitchDesc& kernel, Writer& text, bool marks)
      : body(kernel), out(text), emitter(kernel.pool, Names{}, text), marked(marks) {
    emitter.set_style({.cpu = true});
    if (marked) emitter.mark_numbers();
  }

  const schedule::CpuStitchDesc& body;
  Writer& out;
  ScalarEmitter emitter;
  const bool marked;
  uint64_t bound = 0;      // the variables of the open loops, as a bit mask
  bool streams = false;    // True if some store bypasses the caches.
  int64_t unroll = 1;      // the number of vectors of a row that the current stage reduces at once
  bool long_sums = false;  // True if the current stage has long row sums, which call settle() from time to time.

  // Returns the text of a number that depends on the kernel's shape. If the kernel is written with marks (numbers.h),
  // the number stands between marks. Use any_number() if the number is 0 or 1 for some shapes but not for all.
  std::string number(int64_t value) const;
  std::string any_number(int64_t value) const;
  const std::string& buffer(uint32_t id) const { return emitter.names().buffers[id]; }
  // The address of element `at` of a buffer.
  std::string place(uint32_t id, const schedule::Index& at) {
    return fmt::format("{} + {}", buffer(id), emitter.index(at));
  }
  // The value of `e` as a number, for reductions: a bool becomes 0 or 1.
  std::string value(schedule::ExprId e, DType dtype);

  int64_t extent(schedule::VarId v) const { return body.pool.indices.extent(v); }
  // The bounds of a loop over `range`, clipped to the values of `v` in this iteration of the kernel.
  std::pair<std::string, std::string> bounds(schedule::VarId v, schedule::Range range) const;
  std::pair<std::string, std::string> bounds(schedule::VarId v) const { return bounds(v, {0, extent(v) - 1}); }
  // The number of values that a variable takes in this iteration of the kernel.
  std::string count_of(schedule::VarId v) const;

  void open_loop(schedule::VarId v, const std::string& lo, const std::string& hi);
  void close_loop(schedule::VarId v);
  // Opens a loop over vectors. `unrolls`: each iteration processes `unroll` vectors. `head`: an expression for the
  // number of elements before the first boundary of a streaming store; the first iteration processes only these.
  // `settle`: code that runs after each block of vectors. `pairs`: each iteration processes two vectors as one.
  void open_lanes(schedule::VarId v, const std::pair<std::string, std::string>& bounds, bool unrolls = false,
                  const std::string& head = "", const std::string& settle = "", bool pairs = false);
  void close_lanes(schedule::VarId v);

  // Writes the values that are invariant in the loops that are opened next.
  void hoist(const schedule::Stage& stage, const schedule::Piece& piece);
  void hoist(const schedule::Stage& stage) {
    for (const schedule::Piece& piece : stage.pieces) hoist(stage, piece);
  }
};

}  // namespace heddle::codegen
