#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"
#include "target/target.h"

namespace heddle::decisions {

// A machine that decisions are made for, whatever machine makes them: every field of the target is pinned.
struct Machine {
  std::string name;  // "avx512", "avx2", "sm_90a", "sm_80", "gfx942"
  Target target;
};
const std::vector<Machine>& machines();

struct Dump {
  // Everything that compiling decides, one fact a line in a fixed order: groups, fusions made and refused, kernels with
  // their algorithm, mapping and schemes, launches, workspaces, buffers, and the hash of all kernel text.
  std::string decisions;
  // The text of all distinct kernels as one translation unit.
  std::string kernels;
};

// Runs the passes and the scheduler on an imported graph and emits its kernels. Nothing is compiled or run. Throws what
// the passes and the scheduler throw.
Dump dump(const ir::Graph& imported, const Machine& machine, passes::Precision precision);

}  // namespace heddle::decisions
