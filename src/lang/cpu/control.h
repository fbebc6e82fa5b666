#pragma once

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Writes the body of a program whose arguments are already held: its ops in order, with loops and branches.
Writer write_body(State& state);

}  // namespace heddle::lang::cpu
