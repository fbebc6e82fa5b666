#pragma once

#include <string>

#include "base/hash.h"

namespace heddle::jit {

// Machine code for a GPU.
struct CompiledCubin {
  std::string bytes;
  std::string log;  // the compiler's output, including the registers and shared memory of each kernel
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Entries of the user's cache for machine code. find_cubin() sets the bytes and the log of `compiled` and returns true
// if there is an entry with this key.
bool find_cubin(const Hash128& key, CompiledCubin& compiled);
void store_cubin(const Hash128& key, const CompiledCubin& compiled);

}  // namespace heddle::jit
