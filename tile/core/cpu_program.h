// The services that the launcher provides to a tile-language program on a CPU. The operands of the program's kernel are
// these services and an array of 8-byte words: the three extents of the grid, then the arguments.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

struct program_services {
  void* self;
  // `site` identifies the op; `program` is the program's index in the grid; `values` is a buffer with the printed
  // operand.
  void (*print)(void* self, int64_t site, int64_t operand, const int64_t* program, const void* values);
  void (*fail)(void* self, int64_t site, const int64_t* program, int64_t element);
  // wait() reports a loop that keeps reading the same values; it may be null. If it returns nonzero, the program must
  // return. resume() reports that the loop has made progress.
  int (*wait)(void* self, int64_t site, const int64_t* program);
  void (*resume)(void* self);
};

inline constexpr int kProgramWords = 3;  // number of words before the arguments

}  // namespace heddle::tile
