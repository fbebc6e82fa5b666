#pragma once

#include <optional>
#include <string>
#include <utility>

#include "codegen/names.h"
#include "codegen/scalar/scalar.h"

namespace heddle::codegen {

// State shared by the code that writes the stages of one kernel: the text, the names of values, the open loops.
struct StitchContext {
  StitchContext(const schedule::CpuStitchDesc& kernel, Writer& text, bool marks)
      : body(kernel), out(text), emitter(kernel.pool, Names{}, text), marked(marks) {
    if (marked) emitter.mark_numbers();
  }

  const schedule::CpuStitchDesc& body;
  Writer& out;
  ScalarEmitter emitter;
  const bool marked;
  uint64_t bound = 0;      // variables of the open loops
  bool streams = false;    // some store bypasses the caches
  int64_t unroll = 1;      // vectors of a row reduced at once in the current stage
  bool long_sums = false;  // in the current stage, row sums settle from time to time

  // A number of the kernel's shape, in marks if the text is marked (numbers.h). any_number() is for numbers that may be
  // 0 or 1 in one shape only.
  std::string number(int64_t value) const;
  std::string any_number(int64_t value) const;
  const std::string& buffer(uint32_t id) const { return emitter.names().buffers[id]; }
  // Element `at` of a buffer.
  std::string place(uint32_t id, const schedule::Index& at) {
    return fmt::format("{} + {}", buffer(id), emitter.index(at));
  }
  // A value as numbers: reductions of bool work on 0 and 1.
  std::string value(schedule::ExprId e, DType dtype);

  int64_t extent(schedule::VarId v) const { return body.pool.indices.extent(v); }
  // Bounds of a loop: a range of the whole variable, cut to the block that this iteration works on.
  std::pair<std::string, std::string> bounds(schedule::VarId v, schedule::Range range) const;
  std::pair<std::string, std::string> bounds(schedule::VarId v) const { return bounds(v, {0, extent(v) - 1}); }
  // How many values of a variable this iteration has.
  std::string count_of(schedule::VarId v) const;

  void open_loop(schedule::VarId v, const std::string& lo, const std::string& hi);
  void close_loop(schedule::VarId v);
  // A loop over vectors: `unroll` of them at once with `settle` after each block, or only the first vectors, up to a
  // boundary after `head` elements.
  void open_lanes(schedule::VarId v, const std::pair<std::string, std::string>& bounds, bool unrolls = false,
                  const std::string& head = "", const std::string& settle = "");
  void close_lanes(schedule::VarId v);

  // Writes the values that do not change in the loops to come.
  void hoist(const schedule::Stage& stage, const schedule::Piece& piece);
  void hoist(const schedule::Stage& stage) {
    for (const schedule::Piece& piece : stage.pieces) hoist(stage, piece);
  }
};

}  // namespace heddle::codegen
