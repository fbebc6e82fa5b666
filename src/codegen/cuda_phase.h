#pragma once

#include <string>
#include <vector>

#include "target/cuda_launch.h"

namespace heddle::codegen {

// A kernel as code of another kernel: device functions that compute one of its blocks. In all texts, kStandIn is the
// name of the phase.
struct CudaPhase {
  // The namespace <name>_parts with the functions run(arguments..., raw_shared, block) and, for a phase that loads
  // ahead, ahead(arguments..., block). All threads of the block call them.
  std::string definitions;
  std::vector<std::string> types;  // of the arguments: "tile::GemmArgs"
  std::vector<std::string> includes;
  CudaLaunch launch;  // its arguments and pointers belong to the phase's own operands
};

}  // namespace heddle::codegen
