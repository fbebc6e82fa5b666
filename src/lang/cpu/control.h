#pragma once

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Generates the body of a program: its ops in order, with loops and branches. The program's arguments must already have
// names in `state`.
Writer write_body(State& state);

}  // namespace heddle::lang::cpu
