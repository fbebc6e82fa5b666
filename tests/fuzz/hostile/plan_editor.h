#pragma once

#include "runtime/plan.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// One change of a plan or of a body in it: an index, a size, a shape or a type, a part removed or repeated, a step of
// another kind, a body of a body. The plan can still be written.
void edit_plan(runtime::Plan& plan, Rng& rng);

}  // namespace heddle::fuzz
