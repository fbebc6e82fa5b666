// The services that a tile-language program on a CPU requires of its launcher. The operands of its kernel are these
// services and an array of 8-byte words: the three extents of the grid, then the arguments.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

struct program_services {
  void* self;
  // `site` identifies the op; `values` is a buffer with its operand.
  void (*print)(void* self, int64_t site, int64_t operand, const int64_t* program, const void* values);
  void (*fail)(void* self, int64_t site, const int64_t* program, int64_t element);
  // Reports a loop that keeps reading the same values; may be null. If it returns nonzero, the program must return.
  // resume() reports that the loop made progress.
  int (*wait)(void* self, int64_t site, const int64_t* program);
  void (*resume)(void* self);
};

inline constexpr int kProgramWords = 3;  // before the arguments

}  // namespace heddle::tile
