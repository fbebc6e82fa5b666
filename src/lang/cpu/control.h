#pragma once

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// The text of a program, once its arguments are held: its ops in order, loops and branches.
Lines write_body(State& state);

}  // namespace heddle::lang::cpu
